// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/ops/eval/lanes.h"

namespace collet::hlo::eval {

/// An array whose elements are converted to the widest type of their kind, such as int64_t or double.
class WideArray {
 public:
  WideArray() = default;
  /// Makes an array of `count` zeros.
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

/// Converts all elements of `literal`, row-major after a transposition by the permutation `order`.
WideArray pack(const Literal& literal, std::span<const int64_t> order);
/// Converts all elements of `literal` in their order.
WideArray pack(const Literal& literal);
/// Converts elements [first, first + count) of `array` back to `type` and stores them in `bytes` from element `to` on.
void unpack(const WideArray& array, int64_t first, int64_t count, Type type, uint8_t* bytes, int64_t to);
/// Converts an array back to a literal of `shape`.
Literal unpack(const WideArray& array, const Shape& shape);
/// Converts the elements to kind `wide`, for example real numbers to complex ones.
WideArray widen_to(WideArray array, Wide wide, Type from);

}  // namespace collet::hlo::eval
