// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/attention.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "sdk/codegen/lower/convolution.h"
#include "sdk/codegen/lower/kernel_builder.h"

namespace collet::codegen {
namespace {

/// Follows the first operand of nodes with these opcodes to the node that defines something else. Returns null for an
/// argument, and if an intermediate value has another type than f32 or `result`. The kernel computes in f32 and omits
/// intermediate roundings to `result`, which the result, of the same type, is not precise enough to show.
const Node* behind(const Graph& graph, ValueId v, uint32_t result, std::initializer_list<uint32_t> opcodes) {
  for (;;) {
    const uint32_t type = graph.type(v).element;
    const Node* const node = graph.def(v);
    if (!node || (type != COLLET_TYPE_F32 && type != result)) return nullptr;
    if (std::find(opcodes.begin(), opcodes.end(), node->opcode) == opcodes.end()) return node;
    v = node->operands[0];
  }
}

/// Returns the value of a float constant that may be broadcast or converted; NaN if `v` is none.
double constant_of(const Graph& graph, ValueId v) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  while (const Node* node = graph.def(v)) {
    if (node->opcode != COLLET_OP_BROADCAST && node->opcode != COLLET_OP_CONVERT && node->opcode != COLLET_OP_RESHAPE)
      return none;
    v = node->operands[0];
  }
  const Value& value = graph.value(v);
  if (!value.constant || (value.type.elements != 1 && !value.splat)) return none;
  const auto word = [&](auto x) {
    std::memcpy(&x, value.constant, sizeof x);
    return x;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (value.type.element) {
    case COLLET_TYPE_F32:
      return static_cast<double>(word(float{}));
    case COLLET_TYPE_BF16:
      return word(uint16_t{}) == 0xff80 ? -infinity : word(uint16_t{}) == 0 ? 0 : none;
    case COLLET_TYPE_F16:
      return word(uint16_t{}) == 0xfc00 ? -infinity : word(uint16_t{}) == 0 ? 0 : none;
    default:
      return none;
  }
}

bool is_minus_infinity(const Graph& graph, ValueId v) {
  return constant_of(graph, v) == -std::numeric_limits<double>::infinity();
}

/// The values that make up a softmax: quotient = exp(logits - maximum) / sum.
struct Softmax {
  ValueId logits = kNone;
  ValueId maximum = kNone;  ///< the maximum of each row
  ValueId sum = kNone;
  ValueId quotient = kNone;
  size_t row = 0;  ///< the dimension of the logits along which a row runs
};

/// Returns the dimension that a reduce of one operand with the combination `combine` reduces. Returns -1 if the node is
/// no such reduce, or reduces several dimensions.
int64_t reduced_dimension(const Graph& graph, const Node* node, uint32_t combine) {
  if (!node || node->opcode != COLLET_OP_REDUCE || node->results.size() != 1) return -1;
  if (graph.blocks[node->blocks[0]].combine != combine) return -1;
  const Dims dims = integers(graph, attributes<collet_dimensions_attrs>(graph, *node).dimensions);
  return dims.size() == 1 ? dims[0] : -1;
}

/// Finds the nodes of a softmax whose last node is `divide`, in a product with results of type `result`. Does not check
/// that each element is combined with the maximum and sum of its own row.
bool find_softmax_nodes(const Graph& graph, const Node& divide, uint32_t result, Softmax& out) {
  const auto converted = [&](ValueId v) { return behind(graph, v, result, {COLLET_OP_CONVERT}); };
  const auto of_row = [&](ValueId v) {
    return behind(graph, v, result, {COLLET_OP_CONVERT, COLLET_OP_BROADCAST, COLLET_OP_RESHAPE});
  };
  if (divide.opcode != COLLET_OP_DIVIDE) return false;
  const Node* const exponential = converted(divide.operands[0]);
  const Node* const sum = of_row(divide.operands[1]);
  const int64_t row = reduced_dimension(graph, sum, COLLET_COMBINE_ADD);
  if (!exponential || exponential->opcode != COLLET_OP_EXPONENTIAL || row < 0) return false;
  if (converted(sum->operands[0]) != exponential || constant_of(graph, sum->operands[1]) != 0) return false;
  const Node* const difference = converted(exponential->operands[0]);
  if (!difference || difference->opcode != COLLET_OP_SUBTRACT) return false;
  const Node* maximum = of_row(difference->operands[1]);
  if (maximum && maximum->opcode == COLLET_OP_MAXIMUM) {
    // A maximum with minus infinity has no effect, so it is skipped.
    const bool first = is_minus_infinity(graph, maximum->operands[0]);
    if (!first && !is_minus_infinity(graph, maximum->operands[1])) return false;
    maximum = of_row(maximum->operands[first ? 1 : 0]);
  }
  if (reduced_dimension(graph, maximum, COLLET_COMBINE_MAXIMUM) != row) return false;
  if (!is_minus_infinity(graph, maximum->operands[1])) return false;
  out.logits = difference->operands[0];
  const Node* const reduced = converted(maximum->operands[0]);
  if (!reduced || reduced != converted(out.logits)) return false;
  out.maximum = maximum->results[0];
  out.sum = sum->results[0];
  out.quotient = divide.results[0];
  out.row = static_cast<size_t>(row);
  return true;
}

/// True if each element of the quotient is computed with the maximum and the sum of its own row.
bool meets_own_row(const Graph& graph, const Softmax& softmax) {
  const Dims& dims = graph.type(softmax.quotient).dims;
  Kernel kernel;
  for (int64_t d : dims) kernel.loops.push_back({d});
  kernel.outer = dims.size();
  KernelBuilder builder(graph, kernel,
                        [&](ValueId v) { return v == softmax.logits || v == softmax.maximum || v == softmax.sum; });
  const Position at = loop_position(0, dims.size());
  builder.value(softmax.quotient, at);
  Position row = at;
  row.at.erase(row.at.begin() + static_cast<int64_t>(softmax.row));
  const Index of_row = builder.linear(row, graph.type(softmax.sum).dims);
  const Index own = builder.linear(at, dims);
  return !builder.failed() && std::all_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& e) {
    if (e.op != ExprOp::kLoad) return true;
    const bool is_logit = builder.buffers()[e.buffer] == softmax.logits;
    return e.mask == kNoExpr && e.index == (is_logit ? own : of_row);
  });
}

/// Returns the kernel's only load of `v`; null if there is none or more than one.
const Expr* only_load(const Kernel& kernel, const std::vector<ValueId>& buffers, ValueId v) {
  const Expr* found = nullptr;
  for (const Expr& e : kernel.exprs) {
    if (e.op != ExprOp::kLoad || buffers[e.buffer] != v) continue;
    if (found) return nullptr;
    found = &e;
  }
  return found;
}

/// True if an index without terms is inside an array of `elements` elements at all points of the loops.
bool is_always_inside(const Kernel& kernel, const Index& index, int64_t elements) {
  int64_t largest = index.constant;
  bool goes_forward = index.constant >= 0;
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    goes_forward = goes_forward && index.coefficient(l) >= 0;
    largest += index.coefficient(l) * (kernel.loops[l].size - 1);
  }
  return goes_forward && largest < elements;
}

bool is_small_float(uint32_t type) {
  return type == COLLET_TYPE_F32 || type == COLLET_TYPE_BF16 || type == COLLET_TYPE_F16;
}

/// Builds the kernel of one product and one of its operands.
class Builder {
 public:
  Builder(const Graph& graph, const Node& product, size_t side, const InputTest& is_input, AttentionKernel& out)
      : graph_(graph), product_(product), side_(side), is_input_(is_input), out_(out) {}

  bool run() {
    const ValueId operand = product_.operands[side_];
    const uint32_t result = graph_.type(product_.results[0]).element;
    const Node* const divide =
        behind(graph_, operand, result, {COLLET_OP_CONVERT, COLLET_OP_RESHAPE, COLLET_OP_TRANSPOSE});
    if (!divide || !find_softmax_nodes(graph_, *divide, result, softmax_) || !meets_own_row(graph_, softmax_))
      return false;
    multiplied_ = graph_.type(operand).element;
    const bool has_types = is_small_float(result) && is_small_float(multiplied_) &&
                           is_small_float(graph_.type(softmax_.logits).element) &&
                           is_small_float(graph_.type(softmax_.quotient).element);
    if (!has_types || !make_loops()) return false;
    Index weight_at;
    return find_weight(weight_at) && find_scores(weight_at) && build(weight_at);
  }

 private:
  /// Makes the loops over the result and over the keys.
  bool make_loops() {
    const auto a = attributes<collet_dot_attrs>(graph_, product_);
    const Dims keys = integers(graph_, side_ == 0 ? a.lhs_contracting : a.rhs_contracting);
    const ArrayType& type = graph_.type(product_.results[0]);
    for (int64_t d : type.dims) loops_.loops.push_back({d});
    loops_.outer = type.dims.size();
    if (keys.size() != 1) return false;
    loops_.loops.push_back({graph_.type(product_.operands[side_]).dims[static_cast<size_t>(keys[0])]});
    const size_t rank = type.dims.size();
    const auto [lhs, rhs] = dot_positions(graph_, product_, loop_position(0, rank), loops_.outer);
    weight_at_ = side_ == 0 ? lhs : rhs;
    value_at_ = side_ == 0 ? rhs : lhs;
    return true;
  }

  /// Finds the element of the softmax's result that is a factor of the second product. The factor must be that element,
  /// possibly converted.
  bool find_weight(Index& at) const {
    Kernel kernel = loops_;
    ValueId last = product_.operands[side_];
    for (; last != softmax_.quotient; last = graph_.def(last)->operands[0]) out_.weights.push_back(last);
    out_.weights.push_back(last);
    const auto is_weight = [this](ValueId v) {
      return std::find(out_.weights.begin(), out_.weights.end(), v) != out_.weights.end();
    };
    KernelBuilder builder(graph_, kernel,
                          [&](ValueId v) { return v == softmax_.quotient || (!is_weight(v) && is_input_(v)); });
    builder.value(product_.operands[side_], weight_at_);
    const Expr* const load = only_load(kernel, builder.buffers(), softmax_.quotient);
    if (!load || builder.failed() || load->mask != kNoExpr || !load->index.terms.empty()) return false;
    const bool is_plain = std::all_of(kernel.exprs.begin(), kernel.exprs.end(), [](const Expr& e) {
      return e.op == ExprOp::kLoad || (e.op == ExprOp::kOp && e.opcode == COLLET_OP_CONVERT);
    });
    at = load->index;
    // The loop over the keys must run along the row of the softmax.
    const Dims& dims = graph_.type(softmax_.quotient).dims;
    int64_t step = 1;
    for (size_t d = softmax_.row + 1; d < dims.size(); ++d) step *= dims[d];
    return is_plain && loops_.loops[loops_.outer].size == dims[softmax_.row] && at.coefficient(loops_.outer) == step;
  }

  /// Finds the dot from which the logits are computed.
  bool find_scores(const Index& weight_at) const {
    Kernel kernel = loops_;
    KernelBuilder builder(graph_, kernel, is_input_);
    builder.value(softmax_.logits, builder.delinearize(weight_at, graph_.type(softmax_.quotient).dims));
    if (builder.failed()) return false;
    for (ValueId v : builder.buffers()) {
      const Node* const node = graph_.def(v);
      if (!node || node->opcode != COLLET_OP_DOT || !only_load(kernel, builder.buffers(), v)) continue;
      if (out_.scores != kNone) return false;  // two candidates: the product of queries and keys is ambiguous
      out_.scores = graph_.value(v).def;
    }
    return out_.scores != kNone && is_small_float(graph_.type(graph_.nodes[out_.scores].results[0]).element);
  }

  bool build(const Index& weight_at) {
    const Node& scores = graph_.nodes[out_.scores];
    const ValueId score = scores.results[0];
    const auto a = attributes<collet_dot_attrs>(graph_, scores);
    Kernel& kernel = out_.plan.kernel;
    kernel = loops_;
    const size_t depth = kernel.loops.size();
    for (int64_t d : integers(graph_, a.lhs_contracting))
      kernel.loops.push_back({graph_.type(scores.operands[0]).dims[static_cast<size_t>(d)]});
    KernelBuilder builder(graph_, kernel, is_input_);
    const uint32_t score_type = graph_.type(score).element;
    const ExprId sum = reduced(builder, 0, score_type);
    const ExprId zero = builder.integer(score_type, 0);
    const Position at = builder.delinearize(weight_at, graph_.type(softmax_.quotient).dims);
    out_.logit = builder.convert(builder.value(softmax_.logits, at), COLLET_TYPE_F32);
    const Expr* const load = only_load(kernel, builder.buffers(), score);
    const bool is_known =
        load && load->index.terms.empty() && is_always_inside(kernel, load->index, graph_.type(score).elements);
    if (!is_known) return false;
    const auto score_expr = static_cast<size_t>(load - kernel.exprs.data());
    const Index score_index = load->index;
    const Position score_at = builder.delinearize(score_index, graph_.type(score).dims);
    const auto [lhs_at, rhs_at] = dot_positions(graph_, scores, score_at, depth);
    out_.query = builder.convert(builder.value(scores.operands[0], lhs_at), COLLET_TYPE_F32);
    out_.key = builder.convert(builder.value(scores.operands[1], rhs_at), COLLET_TYPE_F32);
    add(COLLET_COMBINE_ADD, builder.op(COLLET_OP_MULTIPLY, COLLET_TYPE_F32, {out_.query, out_.key}),
        allows_tf32(graph_, a.precision, a.algorithm));
    add(COLLET_COMBINE_MAXIMUM, out_.logit, false);
    const ExprId exponent = builder.op(COLLET_OP_SUBTRACT, COLLET_TYPE_F32, {out_.logit, reduced(builder, 1)});
    out_.exponential = builder.op(COLLET_OP_EXPONENTIAL, COLLET_TYPE_F32, {exponent});
    add(COLLET_COMBINE_ADD, out_.exponential, false);
    out_.weight = builder.convert(builder.convert(out_.exponential, multiplied_), COLLET_TYPE_F32);
    out_.value = builder.convert(builder.value(product_.operands[1 - side_], value_at_), COLLET_TYPE_F32);
    const auto b = attributes<collet_dot_attrs>(graph_, product_);
    add(COLLET_COMBINE_ADD, builder.op(COLLET_OP_MULTIPLY, COLLET_TYPE_F32, {out_.weight, out_.value}),
        allows_tf32(graph_, b.precision, b.algorithm));
    store(builder);
    if (builder.failed()) return false;
    // The score is not stored in memory: the expression that loaded it becomes the result of the reduction.
    const Expr load_of_score = kernel.exprs[score_expr];
    Expr& e = kernel.exprs[score_expr];
    e = kernel.exprs[static_cast<size_t>(sum)];
    if (load_of_score.mask != kNoExpr) {
      e = op_expr(COLLET_OP_SELECT, score_type, {load_of_score.mask, sum, zero});
    }
    drop_buffer(load_of_score.buffer);
    return true;
  }

  void add(uint32_t combine, ExprId input, bool tf32) {
    Reduction r;
    r.combine = combine;
    r.inputs = {input};
    r.inits = {kNoExpr};
    r.types = {COLLET_TYPE_F32};
    r.tf32 = tf32;
    out_.plan.kernel.reductions.push_back(std::move(r));
  }

  static ExprId reduced(KernelBuilder& builder, int64_t reduction, uint32_t type = COLLET_TYPE_F32) {
    Expr e;
    e.op = ExprOp::kReduced;
    e.type = type;
    e.b = reduction;
    return builder.emit(std::move(e));
  }

  void store(KernelBuilder& builder) {
    const ValueId result = product_.results[0];
    const ArrayType& type = graph_.type(result);
    const ExprId quotient = builder.op(COLLET_OP_DIVIDE, COLLET_TYPE_F32, {reduced(builder, 3), reduced(builder, 2)});
    const Index index = builder.linear(loop_position(0, type.dims.size()), type.dims);
    out_.plan.kernel.stores.push_back(
        {builder.output(result), builder.convert(quotient, type.element), index, kNoExpr});
    out_.plan.writes = {result};
    out_.plan.buffers = builder.buffers();
    out_.plan.kernel.buffers = static_cast<uint32_t>(out_.plan.buffers.size());
  }

  void drop_buffer(uint32_t buffer) {
    Kernel& kernel = out_.plan.kernel;
    for (Expr& e : kernel.exprs) {
      if (e.op == ExprOp::kLoad && e.buffer > buffer) --e.buffer;
    }
    for (Store& s : kernel.stores) s.buffer -= s.buffer > buffer ? 1 : 0;
    out_.plan.buffers.erase(out_.plan.buffers.begin() + buffer);
    --kernel.buffers;
  }

  const Graph& graph_;
  const Node& product_;
  const size_t side_;  ///< number of the second product's operand that is computed from the weights
  const InputTest& is_input_;
  AttentionKernel& out_;
  Softmax softmax_;
  uint32_t multiplied_ = 0;  ///< type of the weights as operands of the second product
  Kernel loops_;             ///< the loops over the result and over the keys
  Position weight_at_;
  Position value_at_;
};

}  // namespace

bool attention_kernel(const Graph& graph, NodeId product, const InputTest& is_input, AttentionKernel& out) {
  const Node& node = graph.nodes[product];
  if (node.opcode != COLLET_OP_DOT || is_outer_product(graph, node)) return false;
  for (size_t side = 0; side < 2; ++side) {
    out = {};
    if (Builder(graph, node, side, is_input, out).run()) return true;
  }
  return false;
}

}  // namespace collet::codegen
