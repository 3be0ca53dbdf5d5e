// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace collet::conformance {

/// Choices, one of 0 ... levels[f] - 1 for each factor f, such that each two choices of different factors stand together in some row. No
/// level is 0. The same levels give the same rows.
std::vector<std::vector<size_t>> pairwise(const std::vector<size_t>& levels);

/// Reads a row: `next({a, b, c})` is what the next factor has chosen. A first pass with `levels` notes how many each factor has.
class Factors {
 public:
  /// Notes: every choice is the first one.
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

/// `use(choose(factors), number)` for each row. `choose` makes a value out of the factors, and asks for the same ones each time.
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
