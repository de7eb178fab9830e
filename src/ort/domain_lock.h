// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// ONNX Runtime 1.29 keeps one table of domains for the whole process. A session looks its domains
// up there and adds what it does not find in a second step, and all sessions read the table while
// they are created, without a lock: of two threads with the same new domain one ends in "Trying to
// add a domain to DomainToVersion map, but the domain is already exist".
#pragma once

#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace tenonnx {

// Held while a session is created: alone where one of its domains is new to the process, beside
// others otherwise.
class DomainLock {
 public:
  explicit DomainLock(std::vector<std::string> domains);

  // ONNX Runtime has them from here on.
  void created();

 private:
  std::vector<std::string> domains_;
  std::shared_lock<std::shared_mutex> beside_;
  std::unique_lock<std::shared_mutex> alone_;
};

}  // namespace tenonnx
