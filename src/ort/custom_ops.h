// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Operators of our own, handed to one session at a time: there is no process-wide registry, so two
// sessions may hold different operators of the same name.
//
//   auto ops = std::make_shared<CustomOpSet>("tenonnx.sim");     // after onnxruntime() succeeded
//   ops->add(std::make_unique<RoundOp>());                       // an Ort::CustomOpBase<...>
//   SessionSetup setup;
//   setup.custom_ops.push_back(ops);
#pragma once

#include <onnxruntime_cxx_api.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenonnx {

// The operators of one domain. Sessions keep the set alive, since ONNX Runtime holds bare pointers
// to the operators.
class CustomOpSet {
 public:
  explicit CustomOpSet(std::string domain) : name_(std::move(domain)), domain_(name_.c_str()) {}

  // Op derives from OrtCustomOp (Ort::CustomOpBase, or Ort::Custom::OrtLiteCustomStruct/Func); it
  // is deleted as the type given here, because OrtCustomOp has no virtual destructor.
  template <typename Op>
  void add(std::unique_ptr<Op> op) {
    domain_.Add(op.get());
    ops_.push_back(std::shared_ptr<void>(std::move(op)));
  }

  const std::string& domain() const { return name_; }
  OrtCustomOpDomain* get() const { return domain_; }

 private:
  std::string name_;
  std::vector<std::shared_ptr<void>> ops_;
  Ort::CustomOpDomain domain_;  // destroyed before the operators that it points to
};

}  // namespace tenonnx
