// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sorts rows by one key on a machine with grids, digit by digit from the least significant one (LSD radix sort). An
/// element's key is an unsigned integer that has the order of the elements, see Keys; a digit has eight bits. Every pass
/// keeps the order of elements with equal digits, so the sort is stable.
///
/// A row that fits into one block's registers is sorted by that block. Longer rows are cut into tiles, of which a block
/// takes one in each pass: A. Adinets and D. Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs",
/// 2022, arXiv:2206.01784. One kernel counts the values of all digits in each row. In the pass of a digit, a block
/// counts the digits of its tile and publishes the counts. To find how many elements of the tiles before its own have a
/// digit, it adds up what their blocks have published, from the nearest tile back to the first one whose block has
/// published the sum of all tiles up to it (decoupled look-back: D. Merrill and M. Garland, "Single-pass Parallel Prefix
/// Scan with Decoupled Look-back", 2016). Blocks take tiles in the order in which they start, so a block waits only for
/// blocks that have started.

#include <collet/codegen/target.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/codegen/routines/key_rule.h"

namespace collet::codegen {

/// A sort, or one kernel of it. Rows are contiguous. The parameters of the kernels are addresses:
/// - kRows: keys, sorted keys, sorted numbers (s32) if writes_values(), gathered arrays, their results
/// - kSelect: keys, gathered arrays, selected keys, selected elements of the gathered arrays
/// - kCounts: keys, state
/// - kPass: keys, sorted keys, values if reads_values(), sorted values if writes_values(), gathered arrays, their results,
///   state; and the number of the digit, an i64, the least significant digit being 0.
/// The state is an array of state_words() s32, of which the first cleared_words() are zero before kCounts runs.
struct GridRadix {
  enum class Part : uint8_t {
    kRows,  ///< sorts rows, each by one block
    /// Selects the `kept` elements of each tile that sort first, and keeps their order: the bytes of the last such key are
    /// found one after the other, from the most significant one on.
    kSelect,
    kCounts,  ///< counts the digits of each row
    kPass,    ///< sorts by one digit
  };
  /// What moves along with the keys.
  enum class Payload : uint8_t {
    kNothing,
    kValues,  ///< an array of `value_bytes` bytes an element, at most 8
    /// The numbers of the elements in their row. They are a result, or arrays are gathered by them. They have 4 bytes
    /// in memory; the block of kRows holds 2 bytes of each.
    kNumbers,
  };
  static constexpr int64_t kDigits = 256;           ///< values of a digit
  static constexpr int64_t kResidentThreads = 768;  ///< threads that a processor runs at a time: they have 80 registers
  static constexpr int64_t kCountedBytes = 32 << 10;  ///< shared memory in which kCounts counts
  static constexpr int64_t kFirstCount = 64;          ///< words of the state before the counts: a ticket for each pass

  Part part = Part::kRows;
  KeyRule key;
  int64_t rows = 1;
  int64_t length = 2;  ///< elements of a row
  Payload payload = Payload::kNothing;
  int64_t value_bytes = 0;
  /// Types of the arrays whose elements are fetched, by their numbers, when the order is known.
  std::vector<uint32_t> gathered;
  bool is_first = false;  ///< of a pass: numbers are made, and not read
  bool is_last = false;   ///< of a pass: gathered arrays are fetched
  uint32_t block_threads = 256;
  /// Digits by which is sorted: all of a key, or those of which the others are the same in all keys.
  int64_t passes = 1;
  int64_t items = 1;     ///< elements of a tile that each thread holds
  int64_t tiles = 1;     ///< of a row
  int64_t counted = 1;   ///< elements that a block of kCounts reads
  int64_t kept = 2;      ///< of kRows and kSelect: elements of each sorted row, or of each tile, that are results
  int64_t pitch = 2;     ///< of kRows and kSelect: distance between the results of adjacent rows, in elements
  bool is_wide = false;  ///< the state of a tile is of 64 bits, because 30 do not hold the length of a row

  bool operator==(const GridRadix&) const = default;
  auto operator<=>(const GridRadix&) const = default;

  int64_t tile() const { return items * block_threads; }
  int64_t key_bytes() const;
  uint32_t resident_blocks() const { return static_cast<uint32_t>(kResidentThreads / block_threads); }
  bool reads_values() const { return payload == Payload::kValues || (payload == Payload::kNumbers && !is_first); }
  bool writes_values() const { return payload != Payload::kNothing && (gathered.empty() || !is_last); }
  bool gathers() const { return !gathered.empty() && is_last; }
  uint32_t blocks() const;
  /// Bytes of shared memory that exchange elements among the threads of a block.
  int64_t exchange_bytes() const;
  int64_t count_words() const { return rows * passes * kDigits; }
  /// A word for each row and pass, which is not 0 if all elements of the row have the same digit.
  int64_t mark_words() const { return (rows * passes + 1) / 2 * 2; }
  int64_t first_status() const { return kFirstCount + count_words() + mark_words(); }
  /// Words in which the tiles of one pass publish their counts. There are two such arrays, for passes with even and with
  /// odd numbers; a pass clears the one of the next pass.
  int64_t tile_words() const { return rows * tiles * kDigits * (is_wide ? 2 : 1); }
  int64_t cleared_words() const { return first_status() + tile_words(); }
  int64_t state_words() const { return cleared_words() + tile_words(); }
};

/// Returns a kernel that selects elements of each tile so that the first `kept` elements of a sorted row, at least 1, are
/// among them; `pitch` is their number in a row. Arrays of the types `others` move along. Empty if the machine's limits do
/// not allow it, or if more than an eighth of a tile would be selected.
std::optional<GridRadix> schedule_selection(const KeyRule& key, int64_t rows, int64_t length, int64_t kept,
                                            const std::vector<uint32_t>& others, const GridLimits& limits);

/// Returns a sort of `rows` rows by `key`, in which arrays of the types `others` move along or, if `keeps_numbers`, whose
/// sorted numbers are a result; then there are no others. Its `part` is kRows, or kPass for rows of several tiles. Empty if
/// the machine's limits do not allow it.
std::optional<GridRadix> schedule_radix(const KeyRule& key, int64_t rows, int64_t length,
                                        const std::vector<uint32_t>& others, bool keeps_numbers,
                                        const GridLimits& limits);

}  // namespace collet::codegen
