// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/asynchronous.h"
#include "reference_backends/gpu/emulator/launch.h"

namespace collet::gpu::emulator {

class Worker;

/// One thread of a block. Generated code reads the members up to `shared_end` at fixed offsets.
struct Thread {
  uint32_t tid[3] = {0, 0, 0};
  uint32_t ntid[3] = {1, 1, 1};
  uint32_t ctaid[3] = {0, 0, 0};
  uint32_t nctaid[3] = {1, 1, 1};
  uint32_t lane = 0, warp = 0, warps = 1;
  int32_t poll = 0;             ///< backward branches until collet_emu_poll is called again
  uint32_t dynamic_shared = 0;  ///< offset of the dynamic shared memory of the launch
  uint32_t shared_end = 0;      ///< one past the last valid offset of shared memory
  const uint8_t* parameters = nullptr;
  Worker* worker = nullptr;

  // Members that only the runtime uses.
  uint8_t* local = nullptr;
  uint32_t linear = 0;
  enum class State : uint8_t { kReady, kWaiting, kExited } state = State::kReady;
  uint32_t line = 0;     ///< line of the PTX text at which the thread waits
  uint32_t result = 0;   ///< result of the operation that the thread waits for
  uint32_t barrier = 0;  ///< number of the barrier at which the thread waits
  /// Offset of the mbarrier at which the thread waits; 0 if it waits at none.
  uint32_t memory_barrier = 0;
  /// Writes to shared memory with a number up to this one are visible to asynchronous operations, see SharedRecord.
  uint64_t proxy_fence = 0;
  struct AsyncCopy {
    uint64_t from;
    uint32_t to, bytes, from_bytes, line;
  };
  /// Groups of cp.async, oldest first; the last group is not committed yet.
  std::vector<std::vector<AsyncCopy>> groups;
};

/// One access to shared memory, for the detection of races.
struct Access {
  uint32_t stamp = 0;  ///< value of the warp's clock at the access; 0 if there was none
  uint32_t meet = 0;   ///< value of the warp's count of meetings at the access
  uint16_t thread = 0;
  bool is_atomic = false;
};
/// The last accesses to four bytes of shared memory, or to one.
struct SharedRecord {
  Access write, read, other_read;
  /// The last write that was not atomic: it conflicts with later atomic accesses, also when `write` does not.
  Access plain_write;
  /// True if bytes of the word were accessed one by one since it was last written as a whole: they have records of their
  /// own, too.
  bool has_parts = false;
  /// Number of the last write among all writes by threads; 0 if an asynchronous copy wrote last.
  uint64_t sequence = 0;
};

/// A synchronisation of some lanes of a warp, such as that of a shuffle: all lanes of `mask` must arrive with the same
/// key.
struct Meeting {
  uint32_t key = 0, mask = 0, arrived = 0, line = 0;
  uint32_t code = 0;  ///< a parameter of `complete`
  void* data[32] = {};
  void (*complete)(Worker& worker, Meeting& meeting) = nullptr;
  uint32_t warp = 0;
};

struct Warp {
  uint32_t present = 0, exited = 0;
  std::vector<Meeting> meetings;
  // Vector clock, from which follows whether one access happens before another.
  uint32_t clock = 0;
  uint32_t all_waited = 0;  ///< value of the clock when all lanes waited at a barrier of the block last
  uint32_t seen[32] = {};   ///< accesses of each warp up to this clock happen before those of this warp
  uint32_t meets = 1;       ///< number of meetings of lanes so far, plus 1
  uint32_t all_met = 0;     ///< value of `meets` when all lanes met last
  uint32_t met[32] = {};    ///< by lane: value of `meets` when it last met other lanes
  uint32_t met_mask[32] = {};
  /// By lane: accesses of other lanes of the warp up to this clock happen before those of the lane, since it waited at an
  /// mbarrier; but for accesses that a lane has made since its own arrival, the clock of which is in lane_arrived.
  uint32_t lane_seen[32] = {};
  uint32_t lane_arrived[32] = {};
  /// By lane: its own clock, which counts where it is ahead of the warp's. A lane gets ahead that arrives at a barrier of the
  /// block and goes on: lanes that arrive after it do not tell the barrier of what it does meanwhile.
  uint32_t lane_clock[32] = {};
  /// The lanes that wait at a barrier of the block at which they must arrive together; its number and its line.
  uint32_t at_barrier = 0, barrier = 0, barrier_line = 0;
  WarpProducts products;
};

struct Barrier {
  uint32_t arrived = 0, expected = 0, line = 0;
  uint32_t counted = 0;  ///< number of threads whose predicate is true
  std::vector<Thread*> waiting;
  uint32_t gathered[32] = {};  ///< clocks of each warp that happen before the arrivals of threads that do not wait
};

/// How a thread arrives at a barrier of the block.
struct Arrival {
  uint32_t count = 0;  ///< number of threads that the barrier is for
  bool predicate = false;
  bool waits = true;
  bool by_lane = false;  ///< the lanes of a warp need not arrive together
};

/// Runs blocks on one host thread, one after the other.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  /// Runs blocks of the launch until there are none left.
  void run(Launch& launch);

  // Used by the functions that generated code calls.
  Launch& launch() { return *launch_; }
  Thread& thread(uint32_t linear) { return threads_[linear]; }
  Warp& warp(uint32_t index) { return warps_[index]; }
  uint32_t thread_count() const { return count_; }
  uint8_t* shared() { return shared_.get(); }
  uint8_t* shared_states() { return shared_states_.get(); }
  uint64_t block_index() const { return block_; }
  bool checks_races() const { return checks_races_; }
  bool checks_initialised() const { return checks_initialised_; }
  bool has_fenced = false;  ///< true if a thread of the block has executed a fence

  /// Ends the launch with an error that this thread has caused. Never returns: the thread's stack is abandoned.
  [[noreturn]] void fail(Thread& t, uint32_t line, CUresult result, std::string message);
  /// Abandons the thread's stack, for a launch that has failed already.
  [[noreturn]] void abandon();
  /// Runs other threads until this thread is made ready.
  void wait(Thread& t, uint32_t line);
  void make_ready(Thread& t);
  void yield(Thread& t);
  /// Waits until all lanes of the mask have arrived with the same key. The last lane to arrive calls `complete`.
  void meet(Thread& t, uint32_t key, uint32_t mask, void* data, void (*complete)(Worker&, Meeting&), uint32_t line,
            uint32_t code = 0);
  uint32_t arrive(Thread& t, uint32_t index, const Arrival& how, uint32_t line);
  /// Returns the clock of the thread's accesses.
  uint32_t clock_of(const Thread& t) const {
    const Warp& warp = warps_[t.warp];
    return warp.clock > warp.lane_clock[t.lane] ? warp.clock : warp.lane_clock[t.lane];
  }

  /// Records an access to shared memory, and fails if it conflicts with another access.
  void note_shared(Thread& t, uint32_t offset, uint32_t bytes, bool is_write, bool is_atomic, uint32_t line);
  void finish_copies(Thread& t, size_t open_groups);

  // Asynchronous operations, see asynchronous.cc.
  std::map<uint32_t, MemoryBarrier> memory_barriers;  ///< by offset in shared memory
  void start_copy(const BoxCopy& copy) { box_copies_.push_back(copy); }
  /// Notes that an asynchronous copy writes these bytes.
  void mark_asynchronous(uint32_t offset, uint32_t bytes);
  /// Fails if a thread wrote some of the bytes without a fence behind, which asynchronous operations need.
  void check_proxy(Thread& t, uint32_t offset, uint32_t bytes, uint32_t line);
  /// Returns the number of the last write to shared memory by a thread.
  uint64_t sequence() const { return sequence_; }

 private:
  struct Fiber {
    uint8_t* stack = nullptr;
    boost::context::detail::fcontext_t context = nullptr;
  };
  void run_block(uint64_t index);
  void run_in_turn();
  void run_together();
  void begin_block(uint64_t index);
  Fiber& fiber(size_t index);
  void enter(Fiber& fiber);
  static void fiber_main(boost::context::detail::transfer_t from);
  void exit_thread(Thread& t);
  void complete_meetings(Warp& warp);
  void complete_barrier(Thread& last, Barrier& barrier);
  void order_by_barrier(const Barrier& barrier);
  void report_divergence();
  /// Carries out one asynchronous copy. Returns false if there is none.
  bool run_asynchronous();
  /// Carries out asynchronous copies while no thread of the block can go on.
  void run_while_all_wait();
  /// Checks that nothing is under way when the last thread of a block exits.
  void check_asynchronous_end(Thread& last);
  std::string place_of(const Thread& t, uint32_t line) const;
  bool conflicts(const Access& a, const Thread& t, bool is_atomic) const;
  /// Returns the recorded access that conflicts with one of a thread, or null.
  const Access* find_conflict(const SharedRecord& r, const Thread& t, bool is_write, bool is_atomic) const;
  void note_access(SharedRecord& r, const Thread& t, bool is_write, bool is_atomic);
  /// Returns the records of the four bytes of a word.
  SharedRecord* parts_of(uint32_t cell) { return part_records_.data() + uint64_t{cell} * 4; }

  Launch* launch_ = nullptr;
  uint64_t block_ = 0;
  uint32_t count_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Barrier barriers_[16];
  std::deque<Thread*> ready_;
  size_t polls_ = 0;  ///< number of times that threads polled since one last did something else
  Thread* current_ = nullptr;
  uint32_t live_ = 0;
  bool in_turn_ = false;
  bool failed_ = false;
  bool checks_races_ = false, checks_initialised_ = false;
  uint64_t random_ = 1;

  std::vector<Fiber> fibers_;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  std::unique_ptr<uint8_t[]> shared_, shared_states_;
  std::vector<SharedRecord> shared_records_;  ///< of words
  std::vector<SharedRecord> part_records_;    ///< of bytes; made when parts of words are first accessed
  uint64_t sequence_ = 0;                     ///< number of writes to shared memory by threads so far
  uint64_t first_sequence_ = 0;               ///< its value when the block began
  std::vector<BoxCopy> box_copies_;
  std::vector<uint8_t> local_;
  uint32_t clock_ = 1;  ///< larger than all clock values of earlier blocks
};

}  // namespace collet::gpu::emulator
