// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_library.h"

#include <bit>
#include <vector>

#include "sdk/codegen/kernel/transform.h"
#include "sdk/codegen/lower/convolution.h"
#include "sdk/codegen/schedule/grid_loops.h"
#include "sdk/codegen/schedule/grid_tiles.h"

namespace collet::codegen {
namespace {

/// The loops over rows, columns, depth and batches; -1 if there is only one.
struct ProductLoops {
  int rows = -1;
  int columns = -1;
  int depth = -1;
  int batch = -1;
};

/// Stores the only loop of a set in `out`, or -1 if the set is empty. Returns false if there are several.
bool only_loop(uint64_t loops, int& out) {
  out = loops == 0 ? -1 : std::countr_zero(loops);
  return std::popcount(loops) <= 1;
}

/// Returns the loops with which an index changes.
uint64_t loops_of(const Kernel& kernel, const Index& index) {
  uint64_t loops = 0;
  for (size_t l = 0; l < kernel.loops.size(); ++l) {
    if (index.coefficient(l) != 0) loops |= uint64_t{1} << l;
  }
  return loops;
}

int64_t size_of(const Kernel& kernel, int loop) {
  return loop < 0 ? 1 : kernel.loops[static_cast<size_t>(loop)].size;
}

LibraryMatrix matrix_of(uint32_t type, const Index& index, int batch, int row, int column) {
  const auto distance = [&](int loop) { return loop < 0 ? 0 : index.coefficient(static_cast<size_t>(loop)); };
  return {type, index.constant, distance(batch), distance(row), distance(column)};
}

/// Returns `e` if it is an unconditional load; else null.
const Expr* plain_load(const Kernel& kernel, ExprId e) {
  const Expr& expr = kernel.exprs[static_cast<size_t>(e)];
  return expr.op == ExprOp::kLoad && expr.mask == kNoExpr && expr.index.terms.empty() ? &expr : nullptr;
}

/// True if the initial value of the sum is zero.
bool begins_with_zero(const Kernel& kernel, const Reduction& r) {
  if (r.inits[0] == kNoExpr) return true;
  const Expr& init = kernel.exprs[static_cast<size_t>(r.inits[0])];
  return init.op == ExprOp::kConstant && init.bits[0] == 0 && init.bits[1] == 0;
}

}  // namespace

bool match_product(const Kernel& original, ProductMatch& out) {
  if (!summed_product(original) || original.stores.size() != 1 || original.loops.size() > 64) return false;
  Kernel kernel = original;
  collapse_loops(kernel);
  const Reduction& r = kernel.reductions[0];
  if (!begins_with_zero(kernel, r)) return false;
  const uint32_t sum_type = r.types[0];
  const Expr& multiply = *summed_product(kernel);
  const Expr* a = plain_load(kernel, before_conversion(kernel, multiply.args[0], sum_type));
  const Expr* b = plain_load(kernel, before_conversion(kernel, multiply.args[1], sum_type));
  if (!a || !b) return false;
  const Store& store = kernel.stores[0];
  if (store.mask != kNoExpr || !store.index.terms.empty() || store.buffer == a->buffer || store.buffer == b->buffer)
    return false;
  const Expr* result = &kernel.exprs[static_cast<size_t>(store.value)];
  const uint32_t result_type = result->type;
  if (result->op == ExprOp::kOp && result->opcode == COLLET_OP_CONVERT)
    result = &kernel.exprs[static_cast<size_t>(result->args[0])];
  if (result->op != ExprOp::kReduced || result->type != sum_type) return false;

  const uint64_t outer = outer_loops(kernel), inner = inner_loops(kernel);
  const uint64_t of_a = loops_of(kernel, a->index), of_b = loops_of(kernel, b->index);
  ProductLoops loops;
  const bool is_product = loops_of(kernel, store.index) == outer && (of_a & of_b & inner) == inner &&
                          (outer & ~(of_a | of_b)) == 0 && only_loop(outer & of_a & ~of_b, loops.rows) &&
                          only_loop(outer & of_b & ~of_a, loops.columns) &&
                          only_loop(outer & of_a & of_b, loops.batch) && only_loop(inner, loops.depth);
  if (!is_product) return false;
  // Libraries write results row by row, so the loop that is contiguous in the result must be the columns.
  if (loops.rows >= 0 && loops.columns >= 0 && store.index.coefficient(static_cast<size_t>(loops.rows)) == 1) {
    std::swap(a, b);
    std::swap(loops.rows, loops.columns);
  }
  LibraryProduct& p = out.product;
  p = {};
  p.batches = size_of(kernel, loops.batch);
  p.rows = size_of(kernel, loops.rows);
  p.columns = size_of(kernel, loops.columns);
  p.depth = size_of(kernel, loops.depth);
  p.a = matrix_of(a->type, a->index, loops.batch, loops.rows, loops.depth);
  p.b = matrix_of(b->type, b->index, loops.batch, loops.depth, loops.columns);
  p.c = matrix_of(result_type, store.index, loops.batch, loops.rows, loops.columns);
  p.sum_type = sum_type;
  p.tf32 = r.tf32;
  out.a = a->buffer;
  out.b = b->buffer;
  out.c = store.buffer;
  return true;
}

namespace {

/// True if the dimensions of an array are in this order in memory.
bool is_ordered(const std::vector<size_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

}  // namespace

bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out) {
  constexpr size_t kMostDims = 3;
  const auto a = attributes<collet_convolution_attrs>(graph, node);
  const ArrayType &input = graph.type(node.operands[0]), &filter = graph.type(node.operands[1]),
                  &result = graph.type(node.results[0]);
  const uint32_t type = input.element;
  const bool is_float =
      type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64 || type == COLLET_TYPE_F16 || type == COLLET_TYPE_BF16;
  if (!is_float || filter.element != type || result.element != type || a.batch_groups != 1) return false;
  const Dims size = integers(graph, a.window.size), stride = integers(graph, a.window.stride),
             low = integers(graph, a.window.padding_low), high = integers(graph, a.window.padding_high),
             holes = integers(graph, a.window.base_dilation), dilation = integers(graph, a.window.window_dilation),
             reversal = integers(graph, a.window.reversal);
  const Dims of_input = integers(graph, a.labels.input_spatial), of_filter = integers(graph, a.labels.kernel_spatial),
             of_output = integers(graph, a.labels.output_spatial);
  if (size.empty() || size.size() > kMostDims || input.elements == 0 || filter.elements == 0 || result.elements == 0)
    return false;
  const auto at = [](const Dims& dims, int64_t d) { return dims[static_cast<size_t>(d)]; };
  const std::vector<int64_t> input_strides = strides_of(input.dims), output_strides = strides_of(result.dims);
  LibraryConvolution& c = out.convolution;
  c = {};
  c.type = type;
  c.sum_type = sum_type(type);
  c.tf32 = allows_tf32(graph, a.precision, 0);
  c.batch = at(input.dims, a.labels.input_batch);
  c.groups = a.feature_groups;
  c.input_features = at(input.dims, a.labels.input_feature);
  c.output_features = at(result.dims, a.labels.output_feature);
  c.input_strides = {at(input_strides, a.labels.input_batch), at(input_strides, a.labels.input_feature)};
  c.output_strides = {at(output_strides, a.labels.output_batch), at(output_strides, a.labels.output_feature)};
  std::vector<size_t> features_first{static_cast<size_t>(a.labels.kernel_output_feature),
                                     static_cast<size_t>(a.labels.kernel_input_feature)};
  std::vector<size_t> features_last{static_cast<size_t>(a.labels.kernel_output_feature)};
  for (size_t d = 0; d < size.size(); ++d) {
    if (holes[d] != 1 || reversal[d] != 0 || low[d] != high[d] || low[d] < 0) return false;
    c.dims.push_back(
        {at(input.dims, of_input[d]), size[d], at(result.dims, of_output[d]), stride[d], low[d], dilation[d]});
    c.input_strides.push_back(at(input_strides, of_input[d]));
    c.output_strides.push_back(at(output_strides, of_output[d]));
    features_first.push_back(static_cast<size_t>(of_filter[d]));
    features_last.push_back(static_cast<size_t>(of_filter[d]));
  }
  features_last.push_back(static_cast<size_t>(a.labels.kernel_input_feature));
  // cuDNN is fast if the filter has its input features innermost whenever the input has, and only then.
  c.filter_has_features_last = c.input_strides[1] == 1 && c.input_features > 1;
  const std::vector<size_t>& order = c.filter_has_features_last ? features_last : features_first;
  out.filter_order = is_ordered(order) ? std::vector<size_t>() : order;
  return true;
}

}  // namespace collet::codegen
