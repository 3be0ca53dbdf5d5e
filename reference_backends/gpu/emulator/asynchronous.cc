// SPDX-License-Identifier: Apache-2.0
// Runtime functions of what the device does by itself: barriers that count bytes, copies of boxes, and products by
// warpgroups, whose factors are in shared memory. PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
// Operations" and "Tensor Data Movement".
#include "reference_backends/gpu/emulator/asynchronous.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/emulator/random.h"
#include "reference_backends/gpu/emulator/support.h"

namespace collet::gpu::emulator {
namespace {

constexpr uint32_t kMostArrivals = (1u << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;
constexpr uint32_t kLine = 128;    ///< bytes of a line in swizzled memory
constexpr uint32_t kChunk = 16;    ///< bytes that are moved as a whole
constexpr uint32_t kBlock = 1024;  ///< bytes after which the pattern of swizzled lines repeats

/// Kinds of meetings in addition to those of warp.cc and mma.cc.
constexpr uint32_t kFence = 65, kStart = 66, kCommit = 67, kWait = 68;

/// Returns the place of a byte of swizzled memory.
uint32_t swizzled(uint32_t offset) {
  return offset ^ (offset >> 7 & 7) << 4;
}

MemoryBarrier& barrier_at(Thread& t, uint32_t offset, uint32_t line) {
  Worker& w = *t.worker;
  const auto found = w.memory_barriers.find(offset);
  if (found == w.memory_barriers.end())
    w.fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
           "there is no mbarrier at offset " + std::to_string(offset - kSharedBase) + " of shared memory");
  check_access(t, offset, Space::kShared, AccessKind::kAtomic, 8, line);
  return found->second;
}

/// Lets what a thread has seen happen before the end of the barrier's phase.
void gather(MemoryBarrier& b, const uint32_t* seen, uint32_t own_warp, uint32_t own_clock) {
  for (uint32_t v = 0; v < 32; ++v) b.gathered[v] = std::max(b.gathered[v], seen[v]);
  b.gathered[own_warp] = std::max(b.gathered[own_warp], own_clock);
}

/// Ends the phase of a barrier if nothing is missing, and wakes the threads that wait for it.
void end_phase(Worker& w, uint32_t offset, MemoryBarrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  ++b.phase;
  b.pending = b.expected;
  std::copy_n(b.gathered, 32, b.released);
  for (uint32_t i = 0; i < w.thread_count(); ++i) {
    Thread& t = w.thread(i);
    if (t.state != Thread::State::kWaiting || t.memory_barrier != offset) continue;
    t.memory_barrier = 0;
    w.make_ready(t);
  }
}

/// Rounds an f32 to the 11 significant bits of tf32; ties go to the even one.
uint32_t round_to_tf32(uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000) return bits;
  return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

/// Reads the elements of a row of a box, and writes zeros for those outside of the array.
void copy_row(Worker& w, Thread& t, const BoxCopy& c, const uint32_t* index, uint32_t to) {
  const TensorMapData& map = c.map;
  const uint32_t bytes = map.box[0] * map.element_bytes;
  uint64_t from = map.address;
  bool is_inside = true;
  for (unsigned d = 1; d < map.rank; ++d) {
    const int64_t at = int64_t{c.at[d]} + index[d];
    is_inside &= at >= 0 && at < static_cast<int64_t>(map.sizes[d]);
    from += static_cast<uint64_t>(at) * map.strides[d - 1];
  }
  for (uint32_t i = 0; i < bytes; i += map.element_bytes) {
    const int64_t at = int64_t{c.at[0]} + i / map.element_bytes;
    const bool is_there = is_inside && at >= 0 && at < static_cast<int64_t>(map.sizes[0]);
    const uint32_t place = map.is_swizzled ? swizzled(to + i) : to + i;
    uint8_t* const target = w.shared() + place;
    std::memset(w.shared_states() + place, kByteAllocated | kByteWritten, map.element_bytes);
    if (!is_there) {
      std::memset(target, 0, map.element_bytes);
      continue;
    }
    const uint64_t source = from + static_cast<uint64_t>(at) * map.element_bytes;
    std::memcpy(target, check_access(t, source, Space::kGlobal, AccessKind::kRead, map.element_bytes, c.line),
                map.element_bytes);
    if (!map.rounds_to_tf32) continue;
    uint32_t bits = 0;
    std::memcpy(&bits, target, sizeof bits);
    bits = round_to_tf32(bits);
    std::memcpy(target, &bits, sizeof bits);
  }
}

uint64_t box_bytes(const TensorMapData& map) {
  uint64_t bytes = map.element_bytes;
  for (unsigned d = 0; d < map.rank; ++d) bytes *= map.box[d];
  return bytes;
}

void finish_box(Worker& w, const BoxCopy& c) {
  Thread& t = w.thread(c.thread);
  const TensorMapData& map = c.map;
  uint32_t index[5] = {0, 0, 0, 0, 0};
  uint32_t to = c.to;
  const uint32_t row_bytes = map.box[0] * map.element_bytes;
  for (;;) {
    copy_row(w, t, c, index, to);
    to += row_bytes;
    unsigned d = 1;
    while (d < map.rank && ++index[d] == map.box[d]) index[d++] = 0;
    if (d >= map.rank) break;
  }
  const auto found = w.memory_barriers.find(c.barrier);
  if (found == w.memory_barriers.end()) return;
  MemoryBarrier& b = found->second;
  gather(b, c.seen, t.warp, c.seen[t.warp]);
  b.bytes -= static_cast<int64_t>(box_bytes(map));
  end_phase(w, c.barrier, b);
}

uint64_t hash_of(const uint8_t* bytes, uint32_t count) {
  uint64_t h = 0xcbf29ce484222325;
  for (uint32_t i = 0; i < count; ++i) h = (h ^ bytes[i]) * 0x100000001b3;
  return h;
}

// Products.

/// How a factor lies in shared memory, from its descriptor.
struct Factor {
  uint32_t start = 0, leading = 0, stride = 0;
  bool by_depth = true;
  unsigned element_bytes = 2;

  /// Returns the offset of an element of row (column) `row` and step `k`.
  uint32_t at(unsigned row, unsigned k) const {
    if (by_depth) return swizzled(start + row / 8 * stride + row % 8 * kLine + k * element_bytes);
    return swizzled(start + row / 64 * leading + k / 8 * stride + k % 8 * kLine + row % 64 * element_bytes);
  }
};

struct ProductData {
  uint64_t a, b;
  const uint32_t* in;
  uint32_t* out;
  uint32_t line;
};

Factor factor_of(Worker& w, Thread& t, uint64_t descriptor, bool by_depth, unsigned element_bytes, uint32_t line) {
  Factor f;
  f.start = static_cast<uint32_t>(descriptor & 0x3fff) << 4;
  f.leading = static_cast<uint32_t>(descriptor >> 16 & 0x3fff) << 4;
  f.stride = static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  f.by_depth = by_depth;
  f.element_bytes = element_bytes;
  const auto refuse = [&](const char* why) { w.fail(t, line, CUDA_ERROR_LAUNCH_FAILED, std::string("wgmma: ") + why); };
  if (descriptor >> 62 != 1) refuse("only factors whose lines of 128 bytes are swizzled are known");
  if ((descriptor >> 49 & 7) != 0) refuse("only descriptors without a base offset are known");
  if (f.stride % kBlock != 0 || (!by_depth && f.leading % kBlock != 0))
    refuse("blocks of swizzled lines begin at multiples of 1024 bytes");
  return f;
}

double element_of(Worker& w, Type type, uint32_t offset) {
  uint32_t bits = 0;
  std::memcpy(&bits, w.shared() + offset, bytes_of(type));
  switch (type) {
    case Type::kS8:
      return static_cast<int8_t>(bits);
    case Type::kU8:
      return static_cast<uint8_t>(bits);
    case Type::kTf32:
      return std::bit_cast<float>(bits & 0xffffe000);
    case Type::kF16:
      return to_double(bits, Format::kF16);
    case Type::kBf16:
      return to_double(bits, Format::kBf16);
    case Type::kE4m3:
      return to_double(bits, Format::kE4m3);
    default:
      return to_double(bits, Format::kE5m2);
  }
}

/// Checks that a warp may read a factor, and keeps what it reads.
void read_factor(Worker& w, Thread& t, const Factor& f, unsigned first, unsigned rows, unsigned depth, uint32_t line,
                 std::vector<ProductRead>& reads) {
  // The bytes that are read lie in chunks of 16 bytes.
  const unsigned per = kChunk / f.element_bytes;
  const auto read = [&](uint32_t at) {
    check_access(t, at, Space::kShared, AccessKind::kRead, kChunk, line);
    if (w.checks_races()) w.check_proxy(t, at, kChunk, line);
    reads.push_back({at, kChunk, hash_of(w.shared() + at, kChunk), line});
  };
  if (f.by_depth) {
    for (unsigned row = first; row < first + rows; ++row) {
      for (unsigned k = 0; k < depth; k += per) read(f.at(row, k));
    }
    return;
  }
  for (unsigned k = 0; k < depth; ++k) {
    for (unsigned row = first; row < first + rows; row += per) read(f.at(row, k));
  }
}

/// Returns an element of a first factor of 16-bit numbers in registers, of which each thread has those of rows lane / 4 and
/// eight below, and of steps 2 (lane % 4) and eight behind.
double element_of_lane(const Meeting& m, const WgmmaShape& s, unsigned row, unsigned k) {
  const auto& d = *static_cast<const ProductData*>(m.data[row % 8 * 4 + k % 8 / 2]);
  const uint32_t word = d.in[s.n / 2 + row / 8 + k / 8 * 2];
  return to_double(word >> k % 2 * 16 & 0xffff, s.type == Type::kBf16 ? Format::kBf16 : Format::kF16);
}

void multiply_all(Worker& w, Meeting& m) {
  const WgmmaShape s = WgmmaShape::of_code(m.code);
  Thread& first = w.thread(m.warp * 32);
  if (m.arrived != UINT32_MAX)
    w.fail(first, m.line, CUDA_ERROR_LAUNCH_FAILED, "wgmma needs all 32 threads of each warp");
  if ((m.warp | 3) * 32 >= w.thread_count())
    w.fail(first, m.line, CUDA_ERROR_LAUNCH_FAILED, "wgmma needs four whole warps");
  const auto& d0 = *static_cast<ProductData*>(m.data[0]);
  for (unsigned lane = 1; lane < 32; ++lane) {
    const auto& d = *static_cast<ProductData*>(m.data[lane]);
    if (d.a != d0.a || d.b != d0.b)
      w.fail(w.thread(m.warp * 32 + lane), m.line, CUDA_ERROR_LAUNCH_FAILED,
             "wgmma: the threads of a warp have different descriptors");
  }
  WarpProducts& products = w.warp(m.warp).products;
  if (!products.is_fenced)
    w.fail(first, m.line, CUDA_ERROR_LAUNCH_FAILED, "wgmma: there was no wgmma.fence since the last wait");
  const unsigned bytes = bytes_of(s.type);
  Factor a;
  if (!s.a_in_registers) a = factor_of(w, first, d0.a, !s.a_by_rows, bytes, m.line);
  const Factor b = factor_of(w, first, d0.b, !s.b_by_rows, bytes, m.line);
  const unsigned depth = 32 / bytes;
  const unsigned row = m.warp % 4 * 16;
  if (!s.a_in_registers) read_factor(w, first, a, row, 16, depth, m.line, products.open);
  read_factor(w, first, b, 0, s.n, depth, m.line, products.open);

  static thread_local double left[16][32], right[32][256];
  for (unsigned k = 0; k < depth; ++k) {
    for (unsigned i = 0; i < 16; ++i)
      left[i][k] = s.a_in_registers ? element_of_lane(m, s, i, k) : element_of(w, s.type, a.at(row + i, k));
    for (unsigned j = 0; j < s.n; ++j) right[k][j] = element_of(w, s.type, b.at(j, k));
  }
  const bool is_integer = s.type == Type::kS8 || s.type == Type::kU8;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& d = *static_cast<ProductData*>(m.data[lane]);
    for (unsigned i = 0; i < s.n / 2; ++i) {
      const unsigned r = lane / 4 + i / 2 % 2 * 8, c = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = 0;
      if (s.adds) sum = is_integer ? static_cast<int32_t>(d.in[i]) : std::bit_cast<float>(d.in[i]);
      // Products are exact. Their sum is rounded once.
      for (unsigned k = 0; k < depth; ++k) sum += left[r][k] * right[k][c];
      d.out[i] = is_integer ? static_cast<uint32_t>(static_cast<int64_t>(sum))
                            : std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
  }
}

void wait_all(Worker& w, Meeting& m) {
  WarpProducts& products = w.warp(m.warp).products;
  products.is_fenced = false;
  while (products.groups.size() > m.code) {
    for (const ProductRead& r : products.groups.front()) {
      Thread& t = w.thread(m.warp * 32);
      // The product may have read the memory until now.
      check_access(t, r.offset, Space::kShared, AccessKind::kRead, r.bytes, m.line);
      if (hash_of(w.shared() + r.offset, r.bytes) != r.hash)
        w.fail(t, m.line, CUDA_ERROR_LAUNCH_FAILED,
               "shared memory at offset " + std::to_string(r.offset - kSharedBase) +
                   " was changed while the product of line " + std::to_string(r.line) + " read it");
    }
    products.groups.erase(products.groups.begin());
  }
}

void fence_all(Worker& w, Meeting& m) {
  w.warp(m.warp).products.is_fenced = true;
}

void commit_all(Worker& w, Meeting& m) {
  WarpProducts& products = w.warp(m.warp).products;
  products.groups.push_back(std::move(products.open));
  products.open.clear();
}

}  // namespace

bool Worker::run_asynchronous() {
  if (box_copies_.empty()) return false;
  // Copies that are under way at the same time end in any order.
  const size_t which = launch_->machine->options.seed ? next_random(random_) % box_copies_.size() : 0;
  const BoxCopy copy = box_copies_[which];
  box_copies_.erase(box_copies_.begin() + static_cast<ptrdiff_t>(which));
  finish_box(*this, copy);
  return true;
}

void Worker::check_asynchronous_end(Thread& last) {
  if (!launch_->machine->options.checks) return;
  if (!box_copies_.empty())
    fail(last, box_copies_.front().line, CUDA_ERROR_LAUNCH_FAILED,
         "the block has ended, and nobody waited for the copy that this line started");
  for (const Warp& warp : warps_) {
    if (!warp.products.groups.empty() || !warp.products.open.empty())
      fail(last, last.line, CUDA_ERROR_LAUNCH_FAILED, "the block has ended, and a warp did not wait for its products");
  }
}

void Worker::check_proxy(Thread& t, uint32_t offset, uint32_t bytes, uint32_t line) {
  for (uint32_t cell = offset / 4; cell < (offset + bytes) / 4; ++cell) {
    const auto lacks_fence = [&](const SharedRecord& r) {
      return r.sequence > first_sequence_ && threads_[r.write.thread].proxy_fence < r.sequence;
    };
    const SharedRecord& r = shared_records_[cell];
    const auto last_lacks_fence = [&](const SharedRecord& part) {
      return lacks_fence(part.sequence > r.sequence ? part : r);
    };
    const SharedRecord* const parts = r.has_parts ? parts_of(cell) : nullptr;
    if (parts ? std::none_of(parts, parts + 4, last_lacks_fence) : !lacks_fence(r)) continue;
    fail(t, line, CUDA_ERROR_LAUNCH_FAILED,
         "wgmma reads shared memory at offset " + std::to_string(cell * 4 - kSharedBase) +
             " that a thread has written without a fence.proxy.async behind");
  }
}

extern "C" {

void collet_emu_mbarrier_init(Thread* t, uint32_t offset, uint32_t count, uint32_t line) {
  Worker& w = *t->worker;
  if (offset % 8) w.fail(*t, line, CUDA_ERROR_MISALIGNED_ADDRESS, "an mbarrier has 8 bytes");
  if (count == 0 || count > kMostArrivals)
    w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "an mbarrier for " + std::to_string(count) + " threads");
  check_access(*t, offset, Space::kShared, AccessKind::kWrite, 8, line);
  MemoryBarrier b;
  b.expected = count;
  b.pending = count;
  if (!w.memory_barriers.emplace(offset, b).second)
    w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "this mbarrier is in use: mbarrier.inval is missing");
}

void collet_emu_mbarrier_inval(Thread* t, uint32_t offset, uint32_t line) {
  barrier_at(*t, offset, line);
  t->worker->memory_barriers.erase(offset);
}

void collet_emu_mbarrier_arrive(Thread* t, uint32_t offset, uint32_t count, uint32_t bytes, uint32_t line) {
  Worker& w = *t->worker;
  MemoryBarrier& b = barrier_at(*t, offset, line);
  Warp& warp = w.warp(t->warp);
  b.bytes += bytes;
  if (b.bytes > kMostBytes)
    w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "an mbarrier counts at most " + std::to_string(kMostBytes) + " bytes");
  if (count == 0) return;
  const uint32_t clock = w.clock_of(*t);
  gather(b, warp.seen, t->warp, clock);
  warp.lane_arrived[t->lane] = clock;
  ++warp.clock;
  if (w.clock_of(*t) == clock) warp.lane_clock[t->lane] = clock + 1;
  b.pending -= count;
  if (b.pending < 0)
    w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED,
           "more threads arrive at the mbarrier than the " + std::to_string(b.expected) + " that it expects");
  end_phase(w, offset, b);
}

uint32_t collet_emu_mbarrier_wait(Thread* t, uint32_t offset, uint32_t parity, uint32_t waits, uint32_t line) {
  Worker& w = *t->worker;
  if (parity > 1) w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "a parity is 0 or 1");
  MemoryBarrier* b = &barrier_at(*t, offset, line);
  if ((b->phase & 1) == parity) {
    if (!waits) return 0;
    // The caller tries again in any case; whoever ends the phase makes it ready.
    t->memory_barrier = offset;
    w.wait(*t, line);
    b = &barrier_at(*t, offset, line);
    if ((b->phase & 1) == parity) return 0;
  }
  Warp& warp = w.warp(t->warp);
  for (uint32_t v = 0; v < 32; ++v) warp.seen[v] = std::max(warp.seen[v], b->released[v]);
  warp.lane_seen[t->lane] = std::max(warp.lane_seen[t->lane], b->released[t->warp]);
  if (w.clock_of(*t) <= b->released[t->warp]) warp.lane_clock[t->lane] = b->released[t->warp] + 1;
  return 1;
}

void collet_emu_box_copy(Thread* t, uint32_t to, uint64_t map, uint32_t rank, const int32_t* at, uint32_t barrier,
                         uint32_t line) {
  Worker& w = *t->worker;
  BoxCopy c;
  // A map is a parameter of the kernel, or lies in device memory.
  if (map % 64) w.fail(*t, line, CUDA_ERROR_MISALIGNED_ADDRESS, "a tensor map begins at a multiple of 64 bytes");
  const auto read = access_function(map >= kParamWindow ? Space::kGeneric : Space::kGlobal, AccessKind::kRead, 16);
  uint8_t bytes[128];
  for (uint32_t i = 0; i < sizeof bytes; i += 16) std::memcpy(bytes + i, read(t, map + i, line), 16);
  std::memcpy(&c.map, bytes, sizeof c.map);
  const auto refuse = [&](const std::string& why) {
    w.fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "cp.async.bulk.tensor: " + why);
  };
  if (c.map.magic != TensorMapData::kMagic) refuse("this is no tensor map");
  if (c.map.rank != rank) refuse("the map has " + std::to_string(c.map.rank) + " dimensions");
  if (to % (c.map.is_swizzled ? kLine : kChunk))
    w.fail(*t, line, CUDA_ERROR_MISALIGNED_ADDRESS, "cp.async.bulk.tensor: the place in shared memory is misaligned");
  barrier_at(*t, barrier, line);
  const auto total = static_cast<uint32_t>(box_bytes(c.map));
  check_access(*t, to, Space::kShared, AccessKind::kWrite, total, line);
  w.mark_asynchronous(to, total);
  // Until the copy has taken place, the bytes count as not written.
  std::memset(w.shared_states() + to, kByteAllocated, total);
  std::copy_n(at, rank, c.at);
  c.to = to;
  c.barrier = barrier;
  c.thread = t->linear;
  c.line = line;
  Warp& warp = w.warp(t->warp);
  std::copy_n(warp.seen, 32, c.seen);
  c.seen[t->warp] = warp.lane_arrived[t->lane] = w.clock_of(*t);
  w.start_copy(c);
}

void collet_emu_proxy_fence(Thread* t) {
  t->proxy_fence = t->worker->sequence();
}

void collet_emu_wgmma_fence(Thread* t, uint32_t line) {
  t->worker->meet(*t, kFence, UINT32_MAX, nullptr, &fence_all, line);
}

void collet_emu_wgmma(Thread* t, uint32_t code, uint64_t a, uint64_t b, const uint32_t* in, uint32_t* out,
                      uint32_t line) {
  ProductData d{a, b, in, out, line};
  t->worker->meet(*t, kStart, UINT32_MAX, &d, &multiply_all, line, code);
}

void collet_emu_wgmma_commit(Thread* t, uint32_t line) {
  t->worker->meet(*t, kCommit, UINT32_MAX, nullptr, &commit_all, line);
}

void collet_emu_wgmma_wait(Thread* t, uint32_t groups, uint32_t line) {
  t->worker->meet(*t, kWait, UINT32_MAX, nullptr, &wait_all, line, groups);
}
}

}  // namespace collet::gpu::emulator
