// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Groups of options that several commands share, each declared once.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "flow/compare.h"
#include "flow/prepare.h"
#include "ort/executor.h"
#include "tenonnx/pipeline.h"

namespace tenonnx::cli {

// --intra-threads, --inter-threads, --spinning
void add_scheduling_options(CLI::App& app, SchedulingParams& scheduling);
void add_thread_options(CLI::App& app, LoadOptions& load);
// --images, --labels, --max-images
void add_image_options(CLI::App& app, std::filesystem::path& images, std::filesystem::path& labels,
                       std::size_t& max_images);
// --input-shape NAME=1x3x640x640 (repeatable)
void add_input_shape_option(CLI::App& app, std::map<std::string, std::string>& shapes);
// The same, and --no-fold-constants
void add_preparation_options(CLI::App& app, Preparation& preparation);

// What is fed to both sides: --inputs, --images, --max-images, --random-inputs, --seed
void add_feed_options(CLI::App& app, CompareOptions& options);
// --storage: the type whose rounding is the noise floor
void add_storage_option(CLI::App& app, CompareOptions& options);
// --memory
void add_memory_option(CLI::App& app, CompareOptions& options);
// What probe and inject have in common: --ref, what is fed, preparation and threads
void add_numerics_options(CLI::App& app, CompareOptions& options);

}  // namespace tenonnx::cli
