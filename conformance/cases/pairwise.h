// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace collet::conformance {

/// Returns rows of choices, one of 0 ... levels[f] - 1 for each factor f, such that every two choices of different
/// factors occur together in some row. No level may be 0. The result depends on the levels only.
std::vector<std::vector<size_t>> pairwise(const std::vector<size_t>& levels);

/// Reads the choices of a row: `next({a, b, c})` returns the choice for the next factor. A first pass with `levels`
/// records the number of choices of each factor.
class Factors {
 public:
  /// Makes an object for the first pass, which returns the first choice for each factor.
  explicit Factors(std::vector<size_t>& levels) : levels_(&levels) {}
  explicit Factors(const std::vector<size_t>& row) : row_(&row) {}

  template <typename T>
  T next(std::initializer_list<T> choices) {
    if (levels_ != nullptr) {
      levels_->push_back(choices.size());
      return *choices.begin();
    }
    return choices.begin()[(*row_)[at_++]];
  }

 private:
  std::vector<size_t>* levels_ = nullptr;
  const std::vector<size_t>* row_ = nullptr;
  size_t at_ = 0;
};

/// Calls `use(choose(factors), number)` for each row. `choose` builds a value from the factors, and must ask for the
/// same factors each time.
template <typename Choose, typename Use>
void for_pairs(Choose choose, Use use) {
  std::vector<size_t> levels;
  Factors asking(levels);
  choose(asking);
  size_t number = 0;
  for (const std::vector<size_t>& row : pairwise(levels)) {
    Factors factors(row);
    use(choose(factors), number++);
  }
}

}  // namespace collet::conformance
