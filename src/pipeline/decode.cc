// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/decode.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/half.h"
#include "base/status.h"
#include "pipeline/geometry.h"

namespace tenonnx {
namespace {

// One row of an output as selected: where it stands, its class and score.
struct Row {
  std::int64_t box = 0;  // row of the boxes
  std::int64_t label = 0;
  float score = 0;
};

Result<Tensor> output(const TensorMap& outputs, const std::string& name) {
  const auto found = outputs.find(name);
  if (found == outputs.end() || !found->second.defined())
    return InvalidArgument("output '{}', which the contract names, is missing", name);
  return found->second;
}

Result<std::vector<float>> floats(const std::string& name, const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.size());
  std::vector<float> values(count);
  if (tensor.dtype() == DType::kFloat32) {
    std::copy_n(tensor.data<float>(), count, values.begin());
  } else if (tensor.dtype() == DType::kFloat16) {
    std::transform(tensor.data<std::uint16_t>(), tensor.data<std::uint16_t>() + count,
                   values.begin(), float16_to_float);
  } else {
    return InvalidArgument("output '{}' is {}; float32 or float16 is expected", name,
                           to_string(tensor.dtype()));
  }
  return values;
}

Result<std::vector<std::int64_t>> integers(const std::string& name, const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.size());
  std::vector<std::int64_t> values(count);
  if (tensor.dtype() == DType::kInt64)
    std::copy_n(tensor.data<std::int64_t>(), count, values.begin());
  else if (tensor.dtype() == DType::kInt32)
    std::copy_n(tensor.data<std::int32_t>(), count, values.begin());
  else
    return InvalidArgument("output '{}' is {}; int64 or int32 is expected", name,
                           to_string(tensor.dtype()));
  return values;
}

// The shape without a leading batch of 1.
Shape unbatched(const Tensor& tensor, std::size_t rank) {
  Shape shape = tensor.shape();
  if (shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
  return shape;
}

Status wrong_shape(const std::string& name, const Tensor& tensor, std::string_view expected) {
  return InvalidArgument("output '{}' has shape {}; {} is expected", name,
                         to_string(tensor.shape()), expected);
}

Status check_no_nan(const std::string& name, const std::vector<float>& values,
                    std::int64_t row_size) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isnan(values[i]))
      return DataLoss(
          "output '{}' holds NaN in row {}: the model's arithmetic failed, so its detections mean "
          "nothing",
          name, static_cast<std::int64_t>(i) / row_size);
  return {};
}

void sort_by_score(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.score > b.score; });
}

Result<std::vector<Detection>> decode_selected(const Contract& contract, const TensorMap& outputs,
                                               int width, int height, float threshold) {
  const Outputs& names = contract.outputs;
  TENONNX_ASSIGN_OR_RETURN(const Tensor label_tensor, output(outputs, names.labels));
  TENONNX_ASSIGN_OR_RETURN(const Tensor box_tensor, output(outputs, names.boxes));
  TENONNX_ASSIGN_OR_RETURN(const Tensor score_tensor, output(outputs, names.scores));
  const Shape rows_shape = unbatched(score_tensor, 1);
  if (rows_shape.size() != 1) return wrong_shape(names.scores, score_tensor, "[1,K]");
  const std::int64_t count = rows_shape[0];
  if (unbatched(label_tensor, 1) != rows_shape)
    return wrong_shape(names.labels, label_tensor, fmt::format("[1,{}] as of the scores", count));
  if (unbatched(box_tensor, 2) != Shape{count, 4})
    return wrong_shape(names.boxes, box_tensor, fmt::format("[1,{},4] as of the scores", count));
  TENONNX_ASSIGN_OR_RETURN(const auto labels, integers(names.labels, label_tensor));
  TENONNX_ASSIGN_OR_RETURN(const auto boxes, floats(names.boxes, box_tensor));
  TENONNX_ASSIGN_OR_RETURN(const auto scores, floats(names.scores, score_tensor));
  TENONNX_RETURN_IF_ERROR(check_no_nan(names.scores, scores, 1));
  TENONNX_RETURN_IF_ERROR(check_no_nan(names.boxes, boxes, 4));

  std::vector<Row> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (scores[at] > threshold && labels[at] >= 0) rows.push_back({i, labels[at], scores[at]});
  }
  sort_by_score(rows);
  // Without a size input, and under a letterbox, the boxes are in pixels of the canvas.
  const bool as_they_are = contract.size && contract.image.fit == ResizeFit::kStretch;
  const Placement2d placement = place(contract.image, width, height);
  std::vector<Detection> detections;
  for (const Row& row : rows) {
    const float* b = boxes.data() + row.box * 4;
    const Box box = {b[0], b[1], b[2], b[3]};
    if (!std::all_of(b, b + 4, [](float x) { return std::isfinite(x); }))
      return DataLoss("output '{}' holds an infinite box in row {} (score {:.3f})", names.boxes,
                      row.box, row.score);
    detections.push_back(
        {row.label, row.score, as_they_are ? box : to_original(box, placement, width, height)});
  }
  return detections;
}

Result<std::vector<Detection>> decode_raw(const Contract& contract, const TensorMap& outputs,
                                          int width, int height, float threshold) {
  const Outputs& names = contract.outputs;
  TENONNX_ASSIGN_OR_RETURN(const Tensor logit_tensor, output(outputs, names.logits));
  TENONNX_ASSIGN_OR_RETURN(const Tensor box_tensor, output(outputs, names.pred_boxes));
  const Shape shape = unbatched(logit_tensor, 2);
  if (shape.size() != 2) return wrong_shape(names.logits, logit_tensor, "[1,Q,C]");
  const std::int64_t queries = shape[0], classes = shape[1];
  if (unbatched(box_tensor, 2) != Shape{queries, 4})
    return wrong_shape(names.pred_boxes, box_tensor,
                       fmt::format("[1,{},4] as of the logits", queries));
  TENONNX_ASSIGN_OR_RETURN(const auto logits, floats(names.logits, logit_tensor));
  TENONNX_ASSIGN_OR_RETURN(const auto boxes, floats(names.pred_boxes, box_tensor));
  TENONNX_RETURN_IF_ERROR(check_no_nan(names.logits, logits, std::max<std::int64_t>(classes, 1)));
  TENONNX_RETURN_IF_ERROR(check_no_nan(names.pred_boxes, boxes, 4));

  // Selected by logit: the sigmoid is monotonic, and near 1 it rounds different logits to one
  // score.
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto keep = std::min<std::size_t>(order.size(), static_cast<std::size_t>(names.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const float x = logits[static_cast<std::size_t>(a)];
                      const float y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  order.resize(keep);
  const Placement2d placement = place(contract.image, width, height);
  const bool stretch = contract.image.fit == ResizeFit::kStretch;
  const auto sx = static_cast<float>(stretch ? width : placement.canvas_width);
  const auto sy = static_cast<float>(stretch ? height : placement.canvas_height);
  std::vector<Detection> detections;
  for (const std::int64_t index : order) {
    const double logit = logits[static_cast<std::size_t>(index)];
    const auto score = static_cast<float>(1.0 / (1.0 + std::exp(-logit)));
    if (!(score > threshold)) break;  // the order is by falling score
    const float* b = boxes.data() + index / classes * 4;
    if (!std::all_of(b, b + 4, [](float x) { return std::isfinite(x); }))
      return DataLoss("output '{}' holds an infinite box in row {} (score {:.3f})",
                      names.pred_boxes, index / classes, score);
    const Box box = {(b[0] - 0.5F * b[2]) * sx, (b[1] - 0.5F * b[3]) * sy,
                     (b[0] + 0.5F * b[2]) * sx, (b[1] + 0.5F * b[3]) * sy};
    detections.push_back(
        {index % classes, score, stretch ? box : to_original(box, placement, width, height)});
  }
  return detections;
}

}  // namespace

Result<std::vector<Detection>> decode_detections(const Contract& contract, const TensorMap& outputs,
                                                 int original_width, int original_height,
                                                 float score_threshold) {
  if (original_width < 1 || original_height < 1)
    return InvalidArgument("the original image's size {} x {} is not above 0", original_width,
                           original_height);
  return contract.outputs.kind == OutputKind::kDetections
             ? decode_selected(contract, outputs, original_width, original_height, score_threshold)
             : decode_raw(contract, outputs, original_width, original_height, score_threshold);
}

}  // namespace tenonnx
