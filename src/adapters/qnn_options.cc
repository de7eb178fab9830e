// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "adapters/qnn_chips.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/status.h"

namespace tenonnx {
namespace {

constexpr const char* kForm = "qnn:soc=NUMBER[,arch=NUMBER][,KEY=VALUE...]";
constexpr int kLeastBfloatSoc = 88;  // below it the provider refuses htp_bf16_enable

const std::vector<std::string> kArchitectures = {"68", "69", "73", "75", "79", "81"};
const std::vector<std::string> kPerformanceModes = {"burst",
                                                    "balanced",
                                                    "default",
                                                    "high_performance",
                                                    "high_power_saver",
                                                    "low_balanced",
                                                    "low_power_saver",
                                                    "power_saver",
                                                    "extreme_power_saver",
                                                    "sustained_high_performance"};
const std::vector<std::string> kPriorities = {"low", "normal", "normal_high", "high"};

// Keys that are a number or a word of a list and become one option of the provider.
struct Plain {
  const char* key;
  const char* option;
  const std::vector<std::string>* words;  // nullptr: a number
  int least = 0, most = 0;
};
const Plain kPlain[] = {
    {"perf", "htp_performance_mode", &kPerformanceModes},
    {"priority", "qnn_context_priority", &kPriorities},
    {"vtcm", "vtcm_mb", nullptr, 1, 64},
    {"core", "device_id", nullptr, 0, 15},
    {"optimize", "htp_graph_finalization_optimization_mode", nullptr, 0, 3},
};
const std::vector<std::string> kKeys = {"soc",      "arch",     "precision",   "perf",
                                        "vtcm",     "core",     "backend",     "optimize",
                                        "priority", "affinity", "op_affinity", "library"};

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string listed(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

Result<std::set<std::string>> pinned_of(std::string_view text) {
  std::set<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    const std::string_view one = text.substr(0, end);
    if (!one.ends_with("=cpu") || one.size() == 4)
      return InvalidArgument("'affinity' has '{}': OPERATOR=cpu is expected, several joined by '+'",
                             one);
    out.emplace(one.substr(0, one.size() - 4));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Status check_backend(const std::string& backend) {
  if (backend == "htp") return {};
  if (backend == "cpu" || backend == "gpu")
    return InvalidArgument(
        "'backend' is '{}': with it the provider takes nothing and every node runs on ONNX "
        "Runtime's "
        "own CPU provider, while the session still lists QNN; only htp is a device. For the CPU "
        "name "
        "the executor 'cpu'",
        backend);
  return InvalidArgument("'backend' is '{}': only htp is a device", backend);
}

Status check_soc(int soc, QnnPlace place) {
  const std::vector<int>& socs = qnn_emulated_socs();
  if (place == QnnPlace::kBoard || std::find(socs.begin(), socs.end(), soc) != socs.end())
    return {};
  if (soc == 30)
    return InvalidArgument(
        "'soc' is 30, an HTP v68, which has no fp16: its graphs do not compile "
        "(QNN_COMMON_ERROR_MEM_ALLOC, code 1002). On the emulator these work: {}",
        fmt::join(socs, ", "));
  return InvalidArgument(
      "'soc' is {}, which the emulator is not known to take: of a number that it does not know it "
      "says "
      "QNN_DEVICE_ERROR_INVALID_CONFIG in its log, and everything runs on the CPU. These work: {}",
      soc, fmt::join(socs, ", "));
}

Status check_arch(int soc, const std::string& arch, QnnPlace place) {
  if (std::find(kArchitectures.begin(), kArchitectures.end(), arch) == kArchitectures.end())
    return InvalidArgument(
        "'arch' is '{}', allowed: {} (73 is HTP v73); the provider itself would take "
        "no notice of another",
        arch, listed(kArchitectures));
  const QnnChip* chip = find_qnn_chip(soc);
  if (chip != nullptr && fmt::format("{}", chip->arch) != arch)
    return InvalidArgument(
        "'arch' is {}, but soc {} ({}) is an HTP v{}: the provider follows the soc and takes no "
        "notice of the other, so that every record would name a chip that nothing ran on; give "
        "arch={}, or leave it out",
        arch, soc, chip->name, chip->arch, chip->arch);
  if (chip == nullptr && place == QnnPlace::kEmulator && arch == "68")
    return InvalidArgument(
        "'arch' is 68: HTP v68 has no fp16, its graphs do not compile on the emulator "
        "(QNN_COMMON_ERROR_MEM_ALLOC, code 1002); take a chip of HTP v69 or later");
  return {};
}

Result<std::map<std::string, std::string>> split(std::string_view rest) {
  std::map<std::string, std::string> out;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view option = rest.substr(0, end);
    const std::size_t equal = option.find('=');
    if (equal == std::string_view::npos || equal == 0 || equal + 1 == option.size())
      return InvalidArgument("'{}' is no KEY=VALUE; expected {}", option, kForm);
    const std::string key(option.substr(0, equal));
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      return InvalidArgument(
          "there is no option '{}' (the provider itself would take no notice of it); there is {}",
          key, nearest_names(key, kKeys));
    if (!out.emplace(key, option.substr(equal + 1)).second)
      return InvalidArgument("'{}' is given twice", key);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

Status add_plain(const Plain& plain, const std::string& value, QnnOptions& options) {
  if (plain.words != nullptr) {
    if (std::find(plain.words->begin(), plain.words->end(), value) == plain.words->end())
      return InvalidArgument("'{}' is '{}', allowed: {}", plain.key, value, listed(*plain.words));
  } else {
    const auto number = number_of(value);
    if (!number || *number < plain.least || *number > plain.most)
      return InvalidArgument("'{}' is '{}', allowed: a number from {} to {}", plain.key, value,
                             plain.least, plain.most);
  }
  options.provider[plain.option] = value;
  return {};
}

Result<QnnOptions> read(const std::map<std::string, std::string>& given, QnnPlace place) {
  const auto value = [&](const char* key) -> const std::string* {
    const auto found = given.find(key);
    return found == given.end() ? nullptr : &found->second;
  };
  QnnOptions out;
  out.provider["backend_type"] = "htp";
  if (const auto* backend = value("backend")) TENONNX_RETURN_IF_ERROR(check_backend(*backend));
  const std::string* soc = value("soc");
  if (soc == nullptr)
    return InvalidArgument(
        "'soc' is missing, the number of the chip: without it fp16 graphs do not compile "
        "(QNN_COMMON_ERROR_MEM_ALLOC, code 1002). On the emulator these work: {}; for a board see "
        "its "
        "documentation",
        fmt::join(qnn_emulated_socs(), ", "));
  const auto number = number_of(*soc);
  if (!number || *number <= 0)
    return InvalidArgument(
        "'soc' is '{}': the number of the chip is needed; on the emulator these "
        "work: {}",
        *soc, fmt::join(qnn_emulated_socs(), ", "));
  TENONNX_RETURN_IF_ERROR(check_soc(*number, place));
  out.soc = *number;
  out.provider["soc_model"] = *soc;
  if (const auto* arch = value("arch")) {
    TENONNX_RETURN_IF_ERROR(check_arch(out.soc, *arch, place));
    out.arch = *number_of(*arch);
    out.provider["htp_arch"] = *arch;
  }
  if (const auto* precision = value("precision")) {
    if (*precision != "fp16" && *precision != "bf16")
      return InvalidArgument(
          "'precision' is '{}', allowed: fp16, bf16 (int8 models are quantized by their "
          "own QuantizeLinear)",
          *precision);
    if (*precision == "bf16" && out.soc < kLeastBfloatSoc)
      return InvalidArgument("'precision' is bf16, which needs a soc from {} on, got {}",
                             kLeastBfloatSoc, out.soc);
    out.precision = *precision;
  }
  out.provider[out.precision == "bf16" ? "htp_bf16_enable" : "enable_htp_fp16_precision"] = "1";
  for (const Plain& plain : kPlain)
    if (const auto* text = value(plain.key)) TENONNX_RETURN_IF_ERROR(add_plain(plain, *text, out));
  if (const auto* text = value("affinity")) {
    TENONNX_ASSIGN_OR_RETURN(out.pinned, pinned_of(*text));
  }
  if (const auto* file = value("op_affinity")) {
    if (!out.pinned.empty())
      return InvalidArgument("'affinity' and 'op_affinity' are both given; one of them is enough");
    out.affinity_file = *file;
  }
  if (const auto* library = value("library")) out.library = *library;
  return out;
}

}  // namespace

QnnPlace qnn_place() {
#if defined(__x86_64__)
  return QnnPlace::kEmulator;
#else
  return QnnPlace::kBoard;
#endif
}

bool is_emulated(std::string_view address) {
  return address.starts_with("qnn:") && qnn_place() == QnnPlace::kEmulator;
}

const std::vector<int>& qnn_emulated_socs() {
  static const std::vector<int> socs = {36, 43, 52, 57, 60, 69, 72, 77, 87, 88};
  return socs;
}

std::string QnnOptions::record() const {
  std::string out;
  for (const auto& [key, text] : provider)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, text);
  if (!pinned.empty()) out += fmt::format(" op_affinity={}=cpu", fmt::join(pinned, "+"));
  if (!affinity_file.empty()) out += " op_affinity=" + affinity_file.filename().string();
  return out;
}

Result<QnnOptions> qnn_options(std::string_view rest, QnnPlace place) {
  const auto in = [&](const Status& status) {
    return status.at(fmt::format("executor 'qnn:{}'", rest));
  };
  const auto given = split(rest);
  if (!given.ok()) return in(given.status());
  auto options = read(*given, place);
  if (!options.ok()) return in(options.status());
  return options;
}

std::string qnn_affinity_json(const std::set<std::string>& pinned) {
  Json types = Json::object();
  for (const std::string& type : pinned) types[type] = "cpu";
  return Json{{"op_type", std::move(types)}}.dump();
}

}  // namespace tenonnx
