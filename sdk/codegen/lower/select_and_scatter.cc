// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/select_and_scatter.h"

#include <algorithm>
#include <cstdint>

#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/window.h"

namespace collet::codegen {
namespace {

class SelectAndScatter {
 public:
  SelectAndScatter(const Graph& graph, const Node& node, const InputTest& is_input)
      : graph_(graph),
        node_(node),
        is_input_(is_input),
        window_(window_of(graph, attributes<collet_window_attrs>(graph, node).window)),
        operand_(graph.type(node.operands[0])),
        source_(graph.type(node.operands[1])) {}

  /// True if computing the result element by element is fastest.
  bool is_gathered() const {
    constexpr int64_t kMostWindows = 64;  ///< most windows that cover one element
    const uint32_t kind = collet_type_kind(operand_.element);
    if (kind != COLLET_KIND_FLOAT && kind != COLLET_KIND_SIGNED && kind != COLLET_KIND_UNSIGNED) return false;
    if (graph_.blocks[node_.blocks[1]].combine != COLLET_COMBINE_ADD || operand_.elements > INT32_MAX) return false;
    if (std::any_of(window_.reversal.begin(), window_.reversal.end(), [](int64_t r) { return r != 0; })) return false;
    int64_t windows = 1;
    for (size_t d = 0; d < operand_.dims.size(); ++d) {
      if (window_.dilation[d] != 1 || window_.base_dilation[d] != 1) return false;
      if (meeting(d) > kMostWindows) return false;
      windows *= meeting(d);
    }
    return windows <= kMostWindows;
  }

  void gather(const MakeValue& make, std::vector<KernelPlan>& out) {
    const ValueId places = make(COLLET_TYPE_S32, source_.dims);
    out.push_back(selected_places(places));
    out.push_back(sum_of_windows(places));
  }

  void scatter(std::vector<KernelPlan>& out) {
    out.push_back(fill());
    KernelPlan plan;
    KernelBuilder builder(graph_, plan.kernel, is_input_);
    const Selection held = select(builder, plan.kernel, COLLET_TYPE_S64);
    plan.kernel.sequential = true;
    const ValueId result = node_.results[0];
    Update u;
    u.buffers = {builder.output(result)};
    u.values = {builder.value(node_.operands[1], loop_position(0, source_.dims.size()))};
    u.types = {operand_.element};
    u.index = builder.term(held.place);
    u.mask = held.found;
    const Block& scatter = graph_.blocks[node_.blocks[1]];
    u.combine =
        scatter.combine <= COLLET_COMBINE_SECOND ? scatter.combine : static_cast<uint32_t>(COLLET_COMBINE_OTHER);
    if (u.combine == COLLET_COMBINE_OTHER) u.body = builder.body(scatter);
    plan.kernel.updates.push_back(std::move(u));
    plan.buffers = builder.buffers();
    plan.writes = {result};
    out.push_back(std::move(plan));
  }

 private:
  /// The element that a window selects: whether there is one, and its linear index.
  struct Selection {
    ExprId found = kNoExpr;
    ExprId place = kNoExpr;
  };

  /// Returns the largest number of windows, in one dimension, that can cover an element.
  int64_t meeting(size_t d) const { return (window_.size[d] - 1) / window_.stride[d] + 1; }

  KernelPlan fill() const {
    KernelPlan plan;
    for (int64_t d : operand_.dims) plan.kernel.loops.push_back({d});
    plan.kernel.outer = operand_.dims.size();
    KernelBuilder builder(graph_, plan.kernel, is_input_);
    const ValueId result = node_.results[0];
    const ExprId init = builder.value(node_.operands[2], {});
    const Index at = builder.linear(loop_position(0, operand_.dims.size()), operand_.dims);
    plan.kernel.stores.push_back({builder.output(result), init, at, kNoExpr});
    plan.writes.push_back(result);
    plan.buffers = builder.buffers();
    return plan;
  }

  /// Adds the loops over all windows and over their elements, and the selection as a reduction over the latter. Linear
  /// indices have type `number`.
  Selection select(KernelBuilder& builder, Kernel& k, uint32_t number) const {
    for (int64_t d : source_.dims) k.loops.push_back({d});
    k.outer = source_.dims.size();
    std::vector<Taps> taps;
    for (size_t d = 0; d < source_.dims.size(); ++d) {
      taps.push_back(taps_of(window_, d, operand_.dims[d], source_.dims[d]));
      k.loops.push_back({taps.back().iterations});
    }
    const Position at = loop_position(0, source_.dims.size());
    Position from;
    from.at.resize(operand_.dims.size());
    ExprId inside = kNoExpr;
    for (size_t d = 0; d < operand_.dims.size(); ++d) {
      from[d] = tap_index(builder, window_, d, taps[d], at[d], loop_index(k.outer + d), operand_.dims[d], inside);
    }
    // The accumulator is (found, value, index). A new element replaces it unless select(accumulator, new) is true.
    const ExprId x = builder.value(node_.operands[0], from, inside);
    const ExprId place = builder.convert(builder.index_value(builder.linear(from, operand_.dims)), number);
    const uint32_t type = operand_.element;
    Reduction r;
    r.types = {COLLET_TYPE_PRED, type, number};
    r.inits = {builder.integer(COLLET_TYPE_PRED, 0), builder.integer(type, 0), builder.integer(number, 0)};
    r.inputs = {builder.integer(COLLET_TYPE_PRED, 1), x, place};
    r.condition = inside;
    const Block& select = graph_.blocks[node_.blocks[0]];
    r.body = builder.body({COLLET_TYPE_PRED, type, number, COLLET_TYPE_PRED, type, number},
                          [&](KernelBuilder& inner, const std::vector<ExprId>& in) {
                            const ExprId keep = inner.both(in[0], inner.inlined(select, {in[1], in[4]}, in[0])[0]);
                            return std::vector<ExprId>{in[3], inner.op(COLLET_OP_SELECT, type, {keep, in[1], in[4]}),
                                                       inner.op(COLLET_OP_SELECT, number, {keep, in[2], in[5]})};
                          });
    k.reductions.push_back(r);
    return {reduced(k, COLLET_TYPE_PRED, 0), reduced(k, number, 2)};
  }

  static ExprId reduced(Kernel& k, uint32_t type, int64_t result) {
    Expr e;
    e.op = ExprOp::kReduced;
    e.type = type;
    e.a = result;
    k.exprs.push_back(e);
    return static_cast<ExprId>(k.exprs.size()) - 1;
  }

  /// Returns the kernel that writes the linear index of the element that each window selects; -1 if the window covers
  /// only padding.
  KernelPlan selected_places(ValueId places) const {
    KernelPlan plan;
    KernelBuilder builder(graph_, plan.kernel, is_input_);
    const Selection held = select(builder, plan.kernel, COLLET_TYPE_S32);
    const ExprId none = builder.integer(COLLET_TYPE_S32, -1);
    const ExprId place = builder.op(COLLET_OP_SELECT, COLLET_TYPE_S32, {held.found, held.place, none});
    const Index at = builder.linear(loop_position(0, source_.dims.size()), source_.dims);
    plan.kernel.stores.push_back({builder.output(places), place, at, kNoExpr});
    plan.writes = {places};
    plan.buffers = builder.buffers();
    return plan;
  }

  KernelPlan sum_of_windows(ValueId places) const {
    KernelPlan plan;
    Kernel& k = plan.kernel;
    const size_t rank = operand_.dims.size();
    for (int64_t d : operand_.dims) k.loops.push_back({d});
    k.outer = rank;
    for (size_t d = 0; d < rank; ++d) k.loops.push_back({meeting(d)});
    const InputTest inputs = [&](ValueId v) { return v == places || is_input_(v); };
    KernelBuilder builder(graph_, k, inputs);
    Position window;
    ExprId exists = kNoExpr;
    for (size_t d = 0; d < rank; ++d) {
      Index padded = loop_index(d);
      padded.constant += window_.low[d];
      Index last;
      Index rest;
      builder.divide(padded, window_.stride[d], last, rest);
      window.at.push_back(add_scaled(last, loop_index(rank + d), -1));
      exists = builder.both(exists, builder.in_range(window.at.back(), source_.dims[d]));
    }
    const uint32_t type = operand_.element;
    const Index at = builder.linear(loop_position(0, rank), operand_.dims);
    const ExprId own = builder.convert(builder.index_value(at), COLLET_TYPE_S32);
    const ExprId place = builder.load(places, window, exists);
    const ExprId equal =
        builder.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {place, own}, COLLET_DIRECTION_EQ, COLLET_COMPARE_SIGNED);
    const ExprId brought = builder.value(node_.operands[1], window, exists);
    Reduction r;
    r.combine = COLLET_COMBINE_ADD;
    r.types = {type};
    r.inits = {builder.value(node_.operands[2], {})};
    r.inputs = {builder.op(COLLET_OP_SELECT, type, {builder.both(exists, equal), brought, builder.integer(type, 0)})};
    k.reductions.push_back(r);
    const ExprId sum = reduced(k, type, 0);
    k.stores.push_back({builder.output(node_.results[0]), sum, at, kNoExpr});
    plan.writes = {node_.results[0]};
    plan.buffers = builder.buffers();
    return plan;
  }

  const Graph& graph_;
  const Node& node_;
  const InputTest& is_input_;
  const Window window_;
  // Copies, because MakeValue may reallocate the graph's values.
  const ArrayType operand_;
  const ArrayType source_;
};

}  // namespace

void select_and_scatter_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                                std::vector<KernelPlan>& out) {
  SelectAndScatter kernels(graph, node, is_input);
  if (kernels.is_gathered()) {
    kernels.gather(make, out);
  } else {
    kernels.scatter(out);
  }
}

}  // namespace collet::codegen
