// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

namespace tenonnx {
namespace {

constexpr std::string_view kKernelSuffix = "_kernel_time";

struct Event {
  std::int64_t begin = 0;  // microseconds since the session's start
  std::int64_t duration = 0;
};

struct Profile {
  std::vector<NodePlacement> nodes;        // first runs, in order; duration not yet set
  std::vector<std::vector<Event>> events;  // of each node
  Event last_run;
  int runs = 0;
  int unreadable = 0;
};

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::int64_t integer_of(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

class ProfileReader {
 public:
  void line(std::string_view text) {
    while (!text.empty() && (text.back() == '\r' || text.back() == ',' || text.back() == ' '))
      text.remove_suffix(1);
    if (text.empty() || text == "[" || text == "]") return;
    const auto event = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object()) {
      ++profile_.unreadable;
      return;
    }
    const std::string category = text_of(event, "cat");
    const std::string name = text_of(event, "name");
    const Event when{integer_of(event, "ts"), integer_of(event, "dur")};
    if (category == "Session" && name == "model_run") {
      ++profile_.runs;
      if (when.begin >= profile_.last_run.begin) profile_.last_run = when;
    }
    if (category == "Node" && name.ends_with(kKernelSuffix)) node(event, name, when);
  }

  Profile take() { return std::move(profile_); }

 private:
  void node(const nlohmann::json& event, const std::string& name, Event when) {
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) {
      ++profile_.unreadable;
      return;
    }
    NodePlacement placed;
    placed.node = name.substr(0, name.size() - kKernelSuffix.size());
    placed.op_type = text_of(*arguments, "op_name");
    placed.provider = text_of(*arguments, "provider");
    if (placed.provider.empty()) {
      ++profile_.unreadable;
      return;
    }
    const auto [it, is_new] = index_.try_emplace(
        std::tuple(placed.node, placed.op_type, placed.provider), profile_.nodes.size());
    if (is_new) {
      profile_.nodes.push_back(std::move(placed));
      profile_.events.emplace_back();
    }
    profile_.events[it->second].push_back(when);
  }

  Profile profile_;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> index_;
};

void add_note(std::string& notes, const std::string& note) {
  if (!notes.empty()) notes += "; ";
  notes += note;
}

// Compares what ran with what was assigned; what differs, or "".
std::string compare(const Profile& profile, const std::vector<AssignedNode>& assigned,
                    const std::map<std::string, int>& ran_on) {
  std::string notes;
  if (profile.unreadable > 0)
    add_note(notes, fmt::format("{} events of the profile cannot be read", profile.unreadable));
  if (profile.runs == 0) add_note(notes, "the profile holds no run");
  if (assigned.empty()) {
    add_note(notes, "ONNX Runtime kept no assignment record");
    return notes;
  }
  std::map<std::string, int> assigned_to;
  std::unordered_map<std::string, const AssignedNode*> by_name;
  for (const AssignedNode& node : assigned) {
    ++assigned_to[node.provider];
    // The same name in two branches: neither can be told from the profile's.
    if (!node.name.empty() && !by_name.try_emplace(node.name, &node).second)
      by_name[node.name] = nullptr;
  }
  int elsewhere = 0;
  std::string first;
  for (const NodePlacement& node : profile.nodes) {
    const auto it = by_name.find(node.node);
    if (it == by_name.end() || !it->second || it->second->provider == node.provider) continue;
    if (elsewhere++ == 0) {
      first = fmt::format("'{}' was assigned to {} and ran on {}", node.node, it->second->provider,
                          node.provider);
    }
  }
  if (elsewhere == 1) add_note(notes, first);
  if (elsewhere > 1)
    add_note(notes,
             fmt::format("{} nodes ran elsewhere than assigned, first {}", elsewhere, first));
  if (profile.runs == 0) return notes;
  for (const auto& [provider, count] : assigned_to) {
    if (!ran_on.contains(provider))
      add_note(notes, fmt::format("{} was assigned {} nodes and ran none", provider, count));
  }
  for (const auto& [provider, count] : ran_on) {
    if (!assigned_to.contains(provider))
      add_note(notes, fmt::format("{} ran {} nodes and was assigned none", provider, count));
  }
  return notes;
}

}  // namespace

Placement placement_from_profile(std::string_view profile,
                                 const std::vector<AssignedNode>& assigned) {
  ProfileReader reader;
  while (!profile.empty()) {
    const auto end = profile.find('\n');
    reader.line(profile.substr(0, end));
    if (end == std::string_view::npos) break;
    profile.remove_prefix(end + 1);
  }
  Profile read = reader.take();
  std::map<std::string, int> ran_on;
  for (std::size_t i = 0; i < read.nodes.size(); ++i) {
    ++ran_on[read.nodes[i].provider];
    for (const Event& event : read.events[i]) {
      if (event.begin >= read.last_run.begin &&
          event.begin <= read.last_run.begin + read.last_run.duration)
        read.nodes[i].duration_us += event.duration;
    }
  }
  Placement placement;
  placement.disagreement = compare(read, assigned, ran_on);
  placement.providers.assign(ran_on.begin(), ran_on.end());
  std::stable_sort(placement.providers.begin(), placement.providers.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  placement.nodes = std::move(read.nodes);
  return placement;
}

}  // namespace tenonnx
