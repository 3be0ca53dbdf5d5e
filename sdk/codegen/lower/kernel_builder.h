// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// KernelBuilder lowers the graph to kernel IR: it adds the expressions that compute one element of a value.

#include <collet/codegen/kernel.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

inline bool contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// The position of an element: one index per dimension or, if `flat`, one linear index.
struct Position {
  bool flat = false;
  std::vector<Index> at;

  Index& operator[](size_t d) { return at[d]; }
  const Index& operator[](size_t d) const { return at[d]; }
  size_t size() const { return at.size(); }
  auto operator<=>(const Position&) const = default;
};

/// Returns the position of element `k` of an index vector in the indices of gather or scatter, whose shape is `dims`:
/// the position in the batch, with `k` inserted as dimension `vector_dim`. If `vector_dim` is the rank, index vectors
/// have one element and no dimension.
Position index_position(Position batch, const Dims& dims, int64_t vector_dim, int64_t k);

/// Builds the expressions of one kernel. Values for which `is_input` holds are loaded from memory; all others are
/// computed inline.
class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, Kernel& kernel, std::function<bool(ValueId)> is_input)
      : graph_(graph), kernel_(kernel), is_input_(std::move(is_input)) {}

  /// Returns the element of `v` at `at`. If `mask` is false, nothing is loaded.
  ExprId value(ValueId v, const Position& at, ExprId mask = kNoExpr);

  /// Loads the element of `v` at `at` from memory.
  ExprId load(ValueId v, const Position& at, ExprId mask);

  /// Loads the element of `v` with the linear index `index`.
  ExprId load_at(ValueId v, const Index& index, ExprId mask);
  /// Adds the mask to all later loads, in addition to their own masks.
  void guard(ExprId mask) { guard_ = mask; }

  /// Returns the number of the kernel's buffer that holds `v`.
  uint32_t buffer(ValueId v);

  /// Returns the number of the buffer to which `v` is written.
  uint32_t output(ValueId v);

  /// True if some value cannot be computed in this loop nest, such as a reduction over other loops or at another
  /// position.
  bool failed() const { return failed_; }
  /// True if `v` was requested at more than one position.
  bool scattered(ValueId v) const;

  /// Returns the value that each of the kernel's buffers holds.
  const std::vector<ValueId>& buffers() const { return buffers_; }

  ExprId constant(uint32_t type, const void* data);
  /// Returns the element of a constant whose elements are all equal. Like a load, it is zero if the mask is false.
  ExprId masked_constant(const Value& value, ExprId mask);
  ExprId integer(uint32_t type, int64_t x);
  ExprId index_value(const Index& index);
  /// Returns the condition 0 <= index < size; kNoExpr if it always holds.
  ExprId in_range(const Index& index, int64_t size);
  /// True if 0 <= index < size holds at no point.
  bool never_in_range(const Index& index, int64_t size) const;
  ExprId both(ExprId a, ExprId b);
  ExprId op(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a = 0, int64_t b = 0);
  ExprId convert(ExprId x, uint32_t type);
  /// Returns `x` clamped to [0, limit] as an index: the start of a slice.
  Index start(ExprId x, int64_t limit);
  Index term(ExprId x);
  /// Divides an index by `by`. Quotient and remainder are affine if possible; otherwise they are terms.
  void divide(const Index& index, int64_t by, Index& quotient, Index& remainder);
  /// Replaces n * floor(x / n) + (x mod n) by x. A reshape and its inverse leave such sums.
  Index recombined(Index index) const;
  /// Returns `at` with one index per dimension.
  Position spread(const Position& at, const Dims& dims);
  /// Returns the linear index of a position.
  Index linear(const Position& at, const Dims& dims) const;
  /// Returns the position whose linear index is `index`.
  Position delinearize(Index index, const Dims& dims);
  /// Returns the expressions of a scalar block as the body of a reduction or update.
  ScalarBody body(const Block& block);
  /// Returns a body: the expressions that `compute` returns for arguments of `types`.
  using ComputeBody = std::function<std::vector<ExprId>(KernelBuilder&, const std::vector<ExprId>&)>;
  ScalarBody body(const std::vector<uint32_t>& types, const ComputeBody& compute);
  /// Inlines a scalar block in this kernel and returns its results. If `mask` is false, loops in it are not run.
  std::vector<ExprId> inlined(const Block& block, const std::vector<ExprId>& arguments, ExprId mask = kNoExpr);
  /// Adds an expression, or returns an equal one that exists.
  ExprId emit(Expr instruction);

  /// Returns result `result` of a while whose condition and body are scalar blocks.
  ExprId loop_result(const Node& node, uint32_t result) { return while_loop(node, result, kNoExpr); }

 private:
  /// The state of a scalar block that is being lowered. Its arguments are expressions, or values of the block around
  /// it.
  struct Frame {
    struct Argument {
      ExprId scalar = kNoExpr;
      ValueId value = kNone;
    };
    const Frame* around = nullptr;
    const KernelBuilder* owner = nullptr;  ///< the builder whose expressions the arguments are
    std::map<ValueId, Argument> arguments;
    ExprId active = kNoExpr;  ///< a pred; if it is false, the results of the block are not used
  };
  /// Emits one step of a reduction: computes the new accumulators from an index and the accumulators.
  using ReductionStep = std::function<std::vector<ExprId>(KernelBuilder&, const Index&, const std::vector<ExprId>&)>;

  // Lowering of blocks whose values are computed element by element: bodies of map, reduce and similar ops.
  ExprId framed(ValueId v, const Position& at, ExprId mask);
  ExprId in_frame(const Frame* frame, ValueId v, const Position& at, ExprId mask = kNoExpr);
  Frame& open_frame();
  ExprId active();
  ExprId lookup(ValueId v, const Index& index, ExprId mask);
  /// Returns an expression of `from`, a builder around this one, as an expression of this builder.
  ExprId captured(const KernelBuilder& from, ExprId t);
  /// Returns an index of the builder around this one as an index of this builder.
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
  /// Emits a reduction over `points` points: unrolled if there are few, else as a kWhile.
  std::vector<ExprId> reduce_points(int64_t points, const std::vector<ExprId>& inits, const ReductionStep& step);

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
  KernelBuilder* outer_ = nullptr;  ///< the builder of the loop, if this builder lowers a loop's body
  std::vector<ExprId> captures_;    ///< expressions of outer_ that are passed to the body as further arguments
  std::map<ExprId, ExprId> local_;  ///< by captured expression: the argument that holds its value
  uint32_t own_arguments_ = 0;
  std::map<NodeId, int64_t> reductions_;
  std::vector<ValueId> buffers_;
  std::map<ValueId, uint32_t> buffer_of_;
};

/// Returns the position whose indices are the loop variables first, first + 1, ... of `rank` loops.
Position loop_position(size_t first, size_t rank);

}  // namespace collet::codegen
