// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sdk/runtime/plan.h"
#include "sdk/runtime/queue.h"

/// \file
/// Arguments that stay the same from run to run, in the form that an executable has of its own: the optional table
/// "residency".

namespace collet::runtime {

/// An argument as an executable prepared it.
class PreparedArgument {
 public:
  /// Takes over the buffer.
  PreparedArgument(std::shared_ptr<Backend> backend, collet_backend_buffer* buffer)
      : backend_(std::move(backend)), buffer_(buffer) {}
  ~PreparedArgument() {
    uses.wait();
    backend_->free(buffer_);
  }
  PreparedArgument(const PreparedArgument&) = delete;
  PreparedArgument& operator=(const PreparedArgument&) = delete;

  collet_backend_buffer* buffer() const { return buffer_; }
  Uses uses;

 private:
  std::shared_ptr<Backend> backend_;
  collet_backend_buffer* buffer_;
};

/// The prepared arguments of one compiled program on its devices. An argument is prepared when it was the same in two runs
/// one after the other. Thread-safe.
class Residency {
 public:
  Residency(uint32_t participants, uint32_t arguments) : arguments_(arguments), entries_(participants * arguments) {}

  /// The prepared form of an argument of a participant whose memory has these contents; null for none. With `now` the caller
  /// is to make it, and to say so by `keep`.
  std::shared_ptr<PreparedArgument> find(uint32_t participant, uint32_t argument, uint64_t contents, bool& now);
  /// `prepared`: null where it could not be made.
  void keep(uint32_t participant, uint32_t argument, uint64_t contents, std::shared_ptr<PreparedArgument> prepared);

 private:
  struct Entry {
    uint64_t contents = 0;
    bool asked = false;
    std::shared_ptr<PreparedArgument> prepared;
  };
  const uint32_t arguments_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // participant after participant; under mutex_
};

}  // namespace collet::runtime
