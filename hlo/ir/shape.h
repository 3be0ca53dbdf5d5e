// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/ir/types.h"

namespace collet::hlo {

/// One tile of a layout, outermost dimension first; kCombine stands for "*".
struct Tile {
  static constexpr int64_t kCombine = INT64_MIN;
  std::vector<int64_t> dims;
  bool operator==(const Tile&) const = default;
};

struct SplitConfig {
  int64_t dimension = 0;
  std::vector<int64_t> indices;
  bool operator==(const SplitConfig&) const = default;
};

class Shape;

/// The layout of elements in memory, as in HLO text. Kept and printed; after normalize_layouts all layouts are row-major.
struct Layout {
  std::vector<int64_t> minor_to_major;
  std::string dim_level_types;  ///< the inside of D(...), as written; empty for dense
  std::vector<Tile> tiles;
  int64_t tail_padding_alignment = 1;
  Type index_type = Type::Invalid;
  Type pointer_type = Type::Invalid;
  int64_t element_size_bits = 0;
  int64_t memory_space = 0;
  std::vector<SplitConfig> splits;
  std::shared_ptr<const Shape> physical_shape;
  int64_t metadata_prefix_bytes = 0;

  bool operator==(const Layout& other) const;
  /// True if the layout is row-major and has no other properties.
  bool is_default() const;
};

/// A size that is not known: `?` in HLO text.
constexpr int64_t kUnbounded = INT64_MIN;

/// The type of a value: an array, a tuple, a token, opaque, or a buffer around a shape. Immutable, cheap to copy; copies
/// share their representation, so any thread may read them.
class Shape {
 public:
  /// An invalid shape.
  Shape() = default;
  static Shape array(Type type, std::span<const int64_t> dims);
  static Shape array(Type type, std::initializer_list<int64_t> dims) {
    return array(type, std::span<const int64_t>(dims.begin(), dims.size()));
  }
  static Shape scalar(Type type) { return array(type, {}); }
  /// `dynamic[i]`: dims[i] is an upper bound (`<=n`); kUnbounded dims are dynamic too.
  static Shape array(Type type, std::span<const int64_t> dims, const std::vector<bool>& dynamic);
  static Shape tuple(std::vector<Shape> elements);
  static Shape token();
  static Shape opaque();
  static Shape buffer(Shape inside);

  bool valid() const { return rep_ != nullptr; }
  Type type() const { return rep_ ? rep_->type : Type::Invalid; }
  bool is_tuple() const { return type() == Type::Tuple; }
  bool is_token() const { return type() == Type::TOKEN; }
  bool is_opaque() const { return type() == Type::OPAQUE; }
  bool is_buffer() const { return type() == Type::Buffer; }
  /// True if the shape has dimensions and elements of data.
  bool is_array() const;
  bool is_scalar() const { return is_array() && rank() == 0; }
  int rank() const { return rep_ ? static_cast<int>(rep_->dims.size()) : 0; }
  std::span<const int64_t> dims() const;
  int64_t dim(int i) const { return rep_->dims[static_cast<size_t>(i)]; }
  bool is_dynamic(int i) const { return !rep_->dynamic.empty() && rep_->dynamic[static_cast<size_t>(i)]; }
  /// True if there is a dynamic dimension, also inside tuples.
  bool has_dynamic() const;
  bool has_unbounded() const;
  /// The elements of a tuple; for a buffer, the shape inside it.
  std::span<const Shape> elements() const;
  const Shape& element(size_t i) const { return rep_->elements[i]; }
  /// The layout; null if none was written.
  const Layout* layout() const { return rep_ ? rep_->layout.get() : nullptr; }

  Shape with_layout(Layout layout) const;
  /// Returns the shape without layouts, also inside tuples.
  Shape without_layout() const;
  Shape with_type(Type type) const;
  Shape with_dims(std::span<const int64_t> dims) const;
  /// Returns the shape with the same dimensions, none of them dynamic.
  Shape to_static() const;

  /// Returns the product of the dimensions; 1 for a scalar, 0 for tuple, token and opaque. Saturates at INT64_MAX.
  int64_t element_count() const;
  /// Returns element_count() * bytes of an element in memory (sub-byte types: 1); the sum for tuples. Saturates.
  int64_t byte_size() const;
  /// Returns the number of arrays, tokens and opaques in it, with tuples flattened.
  int64_t leaf_count() const;
  /// True for a tuple whose elements are no tuples: element i is its leaf i. Takes constant time.
  bool is_flat_tuple() const { return rep_ && rep_->flat; }

  /// True if everything is equal, including layouts.
  bool operator==(const Shape& other) const;
  /// True if equal except for layouts.
  bool same_without_layout(const Shape& other) const;
  /// True if equal except for layouts and dynamic bounds: `<=4` and `4` agree, and `?` agrees with any size.
  bool compatible(const Shape& other) const;
  /// True for arrays of equal dimensions; element types may differ.
  bool same_dims(const Shape& other) const;

  /// Returns the shape as HLO text: "f32[2,3]{1,0}", "(f32[], s32[2])".
  std::string to_string(bool with_layout = false) const;

 private:
  struct Rep {
    Type type = Type::Invalid;
    std::vector<int64_t> dims;
    std::vector<bool> dynamic;  // empty when nothing is dynamic
    std::vector<Shape> elements;
    bool flat = false;
    std::shared_ptr<const Layout> layout;
  };
  explicit Shape(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

/// Returns the layout as HLO text, such as "{1,0:T(8,128)S(1)}".
std::string layout_to_string(const Layout& layout);

}  // namespace collet::hlo
