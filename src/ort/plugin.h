// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Providers that come as libraries of their own (ONNX Runtime's plugin interface).
#pragma once

#include <onnxruntime_cxx_api.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct PluginProvider {
  std::string name;  // "SimNpuExecutionProvider": what profiles and records call it
  std::vector<Ort::ConstEpDevice> devices;
};

// Registers a library once per process and finds the devices that it offers by the name `provider`.
// `registration` is the name under which it is registered; empty: one that ends in ".virtual",
// which allows a provider to offer a device that the machine does not have. (Qualcomm's provider
// takes the registration's name for its own.) Thread-safe. FailedPrecondition where the library
// cannot be loaded or offers no device. Needs onnxruntime() to have succeeded.
Result<PluginProvider> register_plugin(const std::filesystem::path& library,
                                       const std::string& provider,
                                       const std::string& registration = "");

// Puts the provider before the CPU. Throws Ort::Exception; meant for SessionSetup::configure.
void append_plugin(const PluginProvider& plugin, const std::map<std::string, std::string>& options,
                   Ort::SessionOptions& session);

}  // namespace tenonnx
