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
#include "sdk/runtime/memory_pool.h"
#include "sdk/runtime/worker.h"

/// \file
/// Queues of devices, from the optional table "queue": how the runtime puts work there and learns of its end.

namespace collet::runtime {

class Backend;
class Queue;

/// A moment in the work of a queue. Reached when all work that was put there up to it has ended.
struct Point {
  Queue* queue = nullptr;  ///< null: no point; there is nothing to wait for
  uint64_t value = 0;
  explicit operator bool() const { return queue != nullptr; }
  bool operator==(const Point&) const = default;
};

/// A list of points, most often short.
using Points = Small<Point, 4>;

/// One queue of one device. Thread-safe.
class Queue {
 public:
  /// `kind`: COLLET_QUEUE_*.
  static Expected<std::unique_ptr<Queue>> make(std::shared_ptr<Backend> backend, uint32_t device, uint32_t kind);
  /// Waits for all work.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Backend& backend() const { return *backend_; }
  collet_backend_queue* handle() const { return handle_; }

  /// Whether the work up to `value` is known to have ended, with success or failure. Never blocks.
  bool has_ended(uint64_t value) const { return ended_.load(std::memory_order_acquire) >= value || has_failed(); }
  /// Whether the queue is known to have failed. It stays failed.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  /// Blocks until the work up to `value` has ended: its outcome. DEADLINE_EXCEEDED when it has not by then.
  Status wait(uint64_t value, uint64_t timeout_ns = UINT64_MAX);
  /// Calls `done` once with the outcome when the work up to `value` has ended, on a thread of the queue's, in order.
  void then(uint64_t value, std::function<void(const Status&)> done);
  /// Waits for all work that was put there; its outcome.
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
  std::mutex put_;     // held while work is put there, so that values rise in the order of the calls
  uint64_t last_ = 0;  // value of the work that was put there last; under put_
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status failure_;  // under mutex_
  Worker completions_;
};

/// Adds to `out` those of `points` that work on `queue` must wait for: not its own, nor those that are reached. Returns the
/// failure of a point that can no longer be reached, so that it does not spread to `queue`.
Status add_waits(std::span<const Point> points, const Queue& queue, Points& out);
/// Blocks until all are reached; the first failure.
Status wait_for(std::span<const Point> points);

/// One call that puts work on queues: a sync for each piece of work. The queues are held until it is destroyed.
class Submission {
 public:
  /// Number i is put on `queues[i]`. A queue may stand there several times.
  explicit Submission(std::span<Queue* const> queues);
  ~Submission();
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  /// Sets the points that number `i` waits for.
  void wait_for(size_t i, Points points) { pieces_[i].waits = std::move(points); }
  /// Returns the argument for number `i`. Called after all calls of wait_for.
  const collet_sync* sync(size_t i);
  /// The call succeeded: the point at which number `i` has ended.
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
  Small<Queue*, 4> held_;  // each once
};

/// The uses of a piece of memory by work in flight, as the last point of each queue. Thread-safe.
class Uses {
 public:
  /// Work up to `point` reads or writes the memory. May block, where more queues use it than can be noted.
  void add(Point point);
  /// Adds to `out` what work on `queue` that writes to the memory must wait for.
  void add_waits(const Queue& queue, Points& out);
  /// Whether no work uses it, except perhaps work on `order`, which may be null.
  bool only(const Queue* order);
  /// Blocks until nothing uses it, whatever the outcome.
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
