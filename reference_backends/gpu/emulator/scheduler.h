// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collet::gpu::emulator {

struct Capture;

/// A point in a stream that others can wait for.
struct EventState {
  uint64_t recorded = 0;   ///< how many times
  uint64_t completed = 0;  ///< the last of them that is over
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;  ///< where it was recorded last, if in a capture
  std::vector<size_t> nodes;         ///< there
};

/// Work in order.
struct StreamState {
  struct Operation {
    std::function<void()> run;
    bool on_host = false;  ///< a host function: it may take long, and gets a thread of its own
    /// The work that must be over before: positions in other streams, events.
    std::vector<std::pair<std::shared_ptr<StreamState>, uint64_t>> after;
    std::vector<std::pair<std::shared_ptr<EventState>, uint64_t>> events;
  };
  int device = 0;
  bool is_null = false, is_blocking = true;
  std::deque<Operation> operations;
  uint64_t enqueued = 0, completed = 0;
  bool busy = false;
  std::vector<std::pair<std::shared_ptr<EventState>, uint64_t>> waits;  ///< of the next operation
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tail;  ///< nodes of the capture that the next one comes after
};

/// Work that is recorded and not run.
struct Capture {
  struct Node {
    std::function<void()> run;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
  std::shared_ptr<StreamState> origin;
  std::vector<std::shared_ptr<StreamState>> streams;
  bool is_valid = true;
};

/// Runs the operations of all streams, one at a time but for host functions. Which stream goes on is drawn by the seed.
class Scheduler {
 public:
  explicit Scheduler(uint64_t seed);

  /// Everything below wants this lock held, unless it says otherwise.
  std::mutex mutex;

  std::shared_ptr<StreamState> create_stream(int device, bool is_null, bool is_blocking);
  void remove_stream(const std::shared_ptr<StreamState>& stream);
  /// Adds to a stream, or to its capture.
  void enqueue(const std::shared_ptr<StreamState>& stream, std::function<void()> run, bool on_host = false);
  void record(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  /// False where it would tie two captures together.
  bool wait_event(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  /// Until everything in the stream up to now is over. Releases the lock meanwhile.
  void wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<StreamState>& stream);
  void wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<EventState>& event);
  void wait_for_device(std::unique_lock<std::mutex>& lock, int device);
  bool is_idle(const StreamState& stream) const { return stream.operations.empty() && stream.waits.empty(); }

  /// The nodes of a graph in some order that it allows. Without the lock.
  std::vector<size_t> order_of(const std::vector<Capture::Node>& nodes, uint64_t draw) const;
  uint64_t draw();

 private:
  void run();
  void run_host_functions();
  bool is_ready(const StreamState& stream) const;
  void finish(const std::shared_ptr<StreamState>& stream);
  void add_wait_operation(const std::shared_ptr<StreamState>& stream);

  uint64_t seed_, random_;
  std::vector<std::shared_ptr<StreamState>> streams_;
  std::condition_variable work_, done_, host_work_;
  std::deque<std::pair<std::shared_ptr<StreamState>, std::function<void()>>> host_functions_;
};

}  // namespace collet::gpu::emulator
