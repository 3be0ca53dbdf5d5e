// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_library.h"

#include <collet/codegen/kernel_contraction.h>
#include <collet/codegen/kernel_transform.h>

#include <bit>
#include <vector>

#include "sdk/codegen/kernel/loop_sets.h"
#include "sdk/codegen/lower/convolution.h"
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

}  // namespace

bool match_product(const Kernel& original, ProductMatch& out) {
  if (!find_contraction(original) || original.stores.size() != 1) return false;
  Kernel kernel = original;
  collapse_loops(kernel);
  const Contraction found = *find_contraction(kernel);
  if (!found.from_zero || !stores_sum(kernel)) return false;
  const uint32_t sum_type = found.type();
  const Expr* a = plain_load(kernel, before_conversion(kernel, found.a, sum_type));
  const Expr* b = plain_load(kernel, before_conversion(kernel, found.b, sum_type));
  if (!a || !b) return false;
  const Store& store = kernel.stores[0];
  if (store.buffer == a->buffer || store.buffer == b->buffer) return false;

  ProductLoops loops;
  const uint64_t both = found.of_a & found.of_b;
  const bool is_product = loops_of(kernel, store.index) == outer_loops(kernel) && (both & found.depth) == found.depth &&
                          (found.batch & ~both) == 0 && only_loop(found.rows, loops.rows) &&
                          only_loop(found.columns, loops.columns) && only_loop(found.batch, loops.batch) &&
                          only_loop(found.depth, loops.depth);
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
  p.c = matrix_of(kernel.exprs[static_cast<size_t>(store.value)].type, store.index, loops.batch, loops.rows,
                  loops.columns);
  p.sum_type = sum_type;
  p.tf32 = found.sum->tf32;
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

/// The attributes and arrays of a convolution.
struct ConvolutionNode {
  ConvolutionNode(const Graph& graph, const Node& node)
      : a(attributes<collet_convolution_attrs>(graph, node)),
        input(graph.type(node.operands[0])),
        filter(graph.type(node.operands[1])),
        result(graph.type(node.results[0])),
        size(integers(graph, a.window.size)),
        stride(integers(graph, a.window.stride)),
        low(integers(graph, a.window.padding_low)),
        high(integers(graph, a.window.padding_high)),
        holes(integers(graph, a.window.base_dilation)),
        dilation(integers(graph, a.window.window_dilation)),
        reversal(integers(graph, a.window.reversal)),
        of_input(integers(graph, a.labels.input_spatial)),
        of_filter(integers(graph, a.labels.kernel_spatial)),
        of_output(integers(graph, a.labels.output_spatial)) {}

  const collet_convolution_attrs a;
  const ArrayType &input, &filter, &result;
  const Dims size, stride, low, high, holes, dilation, reversal;
  const Dims of_input, of_filter, of_output;  ///< numbers of the arrays' spatial dimensions
};

int64_t at(const Dims& dims, int64_t d) {
  return dims[static_cast<size_t>(d)];
}

/// Returns the distances in an array along these dimensions.
std::vector<int64_t> strides_along(const ArrayType& array, int64_t batch, int64_t feature, const Dims& spatial) {
  const std::vector<int64_t> strides = strides_of(array.dims);
  std::vector<int64_t> out{at(strides, batch), at(strides, feature)};
  for (const int64_t d : spatial) out.push_back(at(strides, d));
  return out;
}

/// Returns the library's order of the filter's dimensions, which are given as those of the node's array that is the
/// filter. Empty if the array has that order.
std::vector<size_t> filter_order(int64_t output_feature, int64_t input_feature, const Dims& spatial,
                                 LibraryConvolution& c) {
  // cuDNN is fast if the filter has its input features innermost whenever the input has, and only then.
  c.filter_has_features_last = c.input_strides[1] == 1 && c.input_features > 1;
  std::vector<size_t> order{static_cast<size_t>(output_feature)};
  if (!c.filter_has_features_last) order.push_back(static_cast<size_t>(input_feature));
  for (const int64_t d : spatial) order.push_back(static_cast<size_t>(d));
  if (c.filter_has_features_last) order.push_back(static_cast<size_t>(input_feature));
  return is_ordered(order) ? std::vector<size_t>() : order;
}

/// Chooses a padding for both sides of a dimension, and a size of the input, with which the output has its size. `low` is
/// the padding that the begin needs; at the end, the input has no more elements. `before` and `behind` receive by how many
/// elements the array of the input grows, or shrinks if they are negative.
void fit_input(int64_t low, LibraryConvolution::Dimension& d, int64_t& before, int64_t& behind) {
  const int64_t reach = (d.window - 1) * d.dilation + 1, span = (d.output - 1) * d.stride + reach;
  const int64_t size = d.input;
  d.padding = std::max<int64_t>(low, 0);
  before = std::min<int64_t>(low, 0);
  d.input = size + before;
  const int64_t least = span - 2 * d.padding;
  if (d.input < 1 || d.input > least + d.stride - 1) {
    // With this padding at the end, too, there would be more outputs.
    d.padding = 0;
    before = low;
    d.input = span;
  } else {
    d.input = std::max(d.input, least);
  }
  behind = d.input - size - before;
}

/// Stores how the array of the input grows along its dimension `dimension`. `rank` is the array's.
void grow(int64_t before, int64_t behind, int64_t dimension, size_t rank, LibraryOrder& out) {
  if (before == 0 && behind == 0) return;
  out.low.resize(rank);
  out.high.resize(rank);
  out.low[static_cast<size_t>(dimension)] = before;
  out.high[static_cast<size_t>(dimension)] = behind;
}

/// Returns an array with other sizes of its spatial dimensions.
ArrayType resized(const ArrayType& array, const Dims& spatial, const LibraryConvolution& c) {
  ArrayType out = array;
  for (size_t d = 0; d < spatial.size(); ++d) out.dims[static_cast<size_t>(spatial[d])] = c.dims[d].input;
  return out;
}

bool match_forward(const ConvolutionNode& n, ConvolutionMatch& out) {
  LibraryConvolution& c = out.convolution;
  if (n.a.batch_groups != 1) return false;
  c.batch = at(n.input.dims, n.a.labels.input_batch);
  c.groups = n.a.feature_groups;
  c.input_features = at(n.input.dims, n.a.labels.input_feature);
  c.output_features = at(n.result.dims, n.a.labels.output_feature);
  c.output_strides = strides_along(n.result, n.a.labels.output_batch, n.a.labels.output_feature, n.of_output);
  for (size_t d = 0; d < n.size.size(); ++d) {
    LibraryConvolution::Dimension one{
        at(n.input.dims, n.of_input[d]), n.size[d], at(n.result.dims, n.of_output[d]), n.stride[d], 0, n.dilation[d]};
    int64_t before = 0, behind = 0;
    if (n.holes[d] != 1) return false;
    fit_input(n.low[d], one, before, behind);
    grow(before, behind, n.of_input[d], n.input.dims.size(), out.input);
    c.dims.push_back(one);
    if (n.reversal[d] != 0 && n.size[d] > 1) out.filter.reversed.push_back(static_cast<size_t>(n.of_filter[d]));
  }
  c.input_strides =
      strides_along(resized(n.input, n.of_input, c), n.a.labels.input_batch, n.a.labels.input_feature, n.of_input);
  out.filter.order = filter_order(n.a.labels.kernel_output_feature, n.a.labels.kernel_input_feature, n.of_filter, c);
  return true;
}

/// Element i of the gradient of the input is the sum of output elements o times filter elements (i + padding - o *
/// stride) / dilation. The node's window is that filter from its end to its begin.
bool match_input_gradient(const ConvolutionNode& n, ConvolutionMatch& out) {
  LibraryConvolution& c = out.convolution;
  if (n.a.batch_groups != 1) return false;
  c.direction = LibraryConvolution::Direction::kInputGradient;
  c.batch = at(n.input.dims, n.a.labels.input_batch);
  c.groups = n.a.feature_groups;
  c.input_features = at(n.result.dims, n.a.labels.output_feature);
  c.output_features = at(n.input.dims, n.a.labels.input_feature);
  c.output_strides = strides_along(n.input, n.a.labels.input_batch, n.a.labels.input_feature, n.of_input);
  bool is_resized = false;
  for (size_t d = 0; d < n.size.size(); ++d) {
    LibraryConvolution::Dimension one{
        at(n.result.dims, n.of_output[d]), n.size[d], at(n.input.dims, n.of_input[d]), n.holes[d], 0, n.dilation[d]};
    const int64_t padding = (n.size[d] - 1) * n.dilation[d] - n.low[d];
    int64_t before = 0, behind = 0;
    fit_input(padding, one, before, behind);
    // The library may write more elements at the end than there are: those are left out.
    if (n.stride[d] != 1 || before != 0 || behind < 0) return false;
    is_resized = is_resized || behind != 0;
    c.dims.push_back(one);
    if (n.reversal[d] == 0 && n.size[d] > 1) out.filter.reversed.push_back(static_cast<size_t>(n.of_filter[d]));
  }
  const ArrayType written = resized(n.result, n.of_output, c);
  if (is_resized) out.result_dims = written.dims;
  c.input_strides = strides_along(written, n.a.labels.output_batch, n.a.labels.output_feature, n.of_output);
  out.filter.order = filter_order(n.a.labels.kernel_input_feature, n.a.labels.kernel_output_feature, n.of_filter, c);
  out.filter.groups = c.groups;
  out.filter.grouped = static_cast<size_t>(n.a.labels.kernel_output_feature);
  return true;
}

/// The node takes the features of the input as its batch, the batch as its features, and the output's gradient as its
/// window; so its stride is the dilation of the convolution, and its dilation the stride.
bool match_filter_gradient(const ConvolutionNode& n, ConvolutionMatch& out) {
  LibraryConvolution& c = out.convolution;
  // Frontends have the batch outermost. An input whose outermost dimension is its batch is a convolution with a large
  // window, for which the library is faster if it knows that.
  if (n.a.feature_groups != 1 || n.a.labels.input_batch == 0) return false;
  c.direction = LibraryConvolution::Direction::kFilterGradient;
  c.batch = at(n.input.dims, n.a.labels.input_feature);
  c.groups = n.a.batch_groups;
  c.input_features = at(n.input.dims, n.a.labels.input_batch);
  c.output_features = at(n.result.dims, n.a.labels.output_feature);
  c.output_strides =
      strides_along(n.filter, n.a.labels.kernel_input_feature, n.a.labels.kernel_output_feature, n.of_filter);
  double window = 1, result = 1;
  for (size_t d = 0; d < n.size.size(); ++d) {
    LibraryConvolution::Dimension one{
        at(n.input.dims, n.of_input[d]), at(n.result.dims, n.of_output[d]), n.size[d], n.dilation[d], 0, n.stride[d]};
    int64_t before = 0, behind = 0;
    if (n.holes[d] != 1 || n.reversal[d] != 0) return false;
    fit_input(n.low[d], one, before, behind);
    grow(before, behind, n.of_input[d], n.input.dims.size(), out.input);
    c.dims.push_back(one);
    window *= static_cast<double>(n.size[d]);
    result *= static_cast<double>(one.window);
  }
  c.input_strides =
      strides_along(resized(n.input, n.of_input, c), n.a.labels.input_feature, n.a.labels.input_batch, n.of_input);
  out.result_order = filter_order(n.a.labels.output_feature, n.a.labels.output_batch, n.of_output, c);
  return window > result;
}

}  // namespace

bool match_convolution(const Graph& graph, const Node& node, ConvolutionMatch& out) {
  constexpr size_t kMostDims = 3;
  const ConvolutionNode n(graph, node);
  const uint32_t type = n.input.element;
  const bool is_float =
      type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64 || type == COLLET_TYPE_F16 || type == COLLET_TYPE_BF16;
  if (!is_float || n.filter.element != type || n.result.element != type) return false;
  if (n.size.empty() || n.size.size() > kMostDims || n.input.elements == 0 || n.filter.elements == 0 ||
      n.result.elements == 0)
    return false;
  for (const auto match : {match_filter_gradient, match_forward, match_input_gradient}) {
    out = {};
    out.convolution.type = type;
    out.convolution.sum_type = sum_type(type);
    out.convolution.tf32 = allows_tf32(graph, n.a.precision, 0);
    if (match(n, out)) return true;
  }
  return false;
}

}  // namespace collet::codegen
