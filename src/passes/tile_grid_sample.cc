// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// tile_grid_sample: samples a large grid in parts, where a form would not fit the device's memory.
//
// before: y = GridSample(value, grid)                                            [N,C,Ho,Wo]
// after:  y = Concat_t GridSample(value, rows t of grid), T parts of Ho / T rows
//
// Each point is sampled alone, so that the parts give what the whole gave. The form that is to
// replace GridSample then works on one part at a time, and its neighbours, weights and products of
// all points need not be there together.
//
// memory (bytes): the option memory, or "memory" of the device file that the option device names.
// What a form needs is not guessed: the pass that makes it runs on the node alone, and the peak is
// taken from the shapes (peak_memory.h), the value and the grid added. T is the smallest number of
// parts with which it fits (beyond 16 within an eighth, at most 256); nothing is done where it fits
// whole.
//
// Options: device  NAME of a device file
//          memory  bytes, in place of the device's
//          form    the pass that comes next (default replace_grid_sample_gather), or none:
//                  GridSample itself; with its own options as they are by default
// Class bitwise. Refuses: sizes that are not known; a form that does not take the node, with its
// reason; a node that fits with no number of parts; anything but float32 images (rank 4) of known
// height and width.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/status.h"
#include "device/device.h"
#include "passes/grid_sample_form.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/peak_memory.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "tile_grid_sample";
constexpr const char* kNoForm = "none";
// Of one node. Each part is some 40 nodes of a form: a graph of more is none that a compiler takes,
// and the last parts of a node save nothing where its value alone is too large.
constexpr std::int64_t kMostParts = 256;

struct Options {
  std::int64_t memory = 0;
  std::string origin;  // of the memory, for messages
  std::string form;
};

// For messages.
std::string form_of(const Options& options) {
  return options.form == kNoForm ? "GridSample itself" : options.form;
}

Result<Options> read_options(const PassOptions& given) {
  TENONNX_RETURN_IF_ERROR(only_options(kPass, given, {"device", "memory", "form"}));
  Options options;
  const auto device = given.find("device");
  TENONNX_ASSIGN_OR_RETURN(options.memory, count_option(kPass, given, "memory", 0));
  options.origin = "option memory";
  if (given.contains("memory") == (device != given.end()))
    return InvalidArgument(
        "{}: what fits is told by {}.device=NAME (a device file with a row 'memory') or by "
        "{}.memory=BYTES, one of the two",
        kPass, kPass, kPass);
  if (device != given.end()) {
    TENONNX_ASSIGN_OR_RETURN(const Device file, find_device(device->second));
    if (!file.memory)
      return InvalidArgument(
          "{}: {} says nothing of the device's memory; give {}.memory=BYTES instead", kPass,
          file.file.string(), kPass);
    options.memory = *file.memory;
    options.origin = fmt::format("device '{}'", file.name);
  }
  const auto form = given.find("form");
  options.form = form == given.end() ? "replace_grid_sample_gather" : form->second;
  if (options.form == kNoForm) return options;
  TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(options.form));
  if (pass->stage != PassStage::kRewrite || options.form == kPass)
    return InvalidArgument("{}: form '{}' is no pass that replaces GridSample", kPass,
                           options.form);
  return options;
}

onnx::NodeProto split_of(const std::string& x, const std::string& sizes,
                         const std::vector<std::string>& parts) {
  onnx::NodeProto node = make_node("Split", {x, sizes}, parts);
  set_attribute(node, "axis", std::int64_t{1});
  return node;
}

// Rows of each part: as even as they can be.
std::vector<std::int64_t> part_sizes(std::int64_t rows, std::int64_t parts) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t t = 0; t < parts; ++t)
    sizes.push_back(rows * (t + 1) / parts - rows * t / parts);
  return sizes;
}

// The next number of parts that is tried: each one up to 16, then an eighth more.
std::int64_t next_parts(std::int64_t parts) { return parts < 16 ? parts + 1 : parts + parts / 8; }

// The node alone, in `parts` parts, as a model.
Result<Model> model_of(const Rewriter& r, const GridSampleNode& site, std::int64_t parts) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(r.opset());
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name("part");
  const auto declare = [](onnx::ValueInfoProto& info, const char* name, const Shape& shape) {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t n : shape) type.mutable_shape()->add_dim()->set_dim_value(n);
  };
  declare(*graph.add_input(), "value", {site.batch, site.channels, site.height, site.width});
  declare(*graph.add_input(), "grid", {site.batch, site.out_height, site.out_width, 2});
  declare(*graph.add_output(), "y", {site.batch, site.channels, site.out_height, site.out_width});
  const std::vector<std::int64_t> sizes = part_sizes(site.out_height, parts);
  std::vector<std::string> grids, samples;
  for (std::int64_t t = 0; t < parts; ++t) {
    grids.push_back(parts == 1 ? "grid" : fmt::format("grid_{}", t));
    samples.push_back(parts == 1 ? "y" : fmt::format("y_{}", t));
  }
  if (parts > 1) {
    auto& sizes_proto = *graph.add_initializer();
    sizes_proto.set_name("sizes");
    sizes_proto.set_data_type(onnx::TensorProto::INT64);
    sizes_proto.add_dims(parts);
    for (const std::int64_t n : sizes) sizes_proto.add_int64_data(n);
    *graph.add_node() = split_of("grid", "sizes", grids);
  }
  for (std::int64_t t = 0; t < parts; ++t) {
    onnx::NodeProto node = r.node(site.node);
    node.set_name(samples[static_cast<std::size_t>(t)]);
    node.set_input(0, "value");
    node.set_input(1, grids[static_cast<std::size_t>(t)]);
    node.set_output(0, samples[static_cast<std::size_t>(t)]);
    *graph.add_node() = node;
  }
  if (parts > 1) {
    onnx::NodeProto node = make_node("Concat", samples, {"y"});
    set_attribute(node, "axis", std::int64_t{2});
    *graph.add_node() = node;
  }
  return Model::from_proto(std::move(proto));
}

// Bytes of the form in `parts` parts with its value and grid. FailedPrecondition: the form does not
// take the node.
Result<std::int64_t> predicted(const Rewriter& r, const GridSampleNode& site,
                               const Options& options, std::int64_t parts) {
  TENONNX_ASSIGN_OR_RETURN(Model model, model_of(r, site, parts));
  if (options.form != kNoForm) {
    TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(options.form));
    TENONNX_ASSIGN_OR_RETURN(const PassOutcome outcome, pass->run(model, {}));
    if (outcome.applied == 0)
      return FailedPrecondition(
          "{} does not take it: {}", options.form,
          outcome.skipped.empty() ? "it finds nothing to do" : outcome.skipped.front().reason);
  }
  const auto peak = peak_memory(model);
  if (!peak)
    return FailedPrecondition("the shapes of what {} makes are not known", form_of(options));
  const std::int64_t inputs =
      site.batch * (site.channels * site.height * site.width + site.points() * 2) * 4;
  return peak->bytes + inputs;
}

}  // namespace

namespace passes {

Result<PassOutcome> tile_grid_sample(Model& model, const PassOptions& given) {
  TENONNX_ASSIGN_OR_RETURN(const Options options, read_options(given));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](const GridSampleNode& site) -> std::string {
    if (site.batch < 1 || site.channels < 1 || site.points() < 1)
      return fmt::format("the sizes of '{}' and '{}' must be known", site.value, site.grid);
    const auto whole = predicted(r, site, options, 1);
    if (!whole.ok()) return whole.status().message();
    if (*whole <= options.memory) return {};
    std::int64_t parts = 0, needed = *whole, least = *whole;
    const std::int64_t most = std::min(site.out_height, kMostParts);
    for (std::int64_t t = 2; t <= most && parts == 0; t = next_parts(t)) {
      const auto bytes = predicted(r, site, options, t);
      if (!bytes.ok()) return bytes.status().message();
      needed = *bytes;
      least = std::min(least, *bytes);
      if (*bytes <= options.memory) parts = t;
    }
    if (parts == 0)
      return fmt::format(
          "{} needs {} bytes at least, in whatever number of parts up to {} ({}); "
          "{} has {}",
          form_of(options), least, most,
          most == site.out_height ? "a row each"
                                  : "more make a graph of thousands "
                                    "of nodes",
          options.origin, options.memory);
    if (!r.begin({site.node})) return {};
    SiteWriter w(r, site.node);
    std::vector<std::string> grids, samples;
    for (std::int64_t t = 0; t < parts; ++t) grids.push_back(w.fresh("grid"));
    w.insert(split_of(site.grid, w.integers(part_sizes(site.out_height, parts)), grids));
    for (const std::string& grid : grids) {
      onnx::NodeProto node = r.node(site.node);
      node.set_name("");
      node.set_input(1, grid);
      node.set_output(0, w.fresh("part"));
      samples.push_back(node.output(0));
      w.insert(std::move(node));
    }
    w.finish("Concat", samples, {{"axis", 2}});
    r.apply(site.node,
            fmt::format("{} parts: {} would need {} bytes, {} in parts; {} has {}", parts,
                        form_of(options), *whole, needed, options.origin, options.memory));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
