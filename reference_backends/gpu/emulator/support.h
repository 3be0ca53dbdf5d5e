// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference_backends/gpu/emulator/block.h"
#include "reference_backends/gpu/emulator/ptx.h"

/// \file
/// Runtime functions that generated code calls by their addresses. If a check fails, they end the launch and do not
/// return.
namespace collet::gpu::emulator {

/// Kinds of accesses. Strong accesses are those that other threads may make at the same time: volatile, relaxed,
/// acquire, release.
enum class AccessKind : uint8_t { kRead, kWrite, kStrongRead, kStrongWrite, kAtomic };

/// Returns a function that checks an access of `bytes` bytes (1, 2, 4, 8 or 16) and returns the host's address of the
/// memory.
using AccessFunction = uint8_t* (*)(Thread* thread, uint64_t address, uint32_t line);
AccessFunction access_function(Space space, AccessKind kind, unsigned bytes);
/// Checks an access of any number of bytes, and returns the host's address of the memory.
uint8_t* check_access(Thread& thread, uint64_t address, Space space, AccessKind kind, uint32_t bytes, uint32_t line);

extern "C" {
/// Called at backward branches from time to time, see Thread::poll.
void collet_emu_poll(Thread* thread, uint32_t line);
void collet_emu_trap(Thread* thread, uint32_t line);
void collet_emu_fence(Thread* thread);

/// Set in the mode of a barrier at which the lanes of a warp need not arrive together: one without .aligned.
inline constexpr uint32_t kBarrierByLane = 8;
/// Arrives at a barrier. `mode`: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or, and kBarrierByLane. `count`: the number
/// of threads; UINT32_MAX for all threads of the block.
uint32_t collet_emu_barrier(Thread* thread, uint32_t index, uint32_t count, uint32_t mode, uint32_t predicate,
                            uint32_t line);
void collet_emu_warp_barrier(Thread* thread, uint32_t mask, uint32_t line);
/// Shuffles. `mode`: 0 up, 1 down, 2 bfly, 3 idx. Bit 32 of the result is the predicate; `wants` tells whether it is
/// used.
uint64_t collet_emu_shuffle(Thread* thread, uint32_t mode, uint32_t value, uint32_t b, uint32_t c, uint32_t mask,
                            uint32_t line);
/// Votes. `mode`: 0 all, 1 any, 2 uni, 3 ballot.
uint32_t collet_emu_vote(Thread* thread, uint32_t mode, uint32_t predicate, uint32_t mask, uint32_t line);
/// Matches values. `mode`: 0 any, 1 all. Bit 32 of the result is the predicate of match.all.
uint64_t collet_emu_match(Thread* thread, uint32_t mode, uint64_t value, uint32_t mask, uint32_t line);
/// Reduces over the warp. `mode`: 0 add, 1 min.u, 2 max.u, 3 min.s, 4 max.s, 5 and, 6 or, 7 xor.
uint32_t collet_emu_redux(Thread* thread, uint32_t mode, uint32_t value, uint32_t mask, uint32_t line);

/// `groups`: how many committed groups may be under way; UINT32_MAX commits first and waits for all.
void collet_emu_copy_async(Thread* thread, uint32_t to, uint64_t from, uint32_t bytes, uint32_t from_bytes,
                           uint32_t line);
void collet_emu_copy_commit(Thread* thread);
void collet_emu_copy_wait(Thread* thread, uint32_t groups);

/// Loads matrices. `code`: their number (1, 2 or 4) | 8 for .trans. `out` receives one register for each matrix.
void collet_emu_ldmatrix(Thread* thread, uint32_t code, uint64_t address, uint32_t* out, uint32_t line);
/// Multiplies matrices. `in` has the registers of a, b and c one after the other; `out` receives those of d. `code` is
/// MmaShape::code().
void collet_emu_mma(Thread* thread, uint32_t code, const uint32_t* in, uint32_t* out, uint32_t line);

/// Prepare and end an mbarrier at an offset in shared memory for `count` arrivals.
void collet_emu_mbarrier_init(Thread* thread, uint32_t offset, uint32_t count, uint32_t line);
void collet_emu_mbarrier_inval(Thread* thread, uint32_t offset, uint32_t line);
/// Announces bytes and arrives `count` times.
void collet_emu_mbarrier_arrive(Thread* thread, uint32_t offset, uint32_t count, uint32_t bytes, uint32_t line);
/// Returns 1 if the phase with this parity has ended. `waits`: whether the thread may wait before.
uint32_t collet_emu_mbarrier_wait(Thread* thread, uint32_t offset, uint32_t parity, uint32_t waits, uint32_t line);
/// Starts the copy of a box to offset `to` in shared memory. `map` is the address of its descriptor, `at` has `rank`
/// coordinates. The bytes count for the mbarrier at offset `barrier`.
void collet_emu_box_copy(Thread* thread, uint32_t to, uint64_t map, uint32_t rank, const int32_t* at, uint32_t barrier,
                         uint32_t line);
/// Makes earlier writes of the thread to shared memory visible to asynchronous operations.
void collet_emu_proxy_fence(Thread* thread);
void collet_emu_wgmma_fence(Thread* thread, uint32_t line);
/// Multiplies matrices in shared memory. `code` is WgmmaShape::code(), `a` and `b` are their descriptors. `in` has the
/// registers to which the product is added, then those of the first factor if it is in registers; `out` receives the sums.
void collet_emu_wgmma(Thread* thread, uint32_t code, uint64_t a, uint64_t b, const uint32_t* in, uint32_t* out,
                      uint32_t line);
void collet_emu_wgmma_commit(Thread* thread, uint32_t line);
/// Waits until at most `groups` committed groups are under way.
void collet_emu_wgmma_wait(Thread* thread, uint32_t groups, uint32_t line);

/// Computes an atomic operation on a pair of f16 or bf16 in memory. `code`: see collet_emu_half.
uint32_t collet_emu_atomic_half(uint8_t* memory, uint32_t code, uint32_t value);
float collet_emu_atomic_f32_add(uint8_t* memory, float value);
}

/// The shape and types of an mma instruction, a matrix product by all threads of a warp.
struct MmaShape {
  unsigned m = 16, n = 8, k = 16;
  Type a = Type::kNone, b = Type::kNone, accumulator = Type::kNone, result = Type::kNone;
  bool saturate = false;

  uint32_t code() const {
    return static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 5 | static_cast<uint32_t>(accumulator) << 10 |
           static_cast<uint32_t>(result) << 15 | k << 20 | uint32_t{m == 8} << 28 | uint32_t{saturate} << 29;
  }
  static MmaShape of_code(uint32_t code) {
    MmaShape s;
    s.a = static_cast<Type>(code & 31);
    s.b = static_cast<Type>(code >> 5 & 31);
    s.accumulator = static_cast<Type>(code >> 10 & 31);
    s.result = static_cast<Type>(code >> 15 & 31);
    s.k = code >> 20 & 255;
    s.m = code >> 28 & 1 ? 8 : 16;
    s.saturate = code >> 29 & 1;
    return s;
  }
  /// Returns the number of 32-bit registers of one thread that hold the matrix 'a', 'b', 'c' or 'd'.
  unsigned registers(char matrix) const;
};

/// The shape and types of a wgmma instruction, a product of 64 x n by the four warps of a warpgroup, with factors in
/// shared memory and sums in f32 or s32. Its depth is 32 bytes of a factor.
struct WgmmaShape {
  unsigned n = 8;
  Type type = Type::kNone;                    ///< of both factors
  bool adds = true;                           ///< false: the registers are not read
  bool a_by_rows = false, b_by_rows = false;  ///< the factor is contiguous along its rows (columns)
  bool a_in_registers = false;                ///< the first factor is in four registers of each thread

  uint32_t code() const {
    return n | static_cast<uint32_t>(type) << 9 | uint32_t{adds} << 14 | uint32_t{a_by_rows} << 15 |
           uint32_t{b_by_rows} << 16 | uint32_t{a_in_registers} << 17;
  }
  static WgmmaShape of_code(uint32_t code) {
    WgmmaShape s;
    s.n = code & 511;
    s.type = static_cast<Type>(code >> 9 & 31);
    s.adds = code >> 14 & 1;
    s.a_by_rows = code >> 15 & 1;
    s.b_by_rows = code >> 16 & 1;
    s.a_in_registers = code >> 17 & 1;
    return s;
  }
};

}  // namespace collet::gpu::emulator
