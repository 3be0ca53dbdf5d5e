// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From graph to tape: what must be computed for one element of a value.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
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
  /// What `compute` makes of arguments of `types`, as a body.
  using ComputeBody = std::function<std::vector<TapeId>(Tracer&, const std::vector<TapeId>&)>;
  ScalarBody body(const std::vector<uint32_t>& types, const ComputeBody& compute);
  /// The results of a scalar block for given arguments, on this tape; where `mask` is false nothing in it need end.
  std::vector<TapeId> inlined(const Block& block, const std::vector<TapeId>& arguments, TapeId mask = kNoTape);
  /// Adds an instruction, or finds one like it.
  TapeId emit(Instruction instruction);

 private:
  /// A scalar block that is being computed. Its arguments are scalars of a tape, or values of the block around it.
  struct Frame {
    struct Argument {
      TapeId scalar = kNoTape;
      ValueId value = kNone;
    };
    const Frame* around = nullptr;
    const Tracer* owner = nullptr;  ///< whose tape has the scalars
    std::map<ValueId, Argument> arguments;
    TapeId active = kNoTape;  ///< a pred of that tape: where it is false, nobody asks for the block's results
  };
  /// Turns a point of a fold and what is folded so far into what is folded with it.
  using FoldStep = std::function<std::vector<TapeId>(Tracer&, const Index&, const std::vector<TapeId>&)>;

  // Blocks whose values are computed element by element: bodies of map, reduce and their kind.
  TapeId framed(ValueId v, const Position& at, TapeId mask);
  TapeId in_frame(const Frame* frame, ValueId v, const Position& at, TapeId mask = kNoTape);
  Frame& open_frame();
  TapeId active();
  TapeId lookup(ValueId v, const Index& index, TapeId mask);
  /// A value of the tape `from`, one of those around this one.
  TapeId captured(const Tracer& from, TapeId t);
  /// An index of the tape around this one.
  Index captured(Tracer& from, const Index& index);
  TapeId structured(const Node& node, ValueId v, const Position& at, TapeId mask);
  TapeId conditional(const Node& node, uint32_t result, const Position& at, TapeId mask);
  TapeId while_loop(const Node& node, uint32_t result, TapeId mask);
  TapeId nested_reduce(const Node& node, uint32_t result, const Position& at);
  TapeId nested_window(const Node& node, uint32_t result, const Position& at);
  TapeId nested_dot(const Node& node, const Position& at);
  TapeId nested_convolution(const Node& node, const Position& at);
  TapeId update_slice(const Node& node, const Position& at, TapeId mask);
  TapeId part(TapeId loop, const std::vector<uint32_t>& types, size_t i);
  /// Few points are written out, many are a loop.
  std::vector<TapeId> fold(int64_t points, const std::vector<TapeId>& inits, const FoldStep& step);

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
  const Frame* frame_ = nullptr;
  std::shared_ptr<std::deque<Frame>> frames_ = std::make_shared<std::deque<Frame>>();
  std::map<std::tuple<const Frame*, ValueId, Position, TapeId>, TapeId> framed_;
  std::map<std::pair<const Frame*, BlockId>, const Frame*> branches_;
  Tracer* outer_ = nullptr;         ///< whose tape has the loop that this one is the body of
  std::vector<TapeId> captures_;    ///< of that tape: what comes as further arguments
  std::map<TapeId, TapeId> local_;  ///< and what they are here
  uint32_t own_arguments_ = 0;
  std::map<NodeId, int64_t> reductions_;
  std::vector<ValueId> buffers_;
  std::map<ValueId, uint32_t> buffer_of_;
};

/// The position of loop variables first, first + 1, ... for `rank` dimensions.
Position loop_position(size_t first, size_t rank);

}  // namespace collet::codegen
