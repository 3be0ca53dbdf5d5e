// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sorts several short rows at once, one in each lane of a vector, by a sorting network: the comparisons do not depend
/// on the elements, so no branch is mispredicted and no element has to move between lanes.

#include <cstdint>
#include <vector>

#include "sdk/codegen/routines/sort_keys.h"

namespace collet::codegen {

/// Compares elements `low` and `high` of a row and exchanges them if they are not in order.
struct NetworkStep {
  uint16_t low;
  uint16_t high;
};

/// The longest rows that are sorted by a network.
constexpr int64_t kMostInNetwork = 1024;
/// If at most so many elements are needed, they are found in one pass over rows of any length.
constexpr int64_t kMostSelected = 16;

/// Returns the steps after which the first `needed` of n elements are in order: Batcher's merge exchange. n is at most
/// kMostInNetwork.
/// Empty if they are found without a network.
std::vector<NetworkStep> sorting_network(int64_t n, int64_t needed);

/// Up to as many rows as a vector has lanes, to be sorted together.
template <typename U>
struct LaneSort {
  const NetworkStep* steps = nullptr;
  size_t step_count = 0;
  int64_t n = 0;
  int64_t needed = 0;          ///< number of elements of each row that are stored
  const char* from = nullptr;  ///< the elements that are compared
  int64_t distance = 1;        ///< distance between neighbours of a row, in elements
  int64_t starts[64] = {};     ///< first element of each row
  int64_t rows = 0;
  bool adjacent = false;      ///< row k starts k elements after the first one, and all lanes have rows
  bool refuse_nan = false;    ///< return kNaN if there is a NaN
  char* to = nullptr;         ///< where sorted elements are stored, in rows like those of `from`
  int32_t* places = nullptr;  ///< where their former places in the row are stored, `needed` for each row
};

enum class LaneSorted : uint8_t {
  kYes,
  kAmbiguous,  ///< not sorted: elements with equal keys may differ
  kNaN         ///< not sorted: there is a NaN
};

/// Returns the bytes of work memory of sort_lanes() for rows of n elements.
constexpr int64_t sort_lanes_bytes(int64_t n, int64_t needed) {
  return 64 * (needed <= kMostSelected ? kMostSelected : n);
}

/// Returns how many rows sort_lanes() sorts at once; 0 if it cannot.
int64_t lanes_of_sort(size_t element_bytes, bool with_places);

/// Sorts the rows by the keys of their elements: stores their former places if `with_places`, and otherwise the
/// elements. The sort with places is stable. U is the unsigned type of the elements' width. `work` has
/// sort_lanes_bytes().
template <typename U>
LaneSorted sort_lanes(const LaneSort<U>& job, const Keys<U>& keys, uint32_t type, bool with_places, char* work);

}  // namespace collet::codegen
