// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/finite_inputs.h"

#include <cmath>
#include <type_traits>

#include "base/status.h"
#include "base/wording.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

struct Found {
  std::int64_t nan = 0, infinite = 0;
  std::int64_t first = 0;
};

Found count(const Tensor& tensor) {
  Found found;
  visit_elements(tensor, [&](const auto* data) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*data)>>) {
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double value = to_double(data[i]);
        if (std::isfinite(value)) continue;
        if (found.nan + found.infinite == 0) found.first = i;
        ++(std::isnan(value) ? found.nan : found.infinite);
      }
    }
  });
  return found;
}

Shape index_of(std::int64_t element, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return index;
}

}  // namespace

std::string not_finite(const std::string& name, const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return {};
  const Found found = count(tensor);
  if (found.nan + found.infinite == 0) return {};
  return fmt::format("input '{}' {} {} holds {} NaN and {} among {}, the first at {}", name,
                     to_string(tensor.dtype()), to_string(tensor.shape()), found.nan,
                     counted(found.infinite, "infinite value"), counted(tensor.size(), "element"),
                     to_string(index_of(found.first, tensor.shape())));
}

Status check_finite(const std::filesystem::path& file, const std::string& name,
                    const Tensor& tensor) {
  const std::string found = not_finite(name, tensor);
  if (found.empty()) return {};
  return InvalidArgument(
      "{}: {}. What follows from them is no number on either side, so that nothing can be "
      "compared: mend the file (numpy.isfinite finds them; in a mask a large finite number, as "
      "-65504, does what -inf does)",
      file.string(), found);
}

}  // namespace tenonnx
