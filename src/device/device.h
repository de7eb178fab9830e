// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Devices are data: devices/<name>.json. Code never names a chip.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// What happens to a value whose magnitude exceeds what the storage type holds.
struct Overflow {
  enum class Kind { kInfinity, kSaturate } kind = Kind::kInfinity;
  double max = 0;  // kSaturate: the largest magnitude that is stored; may exceed the type's own
                   // largest finite value (HTP keeps element-wise fp16 results up to 131008)
};

// The arithmetic section of a device file: what `sim:NAME` computes.
struct Arithmetic {
  DType storage = DType::kFloat32;     // float32 (no rounding), float16 or bfloat16
  bool round_inputs = false;           // the graph's float inputs
  bool round_weights = false;          // float initializers and constants
  bool round_outputs = false;          // what every node writes
  Overflow elementwise;                // results of all other nodes
  Overflow matmul_result;              // results of MatMul, Gemm, Conv, ConvTranspose
  Overflow matmul_operand;             // their operands, before the product
  bool keep_subnormals = true;         // else flushed to zero, sign kept
  // Operator type -> relative standard deviation of a seeded error on its result, to stand for
  // approximated kernels.
  std::map<std::string, double> relative_error;
  std::uint64_t seed = 0;
};

// Where one statement of the file comes from.
struct Provenance {
  std::string source;   // a document, an article, a measurement
  std::string checked;  // the date, YYYY-MM or YYYY-MM-DD
};

struct Device {
  std::string name;
  std::string title;        // for people
  std::string description;
  std::filesystem::path file;
  Provenance provenance;
  std::optional<Arithmetic> arithmetic;       // sim:NAME exists where this does
  std::map<std::string, std::string> roles;   // segment name -> executor address: a target has these
  std::string sha256;                         // of the file, recorded with results
  bool is_target() const { return !roles.empty(); }
  // The address for a segment: its own role, else "default" where the file has one.
  Result<std::string> executor_for(std::string_view segment) const;
};

// Directories in which device files are looked for, in this order: environment TENONNX_DEVICES,
// devices/ of the installation (beside the executable: ../share/tenonnx/devices), devices/ of the
// source tree that it was built from.
std::vector<std::filesystem::path> device_directories();
// NotFound lists the names that exist.
Result<Device> find_device(std::string_view name);
Result<Device> read_device(const std::filesystem::path& file);
std::vector<std::string> device_names();

}  // namespace tenonnx
