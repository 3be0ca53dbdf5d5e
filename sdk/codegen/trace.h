// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From graph to tape: what must be computed for one element of a value.

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "sdk/codegen/graph.h"
#include "sdk/codegen/tape.h"

namespace collet::codegen {

/// Where an element is: one index per dimension, or, where `flat`, one linear index.
struct Position {
  bool flat = false;
  std::vector<Index> at;

  Index& operator[](size_t d) { return at[d]; }
  const Index& operator[](size_t d) const { return at[d]; }
  size_t size() const { return at.size(); }
  auto operator<=>(const Position&) const = default;
};

/// Writes the tape of one kernel. Values for which `leaf` holds are read from memory; all others are computed in place.
class Tracer {
 public:
  Tracer(const Graph& graph, Kernel& kernel, std::function<bool(ValueId)> leaf)
      : graph_(graph), kernel_(kernel), leaf_(std::move(leaf)) {}

  /// The element of `v` at `at`; where `mask` is false nothing is read.
  TapeId value(ValueId v, const Position& at, TapeId mask = kNoTape);

  /// Reads an element from memory.
  TapeId load(ValueId v, const Position& at, TapeId mask);

  /// The same, by linear index.
  TapeId load_at(ValueId v, const Index& index, TapeId mask);
  /// From now on nothing is read where `mask` is false.
  void guard(TapeId mask) { guard_ = mask; }

  /// The number by which the kernel knows the memory of `v`.
  uint32_t buffer(ValueId v);

  /// Memory that is written: never shared with one that is read.
  uint32_t output(ValueId v);

  /// Some value could not be computed in this loop nest: a reduction over other loops, or at another place.
  bool failed() const { return failed_; }
  /// Whether `v` was asked for at more than one place.
  bool scattered(ValueId v) const;

  /// What the kernel's buffers are.
  const std::vector<ValueId>& buffers() const { return buffers_; }

  TapeId constant(uint32_t type, const void* data);
  TapeId integer(uint32_t type, int64_t x);
  TapeId index_value(const Index& index);
  /// 0 <= index < size; kNoTape where that always holds.
  TapeId in_range(const Index& index, int64_t size);
  TapeId both(TapeId a, TapeId b);
  TapeId op(uint32_t opcode, uint32_t type, std::vector<TapeId> args, int64_t a = 0, int64_t b = 0);
  TapeId convert(TapeId x, uint32_t type);
  /// A start index: `x` clamped into [0, limit], as an index.
  Index start(TapeId x, int64_t limit);
  Index term(TapeId x);
  /// Quotient and remainder by `by`, affine where that is possible.
  void divide(const Index& index, int64_t by, Index& quotient, Index& remainder);
  /// `at` with one index per dimension.
  Position spread(const Position& at, const Dims& dims);
  /// The linear index of a position.
  Index linear(const Position& at, const Dims& dims) const;
  /// The position whose linear index is `index`.
  Position delinearize(Index index, const Dims& dims);
  /// The tape of a scalar block as the body of a reduction or update.
  ScalarBody body(const Block& block);
  /// The results of a scalar block for given arguments, on this tape.
  std::vector<TapeId> inlined(const Block& block, const std::vector<TapeId>& arguments);

 private:
  TapeId emit(Instruction instruction);
  TapeId compute(const Node& node, ValueId v, const Position& at, TapeId mask);
  TapeId elementwise(const Node& node, ValueId v, const Position& at, TapeId mask);
  TapeId pad(const Node& node, const Position& at, TapeId mask);
  TapeId concatenate(const Node& node, const Position& at, TapeId mask);
  TapeId gather(const Node& node, const Position& at, TapeId mask);
  TapeId reduce(const Node& node, uint32_t result, const Position& at);
  bool match_loops(const Node& node, const Dims& reduced, const Position& at, Position& from) const;
  std::pair<int64_t, int64_t> range(const Index& index) const;

  const Graph& graph_;
  Kernel& kernel_;
  std::function<bool(ValueId)> leaf_;
  std::map<Instruction, TapeId> known_;
  std::map<std::tuple<ValueId, Position, TapeId>, TapeId> memo_;
  TapeId guard_ = kNoTape;
  bool failed_ = false;
  std::map<NodeId, int64_t> reductions_;
  std::vector<ValueId> buffers_;
  std::map<ValueId, uint32_t> buffer_of_;
};

/// The position of loop variables first, first + 1, ... for `rank` dimensions.
Position loop_position(size_t first, size_t rank);

}  // namespace collet::codegen
