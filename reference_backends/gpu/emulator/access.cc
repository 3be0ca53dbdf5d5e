// SPDX-License-Identifier: Apache-2.0
// Checks and performs the accesses of the emulated threads to memory.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "reference_backends/gpu/emulator/support.h"

namespace collet::gpu::emulator {
namespace {

constexpr bool writes(AccessKind kind) {
  return kind != AccessKind::kRead && kind != AccessKind::kStrongRead;
}
constexpr bool reads(AccessKind kind) {
  return kind == AccessKind::kRead || kind == AccessKind::kStrongRead || kind == AccessKind::kAtomic;
}
constexpr bool is_strong(AccessKind kind) {
  return kind >= AccessKind::kStrongRead;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string access_text(bool is_write, uint64_t address, uint32_t bytes) {
  return (is_write ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at " + hex(address);
}

constexpr uint32_t kSeveral = 0x7ffff;  ///< stands for several blocks in a record

/// Packs one half (reads or writes) of a record of global memory: the launch (12 bits), the block (19 bits), and
/// whether the access was atomic.
uint32_t record_of(const Worker& w, const Launch& launch, bool atomic) {
  return launch.tag << 20 | static_cast<uint32_t>(w.block_index() % kSeveral) << 1 | atomic;
}

uint32_t block_of(uint32_t record) {
  return record >> 1 & kSeveral;
}

/// True if a record is of another block of the same launch, unless both accesses are atomic.
bool is_conflict(uint32_t record, uint32_t own) {
  return (record ^ own) >> 20 == 0 && ((record ^ own) & 0xffffe) != 0 && !(record & own & 1);
}

/// Returns the record behind a write whose own record is `own`: an atomic write does not hide that its block wrote before
/// without atomicity.
uint32_t after_write(uint32_t record, uint32_t own) {
  return (record | 1) == own ? record : own;
}

/// Returns the record behind a read whose own record is `own`: it tells that several blocks have read, unless some of the
/// reads are atomic, since these conflict with fewer writes. Then it keeps a read that is not.
uint32_t after_read(uint32_t record, uint32_t own) {
  if ((record ^ own) >> 20 != 0) return own;
  if ((record ^ own) & 1) return record & 1 ? own : record;
  return block_of(record) == block_of(own) ? own : own | kSeveral << 1;
}

[[noreturn]] void fail_race(Thread& t, uint64_t address, uint32_t bytes, bool is_write, bool other_wrote,
                            uint32_t other, uint32_t line) {
  t.worker->fail(
      t, line, CUDA_ERROR_LAUNCH_FAILED,
      "race in global memory: " + access_text(is_write, address, bytes) + " conflicts with a " +
          (other_wrote ? "write" : "read") + " of " +
          (block_of(other) == kSeveral ? "several blocks"
                                       : "block " + std::to_string(block_of(other)) + " (counted along x, y, z)") +
          " of the same launch");
}

void note_global(Thread& t, uint64_t address, uint32_t bytes, bool is_write, bool is_read, bool strong, uint32_t line) {
  Worker& w = *t.worker;
  Launch& launch = w.launch();
  if (launch.grid[0] == 1 && launch.blocks() == 1) return;
  const uint32_t own = record_of(w, launch, strong);
  DeviceMemory& memory = *launch.machine->memory;
  // Records cover four bytes, so a smaller access might seem to conflict with one of its neighbour.
  if (bytes < 4) return;
  for (uint64_t at = address; at < address + bytes; at += 4) {
    std::atomic<uint64_t>& cell = *memory.record(at);
    uint64_t record = cell.load(std::memory_order_relaxed), changed = 0;
    do {  // until no other block has changed the record meanwhile
      const auto writer = static_cast<uint32_t>(record), reader = static_cast<uint32_t>(record >> 32);
      if (!w.has_fenced) {
        if (is_conflict(writer, own)) fail_race(t, address, bytes, is_write, true, writer, line);
        if (is_write && is_conflict(reader, own)) fail_race(t, address, bytes, is_write, false, reader, line);
      }
      changed =
          uint64_t{is_read ? after_read(reader, own) : reader} << 32 | (is_write ? after_write(writer, own) : writer);
    } while (changed != record && !cell.compare_exchange_weak(record, changed, std::memory_order_relaxed));
  }
}

uint8_t* global(Thread& t, uint64_t address, AccessKind kind, uint32_t bytes, uint32_t line) {
  Worker& w = *t.worker;
  Machine& machine = *w.launch().machine;
  DeviceMemory& memory = *machine.memory;
  if (address - memory.base() > memory.size() - bytes) {
    if (machine.host.contains(address, bytes)) return reinterpret_cast<uint8_t*>(address);
    w.fail(t, line, CUDA_ERROR_ILLEGAL_ADDRESS, memory.problem_of(address, bytes, writes(kind), false));
  }
  if (!machine.options.checks) return memory.host(address);
  uint8_t* const states = memory.states(address);
  uint8_t all = 0xff, any = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    all &= states[i];
    any |= states[i];
  }
  if (!(all & kByteAllocated) || (reads(kind) && w.checks_initialised() && !(any & kByteWritten))) {
    std::string problem = memory.problem_of(address, bytes, writes(kind), w.checks_initialised());
    // Checked after the read, because another thread may have written the bytes just now.
    if (problem.empty()) problem = access_text(writes(kind), address, bytes) + ": nobody wrote these bytes before";
    w.fail(t, line, CUDA_ERROR_ILLEGAL_ADDRESS, std::move(problem));
  }
  if (writes(kind) && !(all & kByteWritten)) std::memset(states, kByteAllocated | kByteWritten, bytes);
  if (w.checks_races()) note_global(t, address, bytes, writes(kind), reads(kind), is_strong(kind), line);
  return memory.host(address);
}

uint8_t* shared(Thread& t, uint64_t offset, AccessKind kind, uint32_t bytes, uint32_t line) {
  Worker& w = *t.worker;
  if (offset < kSharedBase || offset > t.shared_end || bytes > t.shared_end - offset || !w.shared()) {
    const int64_t relative = static_cast<int64_t>(offset - kSharedBase);
    w.fail(t, line, CUDA_ERROR_ILLEGAL_ADDRESS,
           std::string(writes(kind) ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at offset " +
               std::to_string(relative) + " of shared memory: out of bounds, the block has " +
               std::to_string(t.shared_end - kSharedBase) + " bytes");
  }
  if (w.launch().machine->options.checks) {
    uint8_t* const states = w.shared_states() + offset;
    if (reads(kind) && w.checks_initialised() &&
        std::none_of(states, states + bytes, [](uint8_t s) { return (s & kByteWritten) != 0; })) {
      w.fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
             "a read of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset - kSharedBase) +
                 " of shared memory: nobody wrote these bytes before");
    }
    if (writes(kind)) std::memset(states, kByteAllocated | kByteWritten, bytes);
    if (w.checks_races()) w.note_shared(t, static_cast<uint32_t>(offset), bytes, writes(kind), is_strong(kind), line);
  }
  return w.shared() + offset;
}

uint8_t* local(Thread& t, uint64_t offset, bool is_write, uint32_t bytes, uint32_t line) {
  const uint32_t size = t.worker->launch().kernel->local_bytes;
  if (bytes > size || offset > size - bytes) {
    t.worker->fail(t, line, CUDA_ERROR_ILLEGAL_ADDRESS,
                   std::string(is_write ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at offset " +
                       std::to_string(offset) + " of local memory: out of bounds, the thread has " +
                       std::to_string(size) + " bytes");
  }
  return t.local + offset;
}

uint8_t* parameter(Thread& t, uint64_t offset, bool is_write, uint32_t bytes, uint32_t line) {
  const uint32_t size = t.worker->launch().kernel->parameter_bytes;
  if (is_write || bytes > size || offset > size - bytes) {
    t.worker->fail(t, line, CUDA_ERROR_ILLEGAL_ADDRESS,
                   std::string(is_write ? "a write" : "a read out of bounds") + " at offset " + std::to_string(offset) +
                       " of the kernel's parameters");
  }
  return const_cast<uint8_t*>(t.parameters) + offset;
}

template <Space S, AccessKind K, unsigned N>
uint8_t* access(Thread* t, uint64_t address, uint32_t line) {
  if (address & (N - 1)) {
    t->worker->fail(*t, line, CUDA_ERROR_MISALIGNED_ADDRESS,
                    access_text(writes(K), address, N) + ": misaligned, in " + name_of(S) + " memory");
  }
  if constexpr (S == Space::kGlobal || S == Space::kConst) {
    return global(*t, address, K, N, line);
  } else if constexpr (S == Space::kShared) {
    return shared(*t, address, K, N, line);
  } else if constexpr (S == Space::kLocal) {
    return local(*t, address, writes(K), N, line);
  } else if constexpr (S == Space::kParam) {
    return parameter(*t, address >= kParamWindow ? address - kParamWindow : address, writes(K), N, line);
  } else {
    constexpr uint64_t kOffset = (uint64_t{1} << 56) - 1;
    switch (address >> 56) {
      case kSharedWindow >> 56:
        return shared(*t, address & kOffset, K, N, line);
      case kLocalWindow >> 56:
        return local(*t, address & kOffset, writes(K), N, line);
      case kParamWindow >> 56:
        return parameter(*t, address & kOffset, writes(K), N, line);
      default:
        return global(*t, address, K, N, line);
    }
  }
}

template <Space S, AccessKind K>
AccessFunction by_bytes(unsigned bytes) {
  switch (bytes) {
    case 1:
      return &access<S, K, 1>;
    case 2:
      return &access<S, K, 2>;
    case 4:
      return &access<S, K, 4>;
    case 8:
      return &access<S, K, 8>;
    default:
      return &access<S, K, 16>;
  }
}

template <Space S>
AccessFunction by_kind(AccessKind kind, unsigned bytes) {
  switch (kind) {
    case AccessKind::kRead:
      return by_bytes<S, AccessKind::kRead>(bytes);
    case AccessKind::kWrite:
      return by_bytes<S, AccessKind::kWrite>(bytes);
    case AccessKind::kStrongRead:
      return by_bytes<S, AccessKind::kStrongRead>(bytes);
    case AccessKind::kStrongWrite:
      return by_bytes<S, AccessKind::kStrongWrite>(bytes);
    default:
      return by_bytes<S, AccessKind::kAtomic>(bytes);
  }
}

}  // namespace

AccessFunction access_function(Space space, AccessKind kind, unsigned bytes) {
  switch (space) {
    case Space::kGlobal:
      return by_kind<Space::kGlobal>(kind, bytes);
    case Space::kConst:
      return by_kind<Space::kConst>(kind, bytes);
    case Space::kShared:
      return by_kind<Space::kShared>(kind, bytes);
    case Space::kLocal:
      return by_kind<Space::kLocal>(kind, bytes);
    case Space::kParam:
      return by_kind<Space::kParam>(kind, bytes);
    default:
      return by_kind<Space::kGeneric>(kind, bytes);
  }
}

uint8_t* check_access(Thread& t, uint64_t address, Space space, AccessKind kind, uint32_t bytes, uint32_t line) {
  switch (space) {
    case Space::kShared:
      return shared(t, address, kind, bytes, line);
    case Space::kLocal:
      return local(t, address, writes(kind), bytes, line);
    default:
      return global(t, address, kind, bytes, line);
  }
}

}  // namespace collet::gpu::emulator
