// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/domain_lock.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tenonnx {
namespace {

struct Known {
  std::shared_mutex mutex;
  std::set<std::string, std::less<>> domains;
};

Known& known() {
  static auto* all = new Known;  // never destroyed, as the table that it stands for
  return *all;
}

bool knows_all(const std::vector<std::string>& domains) {
  return std::all_of(domains.begin(), domains.end(),
                     [](const std::string& domain) { return known().domains.contains(domain); });
}

}  // namespace

DomainLock::DomainLock(std::vector<std::string> domains)
    : domains_(std::move(domains)), beside_(known().mutex) {
  if (knows_all(domains_)) return;
  beside_.unlock();
  alone_ = std::unique_lock(known().mutex);
}

void DomainLock::created() {
  if (alone_.owns_lock()) known().domains.insert(domains_.begin(), domains_.end());
}

}  // namespace tenonnx
