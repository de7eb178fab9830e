// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/inspect.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/selects.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

constexpr double kMaxFloat16 = 65504.0;
constexpr double kMinNormalFloat16 = 0x1p-14;

std::string name_of(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.output_size() > 0 ? node.output(0) : "";
}

std::string op_of(const onnx::NodeProto& node) {
  const std::string_view domain = normalized_domain(node.domain());
  return domain.empty() ? node.op_type() : fmt::format("{}.{}", domain, node.op_type());
}

template <typename T>
void scan_values(const Tensor& tensor, const std::string& name, Inspection& out) {
  ConstantRange beyond{name}, subnormal{name}, infinite{name}, nan{name};
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  const T* values = tensor.data<T>();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double x = values[i];
    if (std::isnan(x)) {
      ++nan.count;
    } else if (std::isinf(x)) {
      ++infinite.count;
    } else {
      low = std::min(low, x);
      high = std::max(high, x);
      const double magnitude = std::fabs(x);
      beyond.count += magnitude > kMaxFloat16;
      subnormal.count += magnitude > 0 && magnitude < kMinNormalFloat16;
    }
  }
  if (low > high) low = high = 0;  // no finite element
  const auto record = [&](ConstantRange range, std::vector<ConstantRange>& list) {
    if (range.count == 0) return;
    range.min = low;
    range.max = high;
    list.push_back(std::move(range));
  };
  record(beyond, out.beyond_float16);
  record(subnormal, out.subnormal_float16);
  record(infinite, out.infinite);
  record(nan, out.nan);
}

class Inspector {
 public:
  explicit Inspector(const Model& model)
      : model_(model),
        graph_(model.proto().graph()),
        infos_(infer_shapes(model)),
        externals_(model.external_files()) {}

  Inspection run() {
    header();
    for (const auto& t : graph_.initializer()) initializer(t);
    constants();
    int graphs = 0;
    for_each_graph(graph_, [&](const onnx::GraphProto& graph) {
      ++graphs;
      for (const auto& node : graph.node()) visit(node);
    });
    out_.subgraphs = graphs - 1;
    out_.custom_domains.assign(custom_.begin(), custom_.end());
    return std::move(out_);
  }

 private:
  void header() {
    const onnx::ModelProto& proto = model_.proto();
    out_.ir_version = proto.ir_version();
    for (const auto& import : proto.opset_import()) {
      const std::string domain(normalized_domain(import.domain()));
      out_.opsets[domain.empty() ? "ai.onnx" : domain] = import.version();
    }
    out_.producer = proto.producer_name();
    if (!proto.producer_version().empty()) out_.producer += " " + proto.producer_version();
    out_.inputs = model_.inputs();
    out_.outputs = model_.outputs();
    std::unordered_set<std::string_view> true_inputs;
    for (const TensorInfo& input : out_.inputs) true_inputs.insert(input.name);
    for (const auto& input : graph_.input()) {
      if (!true_inputs.contains(input.name())) continue;
      const auto& dims = input.type().tensor_type().shape().dim();
      for (int i = 0; i < dims.size(); ++i) {
        if (dims[i].has_dim_value() && dims[i].dim_value() >= 0) continue;
        dynamic_batch_ |= i == 0;
        out_.dynamic_dims.push_back(
            dims[i].dim_param().empty()
                ? fmt::format("{}[{}]", input.name(), i)
                : fmt::format("{}[{}] ({})", input.name(), i, dims[i].dim_param()));
      }
    }
    out_.nodes = graph_.node_size();
    out_.functions = proto.functions_size();
    out_.has_metadata = has_metadata(proto);
    std::error_code error;
    if (!model_.source_path().empty())
      out_.file_bytes = std::filesystem::file_size(model_.source_path(), error);
    if (error || out_.file_bytes == 0)
      if (const auto bytes = model_.serialize(); bytes.ok()) out_.file_bytes = bytes->size();
    for (const ExternalFile& file : externals_) {
      out_.external_files.push_back(file.location);
      out_.external_bytes += file.file->bytes().size();
    }
  }

  void initializer(const onnx::TensorProto& t) {
    const std::int64_t count = element_count(Shape(t.dims().begin(), t.dims().end()));
    out_.parameters += std::max<std::int64_t>(count, 0);
    if (const auto bytes = tensor_data_bytes(t); bytes.ok()) out_.initializer_bytes += *bytes;
    scan(t, t.name());
  }

  void constants() {
    for (const auto& node : graph_.node()) {
      if (node.op_type() != "Constant" || node.output_size() != 1) continue;
      const auto* value = find_attribute(node, "value");
      if (value != nullptr && value->has_t()) {
        scan(value->t(), node.output(0));
      } else if (find_attribute(node, "value_float") != nullptr ||
                 find_attribute(node, "value_floats") != nullptr) {
        if (const auto tensor = model_.constant(node.output(0)); tensor.ok())
          scan_values<float>(*tensor, node.output(0), out_);
      }
    }
  }

  void scan(const onnx::TensorProto& t, const std::string& name) {
    const DType dtype = from_onnx_type(t.data_type());
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return;
    const auto tensor = model_.tensor(t);
    if (!tensor.ok()) return;
    if (dtype == DType::kFloat32) scan_values<float>(*tensor, name, out_);
    if (dtype == DType::kFloat64) scan_values<double>(*tensor, name, out_);
    if (is_external(t))  // read once here: its pages go back
      if (const auto range = external_range(t); range.ok())
        for (const ExternalFile& file : externals_)
          if (file.location == range->location)
            file.file->release({tensor->data<char>(), tensor->bytes()});
  }

  TensorInfo info(const onnx::NodeProto& node, int input) const {
    if (input >= node.input_size()) return {};
    return info(node.input(input));
  }
  TensorInfo info(const std::string& name) const {
    const auto it = infos_.find(name);
    return it == infos_.end() ? TensorInfo{name, DType::kUndefined, {}, false} : it->second;
  }

  std::string top_k(const onnx::NodeProto& node) const {
    if (node.input_size() < 2) return std::to_string(attribute_or(node, "k", std::int64_t{-1}));
    const auto k = model_.constant(node.input(1));
    if (k.ok() && k->dtype() == DType::kInt64 && k->size() == 1)
      return std::to_string(k->data<std::int64_t>()[0]);
    return "computed";
  }

  void visit(const onnx::NodeProto& node) {
    ++out_.op_counts[op_of(node)];
    const std::string_view domain = normalized_domain(node.domain());
    if (!domain.empty() && !domain.starts_with("ai.onnx.") && domain != "com.microsoft")
      custom_.insert(std::string(domain));
    const std::string& op = node.op_type();
    if (op == "GridSample") {
      GridSampleSite site;
      site.node = name_of(node);
      // Opset 20 renamed the modes of opset 16: bilinear to linear, bicubic to cubic.
      site.mode = attribute_or(node, "mode", model_.opset() >= 20 ? "linear" : "bilinear");
      site.padding_mode = attribute_or(node, "padding_mode", "zeros");
      site.align_corners = attribute_or(node, "align_corners", std::int64_t{0}) != 0;
      site.input = info(node, 0);
      site.grid = info(node, 1);
      if (node.output_size() > 0) site.output = info(node.output(0));
      out_.grid_samples.push_back(std::move(site));
    }
    if (is_selection(node))
      out_.selections.push_back(
          {name_of(node), op, op == "TopK" ? top_k(node) : "", info(node, 0)});
    if ((op == "Reshape" || op == "Expand") && node.input_size() > 1) baked(node);
  }

  void baked(const onnx::NodeProto& node) {
    const TensorInfo input = info(node, 0);
    if (!dynamic_batch_) return;
    // Only what carries the batch: an input whose first dimension is known does not.
    if (input.has_rank && !input.shape.empty() && input.shape[0] >= 0) return;
    const auto target = model_.constant(node.input(1));
    if (!target.ok() || target->dtype() != DType::kInt64 || target->size() < 2) return;
    const auto* dims = target->data<std::int64_t>();
    if (dims[0] <= 0 || (node.op_type() == "Expand" && dims[0] == 1)) return;
    out_.baked_shapes.push_back(
        {name_of(node), dims[0], to_string(Shape(dims, dims + target->size()))});
  }

  const Model& model_;
  const onnx::GraphProto& graph_;
  const TensorInfos infos_;
  const std::vector<ExternalFile> externals_;
  Inspection out_;
  std::set<std::string> custom_;
  bool dynamic_batch_ = false;
};

}  // namespace

Result<Inspection> inspect(const Model& model) {
  if (!model.proto().has_graph()) return FailedPrecondition("the model has no graph");
  return Inspector(model).run();
}

}  // namespace tenonnx
