// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "report.h"

#include <cmath>
#include <ctime>

#include "base/status.h"

namespace tenonnx::planted {
namespace {

constexpr std::size_t kFew = 100;

// What a finder of this rate falls short of once in fifty runs at most.
std::size_t required(std::size_t cases, double asked, double rate) {
  // Of many cases the share itself.
  if (cases >= kFew)
    return static_cast<std::size_t>(std::ceil(asked * static_cast<double>(cases) - 1e-9));
  const auto n = static_cast<double>(cases);
  double below = 0;
  for (std::size_t k = 0; k <= cases; ++k) {
    const auto x = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                      x * std::log(rate) + (n - x) * std::log(1 - rate));
    if (below > 0.02) return k;
  }
  return cases;
}

}  // namespace

// Few cases: 20 of a finder that names 98 % of the nodes and 95 % of the kinds (its shares in the
// large run) are fewer than 18 and 17 in less than one run of fifty. Asking for 19 and 18 would
// fail a good finder once in 13 to 17 runs.
std::size_t required_nodes(std::size_t cases) { return required(cases, 0.95, 0.98); }
std::size_t required_kinds(std::size_t cases) { return required(cases, 0.90, 0.95); }

std::size_t Report::nodes() const {
  std::size_t out = 0;
  for (const CaseRecord& one : cases) out += one.rank > 0 ? 1 : 0;
  return out;
}
std::size_t Report::kinds() const {
  std::size_t out = 0;
  for (const CaseRecord& one : cases) out += one.kind_found ? 1 : 0;
  return out;
}
std::size_t Report::alarms() const {
  std::size_t out = 0;
  for (const HealthyRecord& one : healthy) out += one.alarm() ? 1 : 0;
  return out;
}

std::string line_of(const CaseRecord& one) {
  const std::string found = one.rank == 0 ? "NOT FOUND" : fmt::format("rank {}", one.rank);
  return fmt::format("{} | {} | {} of {} | {} | {} | {} | {} | {} {:.1f} s, {} draws{}", one.kind,
                     one.model, one.where, one.device, one.node, one.text, found,
                     one.kind_found ? "kind ok" : "KIND WRONG",
                     one.rank == 0 ? one.verdict + " " + one.headline : one.answer, one.seconds,
                     one.draws, one.error.empty() ? "" : " ERROR " + one.error);
}

std::string line_of(const HealthyRecord& one) {
  return fmt::format("healthy | {} | {} | {}{} {} {:.1f} s{}", one.model, one.text,
                     one.alarm() ? "ALARM " : "", one.verdict, one.headline, one.seconds,
                     one.error.empty() ? "" : " ERROR " + one.error);
}

Json to_json(const Report& report) {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", &day);
  Json out = {{"schema_version", 1},
              {"date", date},
              {"seed", report.seed},
              {"named", kNamed},
              {"notes", report.notes}};
  Json versions = Json::object();
  for (const auto& [name, version] : report.versions) versions[name] = version;
  out["versions"] = std::move(versions);
  Json groups = Json::array();
  for (const FaultClass& one : fault_classes()) {
    Json kinds = Json::array();
    for (const FaultKind kind : one.named) kinds.push_back(to_string(kind));
    groups.push_back({{"kind", one.name}, {"named", std::move(kinds)}, {"why", one.why}});
  }
  groups.push_back({{"kind", kCopyOfReference},
                    {"named", Json::array({to_string(FaultKind::kCopy)})},
                    {"why", "it has no node and moves no gate; the executor as a whole is named"}});
  out["groups"] = std::move(groups);
  Json cases = Json::array();
  for (const CaseRecord& one : report.cases)
    cases.push_back({{"kind", one.kind},
                     {"model", one.model},
                     {"where", one.where},
                     {"device", one.device},
                     {"node", one.node},
                     {"text", one.text},
                     {"verdict", one.verdict},
                     {"headline", one.headline},
                     {"answer", one.answer},
                     {"rank", one.rank},
                     {"kind_found", one.kind_found},
                     {"draws", one.draws},
                     {"seconds", std::round(one.seconds * 10) / 10},
                     {"error", one.error}});
  out["cases"] = std::move(cases);
  Json healthy = Json::array();
  for (const HealthyRecord& one : report.healthy)
    healthy.push_back({{"model", one.model},
                       {"text", one.text},
                       {"verdict", one.verdict},
                       {"headline", one.headline},
                       {"alarm", one.alarm()},
                       {"seconds", std::round(one.seconds * 10) / 10},
                       {"error", one.error}});
  out["healthy"] = std::move(healthy);
  return out;
}

}  // namespace tenonnx::planted
