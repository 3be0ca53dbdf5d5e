// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// Appends instructions to a computation, with short functions for the ops that rewrites use.
///
/// Errors are remembered: an instruction that cannot be built is InstrId::None, everything built from it is None too,
/// and status() returns the first error. A rewrite therefore need not check each step; it asks for status() once at its
/// end.
class Builder {
 public:
  Builder(Module& module, CompId computation) : module_(module), computation_(computation) {}

  Module& module() { return module_; }
  CompId computation() const { return computation_; }
  const Status& status() const { return status_; }
  /// Remembers the first error; returns None.
  InstrId fail(Status status);
  /// Instructions that are built from now on carry the metadata of `instr`.
  void set_origin(const Instruction* instr);

  const Shape& shape(InstrId id) const;
  Type type(InstrId id) const { return shape(id).type(); }
  std::span<const int64_t> dims(InstrId id) const { return shape(id).dims(); }
  int rank(InstrId id) const { return shape(id).rank(); }

  /// Builds any op; the caller gives the result's shape.
  InstrId op(Op op, const Shape& shape, std::span<const InstrId> operands, const void* attrs = nullptr,
             std::span<const CompId> called = {});
  InstrId op(Op o, const Shape& shape, std::initializer_list<InstrId> operands, const void* attrs = nullptr,
             std::span<const CompId> called = {}) {
    return op(o, shape, std::span(operands.begin(), operands.size()), attrs, called);
  }
  /// Builds any op; the shape of the result is inferred.
  InstrId inferred(Op op, std::span<const InstrId> operands, const void* attrs = nullptr,
                   std::span<const CompId> called = {}, const Shape* declared = nullptr);

  // Constants. A scalar or its broadcast is created once per builder and then reused.
  InstrId constant(Literal value);
  InstrId scalar(Type type, double value, double imaginary = 0);
  InstrId scalar_int(Type type, int64_t value);
  /// A scalar broadcast to the dimensions of `x`, of `x`'s type.
  InstrId like(InstrId x, double value) { return fill(shape(x), value); }
  InstrId like_int(InstrId x, int64_t value) { return fill_int(shape(x), value); }
  InstrId fill(const Shape& shape, double value, double imaginary = 0);
  InstrId fill_int(const Shape& shape, int64_t value);
  /// A rank-1 or higher constant of integers.
  InstrId ints(Type type, std::span<const int64_t> values);

  // Elementwise; operands of equal dimensions.
  InstrId unary(Op op, InstrId x);
  InstrId binary(Op op, InstrId a, InstrId b);
  InstrId compare(InstrId a, Direction direction, InstrId b, CompareType type = CompareType::DEFAULT);
  InstrId select(InstrId predicate, InstrId on_true, InstrId on_false);
  /// Converts `x` to `type`; returns `x` itself if it has that type already.
  InstrId convert(InstrId x, Type type);
  /// The type of positions in arrays that this builder makes: s32, unless set.
  Type index_type() const { return index_type_; }
  void set_index_type(Type type) { index_type_ = type; }
  /// Returns integers of any type clamped to [0, most], as index_type(), which must have `most`.
  InstrId clamped_index(InstrId index, int64_t most);
  /// Returns the scalars as a vector, broadcast along dimension `along` of an array of those dimensions; the first one, broadcast, if
  /// `along` is not one of them.
  InstrId along_dimension(std::span<const InstrId> scalars, const std::vector<int64_t>& dims, int64_t along);
  /// Reinterprets the bits as a type of the same width.
  InstrId bitcast_convert(InstrId x, Type type);
  InstrId add(InstrId a, InstrId b) { return binary(Op::ADD, a, b); }
  InstrId sub(InstrId a, InstrId b) { return binary(Op::SUBTRACT, a, b); }
  InstrId mul(InstrId a, InstrId b) { return binary(Op::MULTIPLY, a, b); }
  InstrId div(InstrId a, InstrId b) { return binary(Op::DIVIDE, a, b); }
  InstrId max(InstrId a, InstrId b) { return binary(Op::MAXIMUM, a, b); }
  InstrId min(InstrId a, InstrId b) { return binary(Op::MINIMUM, a, b); }
  InstrId and_(InstrId a, InstrId b) { return binary(Op::AND, a, b); }
  InstrId or_(InstrId a, InstrId b) { return binary(Op::OR, a, b); }
  InstrId xor_(InstrId a, InstrId b) { return binary(Op::XOR, a, b); }
  InstrId not_(InstrId a) { return unary(Op::NOT, a); }
  InstrId neg(InstrId a) { return unary(Op::NEGATE, a); }
  InstrId abs(InstrId a) { return unary(Op::ABS, a); }
  InstrId shl(InstrId a, int64_t bits) { return binary(Op::SHIFT_LEFT, a, like_int(a, bits)); }
  InstrId shr(InstrId a, int64_t bits) { return binary(Op::SHIFT_RIGHT_LOGICAL, a, like_int(a, bits)); }
  /// a * b + c with two roundings (no fused multiply-add).
  InstrId mad(InstrId a, InstrId b, InstrId c) { return add(mul(a, b), c); }

  // Data movement. If the op would change nothing, `x` itself is returned.
  InstrId reshape(InstrId x, std::span<const int64_t> dims);
  InstrId reshape(InstrId x, std::initializer_list<int64_t> dims) {
    return reshape(x, std::span<const int64_t>(dims.begin(), dims.size()));
  }
  InstrId transpose(InstrId x, std::span<const int64_t> permutation);
  /// Dimension i of `x` becomes dimension mapping[i] of the result, whose sizes are `dims`.
  InstrId broadcast(InstrId x, std::span<const int64_t> dims, std::span<const int64_t> mapping);
  /// Returns the values, scalars among them broadcast to `dims`.
  std::vector<InstrId> broadcast_scalars(std::span<const InstrId> values, std::span<const int64_t> dims);
  InstrId slice(InstrId x, std::span<const int64_t> start, std::span<const int64_t> limit,
                std::span<const int64_t> stride = {});
  /// Takes the elements [start, limit) of one dimension.
  InstrId slice_dim(InstrId x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
  InstrId pad(InstrId x, InstrId value, std::span<const int64_t> low, std::span<const int64_t> high,
              std::span<const int64_t> interior = {});
  /// Builds a pad whose edges may be negative: what negative edges remove is sliced away first, so that no intermediate
  /// array is larger than the result. If nothing of `x` is left, the result is a broadcast of `value`.
  InstrId pad_and_cut(InstrId x, InstrId value, std::span<const int64_t> low, std::span<const int64_t> high,
                      std::span<const int64_t> interior = {});
  InstrId pad_dim(InstrId x, InstrId value, int64_t dim, int64_t low, int64_t high, int64_t interior = 0);
  InstrId concatenate(std::span<const InstrId> xs, int64_t dim);
  InstrId reverse(InstrId x, std::span<const int64_t> dims);
  InstrId iota(const Shape& shape, int64_t dim);
  InstrId dynamic_slice(InstrId x, std::span<const InstrId> starts, std::span<const int64_t> sizes);
  InstrId dynamic_update_slice(InstrId x, InstrId update, std::span<const InstrId> starts);

  // Structures.
  /// Reduces `x` over `dims`, combining by a binary op (add, multiply, maximum, minimum, and, or, xor).
  InstrId reduce(InstrId x, InstrId init, std::span<const int64_t> dims, Op combine);
  /// Reduces `x` over `dims`, with the neutral element of `combine` as the initial value.
  InstrId reduce(InstrId x, std::span<const int64_t> dims, Op combine);
  InstrId dot(InstrId a, InstrId b, const DotAttrs& attrs, Type result);
  InstrId tuple(std::span<const InstrId> xs);
  InstrId get(InstrId tuple, int64_t index);
  /// Builds a while over a flat tuple of `state`. Both computations take that tuple; the body returns the next one and
  /// the condition returns a pred.
  InstrId loop(CompId condition, CompId body, std::span<const InstrId> state);
  /// Runs `body` `trips` times. It gets a builder in the body, the iteration number (an s32 scalar, from 0) and the
  /// state, and returns the new state. It cannot use values from outside the loop.
  using LoopBody = std::function<std::vector<InstrId>(Builder& b, InstrId i, std::span<const InstrId> state)>;
  std::vector<InstrId> counted_loop(int64_t trips, std::span<const InstrId> state, const LoopBody& body);
  /// Returns the computation `op(a, b)` on scalars of `type`; it is created once per builder, op and type.
  CompId combiner(Op op, Type type);
  /// The neutral element of `combine`, for example 0 for add, 1 for multiply, -inf or the least integer for maximum.
  Literal identity(Op combine, Type type);

 private:
  InstrId filled(const Shape& shape, Literal scalar);
  const Extras* extras();
  template <typename T>
  T* make(const T& value) {
    return module_.arena().make<T>(value);
  }

  Module& module_;
  CompId computation_;
  Type index_type_ = Type::S32;
  Status status_;
  const Metadata* origin_ = nullptr;
  const Extras* extras_ = nullptr;  ///< the metadata as a record of the module; created with the first instruction
  std::multimap<uint64_t, InstrId> scalars_;
  std::map<std::pair<InstrId, std::vector<int64_t>>, InstrId> fills_;
  std::map<std::pair<Op, Type>, CompId> combiners_;
};

}  // namespace collet::hlo
