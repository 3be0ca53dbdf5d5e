// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "conformance/contract/program.h"

/// \file
/// Wrappers for a backend's queues that own the handles.

namespace collet::conformance {

constexpr uint64_t kForever = UINT64_MAX;

/// Owns a queue; the destructor waits for its work and destroys it.
class Queue {
 public:
  Queue() = default;
  Queue(const collet_queue_table* table, collet_backend_queue* handle) : table_(table), handle_(handle) {}
  Queue(Queue&& other) noexcept { *this = std::move(other); }
  Queue& operator=(Queue&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(handle_, other.handle_);
    std::swap(last_, other.last_);
    return *this;
  }
  ~Queue() {
    if (!handle_) return;
    collet_error error{};
    table_->wait(handle_, last_, kForever, &error);
    table_->destroy(handle_);
  }
  explicit operator bool() const { return handle_ != nullptr; }
  collet_backend_queue* handle() const { return handle_; }
  uint64_t last() const { return last_; }
  collet_point point() const { return {handle_, last_}; }
  /// Returns the next point that work on it signals.
  collet_point next(uint64_t step = 1) {
    last_ += step;
    return point();
  }
  void take_back(uint64_t step = 1) { last_ -= step; }

 private:
  const collet_queue_table* table_ = nullptr;
  collet_backend_queue* handle_ = nullptr;
  uint64_t last_ = 0;
};

/// An open instance and its table of queues.
struct Setting {
  std::unique_ptr<Instance> instance;
  const collet_queue_table* table = nullptr;
  explicit operator bool() const { return table != nullptr; }

  Contract& contract() const { return instance->contract(); }
  Queue create(uint32_t kind, uint32_t device = 0) const;
  /// Puts a copy on a queue. The lists passed to the call are overwritten and freed when it returns.
  bool copy(Queue& queue, const std::vector<collet_copy_region>& regions, const std::vector<collet_point>& waits = {},
            uint64_t step = 1) const;
  /// Puts a launch on a queue; treats its lists in the same way.
  bool launch(Queue& queue, const Executable& executable, GuardedLaunch& guarded,
              const std::vector<collet_point>& waits = {}) const;
  collet_status wait(const Queue& queue, uint64_t value, uint64_t timeout = kForever,
                     std::string* message = nullptr) const {
    return checked_call(
        contract(), "wait", [&](collet_error* error) { return table->wait(queue.handle(), value, timeout, error); },
        message);
  }
  /// Waits for the last point; records a failure if that fails.
  bool finish(const Queue& queue) const {
    std::string message;
    const collet_status status = wait(queue, queue.last(), kForever, &message);
    return contract().check(status == COLLET_OK, Promise::QUEUE_POINT, "wait for point {} gave status {}: {}",
                            queue.last(), status, message);
  }
};

/// Opens an instance. Returns an empty setting, and skips the case, if the backend has no queues.
Setting start_queues(Contract& c, uint32_t devices = 0);
/// Returns whether the bytes are the expected ones; otherwise records a failure.
bool same_bytes(Contract& c, const Bytes& got, const Bytes& expected, Promise promise, const std::string& what);

}  // namespace collet::conformance
