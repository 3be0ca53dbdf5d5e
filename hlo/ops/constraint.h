// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/ops/rules.h"

/// \file
/// Helpers for the inference and verification rules of all op families: errors that name the violated constraint, sizes
/// that may be unknown, arithmetic that detects overflow, and the signatures of called computations. For hlo/ops and
/// hlo/verify.

namespace collet::hlo {

/// A size in a message: "3", or "?" if it is not known.
struct Size {
  int64_t value;
};

namespace detail {
void append_part(std::string& out, std::string_view text);
void append_part(std::string& out, int64_t number);
void append_part(std::string& out, Size size);
void append_part(std::string& out, const Shape& shape);
void append_part(std::string& out, Type type);
void append_part(std::string& out, std::span<const int64_t> numbers);
inline void append_part(std::string& out, const char* text) {
  append_part(out, std::string_view(text));
}
inline void append_part(std::string& out, size_t number) {
  append_part(out, static_cast<int64_t>(number));
}
inline void append_part(std::string& out, int number) {
  append_part(out, static_cast<int64_t>(number));
}
inline void append_part(std::string& out, const Dims& numbers) {
  append_part(out, std::span<const int64_t>(numbers));
}
}  // namespace detail

/// Concatenates the parts as text: strings, numbers, shapes, types, lists.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (detail::append_part(out, parts), ...);
  return out;
}

/// Returns an error such as "dot C10: contracting sizes differ: ..."; with an empty label "dot: ...". The labels are
/// those of constraints in StableHLO's specification; rules that only HLO has have none.
template <typename... Parts>
Status broken(Op op, std::string_view label, const Parts&... parts) {
  std::string out(op_info(op).text);
  if (!label.empty()) out.append(" ").append(label);
  out += ": ";
  (detail::append_part(out, parts), ...);
  return invalid_argument(std::move(out));
}

/// True if the sizes are equal, or one of them is not known.
inline bool sizes_agree(int64_t a, int64_t b) {
  return a == b || a == kUnbounded || b == kUnbounded;
}
/// True if the ranks are equal and the sizes agree; types are not compared.
bool dims_agree(const Shape& a, const Shape& b);
/// True if the types are equal, or both are floats.
inline bool types_agree(Type a, Type b) {
  return a == b || (is_float(a) && is_float(b));
}
/// Returns the type of a result of mixed operands: the one with more range; if equal, more precision, then more bits,
/// then the signed one.
Type wider_type(Type a, Type b);

/// Sums and products of untrusted numbers; they return false if the result overflows. kUnbounded must not be passed.
inline bool add_fits(int64_t a, int64_t b, int64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}
inline bool multiply_fits(int64_t a, int64_t b, int64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// True if `size` plus either edge of padding does not overflow, so that positions can be counted from both ends.
inline bool edges_fit(int64_t size, int64_t low, int64_t high) {
  int64_t sum;
  return low != INT64_MIN && high != INT64_MIN && add_fits(size, low, sum) && add_fits(size, high, sum);
}

/// Collects a list of dimensions.
class DimList {
 public:
  void push(int64_t size, bool dynamic) {
    sizes_.push_back(size);
    dynamic_.push_back(dynamic || size == kUnbounded);
  }
  /// Appends dimension `i` of `shape`, with its bound if it is dynamic.
  void push(const Shape& shape, int64_t i) {
    push(shape.dim(static_cast<int>(i)), shape.is_dynamic(static_cast<int>(i)));
  }
  void set(size_t i, int64_t size, bool dynamic) {
    sizes_[i] = size;
    dynamic_[i] = dynamic || size == kUnbounded;
  }
  size_t size() const { return sizes_.size(); }
  int64_t operator[](size_t i) const { return sizes_[i]; }
  bool is_dynamic(size_t i) const { return dynamic_[i]; }
  static DimList of(const Shape& shape);
  Shape shape(Type type) const { return Shape::array(type, sizes_, dynamic_); }

 private:
  std::vector<int64_t> sizes_;
  std::vector<bool> dynamic_;
};

/// Returns an array of `type` with the dimensions of `shape`, including dynamic ones.
Shape with_dims_of(const Shape& shape, Type type);
/// Combines two shapes that agree: a dimension is dynamic if it is so in either, and its size is the known one.
Shape join_dims(const Shape& a, const Shape& b, Type type);
/// Returns the index of the first number outside of [0, limit), or -1.
int64_t first_outside(std::span<const int64_t> numbers, int64_t limit);
/// True if a number occurs twice.
bool has_repeats(std::span<const int64_t> numbers);
bool contains(std::span<const int64_t> numbers, int64_t number);
/// True if the numbers are strictly ascending.
bool ascending(std::span<const int64_t> numbers);

/// Parameters and result of a computation.
struct Signature {
  std::vector<const Shape*> parameters;
  const Shape* result = nullptr;
  std::string_view name;
};
/// Returns the signature; an error if `computation` is None, has no root or lacks a parameter.
Expected<Signature> signature(const Module& module, Op op, CompId computation);
/// Returns an error if operand `i` is not an array; the message calls it `role`, or by its number.
Status expect_array(const InferInput& in, size_t i, std::string_view role = {});
/// Checks the operands of reduce and its like: inputs of one shape, then as many initial values. Returns the inputs' types. The
/// labels are those of the rules for the number of operands and for the shapes.
Expected<std::vector<Type>> reduced_types(const InferInput& in, std::string_view count_label,
                                          std::string_view shape_label);
/// True if `shape` is an array of rank 0, of `type` unless that is Invalid.
bool is_scalar_of(const Shape& shape, Type type = Type::Invalid);
/// Checks a computation that combines n values and n values to n values, such as that of reduce.
Status check_reducer(const Module& module, Op op, std::string_view label, CompId computation,
                     std::span<const Type> input_types, std::span<const Shape* const> initial);
/// Labels of the constraints on a window, in the order size, stride, base dilation, window dilation, rank.
struct WindowLabels {
  std::string_view size, stride, base_dilation, window_dilation, rank;
};
Expected<Shape> windows_over(Op op, const Shape& base, const Window& window, Type type, const WindowLabels& labels);

/// Checks output_to_operand_aliasing: the indices must exist and the shapes agree.
Status check_aliasing(const Module& module, const Instruction& instr, List<const AliasEntry> aliasing);
/// Returns the part of `shape` at `index`; null if there is none.
const Shape* subshape(const Shape& shape, std::span<const int64_t> index);

/// True if the shapes are equal except for layouts and bounds and, if `mixed`, except for the precision of floats.
bool shapes_match(const Shape& a, const Shape& b, bool mixed);

/// Declares the functions of all families, to which rules.cc refers by the names in ops.def.
#define COLLET_FAMILIES(X) \
  X(elementwise)           \
  X(convert)               \
  X(movement)              \
  X(dot)                   \
  X(convolution)           \
  X(reduce)                \
  X(window)                \
  X(indexing)              \
  X(sort)                  \
  X(rng)                   \
  X(linalg)                \
  X(fft)                   \
  X(batch_norm)            \
  X(control_flow)          \
  X(structure)             \
  X(custom_call)           \
  X(collective)            \
  X(asynchronous)          \
  X(host_io)               \
  X(dynamic_shape)

/// Like verify_instruction; with `mixed` the declared floats may have another precision than the inferred ones.
Status verify_instruction(const Module& module, const Instruction& instr, bool mixed);

#define COLLET_DECLARE_FAMILY(family)                   \
  Expected<Shape> infer_##family(const InferInput& in); \
  Status verify_##family(const Module& module, const Instruction& instr);
COLLET_FAMILIES(COLLET_DECLARE_FAMILY)
#undef COLLET_DECLARE_FAMILY

}  // namespace collet::hlo
