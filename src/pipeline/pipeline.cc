// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "tenonnx/pipeline.h"

#include <utility>

#include "base/status.h"
#include "contract/contract.h"
#include "package/manifest.h"
#include "pipeline/chain.h"
#include "pipeline/decode.h"
#include "pipeline/image.h"
#include "pipeline/preprocess.h"
#include "pipeline/versions.h"

namespace tenonnx {

struct Pipeline::State {
  Manifest manifest;
  Preprocessor preprocessor;
  PackageChain chain;
};

namespace {

Status not_ready() {
  return FailedPrecondition("the pipeline is not ready: call init() first, and look at its status");
}

Status check_verdict(const Manifest& manifest, const PipelineConfig& config) {
  if (manifest.verdict != "FAIL" || config.allow_failed_package) return {};
  std::string failed;
  for (const Json& json : manifest.checks) {
    const JsonReader check(json, "check");
    const Result<std::string> verdict = check.string("verdict"), name = check.string("name");
    if (failed.empty() && verdict.ok() && name.ok() && *verdict == "FAIL")
      failed = fmt::format(", first at check \"{}\"", *name);
  }
  return FailedPrecondition(
      "the package '{}' was verified and FAILED{}: what it computes is not what the model "
      "computes. See its manifest.json. To run it all the same: --force on the command line, "
      "PipelineConfig::allow_failed_package in C++",
      config.package, failed);
}

}  // namespace

Pipeline::Pipeline(PipelineConfig config) : config_(std::move(config)) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

Status Pipeline::init() {
  state_.reset();
  TENONNX_ASSIGN_OR_RETURN(Manifest manifest, read_package(config_.package));
  TENONNX_RETURN_IF_ERROR(check_verdict(manifest, config_));
  if (config_.check_versions)
    TENONNX_RETURN_IF_ERROR(check_versions(
        manifest.versions, {{"tenonnx", std::string(tenonnx::version())}}, "this program"));
  TENONNX_ASSIGN_OR_RETURN(Preprocessor preprocessor, Preprocessor::create(manifest.contract));
  PackageChainOptions options;
  options.load.intra_op_threads = config_.scheduling.intra_op_threads;
  options.load.inter_op_threads = config_.scheduling.inter_op_threads;
  options.load.spinning = config_.scheduling.spinning;
  options.check_versions = config_.check_versions;
  TENONNX_ASSIGN_OR_RETURN(PackageChain chain,
                           PackageChain::load(config_.package, manifest, options));
  const auto outputs = std::span(chain.slots()).first(chain.output_count());
  const auto fits = check_contract(manifest.contract, chain.inputs(), outputs);
  if (!fits.ok()) return fits.status().at(config_.package + "/manifest.json: contract");
  state_ = std::make_unique<State>(
      State{std::move(manifest), std::move(preprocessor), std::move(chain)});
  return {};
}

Status Pipeline::pre_process(const ImageView& image, Tensors& inputs) const {
  if (!state_) return not_ready();
  const bool has_size = contract().size.has_value();
  inputs.values.resize(has_size ? 2 : 1);
  TENONNX_RETURN_IF_ERROR(state_->preprocessor.image_tensor(image, inputs.values[0]));
  if (has_size)
    TENONNX_RETURN_IF_ERROR(
        state_->preprocessor.size_tensor(image.width, image.height, inputs.values[1]));
  inputs.original_width = image.width;
  inputs.original_height = image.height;
  return {};
}

Status Pipeline::infer(const Tensors& inputs, Tensors& outputs) const {
  if (!state_) return not_ready();
  if (&inputs == &outputs)
    return InvalidArgument("inputs and outputs of infer() are one object; two are needed");
  const auto& expected = state_->chain.inputs();
  if (inputs.values.size() != expected.size())
    return InvalidArgument(
        "infer() got {} tensors, the package takes {}: fill them by pre_process()",
        inputs.values.size(), expected.size());
  // Not only what pre_process() made comes here: a caller may fill the tensors on its own.
  TensorMap named;
  for (std::size_t i = 0; i < expected.size(); ++i) named[expected[i].name] = inputs.values[i];
  TENONNX_RETURN_IF_ERROR(check_inputs(contract(), expected, named));
  TENONNX_RETURN_IF_ERROR(state_->chain.run(inputs.values, outputs.values));
  outputs.original_width = inputs.original_width;
  outputs.original_height = inputs.original_height;
  return {};
}

Status Pipeline::post_process(const Tensors& outputs, std::vector<Detection>& detections) const {
  if (!state_) return not_ready();
  const PackageChain& chain = state_->chain;
  if (outputs.values.size() < chain.output_count())
    return InvalidArgument(
        "post_process() got {} tensors, the package gives {}: fill them by infer()",
        outputs.values.size(), chain.output_count());
  TensorMap named;
  for (std::size_t i = 0; i < chain.output_count(); ++i)
    named[chain.slots()[i].name] = outputs.values[i];
  TENONNX_ASSIGN_OR_RETURN(detections,
                           decode_detections(contract(), named, outputs.original_width,
                                             outputs.original_height, config_.score_threshold));
  return {};
}

Status Pipeline::run(const ImageView& image, std::vector<Detection>& detections) const {
  Tensors inputs, outputs;
  TENONNX_RETURN_IF_ERROR(pre_process(image, inputs));
  TENONNX_RETURN_IF_ERROR(infer(inputs, outputs));
  return post_process(outputs, detections);
}

const Contract& Pipeline::contract() const {
  static const Contract kNone;
  return state_ ? state_->manifest.contract : kNone;
}

const std::string& Pipeline::verdict() const {
  static const std::string kNone;
  return state_ ? state_->manifest.verdict : kNone;
}

const PipelineConfig& Pipeline::config() const { return config_; }

}  // namespace tenonnx
