// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"

namespace collet::hlo {

/// A value on the host: the data of an array, dense and row-major, with one byte per element for sub-byte types; or a
/// tuple of values. Copies share the data. Only a sole owner may write: see mutable_bytes().
class Literal {
 public:
  Literal() = default;
  /// Returns zeros. For dynamic dimensions the bound is allocated.
  static Literal zeros(const Shape& shape);
  /// Returns a literal whose data is not initialised.
  static Literal uninitialized(const Shape& shape);
  /// Copies `bytes`, which must be shape.byte_size() long.
  static Literal from_bytes(const Shape& shape, const void* bytes);
  /// Returns a view of memory that `owner` keeps alive.
  static Literal borrow(const Shape& shape, const void* bytes, std::shared_ptr<const void> owner = {});
  static Literal tuple(std::vector<Literal> elements);
  static Literal token() { return zeros(Shape::token()); }
  /// Returns a scalar of `type`, rounded or wrapped to it.
  static Literal scalar(Type type, double value);
  static Literal scalar_int(Type type, int64_t value);
  /// Returns a rank-1 array of s64.
  static Literal ints(std::span<const int64_t> values);

  bool valid() const { return shape_.valid(); }
  const Shape& shape() const { return shape_; }
  Type type() const { return shape_.type(); }
  int64_t element_count() const { return shape_.element_count(); }
  int64_t byte_size() const { return shape_.byte_size(); }
  const uint8_t* bytes() const { return data_.get(); }
  /// Returns what keeps the bytes, which nobody changes as long as there are two owners; null if they are borrowed.
  std::shared_ptr<const void> owner() const { return borrowed_ ? nullptr : data_; }
  /// Returns the data for writing; copies it first if it is shared or borrowed.
  uint8_t* mutable_bytes();
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(data_.get());
  }
  template <typename T>
  T* mutable_data() {
    return reinterpret_cast<T*>(mutable_bytes());
  }
  std::span<const Literal> elements() const { return elements_; }
  const Literal& element(size_t i) const { return elements_[i]; }
  std::vector<Literal>& mutable_elements() { return elements_; }

  /// Returns the run-time sizes if they differ from the shape's bounds; empty otherwise.
  std::span<const int64_t> dynamic_sizes() const { return dynamic_sizes_; }
  void set_dynamic_sizes(std::vector<int64_t> sizes) { dynamic_sizes_ = std::move(sizes); }

  /// Returns the same bytes with another shape of equal byte size.
  Literal reshaped(const Shape& shape) const;

  /// Returns element `i` in row-major order as a double (complex: the real part; pred: 0 or 1; s64 and u64 may be
  /// rounded).
  double as_double(int64_t i) const;
  /// Returns the imaginary part of element `i`; 0 for other types.
  double imaginary(int64_t i) const;
  /// Returns integers and pred exactly, u64 as its bits, and floats truncated.
  int64_t as_int(int64_t i) const;
  /// Stores with one rounding to nearest even (floats), wrapping (integers), or != 0 (pred).
  void set_double(int64_t i, double value, double imaginary = 0);
  void set_int(int64_t i, int64_t value);

  /// True for equal shapes (layouts aside) and equal bytes.
  bool operator==(const Literal& other) const;
  /// True if all elements have the same bytes as the first; false for an empty array or a tuple.
  bool is_splat() const;
  uint64_t hash() const;

 private:
  Shape shape_;
  std::shared_ptr<uint8_t> data_;
  bool borrowed_ = false;
  std::vector<Literal> elements_;
  std::vector<int64_t> dynamic_sizes_;
};

}  // namespace collet::hlo
