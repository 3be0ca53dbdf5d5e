// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/block.h"

#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "reference_backends/gpu/emulator/random.h"
#include "reference_backends/gpu/emulator/support.h"

namespace collet::gpu::emulator {
namespace {

namespace context = boost::context::detail;

constexpr size_t kStack = 128 << 10;  ///< bytes of the stack of a thread of a block
constexpr size_t kGuard = 4096;
constexpr int32_t kPoll = 4096;
constexpr uint32_t kBlockBarrier = UINT32_MAX;
constexpr uint32_t kDynamicAlign = 128;  ///< alignment of dynamic shared memory, which begins behind static one
/// One past the largest offset in shared memory. The limit does not count the padding between static and dynamic memory.
constexpr uint32_t kSharedEnd = kSharedBase + kMostShared + kDynamicAlign;

std::string triple(const uint32_t* v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

}  // namespace

Worker::~Worker() {
  for (const Fiber& f : fibers_) munmap(f.stack, kStack + kGuard);
}

Worker::Fiber& Worker::fiber(size_t index) {
  while (fibers_.size() <= index) {
    void* p = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    mprotect(p, kGuard, PROT_NONE);
    fibers_.push_back({static_cast<uint8_t*>(p), nullptr});
  }
  return fibers_[index];
}

void Worker::enter(Fiber& f) {
  if (!f.context) f.context = context::make_fcontext(f.stack + kGuard + kStack, kStack, &Worker::fiber_main);
  const context::transfer_t back = context::jump_fcontext(f.context, this);
  f.context = failed_ ? nullptr : back.fctx;
}

// A fiber runs one thread of a block, or all of them one after the other, and then waits for the next block.
void Worker::fiber_main(context::transfer_t from) {
  auto* const worker = static_cast<Worker*>(from.data);
  worker->scheduler_ = from.fctx;
  for (;;) {
    if (worker->in_turn_) {
      const auto code = worker->launch_->kernel->code;
      for (uint32_t i = 0; i < worker->count_; ++i) {
        Thread& t = worker->threads_[i];
        code(&t);
        if (!t.groups.empty()) worker->finish_copies(t, 0);
      }
    } else {
      Thread& t = *worker->current_;
      worker->launch_->kernel->code(&t);
      if (!t.groups.empty()) worker->finish_copies(t, 0);
      worker->exit_thread(t);
    }
    worker->scheduler_ = context::jump_fcontext(worker->scheduler_, nullptr).fctx;
  }
}

void Worker::run(Launch& launch) {
  launch_ = &launch;
  const uint64_t blocks = launch.blocks();
  count_ = launch.threads();
  const Options& options = launch.machine->options;
  checks_races_ = options.checks && options.races;
  checks_initialised_ = options.checks && options.initialised;
  random_ = options.seed * 0x2545f4914f6cdd1d + launch.tag;
  threads_.resize(count_);
  const Kernel& kernel = *launch.kernel;
  in_turn_ = !kernel.meets;
  if (kernel.uses_shared || launch.dynamic_shared) {
    if (!shared_) {
      shared_.reset(new uint8_t[kSharedEnd + 64]);
      shared_states_.reset(new uint8_t[kSharedEnd + 64]);
    }
    if (checks_races_ && shared_records_.empty()) shared_records_.resize(kSharedEnd / 4);
  }
  local_.resize(uint64_t{kernel.local_bytes} * count_ + 64);
  for (;;) {
    const uint64_t i = launch.next_block.fetch_add(1, std::memory_order_relaxed);
    if (i >= blocks || launch.stop.load(std::memory_order_relaxed)) return;
    if ((i & 255) == 255 && launch.out_of_time()) {
      launch.fail(CUDA_ERROR_LAUNCH_TIMEOUT, "kernel " + kernel.name + " ran out of time");
      return;
    }
    // Blocks run in random order.
    uint64_t index = i;
    if (options.seed && blocks > 2) {
      const uint64_t turn = options.seed % blocks;
      index = (i + turn) % blocks;
      if (options.seed & 1) index = blocks - 1 - index;
    }
    run_block(index);
    if (failed_) return;
  }
}

void Worker::begin_block(uint64_t index) {
  const Launch& l = *launch_;
  block_ = index;
  failed_ = false;
  has_fenced = false;
  const uint32_t ctaid[3] = {static_cast<uint32_t>(index % l.grid[0]),
                             static_cast<uint32_t>(index / l.grid[0] % l.grid[1]),
                             static_cast<uint32_t>(index / l.grid[0] / l.grid[1])};
  const uint32_t dynamic = kSharedBase + (l.kernel->static_shared + kDynamicAlign - 1) / kDynamicAlign * kDynamicAlign;
  const uint32_t end = l.dynamic_shared ? dynamic + l.dynamic_shared : kSharedBase + l.kernel->static_shared;
  const uint32_t warps = (count_ + 31) / 32;
  const bool linear = l.block[1] == 1 && l.block[2] == 1;
  auto* const local = local_.data() + (64 - reinterpret_cast<uint64_t>(local_.data()) % 64) % 64;
  for (uint32_t i = 0; i < count_; ++i) {
    Thread& t = threads_[i];
    t.tid[0] = linear ? i : i % l.block[0];
    t.tid[1] = linear ? 0 : i / l.block[0] % l.block[1];
    t.tid[2] = linear ? 0 : i / l.block[0] / l.block[1];
    std::copy_n(l.block, 3, t.ntid);
    std::copy_n(ctaid, 3, t.ctaid);
    std::copy_n(l.grid, 3, t.nctaid);
    t.lane = i % 32;
    t.warp = i / 32;
    t.warps = warps;
    t.linear = i;
    t.poll = kPoll;
    t.dynamic_shared = dynamic;
    t.shared_end = end;
    t.parameters = reinterpret_cast<const uint8_t*>(l.parameters.data());
    t.local = local + uint64_t{i} * l.kernel->local_bytes;
    t.worker = this;
    t.state = Thread::State::kReady;
    t.groups.clear();
    t.memory_barrier = 0;
    t.proxy_fence = 0;
  }
  for (Barrier& b : barriers_) {  // arrivals may be left that nobody waited for
    b.waiting.clear();
    b.arrived = b.counted = 0;
    std::fill_n(b.gathered, 32, 0);
  }
  polls_ = 0;
  memory_barriers.clear();
  box_copies_.clear();
  first_sequence_ = sequence_;
  if (shared_ && end > kSharedBase) std::memset(shared_states_.get() + kSharedBase, kByteAllocated, end - kSharedBase);
  if (clock_ > UINT32_MAX / 2) {
    clock_ = 1;
    std::fill(shared_records_.begin(), shared_records_.end(), SharedRecord{});
  }
  warps_.resize(warps);
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = warps_[w];
    const uint32_t lanes = std::min(count_ - w * 32, 32u);
    warp.present = lanes == 32 ? UINT32_MAX : (1u << lanes) - 1;
    warp.exited = 0;
    warp.meetings.clear();
    warp.clock = warp.all_waited = clock_ + 1;
    std::fill_n(warp.seen, 32, clock_);
    warp.meets = 1;
    warp.all_met = 0;
    std::fill_n(warp.met, 32, 0);
    std::fill_n(warp.met_mask, 32, 0);
    std::fill_n(warp.lane_seen, 32, clock_);
    std::fill_n(warp.lane_arrived, 32, clock_);
    std::fill_n(warp.lane_clock, 32, 0);
    warp.at_barrier = 0;
    warp.products = {};
  }
}

void Worker::run_block(uint64_t index) {
  begin_block(index);
  if (in_turn_) {
    run_in_turn();
  } else {
    run_together();
  }
  for (const Warp& w : warps_) clock_ = std::max({clock_, w.clock, *std::max_element(w.lane_clock, w.lane_clock + 32)});
  if (failed_) {
    for (Fiber& f : fibers_) {
      f.context = nullptr;
#ifdef __SANITIZE_ADDRESS__
      // Allows access to the stack frames of a thread that was abandoned.
      ASAN_UNPOISON_MEMORY_REGION(f.stack + kGuard, kStack);
#endif
    }
    ready_.clear();
  }
}

void Worker::run_in_turn() {
  enter(fiber(0));
}

void Worker::run_together() {
  live_ = count_;
  fiber(count_ - 1);
  ready_.clear();
  // Warps start in random order, and each with a random lane.
  const uint64_t seed = launch_->machine->options.seed;
  const uint32_t first = seed ? static_cast<uint32_t>(next_random(random_) % count_) : 0;
  const bool backward = seed && (next_random(random_) & 1);
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t linear = backward ? (first + count_ - i) % count_ : (first + i) % count_;
    ready_.push_back(&threads_[linear]);
  }
  while (live_ > 0) {
    if (ready_.empty()) {
      report_divergence();
      return;
    }
    current_ = ready_.front();
    ready_.pop_front();
    enter(fibers_[current_->linear]);
    if (failed_) return;
  }
}

void Worker::wait(Thread& t, uint32_t line) {
  t.state = Thread::State::kWaiting;
  t.line = line;
  polls_ = 0;
  run_while_all_wait();
  scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx;
}

void Worker::make_ready(Thread& t) {
  t.state = Thread::State::kReady;
  polls_ = 0;
  ready_.push_back(&t);
}

void Worker::run_while_all_wait() {
  while (!in_turn_ && live_ > 0 && ready_.empty() && run_asynchronous()) {
  }
}

void Worker::yield(Thread& t) {
  run_while_all_wait();
  if (in_turn_ || ready_.empty()) return;
  // All threads that can go on may be polling for the end of a copy.
  if (++polls_ > ready_.size() && run_asynchronous()) polls_ = 0;
  ready_.push_back(&t);
  scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx;
}

void Worker::exit_thread(Thread& t) {
  t.state = Thread::State::kExited;
  --live_;
  Warp& warp = warps_[t.warp];
  warp.exited |= 1u << t.lane;
  if (!warp.meetings.empty()) complete_meetings(warp);
  if (!launch_->machine->options.exits || !launch_->machine->options.checks) {
    for (uint32_t i = 0; i < 16; ++i) {
      Barrier& b = barriers_[i];
      if (b.arrived && b.expected == kBlockBarrier && b.arrived >= live_) complete_barrier(t, b);
    }
  }
  live_ == 0 ? check_asynchronous_end(t) : run_while_all_wait();
}

void Worker::abandon() {
  failed_ = true;
  context::jump_fcontext(scheduler_, nullptr);
  __builtin_unreachable();
}

std::string Worker::place_of(const Thread& t, uint32_t line) const {
  return "kernel " + launch_->kernel->name + ", block " + triple(t.ctaid) + ", thread " + triple(t.tid) +
         ", PTX line " + std::to_string(line);
}

void Worker::fail(Thread& t, uint32_t line, CUresult result, std::string message) {
  launch_->fail(result, place_of(t, line) + ": " + message);
  std::string().swap(message);  // frees its memory, since the stack is abandoned and no destructor runs
  abandon();
}

void Worker::report_divergence() {
  // All threads wait, so none can continue. The message says where some of them wait.
  uint32_t exited = 0;
  const Thread* waiting = nullptr;
  const Thread* other = nullptr;
  for (uint32_t i = 0; i < count_; ++i) {
    const Thread& t = threads_[i];
    if (t.state == Thread::State::kExited) {
      ++exited;
    } else if (!waiting) {
      waiting = &t;
    } else if (!other && t.line != waiting->line) {
      other = &t;
    }
  }
  std::string message = "divergence: this thread waits for others that do not come";
  if (other) {
    message += "; thread " + triple(other->tid) + " waits at line " + std::to_string(other->line);
  }
  if (exited) message += "; " + std::to_string(exited) + " threads of the block have exited";
  launch_->fail(CUDA_ERROR_LAUNCH_FAILED, place_of(*waiting, waiting->line) + ": " + message);
  failed_ = true;
}

void Worker::complete_meetings(Warp& warp) {
  for (size_t i = 0; i < warp.meetings.size(); ++i) {
    Meeting& m = warp.meetings[i];
    const uint32_t expected = m.mask & warp.present & ~warp.exited;
    if ((m.arrived & expected) != expected || !m.arrived) continue;
    m.complete(*this, m);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (m.arrived >> lane & 1) make_ready(threads_[m.warp * 32 + lane]);
    }
    warp.meetings.erase(warp.meetings.begin() + static_cast<ptrdiff_t>(i--));
  }
}

void Worker::meet(Thread& t, uint32_t key, uint32_t mask, void* data, void (*complete)(Worker&, Meeting&),
                  uint32_t line, uint32_t code) {
  if (!(mask >> t.lane & 1)) {
    fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
         "the member mask does not have the thread's own lane " + std::to_string(t.lane));
  }
  Warp& warp = warps_[t.warp];
  Meeting* found = nullptr;
  for (Meeting& m : warp.meetings) {
    if (m.key == key && m.code == code && m.mask == mask && !(m.arrived >> t.lane & 1)) found = &m;
  }
  if (!found) {
    warp.meetings.emplace_back();
    found = &warp.meetings.back();
    found->key = key;
    found->mask = mask;
    found->line = line;
    found->code = code;
    found->complete = complete;
    found->warp = t.warp;
  }
  found->data[t.lane] = data;
  found->arrived |= 1u << t.lane;
  const uint32_t expected = mask & warp.present & ~warp.exited;
  if ((found->arrived & expected) != expected) return wait(t, line);
  const Meeting all = *found;
  warp.meetings.erase(warp.meetings.begin() + (found - warp.meetings.data()));
  Meeting meeting = all;
  complete(*this, meeting);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (lane != t.lane && (all.arrived >> lane & 1)) make_ready(threads_[t.warp * 32 + lane]);
  }
}

uint32_t Worker::arrive(Thread& t, uint32_t index, const Arrival& how, uint32_t line) {
  const uint32_t count = how.count;
  if (index > 15) fail(t, line, CUDA_ERROR_LAUNCH_FAILED, "a block has 16 barriers, and not " + std::to_string(index));
  if (count != kBlockBarrier && (count == 0 || count % 32 || count > (count_ + 31) / 32 * 32)) {
    fail(t, line, CUDA_ERROR_LAUNCH_FAILED, "a barrier for " + std::to_string(count) + " threads");
  }
  Barrier& b = barriers_[index];
  if (!b.arrived) {
    b.expected = count;
    b.line = line;
  } else if (b.expected != count) {
    fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
         "barrier divergence: other threads at barrier " + std::to_string(index) + " said another count, at line " +
             std::to_string(b.line));
  }
  ++b.arrived;
  b.counted += how.predicate;
  t.barrier = index;
  const bool lenient = !launch_->machine->options.exits || !launch_->machine->options.checks;
  const uint32_t needed = count == kBlockBarrier ? (lenient ? live_ : count_) : std::min(count, count_);
  if (how.waits) {
    // All lanes of a warp must wait at the same instruction.
    Warp& warp = warps_[t.warp];
    if (!how.by_lane && launch_->machine->options.checks) {
      if (warp.at_barrier && (warp.barrier != index || warp.barrier_line != line)) {
        fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
             "barrier divergence: lanes of warp " + std::to_string(t.warp) + " wait at lines " +
                 std::to_string(warp.barrier_line) + " and " + std::to_string(line) + ", at barriers " +
                 std::to_string(warp.barrier) + " and " + std::to_string(index));
      }
      warp.at_barrier |= 1u << t.lane;
      warp.barrier = index;
      warp.barrier_line = line;
    }
    b.waiting.push_back(&t);
    t.line = line;
  } else if (checks_races_) {
    // What the thread does from now on does not happen before the end of the barrier.
    for (uint32_t v = 0; v < 32; ++v) b.gathered[v] = std::max(b.gathered[v], warps_[t.warp].seen[v]);
    const uint32_t clock = clock_of(t);
    b.gathered[t.warp] = std::max(b.gathered[t.warp], clock);
    warps_[t.warp].lane_clock[t.lane] = clock + 1;
  }
  if (b.arrived < needed) {
    if (how.waits) wait(t, line);
    return t.result;
  }
  complete_barrier(t, b);
  return t.result;
}

// Called when the last thread has arrived, or when the last thread that others waited for has exited.
void Worker::complete_barrier(Thread& last, Barrier& b) {
  if (checks_races_) order_by_barrier(b);
  const uint32_t counted = b.counted, arrived = b.arrived;
  for (Thread* t : b.waiting) {
    t->result = counted | arrived << 16;
    warps_[t->warp].at_barrier &= ~(1u << t->lane);
    if (t != &last) make_ready(*t);
  }
  b.waiting.clear();
  b.arrived = b.counted = 0;
  std::fill_n(b.gathered, 32, 0);
}

// What the threads did before they arrived happens before what those that waited do from now on.
void Worker::order_by_barrier(const Barrier& b) {
  uint32_t seen[32], waiting = 0;  // `waiting` has a bit for each warp
  std::copy_n(b.gathered, 32, seen);
  for (const Thread* t : b.waiting) {
    waiting |= 1u << t->warp;
    seen[t->warp] = std::max(seen[t->warp], clock_of(*t));
  }
  const auto for_each_waiting = [&](auto&& what) {
    for (uint32_t w = 0; w < warps_.size(); ++w) {
      if (waiting >> w & 1) what(warps_[w]);
    }
  };
  for_each_waiting([&](const Warp& warp) {
    for (uint32_t v = 0; v < 32; ++v) seen[v] = std::max(seen[v], warp.seen[v]);
  });
  for_each_waiting([&](Warp& warp) {
    std::copy_n(seen, 32, warp.seen);
    warp.clock = std::max(warp.clock, *std::max_element(warp.lane_clock, warp.lane_clock + 32)) + 1;
    warp.all_waited = warp.clock;
  });
}

bool Worker::conflicts(const Access& a, const Thread& t, bool is_atomic) const {
  if (a.stamp == 0 || a.thread == t.linear || (is_atomic && a.is_atomic)) return false;
  const Warp& mine = warps_[t.warp];
  const uint32_t other = a.thread / 32u;
  if (other >= warps_.size()) return false;  // record of an earlier block
  if (other != t.warp) return a.stamp > mine.seen[other];
  const uint32_t lane = a.thread % 32u;
  if (a.stamp < mine.all_waited || a.stamp <= std::min(mine.lane_seen[t.lane], mine.lane_arrived[lane])) return false;
  const bool met = a.meet < mine.all_met || ((mine.met_mask[t.lane] >> lane & 1) && a.meet < mine.met[t.lane]);
  return !met;
}

const Access* Worker::find_conflict(const SharedRecord& r, const Thread& t, bool is_write, bool is_atomic) const {
  if (conflicts(r.write, t, is_atomic)) return &r.write;
  if (is_atomic && conflicts(r.plain_write, t, is_atomic)) return &r.plain_write;
  if (!is_write) return nullptr;
  if (conflicts(r.read, t, is_atomic)) return &r.read;
  return conflicts(r.other_read, t, is_atomic) ? &r.other_read : nullptr;
}

void Worker::note_access(SharedRecord& r, const Thread& t, bool is_write, bool is_atomic) {
  const Access access{clock_of(t), warps_[t.warp].meets, static_cast<uint16_t>(t.linear), is_atomic};
  if (is_write) {
    r.write = access;
    if (!is_atomic) r.plain_write = access;
    r.sequence = sequence_;
    return;
  }
  if (r.read.thread / 32u != t.warp || r.read.stamp != access.stamp) r.other_read = r.read;
  r.read = access;
}

void Worker::note_shared(Thread& t, uint32_t offset, uint32_t bytes, bool is_write, bool is_atomic, uint32_t line) {
  const auto check = [&](const SharedRecord& r, uint32_t at) {
    const Access* const against = find_conflict(r, t, is_write, is_atomic);
    if (!against) return;
    const bool wrote = against == &r.write || against == &r.plain_write;
    fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
         std::string("race in shared memory: ") + (is_write ? "a write" : "a read") + " at offset " +
             std::to_string(at - kSharedBase) + " conflicts with a " + (wrote ? "write" : "read") + " of thread " +
             triple(threads_[against->thread].tid) + " without a barrier between them");
  };
  sequence_ += is_write;
  for (uint32_t at = offset; at < offset + bytes;) {
    const uint32_t cell = at / 4, begin = at % 4, end = std::min(4u, begin + offset + bytes - at);
    const bool is_whole = end - begin == 4;
    SharedRecord& r = shared_records_[cell];
    check(r, at);
    if (!is_whole && !r.has_parts) {
      if (part_records_.empty()) part_records_.resize(uint64_t{4} * shared_records_.size());
      std::fill_n(parts_of(cell), 4, SharedRecord{});
      r.has_parts = true;
    }
    if (r.has_parts) {
      for (uint32_t i = begin; i < end; ++i) check(parts_of(cell)[i], cell * 4 + i);
    }
    if (is_whole) {
      note_access(r, t, is_write, is_atomic);
      if (is_write) r.has_parts = false;
    } else {
      for (uint32_t i = begin; i < end; ++i) note_access(parts_of(cell)[i], t, is_write, is_atomic);
    }
    at = cell * 4 + end;
  }
}

void Worker::mark_asynchronous(uint32_t offset, uint32_t bytes) {
  if (!checks_races_) return;
  for (uint32_t cell = offset / 4; cell < (offset + bytes) / 4; ++cell) {
    SharedRecord& r = shared_records_[cell];
    r.sequence = 0;
    for (uint32_t i = 0; r.has_parts && i < 4; ++i) parts_of(cell)[i].sequence = 0;
  }
}

// A copy is done as late as PTX allows, when its thread waits for it, so that reads without a wait are noticed.
void Worker::finish_copies(Thread& t, size_t open_groups) {
  while (t.groups.size() > open_groups) {
    for (const Thread::AsyncCopy& c : t.groups.front()) {
      uint8_t* const to = check_access(t, c.to, Space::kShared, AccessKind::kWrite, c.bytes, c.line);
      if (c.from_bytes) {
        std::memcpy(to, check_access(t, c.from, Space::kGlobal, AccessKind::kRead, c.from_bytes, c.line), c.from_bytes);
      }
      std::memset(to + c.from_bytes, 0, c.bytes - c.from_bytes);
    }
    t.groups.erase(t.groups.begin());
  }
}

}  // namespace collet::gpu::emulator
