// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Devices are data: devices/<name>.json. Code never names a chip.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// What happens to a value whose magnitude exceeds what the storage type holds. A finite value is
// first rounded to the type's significant bits as if its exponent had no upper limit; what then
// exceeds the limit overflows.
//
// kPattern: the operator computes as IEEE does, and what reads its results takes the bits of
// infinity and NaN for ordinary numbers. As an operand 65536 is thus infinity and what is larger
// NaN; as a result infinity is 65536 and NaN its pattern, (1 + significand / 1024) * 65536 of
// float16 with the quiet bit set: 98304 to 131008.
struct Overflow {
  enum class Kind { kInfinity, kSaturate, kPattern } kind = Kind::kInfinity;
  double max = 0;  // kSaturate: the largest magnitude that is stored; may exceed the type's own
                   // largest finite value (HTP keeps element-wise fp16 results up to 131008)
  // kSaturate: the magnitude that an infinite result is stored as; 0: `max`. (An infinite operand
  // makes an HTP product 131008, though finite products saturate at 65536.)
  double infinite = 0;
  // kSaturate: the value that NaN is stored as, for a format that has no NaN; none: NaN stays NaN.
  std::optional<double> nan;
};

// Where one operator departs from "the exact result, rounded once".
struct OperatorArithmetic {
  std::optional<Overflow> overflow;      // of its results; kPattern: of its operands too
  bool flush_results = false;            // subnormal results are zero, whatever `subnormals` says
  bool round_attributes = false;         // float attributes are values of the storage type
  bool keep_weights = false;             // its constants are not rounded
  std::string form;                      // how it computes: passes/sim_forms.h; "": exactly
  std::vector<double> reciprocal_error;  // of form "softmax_steps"
};

// A case in which the simulation stays away from the device, and why.
struct CannotAgree {
  std::string op_type;
  std::string name;   // of the graph, as "Resize x2, linear"; empty: all of that operator
  std::string range;  // of the inputs, as "beyond 65504"; empty: all
  std::string reason, source, checked;
};

// How close the simulation is to the device, as `tenonnx device agree --write` measured it.
struct OperatorAgreement {
  std::string op_type;
  std::int64_t cases = 0, good = 0;  // graphs at one range; with at least 99 % within a step
  std::int64_t elements = 0, within = 0;
  double bias = 0, worst = 0;  // in steps of float16: mean, and the largest difference
};
struct MeasuredAgreement {
  std::string on;       // the device's address
  std::string checked;  // the date
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<OperatorAgreement> operators;
};

// The arithmetic section of a device file: what `sim:NAME` computes.
struct Arithmetic {
  DType storage = DType::kFloat32;  // float32 (no rounding), float16 or bfloat16
  bool round_inputs = false;        // the graph's float inputs
  bool round_weights = false;       // float initializers and constants
  bool round_outputs = false;       // what every node writes
  Overflow elementwise;             // results of all other nodes, inputs and weights
  Overflow matmul_result;           // results of MatMul, Gemm, Conv, ConvTranspose
  Overflow matmul_operand;          // their operands, before the product
  bool keep_subnormals = true;      // else flushed to zero, sign kept
  // What indices are computed in, also where the graph says integers: int32, float32, float16 or
  // bfloat16. none: the file does not say.
  std::optional<DType> indices;
  // That type: `indices`, else the storage type, which is the least that any value has.
  DType index_type() const { return indices.value_or(storage); }
  // Operator type -> relative standard deviation of a seeded error on its result, to stand for
  // approximated kernels.
  std::map<std::string, double> relative_error;
  std::uint64_t seed = 0;
  std::map<std::string, OperatorArithmetic> operators;  // of ai.onnx
  std::vector<CannotAgree> cannot_agree;
  std::optional<MeasuredAgreement> agreement;  // none: not measured
};

// Where one statement of the file comes from.
struct Provenance {
  std::string source;   // a document, an article, a measurement
  std::string checked;  // the date, YYYY-MM or YYYY-MM-DD
};

// What one toolchain does with one operator, as somebody saw it. Versions that no row names are
// unknown: rows are not inherited from one version to the next.
struct OperatorRow {
  std::string op_type;
  std::string domain;     // "" is ai.onnx
  std::string condition;  // "mode is bicubic", "rank 6"; empty: every form that was tried
  std::string toolchain;  // "onnxruntime-qnn 2.7.0 (QNN 2.51)"
  std::string placement;  // "device", "fallback" (runs on the CPU), "rejected" (does not compile)
  std::string detail;     // the message that the toolchain gives, for people
  Provenance provenance;
};

// Operators that the device's compiler takes, and within which limits (device/supported.h). Sizes
// are those of static shapes: a tensor without one is never taken.
struct SupportRule {
  std::vector<std::string> operators;
  std::string domain;    // "" is ai.onnx
  bool on_host = false;  // the vendor's own CPU backend computes it, within the device's graph
  std::int64_t min_opset = 1, max_opset = INT64_MAX;
  std::vector<DType> dtypes;  // of every input that is no constant, and of every output
  std::int64_t max_rank = INT64_MAX, max_elements = INT64_MAX;
  std::vector<std::int64_t> constant_inputs;  // positions that must hold constants
  // Attribute -> the values that are taken, as text; one that is absent is the operator's default
  // and taken.
  std::map<std::string, std::vector<std::string>> attributes;
  Provenance provenance;
};

struct Device {
  std::string name;
  std::string title;  // for people
  std::string description;
  std::filesystem::path file;
  Provenance provenance;
  std::optional<Arithmetic> arithmetic;  // sim:NAME exists where this does
  // Bytes that the tensors of what it computes may take at a time; none: not known.
  std::optional<std::int64_t> memory;
  std::map<std::string, std::string> roles;  // segment name -> executor address: a target has these
  std::vector<OperatorRow> rows;             // in the order of the file
  std::vector<SupportRule> supported;        // provider:simnpu:NAME needs some
  std::string sha256;                        // of the file, recorded with results
  bool is_target() const { return !roles.empty(); }
  // The address for a segment: its own role, else "default" where the file has one.
  Result<std::string> executor_for(std::string_view segment) const;
};

// Directories in which device files are looked for, in this order: environment TENONNX_DEVICES (one
// or several, separated by ':'), devices/ of the installation (beside the executable or
// library: ../share/tenonnx/devices), devices/ of the source tree that it was built from.
std::vector<std::filesystem::path> device_directories();
// The first directory that has <name>.json wins. InvalidArgument for a name that is not one (as
// "../x"); NotFound lists the names that exist.
Result<Device> find_device(std::string_view name);
// DataLoss names the file, the path inside it, and what was got against what is allowed.
Result<Device> read_device(const std::filesystem::path& file);
// Sorted, each once.
std::vector<std::string> device_names();
// Of these, the targets: the files that can be read and have roles.
std::vector<std::string> target_names();

// The largest magnitude that a finite value may have as an element-wise result and as an operand or
// result of MatMul and Conv without being changed by overflow; infinity for float32 storage.
double largest_kept(const Arithmetic& arithmetic, const Overflow& overflow);

// The largest n for which this type holds every whole number from 0 to n: float32 2^24, float16
// 2048, bfloat16 256; of integers the largest.
std::int64_t largest_exact_index(DType dtype);

}  // namespace tenonnx
