// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_updates.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"

namespace collet::codegen {

uint64_t independent_loops(const Kernel& kernel) {
  if (kernel.updates.empty() || !kernel.stores.empty()) return 0;
  const std::vector<uint64_t> deps = loop_dependencies(kernel);
  uint64_t common = outer_loops(kernel);
  for (const Update& u : kernel.updates) {
    for (const Expr& e : kernel.exprs) {
      const bool reads =
          e.op == ExprOp::kLoad && std::find(u.buffers.begin(), u.buffers.end(), e.buffer) != u.buffers.end();
      if (reads) return 0;
    }
    // An address is a constant + sum of coefficient * loop + sum of scale * term, where terms that depend on no loop
    // count as constant. The chosen loops, in the order of their coefficients, are like the digits of a number that is
    // less than a common divisor of all other summands. Then different points of them have different addresses.
    std::vector<std::pair<int64_t, size_t>> digits;
    int64_t others = 0;
    for (const auto& [term, scale] : u.index.terms) {
      if (deps[static_cast<size_t>(term)] != 0) others = std::gcd(others, scale);
    }
    const uint64_t computed = term_dependencies(u.index, deps);
    for (size_t l = 0; l < kernel.outer; ++l) {
      const int64_t c = std::abs(u.index.coefficient(l));
      if (c != 0 && (computed >> l & 1) == 0) {
        digits.emplace_back(c, l);
      } else if (c != 0) {
        others = std::gcd(others, c);
      }
    }
    std::sort(digits.begin(), digits.end());
    uint64_t chosen = 0;
    for (size_t n = digits.size(); n > 0; --n) {  // with the n least ones; the others belong to the other summands
      int64_t above = others;
      for (size_t i = n; i < digits.size(); ++i) above = std::gcd(above, digits[i].first);
      int64_t reach = 0;
      bool apart = true;
      for (size_t i = 0; i < n; ++i) {
        apart = apart && digits[i].first > reach;
        reach += digits[i].first * (kernel.loops[digits[i].second].size - 1);
      }
      if (!apart || (above != 0 && reach >= above)) continue;
      for (size_t i = 0; i < n; ++i) chosen |= uint64_t{1} << digits[i].second;
      break;
    }
    common &= chosen;
  }
  return common;
}

void choose_keys(const Kernel& kernel, int64_t elements, UpdateSchedule& out) {
  const Index& index = kernel.updates[0].index;
  // Indices in range, less what the free loops add to them, lie in a range of this length.
  int64_t reach = elements;
  int64_t step = 0;
  for (const auto& [term, scale] : index.terms) step = std::gcd(step, scale);
  for (size_t l = 0; l < kernel.outer; ++l) {
    const int64_t c = index.coefficient(l);
    if ((out.ordered >> l & 1) != 0) {
      step = std::gcd(step, c);
    } else {
      reach += std::abs(c) * (kernel.loops[l].size - 1);
    }
  }
  out.key_step = std::max<int64_t>(step, 1);
  const auto keys = static_cast<uint64_t>(reach / out.key_step + 1);
  out.key_bits = std::clamp(static_cast<int>(std::bit_width(keys)), 1, 32);
}

bool choose_updates(const Kernel& kernel, UpdateSchedule& out) {
  constexpr int64_t kLeast = 64;  ///< least number of points: fewer are updated fast enough one after the other
  if (!kernel.sequential || kernel.updates.size() != 1 || !kernel.stores.empty() || !kernel.reductions.empty() ||
      kernel.scan || kernel.outer != kernel.loops.size())
    return false;
  const std::vector<uint32_t>& updated = kernel.updates[0].buffers;
  const bool reads_updated = std::any_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& e) {
    return e.op == ExprOp::kLoad && std::find(updated.begin(), updated.end(), e.buffer) != updated.end();
  });
  if (reads_updated) return false;
  const uint64_t independent = independent_loops(kernel);
  out.ordered = outer_loops(kernel) & ~independent;
  out.ordered_points = points_of(kernel, out.ordered);
  out.free_points = points_of(kernel, independent);
  return out.ordered_points >= kLeast && out.ordered_points <= std::numeric_limits<int32_t>::max() / 2;
}

}  // namespace collet::codegen
