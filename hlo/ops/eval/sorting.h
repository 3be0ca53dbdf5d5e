// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace collet::hlo::eval {

/// Sorts positions by a stable merge sort. `less(a, b)` may be any function, even one that defines no order; it returns
/// -1 to stop. Returns false if it was stopped.
template <typename Less>
bool merge_sort(std::vector<int64_t>& positions, const Less& less) {
  const auto n = static_cast<int64_t>(positions.size());
  constexpr int64_t kRun = 8;  // length of runs that are sorted by insertion before merging
  for (int64_t begin = 0; begin < n; begin += kRun)
    for (int64_t i = begin + 1; i < n && i < begin + kRun; ++i) {
      const int64_t x = positions[static_cast<size_t>(i)];
      int64_t j = i;
      for (; j > begin; --j) {
        const int before = less(x, positions[static_cast<size_t>(j - 1)]);
        if (before < 0) return false;
        if (!before) break;
        positions[static_cast<size_t>(j)] = positions[static_cast<size_t>(j - 1)];
      }
      positions[static_cast<size_t>(j)] = x;
    }
  std::vector<int64_t> other(positions.size());
  for (int64_t width = kRun; width < n; width *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
      const int64_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
      int64_t left = begin, right = middle;
      for (int64_t to = begin; to < end; ++to) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          const int before = less(positions[static_cast<size_t>(right)], positions[static_cast<size_t>(left)]);
          if (before < 0) return false;
          take_right = before;
        }
        other[static_cast<size_t>(to)] = positions[static_cast<size_t>(take_right ? right++ : left++)];
      }
    }
    positions.swap(other);
  }
  return true;
}

}  // namespace collet::hlo::eval
