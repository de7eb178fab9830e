// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What kind of fault a piece has: which wrong computation gives what the device gave. Each kind is
// a hypothesis that is computed and compared; the one that explains the error is named, and none
// that does not. Kinds that cannot be told apart from a piece's inputs and outputs are one kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

enum class FaultKind : std::uint8_t {
  kRange,      // a value that the storage type cannot hold: saturated, infinite, or absorbed
  kLayout,     // the right values in other places: axes, transposes, [h, w] for [w, h]
  kScale,      // the right values times a factor
  kOffset,     // the right values plus a constant
  kPrecision,  // the right values, rounded further than the storage type says, or not rounded
  kEpsilon,    // another epsilon under a root
  kSampling,   // other coordinates: half a pixel, align_corners, padding, mode
  kIndices,    // other elements of the right data
  kWeights,    // other constants in an operator that is linear in them
  kSelection,  // another selection from values that agree
  kCopy,       // a device that is the reference itself
  kRounding,   // nothing but rounding, which grows on the way
  kKernel,     // none of these
};
// "range", "layout", ...; and a clause that says what it is.
std::string_view to_string(FaultKind kind);

struct KindFinding {
  FaultKind kind = FaultKind::kKernel;
  std::string text;      // "align_corners = 1 instead of 0 gives what the device gave"
  double explained = 0;  // the share of the error (in L2) that the hypothesis takes away
};

// One piece on the tensors of one input.
struct PieceCase {
  const Model* piece = nullptr;  // the reference's, with its constants
  TensorMap inputs;              // the reference's tensors
  Tensor expected, got;          // of one output
  std::string output;            // its name in the piece
  DType storage = DType::kFloat32;
  bool epsilon_follows = false;  // the piece adds a constant to what a root is taken of
};

// A hypothesis is named where it takes away at least this share of the error.
inline constexpr double kExplains = 0.9;

// Errors only where shapes differ or the piece does not run on the cpu.
Result<KindFinding> kind_of(const PieceCase& one);

// The piece with its attributes or constants changed in a way that is known to go wrong, each with
// the kind and a clause ("align_corners = 1 instead of 0"). Pieces of one node.
struct PieceVariant {
  FaultKind kind = FaultKind::kKernel;
  std::string text;
  Model model;
};
std::vector<PieceVariant> variants_of(const PieceCase& one);

}  // namespace tenonnx
