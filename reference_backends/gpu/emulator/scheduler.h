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

/// An event: a point in a stream that other streams can wait for.
struct EventState {
  uint64_t recorded = 0;   ///< number of times that it was recorded
  uint64_t completed = 0;  ///< number of the last recording that has completed
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;  ///< the capture in which it was last recorded; null if it was not in a capture
  std::vector<size_t> nodes;         ///< the nodes that precede it in the capture
};

/// A stream: operations that run in order.
struct StreamState {
  struct Operation {
    std::function<void()> run;
    bool on_host = false;  ///< true for a host function, which may take long and runs on a separate thread
    /// The work that must end first: positions in other streams, and events.
    std::vector<std::pair<std::shared_ptr<StreamState>, uint64_t>> after;
    std::vector<std::pair<std::shared_ptr<EventState>, uint64_t>> events;
  };
  int device = 0;
  bool is_null = false, is_blocking = true;
  std::deque<Operation> operations;
  uint64_t enqueued = 0, completed = 0;
  bool busy = false;
  /// Events that the next operation must wait for.
  std::vector<std::pair<std::shared_ptr<EventState>, uint64_t>> waits;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tail;  ///< in a capture: the nodes that precede the next one
};

/// Operations of streams that are recorded instead of run.
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

/// Runs the operations of all streams. Only host functions run beside others. A random generator with the option's seed
/// chooses the stream that continues.
class Scheduler {
 public:
  explicit Scheduler(uint64_t seed);

  /// Callers of all functions below must hold this lock, except where noted.
  std::mutex mutex;

  std::shared_ptr<StreamState> create_stream(int device, bool is_null, bool is_blocking);
  void remove_stream(const std::shared_ptr<StreamState>& stream);
  /// Adds an operation to a stream, or to its capture.
  void enqueue(const std::shared_ptr<StreamState>& stream, std::function<void()> run, bool on_host = false);
  void record(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  /// Completes an event at once, as if all of its recordings had run.
  void complete(const std::shared_ptr<EventState>& event);
  /// Makes the stream wait for an event. Returns false if that would connect two captures.
  bool wait_event(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event);
  /// Waits until all operations that the stream has now are done. Releases the lock while it waits.
  void wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<StreamState>& stream);
  void wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<EventState>& event);
  void wait_for_device(std::unique_lock<std::mutex>& lock, int device);
  /// True if all operations of the stream are done, and the events that its next one must wait for have completed.
  bool is_idle(const StreamState& stream) const;

  /// Returns the nodes of a graph in a random order that respects its dependences. Called without the lock.
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
