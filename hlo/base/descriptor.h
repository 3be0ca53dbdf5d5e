// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace collet {

/// Owns a file descriptor, and closes it. A negative number stands for none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  /// Gives the descriptor to the caller.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace collet
