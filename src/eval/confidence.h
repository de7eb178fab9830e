// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Bootstrap confidence intervals: the percentile method over resamples with replacement. Source:
// Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. The same seed gives
// the same interval on every machine (std::mt19937_64, and a bounded draw of our own, because
// std::uniform_int_distribution differs between standard libraries).
#pragma once

#include <cstdint>
#include <span>

#include "base/json.h"
#include "eval/average_precision.h"

namespace tenonnx {

struct BootstrapOptions {
  int resamples = 1000;
  double level = 0.95;  // in (0,1)
  std::uint64_t seed = 1;
};

struct ConfidenceInterval {
  double estimate = 0;  // on the data itself
  double low = 0;
  double high = 0;
  BootstrapOptions options;
};

// The q-th percentile (q in [0,100]) with linear interpolation between neighbours (NumPy's default,
// Hyndman and Fan's type 7). NaN for no samples. Order of samples does not matter.
double percentile(std::span<const double> samples, double q);

// Of a percentile of the samples: P50, P95 of a latency. With one sample the interval is that
// sample; with few samples a high percentile's interval is too narrow, since no resample can exceed
// the largest sample.
ConfidenceInterval bootstrap_percentile(std::span<const double> samples, double q,
                                        const BootstrapOptions& options = {});

// Of AP (0.50:0.95), resampling whole images, since the detections of one image are not
// independent.
ConfidenceInterval bootstrap_ap(const CocoEvaluation& evaluation,
                                const BootstrapOptions& options = {});

Json to_json(const ConfidenceInterval& interval);

}  // namespace tenonnx
