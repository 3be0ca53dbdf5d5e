// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hlo/ops/evaluate.h"

/// \file
/// Views of arrays as base + sum of index * stride, and iteration over index spaces.

namespace collet::hlo::eval {

using Ints = std::vector<int64_t>;

/// Returns row-major strides, in elements.
Ints row_major_strides(std::span<const int64_t> dims);
/// Returns the product; 1 for an empty list.
int64_t product(std::span<const int64_t> dims);

/// Copies elements of `bytes` bytes over the index space `dims`. Strides are in elements, and may be negative or 0.
void copy_strided(std::span<const int64_t> dims, const uint8_t* from, std::span<const int64_t> from_strides,
                  uint8_t* to, std::span<const int64_t> to_strides, int bytes);
/// Does the same, prepared once for many copies with equal sizes and strides.
class StridedCopy {
 public:
  StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> from_strides, std::span<const int64_t> to_strides,
              int bytes);
  void operator()(const uint8_t* from, uint8_t* to) const;

 private:
  Ints dims_;
  std::vector<Ints> strides_;
  int64_t inner_ = 1, from_inner_ = 1, to_inner_ = 1;
  int bytes_;
  bool empty_ = false;
};
/// Fills `count` elements with the one at `value`.
void fill(uint8_t* to, int64_t count, const uint8_t* value, int bytes);

/// Iterates over an index space in row-major order, and updates the offsets of several arrays that are indexed by it.
class IndexIterator {
 public:
  /// `strides[k]` are the strides of array k.
  IndexIterator(std::span<const int64_t> dims, std::vector<Ints> strides);
  bool done() const { return done_; }
  int64_t offset(size_t k) const { return offsets_[k]; }
  std::span<const int64_t> index() const { return index_; }
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      if (++index_[d] < dims_[d]) {
        for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += strides_[k][d];
        return;
      }
      for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] -= strides_[k][d] * (dims_[d] - 1);
      index_[d] = 0;
    }
    done_ = true;
  }
  /// Resets all indices to 0.
  void reset();
  /// Moves to the given row-major position.
  void seek(int64_t position);

 private:
  Ints dims_, index_, offsets_;
  std::vector<Ints> strides_;
  bool done_ = false;
};

/// Drops dimensions of size 1 and merges neighbours that are contiguous in every array.
void merge_dims(Ints& dims, std::vector<Ints>& strides);

/// Calls work(begin, end) for parts of [0, count), in several threads if the context allows it and `cost` makes it
/// worthwhile. `cost` is the number of elements or products, of about a nanosecond each.
void parallel(const EvalContext& context, int64_t count, int64_t cost,
              const std::function<void(int64_t, int64_t)>& work);

/// Returns RESOURCE_EXHAUSTED if a value would need more memory than the machine has.
Status check_size(const Shape& shape);

}  // namespace collet::hlo::eval
