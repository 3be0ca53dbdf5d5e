// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/pairwise.h"

#include <algorithm>

namespace collet::conformance {
namespace {

constexpr size_t kOpen = static_cast<size_t>(-1);

// The pairs of choices that no row contains yet.
class Pairs {
 public:
  explicit Pairs(const std::vector<size_t>& levels) : first_(levels.size() + 1) {
    for (size_t f = 0; f < levels.size(); ++f) first_[f + 1] = first_[f] + levels[f];
    seen_.assign(first_.back() * first_.back(), false);
  }

  bool is_new(size_t f, size_t a, size_t g, size_t b) const { return !seen_[place(f, a, g, b)]; }
  void mark(const std::vector<size_t>& row) {
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) seen_[place(f, row[f], g, row[g])] = true;
  }
  // Returns how many new pairs `row` would contain with choice `a` for factor `f`.
  size_t gain(const std::vector<size_t>& row, size_t f, size_t a) const {
    size_t count = 0;
    for (size_t g = 0; g < row.size(); ++g)
      count += g != f && row[g] != kOpen && (g < f ? is_new(g, row[g], f, a) : is_new(f, a, g, row[g]));
    return count;
  }

 private:
  size_t place(size_t f, size_t a, size_t g, size_t b) const { return (first_[f] + a) * first_.back() + first_[g] + b; }

  std::vector<size_t> first_;
  std::vector<bool> seen_;
};

// Fills the open factors of a row, each with the choice that adds most new pairs; `turn` decides between equal choices,
// so that all of them are used about equally often.
void fill(std::vector<size_t>& row, const std::vector<size_t>& levels, const Pairs& pairs, size_t turn) {
  for (size_t f = 0; f < row.size(); ++f) {
    if (row[f] != kOpen) continue;
    size_t best = 0, most = 0;
    for (size_t k = 0; k < levels[f]; ++k) {
      const size_t a = (turn + f + k) % levels[f], gain = pairs.gain(row, f, a) + 1;
      if (gain > most) {
        most = gain;
        best = a;
      }
    }
    row[f] = best;
  }
}

}  // namespace

std::vector<std::vector<size_t>> pairwise(const std::vector<size_t>& levels) {
  std::vector<std::vector<size_t>> rows;
  Pairs pairs(levels);
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g)
      for (size_t a = 0; a < levels[f]; ++a)
        for (size_t b = 0; b < levels[g]; ++b) {
          if (!pairs.is_new(f, a, g, b)) continue;
          std::vector<size_t> row(levels.size(), kOpen);
          row[f] = a;
          row[g] = b;
          fill(row, levels, pairs, rows.size());
          pairs.mark(row);
          rows.push_back(std::move(row));
        }
  return rows;
}

}  // namespace collet::conformance
