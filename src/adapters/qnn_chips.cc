// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_chips.h"

#include <algorithm>
#include <iterator>

#include "adapters/qnn_options.h"
#include "base/status.h"

namespace tenonnx {
namespace {

constexpr std::string_view kQnn = "qnn:";

constexpr QnnChip kChips[] = {
    {30, 68, "SM8350"},   {36, 69, "SM8450"},   {39, 68, "SA8295"},   {42, 69, "SM8475"},
    {43, 73, "SM8550"},   {45, 73, "SXR1230P"}, {46, 73, "SSG2115P"}, {52, 73, "SA8255"},
    {53, 69, "SXR2230P"}, {57, 75, "SM8650"},   {58, 73, "SSG2125P"}, {60, 73, "SC8380XP"},
    {69, 79, "SM8750"},   {75, 79, "SXR2330P"}, {77, 73, "QCS9100"},  {87, 81, "SM8850"},
    {88, 81, "SC8480XP"},
};

}  // namespace

const QnnChip* find_qnn_chip(int soc) {
  const auto* found = std::find_if(std::begin(kChips), std::end(kChips),
                                   [&](const QnnChip& chip) { return chip.soc == soc; });
  return found == std::end(kChips) ? nullptr : found;
}

std::optional<Device> simulation_of_chip(std::string_view address) {
  if (!address.starts_with(kQnn)) return {};
  const auto options = qnn_options(address.substr(kQnn.size()), qnn_place());
  if (!options.ok() || options->arch == 0) return {};
  auto device = find_device(fmt::format("htp-v{}", options->arch));
  return device.ok() ? std::optional<Device>(std::move(*device)) : std::nullopt;
}

std::string emulator_of(std::string_view address) {
  if (!is_emulated(address)) return {};
  const auto options = qnn_options(address.substr(kQnn.size()), qnn_place());
  if (!options.ok()) return "the vendor's emulator";
  const QnnChip* chip = find_qnn_chip(options->soc);
  return fmt::format("the vendor's emulator of soc {}{}", options->soc,
                     chip == nullptr ? "" : fmt::format(" ({}, HTP v{})", chip->name, chip->arch));
}

}  // namespace tenonnx
