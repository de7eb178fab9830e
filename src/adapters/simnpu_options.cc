// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/simnpu_options.h"

#include <charconv>

#include "base/nearest.h"
#include "base/status.h"

namespace tenonnx {
namespace {

Result<int> count_of(std::string_view key, std::string_view text, int most) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
    return InvalidArgument("option '{}' is '{}': a number from 0 to {} is needed", key, text, most);
  return value;
}

Result<std::set<std::string>> pinned_of(std::string_view text) {
  std::set<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    const std::string_view one = text.substr(0, end);
    if (!one.ends_with("=cpu") || one.size() == 4)
      return InvalidArgument(
          "option 'affinity' has '{}': OPERATOR=cpu is expected, several joined by '+'", one);
    out.emplace(one.substr(0, one.size() - 4));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

const std::map<std::string, std::string>& simnpu_option_forms() {
  static const std::map<std::string, std::string> forms = {
      {"device", "NAME"},           {"threads", "COUNT"},    {"report", "FILE"},
      {"affinity", "OPERATOR=cpu"}, {"soc", "NAME"},         {"backend", "FILE"},
      {"no_kernel", "OPERATOR"},    {"relabel", "OPERATOR"}, {"drop_binary", "PARTITION"},
      {"affinity_drops_all", "1"}};
  return forms;
}

Result<SimNpuOptions> simnpu_options(const std::map<std::string, std::string>& given) {
  SimNpuOptions options;
  for (const auto& [key, value] : given) {
    if (!simnpu_option_forms().contains(key)) {
      std::vector<std::string> keys;
      for (const auto& [known, form] : simnpu_option_forms()) keys.push_back(known);
      return InvalidArgument("the simulated provider has no option '{}'; it has {}", key,
                             nearest_names(key, keys));
    }
    if (key == "device") options.device = value;
    if (key == "report") options.report = value;
    if (key == "soc") options.soc = value;
    if (key == "backend") options.backend = value;
    if (key == "no_kernel") options.no_kernel = value;
    if (key == "relabel") options.relabel = value;
    if (key == "threads") {
      TENONNX_ASSIGN_OR_RETURN(options.threads, count_of(key, value, 1024));
    }
    if (key == "drop_binary") {
      TENONNX_ASSIGN_OR_RETURN(options.drop_binary, count_of(key, value, 1 << 20));
    }
    if (key == "affinity_drops_all") {
      TENONNX_ASSIGN_OR_RETURN(const int flag, count_of(key, value, 1));
      options.affinity_drops_all = flag == 1;
    }
    if (key == "affinity") {
      TENONNX_ASSIGN_OR_RETURN(options.pinned, pinned_of(value));
    }
  }
  return options;
}

}  // namespace tenonnx
