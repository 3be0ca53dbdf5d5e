// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "hlo/base/status.h"
#include "sdk/runtime/memory/memory_pool.h"
#include "sdk/runtime/memory/worker.h"

/// \file
/// Queues of devices, from the optional table "queue": puts work on them and reports its end.

namespace collet::runtime {

class Backend;
class Queue;

/// A point in the work of a queue. It is reached when all work that was put on the queue up to it has ended.
struct Point {
  Queue* queue = nullptr;  ///< null: no point, nothing to wait for
  uint64_t value = 0;
  explicit operator bool() const { return queue != nullptr; }
  bool operator==(const Point&) const = default;
};

/// A list of points, which is usually short.
using Points = Small<Point, 4>;

/// One queue of one device. Thread-safe.
class Queue {
 public:
  /// Creates a queue; `kind` is a COLLET_QUEUE_*.
  static Expected<std::unique_ptr<Queue>> make(std::shared_ptr<Backend> backend, uint32_t device, uint32_t kind);
  /// Waits for all work.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Backend& backend() const { return *backend_; }
  collet_backend_queue* handle() const { return handle_; }

  /// True if the work up to `value` is known to have ended, with success or failure. Never blocks.
  bool has_ended(uint64_t value) const { return ended_.load(std::memory_order_acquire) >= value || has_failed(); }
  /// True if the queue is known to have failed. It stays failed.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  /// Blocks until the work up to `value` has ended, and returns its outcome. DEADLINE_EXCEEDED if it has not ended by
  /// then.
  Status wait(uint64_t value, uint64_t timeout_ns = UINT64_MAX);
  /// Calls `done` once with the outcome when the work up to `value` has ended; the calls are in order, on a thread of
  /// the queue.
  void then(uint64_t value, std::function<void(const Status&)> done);
  /// Waits for all work that was put on the queue; returns its outcome.
  Status finish();
  /// Cancels all work that has not ended.
  void abort(const Status& reason);

 private:
  friend class Submission;
  Queue(std::shared_ptr<Backend> backend, const collet_queue_table& table, collet_backend_queue* handle)
      : backend_(std::move(backend)), table_(table), handle_(handle) {}
  Status failure() const;

  std::shared_ptr<Backend> backend_;
  const collet_queue_table& table_;
  collet_backend_queue* handle_;
  std::mutex put_;     // held while work is put on the queue, so that values increase in the order of the calls
  uint64_t last_ = 0;  // value of the work that was put there last; guarded by put_
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status failure_;  // guarded by mutex_
  Worker completions_;
};

/// Adds to `out` the points for which work on `queue` must wait: not its own points, nor those that are reached.
/// Returns the failure of a point that can no longer be reached, so that `queue` does not fail as well.
Status add_waits(std::span<const Point> points, const Queue& queue, Points& out);
/// Blocks until all points are reached; returns the first failure.
Status wait_for(std::span<const Point> points);

/// One call that puts work on queues: one sync for each piece of work. The queues are locked until this object is
/// destroyed.
class Submission {
 public:
  /// Piece number i is put on `queues[i]`. A queue may occur several times.
  explicit Submission(std::span<Queue* const> queues);
  ~Submission();
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  /// Sets the points for which piece number `i` waits.
  void wait_for(size_t i, Points points) { pieces_[i].waits = std::move(points); }
  /// Returns the sync argument for piece number `i`. Called after all calls of wait_for.
  const collet_sync* sync(size_t i);
  /// To be called if the call succeeded: returns the point at which piece number `i` ends.
  Point commit(size_t i);

 private:
  struct Piece {
    Queue* queue = nullptr;
    uint64_t value = 0;
    Points waits;
    Small<collet_point, 4> c_waits;
    collet_point signal{};
    collet_sync sync{};
  };
  Small<Piece, 1> pieces_;
  Small<Queue*, 4> held_;  // locked queues, each once
};

/// The uses of a piece of memory by work in flight, as the last point of each queue. Thread-safe.
class Uses {
 public:
  /// Records that work up to `point` reads or writes the memory. May block if more queues use it than can be stored.
  void add(Point point);
  /// Adds to `out` the points for which work on `queue` that writes to the memory must wait.
  void add_waits(const Queue& queue, Points& out);
  /// True if no work uses it, except perhaps work on `order`, which may be null.
  bool only(const Queue* order);
  /// Blocks until no work uses it, whatever the outcome of that work.
  void wait();

 private:
  void drop_ended();

  static constexpr uint32_t kMost = 4;
  std::mutex mutex_;
  uint32_t count_ = 0;  // under mutex_
  Point points_[kMost];
  std::atomic<bool> any_{false};
};

}  // namespace collet::runtime
