// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/pattern.h"

#include <fmt/format.h>

#include <algorithm>

namespace collet::conformance {
namespace {

// Returns the index in dimension `d` that all of `bad` have; -1 if they differ.
int64_t common_index(const hlo::Shape& shape, std::span<const int64_t> bad, int d) {
  int64_t inner = 1;
  for (int k = d + 1; k < shape.rank(); ++k) inner *= shape.dim(k);
  const auto index = [&](int64_t i) { return i / inner % shape.dim(d); };
  const int64_t first = index(bad.front());
  return std::all_of(bad.begin(), bad.end(), [&](int64_t i) { return index(i) == first; }) ? first : -1;
}

int64_t common_step(std::span<const int64_t> bad) {
  const int64_t step = bad[1] - bad[0];
  for (size_t i = 2; i < bad.size(); ++i) {
    if (bad[i] - bad[i - 1] != step) return 0;
  }
  return step;
}

}  // namespace

std::string describe_pattern(const hlo::Shape& shape, std::span<const int64_t> bad) {
  const int64_t total = shape.element_count();
  const auto count = static_cast<int64_t>(bad.size());
  if (count == total) return total == 1 ? "the only element" : "all elements";
  if (count == 1) return fmt::format("one element of {}", total);
  const bool together = bad.back() - bad.front() + 1 == count;
  if (together && bad.back() == total - 1) return fmt::format("the last {} of {}", count, total);
  if (together && bad.front() == 0) return fmt::format("the first {} of {}", count, total);
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) < 2) continue;
    const int64_t index = common_index(shape, bad, d);
    if (index < 0) continue;
    const char* which = index == shape.dim(d) - 1 ? "the last index" : index == 0 ? "the first index" : "one index";
    return fmt::format("{} of {}, all at {} ({}) of dimension {}", count, total, which, index, d);
  }
  if (together) return fmt::format("{} neighbours of {}", count, total);
  if (const int64_t step = count > 2 ? common_step(bad) : 0; step > 1) {
    return fmt::format("every {}th from {}, {} of {}", step, bad.front(), count, total);
  }
  return fmt::format("{} of {}, scattered", count, total);
}

}  // namespace collet::conformance
