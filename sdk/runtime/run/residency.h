// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sdk/runtime/memory/queue.h"
#include "sdk/runtime/plan/plan.h"

/// \file
/// Keeps arguments that are the same in several runs in the form that an executable has prepared: the optional table
/// "residency".

namespace collet::runtime {

/// An argument in the form that an executable has prepared.
class PreparedArgument {
 public:
  /// Takes ownership of the buffer.
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

/// The prepared arguments of one compiled program on its devices. An argument is prepared when it was the same in two
/// consecutive runs. Thread-safe.
class Residency {
 public:
  Residency(uint32_t participants, uint32_t arguments) : arguments_(arguments), entries_(participants * arguments) {}

  /// Returns the prepared form of a participant's argument whose memory has these contents; null if there is none. If
  /// `now` is set, the caller must prepare it and store it by `keep`.
  std::shared_ptr<PreparedArgument> find(uint32_t participant, uint32_t argument, uint64_t contents, bool& now);
  /// Stores a prepared form; null if it could not be made.
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
