// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// A plain TCP connection over the loopback: the limit for what processes of one machine exchange by TCP.

namespace collet::bench {

/// One end of a connection between processes 0 and 1 of a group.
class Loopback {
 public:
  /// Both processes call it. They find each other by the key `key` of the store.
  static Expected<Loopback> connect(uint32_t process, const collet_store& store, const std::string& key,
                                    uint32_t timeout_ms);
  Loopback(Loopback&& other) noexcept;
  Loopback& operator=(Loopback&& other) noexcept;
  ~Loopback();

  /// Sends 4 bytes to and fro so many times; returns the nanoseconds of one way.
  Expected<double> ping(unsigned times);
  /// Sends so many bytes from process 0 to process 1; returns the nanoseconds until all have been received.
  Expected<double> stream(uint64_t bytes);

 private:
  Loopback(int fd, bool first) : fd_(fd), first_(first) {}
  Status send(const void* data, uint64_t bytes) const;
  Status receive(void* data, uint64_t bytes) const;

  int fd_ = -1;
  bool first_ = false;
  std::vector<char> block_;
};

}  // namespace collet::bench
