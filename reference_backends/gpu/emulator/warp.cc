// SPDX-License-Identifier: Apache-2.0
// Runtime functions for what threads do together: barriers, shuffles, votes; and for asynchronous copies.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/emulator/support.h"

namespace collet::gpu::emulator {
namespace {

constexpr int32_t kPoll = 4096;

/// The kind of a meeting, in the low byte of its key. The mode of the instruction is in the bits above.
enum Topic : uint32_t { kWarpBarrier = 1, kShuffle, kVote, kMatch, kRedux };

struct ShuffleData {
  uint32_t mode, value, b, c, result, line;
  bool valid;
};

void shuffle_all(Worker& w, Meeting& m) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(m.arrived >> lane & 1)) continue;
    auto& d = *static_cast<ShuffleData*>(m.data[lane]);
    const uint32_t b = d.b & 31, clamp = d.c & 31, segment = d.c >> 8 & 31;
    const uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int32_t from = 0;
    switch (d.mode) {
      case 0:
        from = static_cast<int32_t>(lane) - static_cast<int32_t>(b);
        d.valid = from >= static_cast<int32_t>(most);
        break;
      case 1:
        from = static_cast<int32_t>(lane + b);
        d.valid = from <= static_cast<int32_t>(most);
        break;
      case 2:
        from = static_cast<int32_t>(lane ^ b);
        d.valid = from <= static_cast<int32_t>(most);
        break;
      default:
        from = static_cast<int32_t>(least | (b & ~segment));
        d.valid = from <= static_cast<int32_t>(most);
        break;
    }
    const uint32_t source = d.valid ? static_cast<uint32_t>(from) : lane;
    if (!(m.arrived >> source & 1)) {
      if (w.launch().machine->options.checks) {
        Thread& t = w.thread(m.warp * 32 + lane);
        w.fail(t, d.line, CUDA_ERROR_LAUNCH_FAILED,
               "the shuffle reads lane " + std::to_string(source) + ", which does not take part");
      }
      d.result = d.value;
      continue;
    }
    d.result = static_cast<ShuffleData*>(m.data[source])->value;
  }
}

struct VoteData {
  uint64_t value = 0;
  uint64_t result = 0;
};

uint32_t lanes_that(const Meeting& m, auto&& what) {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((m.arrived >> lane & 1) && what(*static_cast<VoteData*>(m.data[lane]))) lanes |= 1u << lane;
  }
  return lanes;
}

void vote_all(Worker&, Meeting& m) {
  const uint32_t yes = lanes_that(m, [](const VoteData& d) { return d.value != 0; });
  const uint32_t results[] = {yes == m.arrived, yes != 0, yes == 0 || yes == m.arrived, yes};
  lanes_that(m, [&](VoteData& d) {
    d.result = results[m.key >> 8 & 3];
    return true;
  });
}

void match_all(Worker&, Meeting& m) {
  lanes_that(m, [&](VoteData& d) {
    const uint32_t same = lanes_that(m, [&](const VoteData& other) { return other.value == d.value; });
    const bool all = same == m.arrived;
    d.result = (m.key >> 8 & 1) ? (all ? same | uint64_t{1} << 32 : 0) : same;
    return true;
  });
}

void redux_all(Worker&, Meeting& m) {
  uint32_t result = 0;
  bool first = true;
  lanes_that(m, [&](const VoteData& d) {
    const auto v = static_cast<uint32_t>(d.value);
    const auto less = static_cast<int32_t>(v) < static_cast<int32_t>(result);
    if (first) {
      result = v;
    } else {
      switch (m.key >> 8) {
        case 0:
          result += v;
          break;
        case 1:
          result = std::min(result, v);
          break;
        case 2:
          result = std::max(result, v);
          break;
        case 3:
          result = less ? v : result;
          break;
        case 4:
          result = less ? result : v;
          break;
        case 5:
          result &= v;
          break;
        case 6:
          result |= v;
          break;
        default:
          result ^= v;
          break;
      }
    }
    first = false;
    return true;
  });
  lanes_that(m, [&](VoteData& d) {
    d.result = result;
    return true;
  });
}

// Among all meetings, only warp barriers order accesses to memory.
void warp_barrier_all(Worker& w, Meeting& m) {
  Warp& warp = w.warp(m.warp);
  ++warp.meets;
  uint32_t latest = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (m.arrived >> lane & 1) latest = std::max(latest, warp.lane_clock[lane]);
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (m.arrived >> lane & 1) warp.lane_clock[lane] = latest;
  }
  const uint32_t all = warp.present & ~warp.exited;
  if ((m.arrived & all) == all) {
    warp.all_met = warp.meets;
    return;
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(m.arrived >> lane & 1)) continue;
    warp.met[lane] = warp.meets;
    warp.met_mask[lane] = m.arrived;
  }
}

std::atomic_ref<uint32_t> word_at(uint8_t* memory) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(memory));
}

}  // namespace

extern "C" {

void collet_emu_poll(Thread* t, uint32_t line) {
  Worker& w = *t->worker;
  t->poll = kPoll;
  if (w.launch().stop.load(std::memory_order_relaxed)) w.abandon();
  if (w.launch().out_of_time()) {
    w.fail(*t, line, CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel ran longer than the option timeout allows");
  }
  w.yield(*t);
}

void collet_emu_trap(Thread* t, uint32_t line) {
  t->worker->fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "trap");
}

void collet_emu_fence(Thread* t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  t->worker->has_fenced = true;
}

uint32_t collet_emu_barrier(Thread* t, uint32_t index, uint32_t count, uint32_t mode, uint32_t predicate,
                            uint32_t line) {
  const bool by_lane = (mode & kBarrierByLane) != 0;
  mode &= ~kBarrierByLane;
  const uint32_t sum = t->worker->arrive(*t, index, {count, (predicate & 1) != 0, mode != 1, by_lane}, line);
  const uint32_t counted = sum & 0xffff, arrived = sum >> 16;
  switch (mode) {
    case 2:
      return counted;
    case 3:
      return counted == arrived;
    case 4:
      return counted != 0;
    default:
      return 0;
  }
}

void collet_emu_warp_barrier(Thread* t, uint32_t mask, uint32_t line) {
  t->worker->meet(*t, kWarpBarrier, mask, nullptr, &warp_barrier_all, line);
}

uint64_t collet_emu_shuffle(Thread* t, uint32_t mode, uint32_t value, uint32_t b, uint32_t c, uint32_t mask,
                            uint32_t line) {
  ShuffleData d{mode, value, b, c, 0, line, false};
  t->worker->meet(*t, kShuffle | mode << 8, mask, &d, &shuffle_all, line);
  return d.result | uint64_t{d.valid} << 32;
}

uint32_t collet_emu_vote(Thread* t, uint32_t mode, uint32_t predicate, uint32_t mask, uint32_t line) {
  VoteData d{predicate & 1};
  t->worker->meet(*t, kVote | mode << 8, mask, &d, &vote_all, line);
  return static_cast<uint32_t>(d.result);
}

uint64_t collet_emu_match(Thread* t, uint32_t mode, uint64_t value, uint32_t mask, uint32_t line) {
  VoteData d{value};
  t->worker->meet(*t, kMatch | mode << 8, mask, &d, &match_all, line);
  return d.result;
}

uint32_t collet_emu_redux(Thread* t, uint32_t mode, uint32_t value, uint32_t mask, uint32_t line) {
  VoteData d{value};
  t->worker->meet(*t, kRedux | mode << 8, mask, &d, &redux_all, line);
  return static_cast<uint32_t>(d.result);
}

void collet_emu_copy_async(Thread* t, uint32_t to, uint64_t from, uint32_t bytes, uint32_t from_bytes, uint32_t line) {
  Worker& w = *t->worker;
  if (to % bytes || from % bytes) {
    w.fail(*t, line, CUDA_ERROR_MISALIGNED_ADDRESS, "cp.async of " + std::to_string(bytes) + " bytes: misaligned");
  }
  check_access(*t, to, Space::kShared, AccessKind::kWrite, bytes, line);
  if (from_bytes > bytes) w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "cp.async reads more than it writes");
  if (from_bytes) check_access(*t, from, Space::kGlobal, AccessKind::kRead, from_bytes, line);
  // Until the thread waits for the copy, the bytes count as not written.
  std::memset(w.shared_states() + to, kByteAllocated, bytes);
  if (t->groups.empty()) t->groups.emplace_back();
  t->groups.back().push_back({from, to, bytes, from_bytes, line});
}

void collet_emu_copy_commit(Thread* t) {
  if (t->groups.empty()) t->groups.emplace_back();
  t->groups.emplace_back();
}

void collet_emu_copy_wait(Thread* t, uint32_t groups) {
  if (groups == UINT32_MAX) {
    collet_emu_copy_commit(t);
    groups = 0;
  }
  t->worker->finish_copies(*t, size_t{groups} + 1);
}

uint32_t collet_emu_atomic_half(uint8_t* memory, uint32_t code, uint32_t value) {
  if (code & kHalfPair) {
    auto word = word_at(memory);
    uint32_t old = word.load();
    while (!word.compare_exchange_weak(old, collet_emu_half(code, old, value, 0))) {
    }
    return old;
  }
  auto half = std::atomic_ref<uint16_t>(*reinterpret_cast<uint16_t*>(memory));
  uint16_t old = half.load();
  while (!half.compare_exchange_weak(old, static_cast<uint16_t>(collet_emu_half(code, old, value, 0)))) {
  }
  return old;
}

float collet_emu_atomic_f32_add(uint8_t* memory, float value) {
  auto word = word_at(memory);
  uint32_t old = word.load();
  while (!word.compare_exchange_weak(old, std::bit_cast<uint32_t>(std::bit_cast<float>(old) + value))) {
  }
  return std::bit_cast<float>(old);
}
}

}  // namespace collet::gpu::emulator
