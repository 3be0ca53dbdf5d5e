// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_radix.h"

#include <algorithm>
#include <limits>

#include "sdk/codegen/base/element_type.h"

namespace collet::codegen {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kThreads = 384;  ///< of a block
constexpr int64_t kThreadsOfShortRow = 256;
// Most items that a thread can hold in its registers.
constexpr int64_t kMostItems = 16;
constexpr int64_t kMostItemsWithValues = 14;
constexpr int64_t kMostOfRow = 16;             ///< of a row in one block, with keys of at most 4 bytes
constexpr int64_t kMostOfRowWithNumbers = 12;  ///< the same, with the elements' numbers
constexpr int64_t kMostOfWideRow = 12;         ///< of a row in one block, with keys of 8 bytes
constexpr int64_t kMostOfWideRowWithNumbers = 9;
constexpr int64_t kLeastItems = 4;  ///< of a row with several tiles
/// Bytes of shared memory for what all threads of a block know of its digits: see RadixEmitter.
constexpr int64_t kKnownBytes = 2 << 10;
constexpr int64_t kExchangeBytes = 32 << 10;
/// Least elements that a block of kCounts reads: adding its counts to those of the row takes as long as some thousands of
/// elements.
constexpr int64_t kLeastCounted = 8192;
constexpr int64_t kShortRow = 2048;  ///< rows up to this length are sorted by kThreadsOfShortRow threads

int64_t bytes_of(uint32_t type) {
  return static_cast<int64_t>(collet_type_bytes(type));
}

int64_t quotient_up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

/// Returns how many elements of a row that a block sorts fit into the registers of a thread.
int64_t most_of_row(int64_t key_bytes, bool has_numbers) {
  if (key_bytes > 4) return has_numbers ? kMostOfWideRowWithNumbers : kMostOfWideRow;
  return has_numbers ? kMostOfRowWithNumbers : kMostOfRow;
}

/// Returns the most elements that a thread may hold, at most `most`, if the block has `shared` bytes for them.
int64_t most_items(int64_t threads, int64_t element_bytes, int64_t most, int64_t shared) {
  return std::min(most, shared / (threads * element_bytes));
}

/// Returns how many elements a thread holds. Few elements are divided among all processors.
int64_t items_of(int64_t elements, int64_t most, const GridLimits& limits) {
  const int64_t even = quotient_up(elements, limits.processors * GridRadix::kResidentThreads);
  return std::clamp(even, std::min(kLeastItems, most), most);
}

}  // namespace

int64_t GridRadix::key_bytes() const {
  return bytes_of(key.type);
}

uint32_t GridRadix::blocks() const {
  switch (part) {
    case Part::kRows:
      return static_cast<uint32_t>(rows);
    case Part::kCounts:
      return static_cast<uint32_t>(rows * quotient_up(length, counted));
    default:  // a block for each tile
      return static_cast<uint32_t>(rows * tiles);
  }
}

int64_t GridRadix::exchange_bytes() const {
  const int64_t element = part == Part::kRows ? key_bytes() + value_bytes : std::max(key_bytes(), value_bytes);
  return std::max(block_threads / kWarp * kDigits * 4, tile() * element);
}

std::optional<GridRadix> schedule_radix(const KeyRule& key, int64_t rows, int64_t length,
                                        const std::vector<uint32_t>& others, bool keeps_numbers,
                                        const GridLimits& limits) {
  const int64_t shared = std::min(limits.shared_bytes, limits.declared_bytes) - kKnownBytes;
  if (limits.block_threads < kThreads || shared < GridRadix::kCountedBytes) return std::nullopt;
  GridRadix out;
  out.key = key;
  out.passes = out.key_bytes();
  out.rows = rows;
  out.length = out.kept = out.pitch = length;
  const bool has_numbers = keeps_numbers || !others.empty();
  // A block numbers the elements of its row with 16 bits.
  out.block_threads = length <= kShortRow ? kThreadsOfShortRow : kThreads;
  out.value_bytes = has_numbers ? 2 : 0;
  const int64_t most = most_items(out.block_threads, out.key_bytes() + out.value_bytes,
                                  most_of_row(out.key_bytes(), has_numbers), shared);
  if (most * out.block_threads >= length) {
    out.part = GridRadix::Part::kRows;
    out.payload = has_numbers ? GridRadix::Payload::kNumbers : GridRadix::Payload::kNothing;
    out.gathered = others;
    out.is_first = out.is_last = true;
    out.items = quotient_up(length, out.block_threads);
    if (rows > std::numeric_limits<int32_t>::max()) return std::nullopt;
    return out;
  }
  out.part = GridRadix::Part::kPass;
  out.block_threads = kThreads;
  if (others.size() == 1 && bytes_of(others[0]) <= 8 && !keeps_numbers) {
    out.payload = GridRadix::Payload::kValues;
    out.value_bytes = bytes_of(others[0]);
  } else if (has_numbers) {
    out.payload = GridRadix::Payload::kNumbers;
    out.value_bytes = 4;
    out.gathered = others;
  }
  const int64_t largest = most_items(kThreads, std::max(out.key_bytes(), out.value_bytes),
                                     has_numbers ? kMostItemsWithValues : kMostItems, std::min(shared, kExchangeBytes));
  out.items = items_of(rows * length, largest, limits);
  out.tiles = quotient_up(length, out.tile());
  out.items = quotient_up(length, out.tiles * kThreads);
  out.is_wide = length >= int64_t{1} << 30;
  out.counted = std::max(kLeastCounted, quotient_up(rows * length, 2 * limits.processors));
  out.counted = std::min(quotient_up(out.counted, kThreads) * kThreads, length);
  const int64_t most_blocks = rows * std::max(out.tiles, quotient_up(length, out.counted));
  if (most_blocks > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return out;
}

std::optional<GridRadix> schedule_selection(const KeyRule& key, int64_t rows, int64_t length, int64_t kept,
                                            const std::vector<uint32_t>& others, const GridLimits& limits) {
  constexpr int64_t kSelectedShare = 8;
  GridRadix out;
  out.part = GridRadix::Part::kSelect;
  out.key = key;
  out.passes = out.key_bytes();
  out.rows = rows;
  out.length = length;
  out.kept = kept;
  out.gathered = others;
  out.is_last = true;
  out.block_threads = kThreads;
  const int64_t most = out.key_bytes() > 4 ? kMostItems / 2 : kMostItems;
  const int64_t least = quotient_up(kSelectedShare * kept, kThreads);
  const int64_t shared = std::min(limits.shared_bytes, limits.declared_bytes);
  if (least > most || limits.block_threads < kThreads || shared < 2 * kKnownBytes + 4 * GridRadix::kDigits * 4)
    return std::nullopt;
  out.items = std::max(least, items_of(rows * length, most, limits));
  out.tiles = quotient_up(length, out.tile());
  if (rows * out.tiles > std::numeric_limits<int32_t>::max()) return std::nullopt;
  out.pitch = (out.tiles - 1) * kept + std::min(kept, length - (out.tiles - 1) * out.tile());
  return out;
}

}  // namespace collet::codegen
