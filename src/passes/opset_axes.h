// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Adapters of operators whose axes, sizes or pads are written otherwise: Reduce*-18, Split-18,
// Resize-18 and -19, Pad-18 and -19. And what adapters are written with.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/opset_adapters.h"

namespace tenonnx::opset {

Adapted refused(std::string why);
bool has_input(const onnx::NodeProto& node, int index);
// The elements of a constant of an integer dtype.
std::optional<std::vector<std::int64_t>> integers(const AdaptContext& context,
                                                  std::string_view name);
// Where the rank is known; -1 for dimensions that are not.
std::optional<Shape> known_shape(const AdaptContext& context, std::string_view name);

// axes from an attribute to an input; noop_with_empty_axes is new.
Adapted reduce_up(onnx::NodeProto& node, AdaptContext& context);
Adapted reduce_down(onnx::NodeProto& node, AdaptContext& context);
// Either sizes or num_outputs must be given; the last part may be smaller.
Adapted split_up(onnx::NodeProto& node, AdaptContext& context);
Adapted split_down(onnx::NodeProto& node, AdaptContext& context);
// antialias, axes, keep_aspect_ratio_policy at 18; half_pixel_symmetric at 19.
Adapted resize18_down(onnx::NodeProto& node, AdaptContext& context);
Adapted resize19_down(onnx::NodeProto& node, AdaptContext& context);
// axes at 18; mode wrap at 19.
Adapted pad18_down(onnx::NodeProto& node, AdaptContext& context);
Adapted pad19_down(onnx::NodeProto& node, AdaptContext& context);

}  // namespace tenonnx::opset
