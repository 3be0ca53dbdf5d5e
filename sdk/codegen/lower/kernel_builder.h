// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From graph to kernel IR: what must be computed for one element of a value.

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

inline bool contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// Where an element is: one index per dimension, or, where `flat`, one linear index.
struct Position {
  bool flat = false;
  std::vector<Index> at;

  Index& operator[](size_t d) { return at[d]; }
  const Index& operator[](size_t d) const { return at[d]; }
  size_t size() const { return at.size(); }
  auto operator<=>(const Position&) const = default;
};

/// Writes the expressions of one kernel. Values for which `is_input` holds are read from memory; all others are computed in
/// place.
class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, Kernel& kernel, std::function<bool(ValueId)> is_input)
      : graph_(graph), kernel_(kernel), is_input_(std::move(is_input)) {}

  /// The element of `v` at `at`; where `mask` is false nothing is read.
  ExprId value(ValueId v, const Position& at, ExprId mask = kNoExpr);

  /// Reads an element from memory.
  ExprId load(ValueId v, const Position& at, ExprId mask);

  /// The same, by linear index.
  ExprId load_at(ValueId v, const Index& index, ExprId mask);
  /// From now on nothing is read where `mask` is false.
  void guard(ExprId mask) { guard_ = mask; }

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

  ExprId constant(uint32_t type, const void* data);
  /// The element of a constant of equal ones; zero where the mask is false, as of a load.
  ExprId masked_constant(const Value& value, ExprId mask);
  ExprId integer(uint32_t type, int64_t x);
  ExprId index_value(const Index& index);
  /// 0 <= index < size; kNoExpr where that always holds.
  ExprId in_range(const Index& index, int64_t size);
  ExprId both(ExprId a, ExprId b);
  ExprId op(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a = 0, int64_t b = 0);
  ExprId convert(ExprId x, uint32_t type);
  /// A start index: `x` clamped into [0, limit], as an index.
  Index start(ExprId x, int64_t limit);
  Index term(ExprId x);
  /// Quotient and remainder by `by`, affine where that is possible.
  void divide(const Index& index, int64_t by, Index& quotient, Index& remainder);
  /// `at` with one index per dimension.
  Position spread(const Position& at, const Dims& dims);
  /// The linear index of a position.
  Index linear(const Position& at, const Dims& dims) const;
  /// The position whose linear index is `index`.
  Position delinearize(Index index, const Dims& dims);
  /// The expressions of a scalar block as the body of a reduction or update.
  ScalarBody body(const Block& block);
  /// What `compute` makes of arguments of `types`, as a body.
  using ComputeBody = std::function<std::vector<ExprId>(KernelBuilder&, const std::vector<ExprId>&)>;
  ScalarBody body(const std::vector<uint32_t>& types, const ComputeBody& compute);
  /// The results of a scalar block for given arguments, in this kernel; where `mask` is false nothing in it need end.
  std::vector<ExprId> inlined(const Block& block, const std::vector<ExprId>& arguments, ExprId mask = kNoExpr);
  /// Adds an instruction, or finds one like it.
  ExprId emit(Expr instruction);

  /// Result `result` of a while whose condition and body are scalar blocks.
  ExprId loop_result(const Node& node, uint32_t result) { return while_loop(node, result, kNoExpr); }

 private:
  /// A scalar block that is being computed. Its arguments are expressions, or values of the block around it.
  struct Frame {
    struct Argument {
      ExprId scalar = kNoExpr;
      ValueId value = kNone;
    };
    const Frame* around = nullptr;
    const KernelBuilder* owner = nullptr;  ///< whose expressions the arguments are
    std::map<ValueId, Argument> arguments;
    ExprId active = kNoExpr;  ///< a pred among these: where it is false, nobody asks for the block's results
  };
  /// Turns a point of a fold and what is folded so far into what is folded with it.
  using FoldStep = std::function<std::vector<ExprId>(KernelBuilder&, const Index&, const std::vector<ExprId>&)>;

  // Blocks whose values are computed element by element: bodies of map, reduce and their kind.
  ExprId framed(ValueId v, const Position& at, ExprId mask);
  ExprId in_frame(const Frame* frame, ValueId v, const Position& at, ExprId mask = kNoExpr);
  Frame& open_frame();
  ExprId active();
  ExprId lookup(ValueId v, const Index& index, ExprId mask);
  /// An expression of `from`, one of the builders around this one.
  ExprId captured(const KernelBuilder& from, ExprId t);
  /// An index of the builder around this one.
  Index captured(KernelBuilder& from, const Index& index);
  ExprId structured(const Node& node, ValueId v, const Position& at, ExprId mask);
  ExprId conditional(const Node& node, uint32_t result, const Position& at, ExprId mask);
  ExprId while_loop(const Node& node, uint32_t result, ExprId mask);
  ExprId nested_reduce(const Node& node, uint32_t result, const Position& at);
  ExprId nested_window(const Node& node, uint32_t result, const Position& at);
  ExprId nested_dot(const Node& node, const Position& at);
  ExprId nested_convolution(const Node& node, const Position& at);
  ExprId update_slice(const Node& node, const Position& at, ExprId mask);
  ExprId part(ExprId loop, const std::vector<uint32_t>& types, size_t i);
  /// Few points are written out, many are a loop.
  std::vector<ExprId> fold(int64_t points, const std::vector<ExprId>& inits, const FoldStep& step);

  ExprId compute(const Node& node, ValueId v, const Position& at, ExprId mask);
  ExprId elementwise(const Node& node, ValueId v, const Position& at, ExprId mask);
  ExprId pad(const Node& node, const Position& at, ExprId mask);
  ExprId concatenate(const Node& node, const Position& at, ExprId mask);
  ExprId gather(const Node& node, const Position& at, ExprId mask);
  ExprId reduce(const Node& node, uint32_t result, const Position& at);
  bool match_loops(const Node& node, const Dims& reduced, const Position& at, Position& from) const;
  std::pair<int64_t, int64_t> range(const Index& index) const;

  const Graph& graph_;
  Kernel& kernel_;
  std::function<bool(ValueId)> is_input_;
  std::map<Expr, ExprId> known_;
  std::map<std::tuple<ValueId, Position, ExprId>, ExprId> memo_;
  ExprId guard_ = kNoExpr;
  bool failed_ = false;
  const Frame* frame_ = nullptr;
  std::shared_ptr<std::deque<Frame>> frames_ = std::make_shared<std::deque<Frame>>();
  std::map<std::tuple<const Frame*, ValueId, Position, ExprId>, ExprId> framed_;
  std::map<std::pair<const Frame*, BlockId>, const Frame*> branches_;
  KernelBuilder* outer_ = nullptr;  ///< of the loop that this one is the body of
  std::vector<ExprId> captures_;    ///< of these expressions: what comes as further arguments
  std::map<ExprId, ExprId> local_;  ///< and what they are here
  uint32_t own_arguments_ = 0;
  std::map<NodeId, int64_t> reductions_;
  std::vector<ValueId> buffers_;
  std::map<ValueId, uint32_t> buffer_of_;
};

/// The position of loop variables first, first + 1, ... for `rank` dimensions.
Position loop_position(size_t first, size_t rank);

}  // namespace collet::codegen
