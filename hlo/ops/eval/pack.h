// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/ops/eval/lanes.h"

namespace collet::hlo::eval {

/// A whole array in wide form.
class WideArray {
 public:
  WideArray() = default;
  /// `count` zeros.
  WideArray(Wide wide, int64_t count);
  Wide wide() const { return wide_; }
  int64_t count() const { return count_; }
  double* reals() { return reinterpret_cast<double*>(words_.get()); }
  uint64_t* words() { return words_.get(); }
  Cx* complexes() { return reinterpret_cast<Cx*>(words_.get()); }
  /// Returns the address of element `i`.
  void* at(int64_t i) { return words_.get() + i * (wide_ == Wide::Complex ? 2 : 1); }
  const void* at(int64_t i) const { return words_.get() + i * (wide_ == Wide::Complex ? 2 : 1); }

 private:
  Wide wide_ = Wide::Int;
  int64_t count_ = 0;
  std::unique_ptr<uint64_t[]> words_;
};

/// All elements of `literal`, row-major with its dimensions in `order` (a permutation).
WideArray pack(const Literal& literal, std::span<const int64_t> order);
/// In the literal's own order.
WideArray pack(const Literal& literal);
/// The way back: `literal`'s bytes from elements [first, first + count) of `array` on, to its element `to`.
void unpack(const WideArray& array, int64_t first, int64_t count, Type type, uint8_t* bytes, int64_t to);
/// A literal of `shape` from an array in its order.
Literal unpack(const WideArray& array, const Shape& shape);
/// Real parts to complex numbers and so on: every element of kind `wide`.
WideArray widen_to(WideArray array, Wide wide, Type from);

}  // namespace collet::hlo::eval
