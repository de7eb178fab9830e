// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which HTP architecture a Qualcomm chip has: the provider takes `soc_model` and `htp_arch` apart,
// and where they contradict each other follows the first without a word.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"

namespace tenonnx {

struct QnnChip {
  int soc = 0;   // QNN's number of the chip (soc_model)
  int arch = 0;  // 73 is HTP v73
  std::string_view name;
};

// nullptr: not among the chips whose architecture is published; there the pair is taken as given.
// Sources: ExecuTorch, backends/qualcomm/serialization/qc_schema.py, QcomChipset and its SoC table;
// 60 and 88 by Qualcomm's names of the Snapdragon X chips.
const QnnChip* find_qnn_chip(int soc);

// The device file "htp-vNN" of the chip at "qnn:...,arch=NN": how it computes, as far as that is
// known. nullopt for other addresses, without arch, or where there is no such file.
std::optional<Device> simulation_of_chip(std::string_view address);

// "the vendor's emulator of soc 43 (SM8550, HTP v73)" where the address runs on one, else "".
std::string emulator_of(std::string_view address);

}  // namespace tenonnx
