// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/launch.h"

namespace collet::gpu::emulator {

class Worker;

/// One thread of a block. Generated code reads the first members.
struct Thread {
  uint32_t tid[3] = {0, 0, 0};
  uint32_t ntid[3] = {1, 1, 1};
  uint32_t ctaid[3] = {0, 0, 0};
  uint32_t nctaid[3] = {1, 1, 1};
  uint32_t lane = 0, warp = 0, warps = 1;
  int32_t poll = 0;             ///< backward branches until the next call of collet_emu_poll
  uint32_t dynamic_shared = 0;  ///< the offset of the launch's shared memory
  uint32_t shared_end = 0;      ///< one past the last valid offset
  const uint8_t* parameters = nullptr;
  Worker* worker = nullptr;

  // Of the runtime alone.
  uint8_t* local = nullptr;
  uint32_t linear = 0;
  enum class State : uint8_t { kReady, kWaiting, kExited } state = State::kReady;
  uint32_t line = 0;     ///< where it waits
  uint32_t result = 0;   ///< what it waits for
  uint32_t barrier = 0;  ///< the one where it waits
  struct AsyncCopy {
    uint64_t from;
    uint32_t to, bytes, from_bytes, line;
  };
  std::vector<std::vector<AsyncCopy>> groups;  ///< of cp.async, oldest first; the last one is open
};

/// One access of four bytes of shared memory.
struct Access {
  uint32_t stamp = 0;  ///< of the warp's clock; 0: none
  uint32_t meet = 0;   ///< of the warp's count of meetings
  uint16_t thread = 0;
  uint8_t bytes = 0;  ///< a mask
  bool is_atomic = false;
};
struct SharedRecord {
  Access write, read, other_read;
};

/// Lanes of a warp that wait for each other.
struct Meeting {
  uint32_t key = 0, mask = 0, arrived = 0, line = 0;
  void* data[32] = {};
  void (*complete)(Worker& worker, Meeting& meeting) = nullptr;
  uint32_t warp = 0;
};

struct Warp {
  uint32_t present = 0, exited = 0;
  std::vector<Meeting> meetings;
  // The order between accesses.
  uint32_t clock = 0;
  uint32_t seen[32] = {};  ///< accesses of these warps up to these clocks come before
  uint32_t meets = 1;      ///< how many times lanes met
  uint32_t all_met = 0;    ///< when all lanes met last
  uint32_t met[32] = {};   ///< by lane: when it met others last
  uint32_t met_mask[32] = {};
};

struct Barrier {
  uint32_t arrived = 0, expected = 0, line = 0;
  uint32_t counted = 0;  ///< true predicates
  std::vector<Thread*> waiting;
  uint32_t warps = 0;
};

/// Runs blocks, one after the other, on one host thread.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  /// Takes blocks of the launch until there are none.
  void run(Launch& launch);

  // For the functions that generated code calls.
  Launch& launch() { return *launch_; }
  Thread& thread(uint32_t linear) { return threads_[linear]; }
  Warp& warp(uint32_t index) { return warps_[index]; }
  uint32_t thread_count() const { return count_; }
  uint8_t* shared() { return shared_.get(); }
  uint8_t* shared_states() { return shared_states_.get(); }
  uint64_t block_index() const { return block_; }
  bool checks_races() const { return checks_races_; }
  bool checks_initialised() const { return checks_initialised_; }
  bool has_fenced = false;  ///< some thread of the block executed a fence

  /// Ends the launch with a finding about this thread. Never returns: its stack is abandoned.
  [[noreturn]] void fail(Thread& t, uint32_t line, CUresult result, std::string message);
  /// The same where the launch has failed already.
  [[noreturn]] void abandon();
  /// Lets others run until this thread is made ready.
  void wait(Thread& t, uint32_t line);
  void make_ready(Thread& t);
  void yield(Thread& t);
  /// Waits until all lanes of the mask are here with the same key; the last one calls `complete`.
  void meet(Thread& t, uint32_t key, uint32_t mask, void* data, void (*complete)(Worker&, Meeting&), uint32_t line);
  uint32_t arrive(Thread& t, uint32_t index, uint32_t count, bool predicate, bool waits, uint32_t line);

  /// Notes an access of shared memory and fails where it conflicts with another one.
  void note_shared(Thread& t, uint32_t offset, uint32_t bytes, bool is_write, bool is_atomic, uint32_t line);
  void finish_copies(Thread& t, size_t open_groups);

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
  void complete_barrier(Thread& last, Barrier& barrier, uint32_t index);
  void report_divergence();
  std::string place_of(const Thread& t, uint32_t line) const;
  bool conflicts(const Access& a, const Thread& t, uint8_t mask, bool is_atomic) const;

  Launch* launch_ = nullptr;
  uint64_t block_ = 0;
  uint32_t count_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Barrier barriers_[16];
  std::deque<Thread*> ready_;
  Thread* current_ = nullptr;
  uint32_t live_ = 0;
  bool in_turn_ = false;
  bool failed_ = false;
  bool checks_races_ = false, checks_initialised_ = false;
  uint64_t random_ = 1;

  std::vector<Fiber> fibers_;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  std::unique_ptr<uint8_t[]> shared_, shared_states_;
  std::vector<SharedRecord> shared_records_;
  std::vector<uint8_t> local_;
  uint32_t clock_ = 1;  ///< larger than all stamps of earlier blocks
};

}  // namespace collet::gpu::emulator
