// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The section "agreement" of a device file's arithmetic: how close the simulation is to the device,
// operator by operator, as it was measured. Format: docs/reference/device.md.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "device/device.h"

namespace tenonnx {

Result<MeasuredAgreement> agreement_from_json(const JsonReader& reader);
Json to_json(const MeasuredAgreement& agreement);

// Puts the section into the file in the place of the one that was there; everything else stays as
// it is. The file is read as a device file before and after: InvalidArgument where it has no
// arithmetic, DataLoss where it is no device file. Written atomically.
Status write_agreement(const std::filesystem::path& file, const MeasuredAgreement& agreement);

}  // namespace tenonnx
