// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

/// \file
/// A slow network between processes of a test: each is in a network namespace of its own, and what they send each other goes through
/// a switch that delays it and loses a part. It needs root, and works without the kernel's netem.

namespace collet::tool::testing {

class SlowNetwork {
 public:
  /// Makes `hosts` namespaces. Null if that is not possible here, and `why` says why.
  static std::unique_ptr<SlowNetwork> make(int hosts, std::chrono::microseconds delay, double loss, std::string& why);
  ~SlowNetwork();
  SlowNetwork(const SlowNetwork&) = delete;
  SlowNetwork& operator=(const SlowNetwork&) = delete;

  /// What stands before a command that runs on a host.
  std::string before(int host) const;
  static std::string address(int host);

 private:
  SlowNetwork() = default;
  std::vector<std::string> names_;
  pid_t switch_ = -1;  // a process that moves the frames
};

}  // namespace collet::tool::testing
