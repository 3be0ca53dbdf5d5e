// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/convolution.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/lower.h"
#include "sdk/codegen/lower/window.h"

namespace collet::codegen {
uint32_t sum_type(uint32_t result) {
  return is_narrow_float(result) ? static_cast<uint32_t>(COLLET_TYPE_F32) : result;
}

bool allows_tf32(const Graph& graph, collet_range precision, uint32_t algorithm) {
  if (algorithm != 0) return algorithm == COLLET_ALGORITHM_TF32_TF32_F32;
  const Dims each = integers(graph, precision);
  return graph.tf32_by_default &&
         std::all_of(each.begin(), each.end(), [](int64_t p) { return p == COLLET_PRECISION_DEFAULT; });
}

namespace {

/// A kernel with at most this many products of f64 in total rounds each product and each sum. With more, a product and
/// its addition may be fused.

/// Adds the expressions that sum lhs * rhs over the inner loops and store the result.
void sum_of_products(KernelBuilder& builder, KernelPlan& plan, ExprId lhs, ExprId rhs, ValueId result,
                     const Index& index, uint32_t type, bool tf32, const Tuning& tuning) {
  const uint32_t sum = sum_type(type);
  ExprId product = builder.op(COLLET_OP_MULTIPLY, sum, {builder.convert(lhs, sum), builder.convert(rhs, sum)});
  Reduction r;
  r.combine = type == COLLET_TYPE_PRED ? COLLET_COMBINE_OR : COLLET_COMBINE_ADD;
  r.inputs = {product};
  r.inits = {builder.integer(sum, 0)};
  r.types = {sum};
  int64_t products = 1;
  for (const Loop& l : plan.kernel.loops) products *= l.size;
  r.contract = products > tuning.plain_products;
  r.tf32 = tf32 && sum == COLLET_TYPE_F32;
  plan.kernel.reductions.push_back(r);
  Expr reduced;
  reduced.op = ExprOp::kReduced;
  reduced.type = sum;
  reduced.b = static_cast<int64_t>(plan.kernel.reductions.size()) - 1;
  plan.kernel.exprs.push_back(reduced);
  ExprId value = builder.convert(static_cast<ExprId>(plan.kernel.exprs.size()) - 1, type);
  plan.kernel.stores.push_back({builder.output(result), value, index, kNoExpr});
  plan.writes.push_back(result);
  plan.buffers = builder.buffers();
}

int64_t at_dim(const ArrayType& t, int64_t d) {
  return t.dims[static_cast<size_t>(d)];
}

}  // namespace

std::pair<Position, Position> dot_positions(const Graph& graph, const Node& node, const Position& at,
                                            size_t contracting) {
  const auto a = attributes<collet_dot_attrs>(graph, node);
  const std::pair<Dims, Dims> batch{integers(graph, a.lhs_batch), integers(graph, a.rhs_batch)};
  const std::pair<Dims, Dims> summed{integers(graph, a.lhs_contracting), integers(graph, a.rhs_contracting)};
  std::pair<Position, Position> out;
  size_t next = batch.first.size();  // next dimension of the result
  const auto place = [&](size_t operand, const Dims& batch_dims, const Dims& summed_dims, Position& to) {
    const size_t rank = graph.type(node.operands[operand]).dims.size();
    to.at.resize(rank);
    for (size_t i = 0; i < batch_dims.size(); ++i) to[static_cast<size_t>(batch_dims[i])] = at[i];
    for (size_t d = 0; d < rank; ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (!contains(batch_dims, dim) && !contains(summed_dims, dim)) to[d] = at[next++];
    }
    for (size_t i = 0; i < summed_dims.size(); ++i)
      to[static_cast<size_t>(summed_dims[i])] = loop_index(contracting + i);
  };
  place(0, batch.first, summed.first, out.first);
  place(1, batch.second, summed.second, out.second);
  return out;
}

ExprId outer_product(KernelBuilder& builder, const Graph& graph, const Node& node, const Position& at, ExprId mask) {
  auto [lhs_at, rhs_at] = dot_positions(graph, node, at, 0);
  const auto a = attributes<collet_dot_attrs>(graph, node);
  for (int64_t d : integers(graph, a.lhs_contracting)) lhs_at[static_cast<size_t>(d)] = {};
  for (int64_t d : integers(graph, a.rhs_contracting)) rhs_at[static_cast<size_t>(d)] = {};
  const uint32_t type = graph.type(node.results[0]).element;
  const uint32_t sum = sum_type(type);
  const ExprId x = builder.convert(builder.value(node.operands[0], lhs_at, mask), sum);
  const ExprId y = builder.convert(builder.value(node.operands[1], rhs_at, mask), sum);
  ExprId product = builder.op(COLLET_OP_MULTIPLY, sum, {x, y});
  const uint32_t kind = collet_type_kind(sum);
  if (kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX) {  // a sum that begins with +0 is never -0
    constexpr uint64_t kZero[2] = {0, 0};
    product = builder.op(COLLET_OP_ADD, sum, {product, builder.constant(sum, kZero)});
  }
  return builder.convert(product, type);
}

KernelPlan dot_kernel(const Graph& graph, const Node& node, const InputTest& is_input, const Tuning& tuning) {
  const auto a = attributes<collet_dot_attrs>(graph, node);
  const ArrayType& lhs = graph.type(node.operands[0]);
  const ArrayType& type = graph.type(node.results[0]);
  KernelPlan plan;
  for (int64_t d : type.dims) plan.kernel.loops.push_back({d});
  plan.kernel.outer = type.dims.size();
  for (int64_t d : integers(graph, a.lhs_contracting)) plan.kernel.loops.push_back({at_dim(lhs, d)});
  const Position at = loop_position(0, type.dims.size());
  const auto [lhs_at, rhs_at] = dot_positions(graph, node, at, plan.kernel.outer);
  KernelBuilder builder(graph, plan.kernel, is_input);
  const ExprId x = builder.value(node.operands[0], lhs_at);
  const ExprId y = builder.value(node.operands[1], rhs_at);
  sum_of_products(builder, plan, x, y, node.results[0], builder.linear(at, type.dims), type.element,
                  allows_tf32(graph, a.precision, a.algorithm), tuning);
  return plan;
}

namespace {

/// Adds the loops over a result, and returns the position that they stand for. If there are several groups with several
/// features and `product_filters` filters each, the features are two loops, over groups and over the features of a group, so that
/// each group is a matrix product.
Position result_loops(const Convolution& c, int64_t product_filters, Kernel& k) {
  const Dims& dims = c.result_dims;
  Position at;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool split = d == c.output_feature && c.groups() > 1 && c.filters() >= product_filters && c.features() > 1;
    const Index loop = loop_index(k.loops.size());
    if (split) {
      k.loops.push_back({c.groups()});
      at.at.push_back(add_scaled(loop_index(k.loops.size()), loop, c.filters()));
      k.loops.push_back({c.filters()});
    } else {
      k.loops.push_back({dims[d]});
      at.at.push_back(loop);
    }
  }
  k.outer = k.loops.size();
  return at;
}

int64_t product_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

KernelPlan convolution_kernel(const Graph& graph, const Convolution& c, const InputTest& is_input, const Tuning& tuning,
                              bool tf32) {
  KernelPlan plan;
  Kernel& k = plan.kernel;
  const Position at = result_loops(c, tuning.product_filters, k);
  for (int64_t s : c.window.size) k.loops.push_back({s});
  k.loops.push_back({c.features()});
  KernelBuilder builder(graph, k, is_input);
  const Position taps = loop_position(k.outer, c.window.size.size() + 1);
  const ConvolutionPlaces places = convolution_places(builder, c, at, taps);
  ExprId x = builder.value(c.input, places.input, places.exists);
  ExprId y = builder.value(c.filter, places.filter);
  sum_of_products(builder, plan, x, y, c.result, builder.linear(at, c.result_dims), graph.type(c.result).element, tf32,
                  tuning);
  return plan;
}

/// Copies an input together with the padding of its window: zeros around it and, for a dilated input, between its
/// elements. The window of the copy needs neither. `order`: dimension d of the convolution's input is dimension order[d] of the
/// value; empty if both have the same order.
class Edges {
 public:
  Edges(const Graph& graph, Convolution& c, const Tuning& tuning, std::vector<size_t> order)
      : graph_(graph), c_(c), window_(c.window), tuning_(tuning), order_(std::move(order)) {}

  /// Returns where the copy is zero in the first dimension of the window.
  const std::optional<ZeroBorder>& border() const { return border_; }

  bool worthwhile() {
    if (product_of(c_.input_dims) == 0 || product_of(c_.result_dims) == 0) return false;
    dims_ = c_.input_dims;
    bool any = false;
    for (size_t d = 0; d < c_.input_spatial.size(); ++d) {
      const size_t dim = c_.input_spatial[d];
      const bool edges = window_.low[d] != 0 || window_.high[d] != 0;
      any = any || edges || window_.base_dilation[d] != 1;
      if (window_.low[d] < 0 || window_.high[d] < 0) return false;
      dims_[dim] = window_.low[d] + (c_.input_dims[dim] - 1) * window_.base_dilation[d] + 1 + window_.high[d];
      if (dims_[dim] > kLongestSide) return false;
    }
    const int64_t elements = product_of(dims_);
    const int64_t products = product_of(c_.result_dims) * product_of(window_.size) * c_.features();
    // A depthwise filter does little arithmetic per input element, so the copy would take most of the time.
    if (c_.features() == 1 && c_.feature_groups > 1) return false;
    const bool suits = c_.output_spatial.empty() ||
                       lines_suit(tuning_, c_.result_dims[c_.output_spatial.back()], product_of(c_.filter_dims));
    return any && suits && elements <= 8 * product_of(c_.input_dims) && elements * 4 <= products;
  }

  /// Adds the kernels that write the copy, and changes the convolution to one of the copy, without padding.
  void copy(const InputTest& is_input, const MakeValue& make, std::vector<KernelPlan>& out) {
    const uint32_t type = sum_type(graph_.type(c_.input).element);
    separate_lines(type);
    const ValueId copy = make(type, dims_);
    set_border(copy);
    if (!order_.empty() || !whole_lines(copy, type, is_input, out)) {
      out.push_back(zeros(copy, type, is_input));
      out.push_back(elements(copy, type, is_input));
    }
    for (size_t d = 0; d < window_.low.size(); ++d) {
      window_.low[d] = window_.high[d] = 0;
      window_.base_dilation[d] = 1;
    }
    c_.input = copy;
    c_.input_dims = dims_;
  }

 private:
  static constexpr int64_t kLongestSide = int64_t{1} << 24;

  /// Returns, for each dimension of the input, its dimension in the window, or -1 if it has none.
  std::vector<int64_t> window_dims() const {
    std::vector<int64_t> r(dims_.size(), -1);
    for (size_t d = 0; d < c_.input_spatial.size(); ++d) r[c_.input_spatial[d]] = static_cast<int64_t>(d);
    return r;
  }

  /// Adds one kernel that writes line by line, including the zeros. The dimensions from the window's last one on form
  /// one line in both arrays. Returns false if they do not.
  bool whole_lines(ValueId copy, uint32_t type, const InputTest& is_input, std::vector<KernelPlan>& out) const {
    const Dims& input = c_.input_dims;
    const std::vector<int64_t> of_window = window_dims();
    size_t line = dims_.size() - 1;
    while (line > 0 && of_window[line] < 0) --line;
    int64_t inside = 1;
    for (size_t d = line + 1; d < dims_.size(); ++d) {
      if (dims_[d] != input[d]) return false;
      inside *= dims_[d];
    }
    const Dims steps = strides_of(input);
    KernelPlan plan;
    for (size_t d = 0; d < line; ++d) plan.kernel.loops.push_back({dims_[d]});
    plan.kernel.loops.push_back({dims_[line] * inside});
    plan.kernel.outer = plan.kernel.loops.size();
    KernelBuilder builder(graph_, plan.kernel, is_input);
    Index from;
    ExprId mask = kNoExpr;
    for (size_t d = 0; d <= line; ++d) {
      const int64_t width = d == line ? inside : 1;
      Index at = loop_index(d);
      if (of_window[d] >= 0) {
        const auto w = static_cast<size_t>(of_window[d]);
        if (window_.base_dilation[w] != 1) return false;
        at.constant = -window_.low[w] * width;
        mask = builder.both(mask, builder.in_range(at, input[d] * width));
      }
      from = add_scaled(from, at, d == line ? 1 : steps[d]);
    }
    const ExprId x = builder.convert(builder.load_at(c_.input, from, mask), type);
    Index to;
    const Dims to_steps = strides_of(dims_);
    for (size_t d = 0; d <= line; ++d) to = add_scaled(to, loop_index(d), d == line ? 1 : to_steps[d]);
    plan.kernel.stores.push_back({builder.output(copy), x, to, kNoExpr});
    plan.buffers = builder.buffers();
    plan.writes = {copy};
    out.push_back(std::move(plan));
    return true;
  }

  KernelPlan zeros(ValueId copy, uint32_t type, const InputTest& is_input) const {
    KernelPlan fill;
    fill.kernel.loops = {{graph_.type(copy).elements}};
    fill.kernel.outer = 1;
    KernelBuilder builder(graph_, fill.kernel, is_input);
    const ExprId zero = builder.integer(type, 0);
    fill.kernel.stores.push_back({builder.output(copy), zero, loop_index(0), kNoExpr});
    fill.buffers = builder.buffers();
    fill.writes = {copy};
    return fill;
  }

  KernelPlan elements(ValueId copy, uint32_t type, const InputTest& is_input) const {
    KernelPlan put;
    for (int64_t d : c_.input_dims) put.kernel.loops.push_back({d});
    put.kernel.outer = put.kernel.loops.size();
    KernelBuilder builder(graph_, put.kernel, is_input);
    Position at = loop_position(0, put.kernel.loops.size());
    Position from = at;
    for (size_t d = 0; d < order_.size(); ++d) from.at[order_[d]] = at[d];
    const ExprId x = builder.convert(builder.value(c_.input, from), type);
    for (size_t d = 0; d < c_.input_spatial.size(); ++d) {
      Index to;
      to.constant = window_.low[d];
      const size_t dim = c_.input_spatial[d];
      at[dim] = add_scaled(to, at[dim], window_.base_dilation[d]);
    }
    put.kernel.stores.push_back({builder.output(copy), x, builder.linear(at, dims_), kNoExpr});
    put.buffers = builder.buffers();
    put.writes = {copy};
    return put;
  }

  void set_border(ValueId copy) {
    const std::vector<int64_t> of_window = window_dims();
    const auto found = std::find_if(of_window.begin(), of_window.end(), [](int64_t d) { return d >= 0; });
    if (found == of_window.end()) return;
    const auto dim = static_cast<size_t>(found - of_window.begin());
    const auto w = static_cast<size_t>(*found);
    const int64_t step = strides_of(dims_)[dim];
    border_ = ZeroBorder{copy, dims_[dim] * step, step, window_.low[w], dims_[dim] - window_.low[w] - window_.high[w]};
  }

  /// Pads lines, because lines a power of two apart are placed in the same cache sets.
  void separate_lines(uint32_t type) {
    const auto bytes = static_cast<int64_t>(collet_type_bytes(type));
    const size_t last = dims_.size() - 1;
    // Groups of a batch are a part of its elements apart.
    const bool channels = last == c_.input_feature || (last == c_.input_batch && c_.batch_groups == 1);
    if (channels && dims_[last] * bytes % 2048 == 0) dims_[last] += 64 / bytes;
  }

  const Graph& graph_;
  Convolution& c_;
  Window& window_;
  const Tuning& tuning_;
  std::vector<size_t> order_;
  Dims dims_;
  std::optional<ZeroBorder> border_;
};

/// Computes a convolution of a dilated input without multiplying by the zeros between its elements. Results that are a
/// certain step apart in a dimension use the same elements of the window; they form a phase. A group is a sequence of phases
/// in which each has the same distance from the one before, in the result and in the window. It is a loop of a kernel, so
/// that the number of kernels does not grow with the dilation. One kernel computes the results of one combination of groups.
class Phases {
 public:
  Phases(const Graph& graph, const Convolution& c, const InputTest& is_input, const MakeValue& make,
         const Tuning& tuning, bool tf32)
      : graph_(graph), is_input_(is_input), make_(make), tuning_(tuning), tf32_(tf32), c_(c), window_(c_.window) {}

  bool run(std::vector<KernelPlan>& out) {
    if (!find()) return false;
    if (has_edges() && copy_is_small()) copy_input(out);
    const ValueId result = c_.result;
    const uint32_t type = graph_.type(result).element;
    if (sum_type(type) != type) c_.result = make_(sum_type(type), c_.result_dims);
    std::vector<const Group*> now(groups_.size());
    each(0, now, out);
    if (result != c_.result) out.push_back(convert_kernel(graph_, c_.result, result));
    return true;
  }

 private:
  static constexpr size_t kMostKernels = 64;  ///< each dimension of an undilated window has at most four groups

  /// A phase of one dimension: the results first, first + step, ..., and the elements of the window that they use.
  struct Phase {
    int64_t first = 0;
    int64_t count = 0;
    int64_t first_tap = 0;
    int64_t taps = 0;
  };

  /// `phases` phases of one dimension. From one to the next, the first result moves by `step`, and the first element of
  /// the window by `tap_step`.
  struct Group {
    Phase phase;
    int64_t phases = 1;
    int64_t step = 0;
    int64_t tap_step = 0;
  };

  bool find() {
    if (product_of(c_.input_dims) == 0 || product_of(c_.result_dims) == 0) return false;
    if (graph_.type(c_.result).element == COLLET_TYPE_PRED) return false;
    size_t all = 1;
    bool any = false;
    dims_ = c_.input_dims;
    for (size_t d = 0; d < c_.input_spatial.size(); ++d) {
      const int64_t dilation = window_.base_dilation[d];
      any = any || dilation != 1;
      const int64_t extent = c_.input_dims[c_.input_spatial[d]];
      const int64_t outputs = c_.result_dims[c_.output_spatial[d]];
      for (int64_t n : {dilation, extent, outputs, window_.size[d], window_.stride[d], window_.dilation[d]}) {
        if (n > kLargest) return false;
      }
      if (std::abs(window_.low[d]) > kLargest || std::abs(window_.high[d]) > kLargest) return false;
      steps_.push_back(dilation / std::gcd(dilation, window_.stride[d]));
      tap_steps_.push_back(dilation / std::gcd(dilation, window_.dilation[d]));
      const std::vector<Phase> phases = find_phases(d, outputs);
      groups_.push_back(find_groups(phases));
      all *= groups_.back().size();
      if (all > kMostKernels) return false;
      find_edges(d, extent, phases);
      dims_[c_.input_spatial[d]] = before_[d] + extent + after_[d];
    }
    return any;
  }

  /// True if a copy of the input with its edges takes little memory beside the input and the result.
  bool copy_is_small() const { return product_of(dims_) <= 4 * product_of(c_.input_dims) + product_of(c_.result_dims); }

  std::vector<Phase> find_phases(size_t d, int64_t outputs) const {
    std::vector<Phase> found;
    for (int64_t first = 0; first < std::min(steps_[d], outputs); ++first) {
      Phase phase{first, (outputs - first + steps_[d] - 1) / steps_[d], 0, 0};
      for (int64_t tap = 0; tap < std::min(tap_steps_[d], window_.size[d]); ++tap) {
        if (place(d, first, tap) % window_.base_dilation[d] != 0) continue;
        phase.first_tap = tap;
        phase.taps = (window_.size[d] - tap + tap_steps_[d] - 1) / tap_steps_[d];
        break;
      }
      found.push_back(phase);
    }
    return found;
  }

  /// Divides phases into groups. With a stride or a dilation of the window, neighbouring phases may use elements of the window
  /// that are not equally far apart, but phases with a certain number of others between them do. Tries such numbers, and
  /// returns the fewest groups.
  static std::vector<Group> find_groups(const std::vector<Phase>& phases) {
    constexpr size_t kMostStrides = 64;
    std::vector<Group> best = groups_of(phases, 1);
    for (size_t stride = 2; stride <= std::min(phases.size() / 2, kMostStrides) && best.size() > 4; ++stride) {
      std::vector<Group> found = groups_of(phases, stride);
      if (found.size() < best.size()) best = std::move(found);
    }
    return best;
  }

  static std::vector<Group> groups_of(const std::vector<Phase>& phases, size_t stride) {
    std::vector<Group> groups;
    for (size_t start = 0; start < std::min(stride, phases.size()); ++start) {
      groups.push_back({phases[start]});
      for (size_t i = start + stride; i < phases.size(); i += stride) {
        const Phase& p = phases[i];
        Group& last = groups.back();
        const Phase& first = last.phase;
        const int64_t step = p.first - phases[i - stride].first;
        const int64_t tap_step = p.taps == 0 ? 0 : p.first_tap - phases[i - stride].first_tap;
        const bool fits = p.count == first.count && p.taps == first.taps &&
                          (last.phases == 1 || (step == last.step && tap_step == last.tap_step));
        if (!fits) {
          groups.push_back({p});
          continue;
        }
        last.step = step;
        last.tap_step = tap_step;
        ++last.phases;
      }
    }
    return groups;
  }

  /// Returns the position in the dilated input that element `tap` of the window has for result `result`.
  int64_t place(size_t d, int64_t result, int64_t tap) const {
    return result * window_.stride[d] + tap * window_.dilation[d] - window_.low[d];
  }

  /// Computes how far the window reaches beyond the input.
  void find_edges(size_t d, int64_t extent, const std::vector<Phase>& phases) {
    int64_t before = 0;
    int64_t after = 0;
    for (const Phase& p : phases) {
      if (p.taps == 0) continue;
      const int64_t first = place(d, p.first, p.first_tap) / window_.base_dilation[d];
      const int64_t last = place(d, p.first + (p.count - 1) * steps_[d], p.first_tap + (p.taps - 1) * tap_steps_[d]) /
                           window_.base_dilation[d];
      before = std::max(before, -first);
      after = std::max(after, last - (extent - 1));
    }
    before_.push_back(before);
    after_.push_back(after);
  }

  bool has_edges() const {
    const auto is_some = [](int64_t n) { return n != 0; };
    return std::any_of(before_.begin(), before_.end(), is_some) || std::any_of(after_.begin(), after_.end(), is_some);
  }

  /// Copies the input with zeros around it, and changes the convolution to one of the copy.
  void copy_input(std::vector<KernelPlan>& out) {
    const uint32_t type = sum_type(graph_.type(c_.input).element);
    const ValueId copy = make_(type, dims_);
    KernelPlan plan;
    for (int64_t d : dims_) plan.kernel.loops.push_back({d});
    plan.kernel.outer = dims_.size();
    KernelBuilder builder(graph_, plan.kernel, is_input_);
    Position at = loop_position(0, dims_.size());
    const Index to = builder.linear(at, dims_);
    ExprId mask = kNoExpr;
    for (size_t d = 0; d < c_.input_spatial.size(); ++d) {
      const size_t dim = c_.input_spatial[d];
      at[dim].constant -= before_[d];
      mask = builder.both(mask, builder.in_range(at[dim], c_.input_dims[dim]));
      window_.low[d] -= before_[d] * window_.base_dilation[d];
    }
    const ExprId x = builder.convert(builder.value(c_.input, at, mask), type);
    plan.kernel.stores.push_back({builder.output(copy), x, to, kNoExpr});
    plan.buffers = builder.buffers();
    plan.writes = {copy};
    out.push_back(std::move(plan));
    c_.input = copy;
    c_.input_dims = dims_;
  }

  void each(size_t d, std::vector<const Group*>& now, std::vector<KernelPlan>& out) const {
    if (d == groups_.size()) {
      out.push_back(kernel(now));
      return;
    }
    for (const Group& g : groups_[d]) {
      now[d] = &g;
      each(d + 1, now, out);
    }
  }

  KernelPlan kernel(const std::vector<const Group*>& now) const {
    KernelPlan plan;
    Kernel& k = plan.kernel;
    std::vector<size_t> window_dim(c_.result_dims.size(), SIZE_MAX);
    for (size_t d = 0; d < now.size(); ++d) window_dim[c_.output_spatial[d]] = d;
    Position at;
    std::vector<Index> phase(now.size());  // the number of the phase within its group
    for (size_t dim = 0; dim < c_.result_dims.size(); ++dim) {
      const size_t d = window_dim[dim];
      const Index loop = loop_index(k.loops.size());
      if (d == SIZE_MAX) {
        k.loops.push_back({c_.result_dims[dim]});
        at.at.push_back(loop);
        continue;
      }
      const Group& g = *now[d];
      k.loops.push_back({g.phase.count});
      Index result_at;
      result_at.constant = g.phase.first;
      result_at = add_scaled(result_at, loop, steps_[d]);
      if (g.phases > 1) {
        phase[d] = loop_index(k.loops.size());
        k.loops.push_back({g.phases});
        result_at = add_scaled(result_at, phase[d], g.step);
      }
      at.at.push_back(result_at);
    }
    k.outer = k.loops.size();
    const bool none = std::any_of(now.begin(), now.end(), [](const Group* g) { return g->phase.taps == 0; });
    if (none) return zeros(std::move(plan), at);
    Position taps;
    for (size_t d = 0; d < now.size(); ++d) {
      Index tap;
      tap.constant = now[d]->phase.first_tap;
      tap = add_scaled(tap, phase[d], now[d]->tap_step);
      taps.at.push_back(add_scaled(tap, loop_index(k.loops.size()), tap_steps_[d]));
      k.loops.push_back({now[d]->phase.taps});
    }
    taps.at.push_back(loop_index(k.loops.size()));
    k.loops.push_back({c_.features()});
    KernelBuilder builder(graph_, k, is_input_);
    const ConvolutionPlaces places = convolution_places(builder, c_, at, taps);
    const ExprId x = builder.value(c_.input, places.input, places.exists);
    const ExprId y = builder.value(c_.filter, places.filter);
    sum_of_products(builder, plan, x, y, c_.result, builder.linear(at, c_.result_dims), graph_.type(c_.result).element,
                    tf32_, tuning_);
    return plan;
  }

  KernelPlan zeros(KernelPlan plan, const Position& at) const {
    KernelBuilder builder(graph_, plan.kernel, is_input_);
    const ExprId zero = builder.integer(graph_.type(c_.result).element, 0);
    plan.kernel.stores.push_back({builder.output(c_.result), zero, builder.linear(at, c_.result_dims), kNoExpr});
    plan.buffers = builder.buffers();
    plan.writes = {c_.result};
    return plan;
  }

  static constexpr int64_t kLargest = int64_t{1} << 20;

  const Graph& graph_;
  const InputTest& is_input_;
  const MakeValue& make_;
  const Tuning& tuning_;
  const bool tf32_;
  Convolution c_;
  Window& window_;
  std::vector<std::vector<Group>> groups_;  ///< groups of phases, by dimension of the window
  /// Distances between the results, and between the window elements, of a phase.
  Dims steps_, tap_steps_;
  Dims before_, after_;  ///< numbers of zeros before and after the input
  Dims dims_;            ///< dimensions of the input with the zeros
};

/// Lowers a convolution. `order`: that of its input's dimensions, see Edges. It may be given if the edges are copied.
void convolution_in_order(const Graph& graph, Convolution& c, const InputTest& is_input, const MakeValue& make,
                          bool tf32, const NodeLimits& limits, std::vector<KernelPlan>& out,
                          std::vector<size_t> order = {}) {
  if (Phases(graph, c, is_input, make, limits.tuning, tf32).run(out)) return;
  Edges edges(graph, c, limits.tuning, std::move(order));
  if (edges.worthwhile()) edges.copy(is_input, make, out);
  out.push_back(convolution_kernel(graph, c, is_input, limits.tuning, tf32));
  out.back().zero_border = edges.border();
}

/// Makes the features the last dimension of the result, and the features or the batch that of the input, whichever gives
/// a product whose operands can be read where they are. In another order, neighbouring results of a line are the columns
/// of the product, and its other operand is a matrix with the patch of the input of each result.
class FeatureOrder {
 public:
  FeatureOrder(const Graph& graph, Convolution& c, const Tuning& tuning) : graph_(graph), c_(c), tuning_(tuning) {
    // The window of a filter's gradient is as large as an image, and its results as few as the elements of the filter.
    batch_last_ = product_of(c_.window.size) > spatial_results();
    input_order_ = order(batch_last_ ? c_.input_feature : c_.input_batch, c_.input_spatial,
                         batch_last_ ? c_.input_batch : c_.input_feature, false);
    result_order_ = order(c_.output_batch, c_.output_spatial, c_.output_feature, batch_last_);
  }

  /// Compares the time of both orders, in elements that are moved. Patches are packed where a cache holds them, for a line of results
  /// at a time; copies, and the patches of a single line, are written to memory and read. Those must not take more memory than copies.
  bool worthwhile() const {
    if (product_of(c_.input_dims) == 0 || product_of(c_.result_dims) == 0) return false;
    if (c_.output_spatial.empty() || last(c_.result_dims) == c_.output_feature) return false;
    const int64_t input = product_of(c_.input_dims);
    const int64_t result = product_of(c_.result_dims);
    const int64_t patches = result / c_.filters() * product_of(c_.window.size) * c_.features();
    const double products = static_cast<double>(patches) * static_cast<double>(c_.filters());
    const int64_t lines = result / c_.result_dims[c_.output_feature] / c_.result_dims[c_.output_spatial.back()];
    const bool at_once = lines * c_.groups() == 1;
    if (at_once && patches > input + result) return true;
    const double now =
        static_cast<double>(at_once ? 2 * patches : patches) + products * idle(phases(c_.output_spatial.back()));
    const double then = 2.0 * static_cast<double>(input + result) + products * idle(c_.filters());
    return patches > input && now > then;
  }

  /// Changes the convolution, and adds the kernel that transposes the input, if need be. If the input is copied with its edges
  /// anyway, that copy is in the new order, and `order` is set to it. Returns the result before.
  ValueId apply(const InputTest& is_input, const MakeValue& make, std::vector<KernelPlan>& out,
                std::vector<size_t>& order) {
    if (last(c_.input_dims) != input_order_.back()) {
      c_.input_dims = permuted(c_.input_dims, input_order_);
      renumber(input_order_, c_.input_batch, c_.input_feature, c_.input_spatial);
      const bool is_dilated = std::any_of(c_.window.base_dilation.begin(), c_.window.base_dilation.end(),
                                          [](int64_t dilation) { return dilation != 1; });
      if (!is_dilated && Edges(graph_, c_, tuning_, input_order_).worthwhile()) {
        order = input_order_;
      } else {
        const ValueId copy = make(graph_.type(c_.input).element, c_.input_dims);
        out.push_back(transpose(is_input, copy));
        c_.input = copy;
      }
    }
    const ValueId result = c_.result;
    c_.result_dims = permuted(c_.result_dims, result_order_);
    c_.result = make(sum_type(graph_.type(result).element), c_.result_dims);
    renumber(result_order_, c_.output_batch, c_.output_feature, c_.output_spatial);
    return result;
  }

  /// Returns the kernel that writes the result in its own order.
  KernelPlan restore(ValueId result) const {
    std::vector<size_t> back(result_order_.size());
    for (size_t i = 0; i < back.size(); ++i) back[result_order_[i]] = i;
    return permute_kernel(graph_, c_.result, back, result);
  }

 private:
  int64_t spatial_results() const {
    int64_t n = 1;
    for (size_t d : c_.output_spatial) n *= c_.result_dims[d];
    return n;
  }

  static size_t last(const Dims& dims) {
    size_t d = dims.size() - 1;
    while (d > 0 && dims[d] == 1) --d;
    return d;
  }

  static std::vector<size_t> order(size_t first, const std::vector<size_t>& spatial, size_t last, bool spatial_first) {
    std::vector<size_t> all(spatial);
    all.insert(spatial_first ? all.end() : all.begin(), first);
    all.push_back(last);
    return all;
  }

  static Dims permuted(const Dims& dims, const std::vector<size_t>& order) {
    Dims out;
    for (size_t d : order) out.push_back(dims[d]);
    return out;
  }

  static void renumber(const std::vector<size_t>& order, size_t& batch, size_t& feature, std::vector<size_t>& spatial) {
    const auto place = [&](size_t d) {
      return static_cast<size_t>(std::find(order.begin(), order.end(), d) - order.begin());
    };
    batch = place(batch);
    feature = place(feature);
    for (size_t& d : spatial) d = place(d);
  }

  /// Returns the number of neighbouring results in dimension `d` that one kernel computes.
  int64_t phases(size_t d) const {
    const int64_t dilation = c_.window.base_dilation.back();
    const int64_t step = dilation / std::gcd(dilation, c_.window.stride.back());
    return step == 1 ? c_.result_dims[d] : std::min(step, c_.result_dims[d]);
  }

  /// Returns the time of one product, in elements moved, of rows of `columns` results.
  double idle(int64_t columns) const {
    return static_cast<double>(assumed_vectors(columns) * 16) / static_cast<double>(columns) / tuning_.products_of_move;
  }

  /// Returns the kernel that copies the input, whose dimensions are already those of the new order.
  KernelPlan transpose(const InputTest& is_input, ValueId copy) const {
    KernelPlan plan;
    const Dims& dims = c_.input_dims;
    for (int64_t d : dims) plan.kernel.loops.push_back({d});
    plan.kernel.outer = dims.size();
    KernelBuilder builder(graph_, plan.kernel, is_input);
    Position at;
    at.at.resize(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) at[input_order_[d]] = loop_index(d);
    const ExprId x = builder.value(c_.input, at);
    plan.kernel.stores.push_back(
        {builder.output(copy), x, builder.linear(loop_position(0, dims.size()), dims), kNoExpr});
    plan.buffers = builder.buffers();
    plan.writes = {copy};
    return plan;
  }

  const Graph& graph_;
  Convolution& c_;
  const Tuning& tuning_;
  bool batch_last_ = false;
  std::vector<size_t> input_order_, result_order_;
};

}  // namespace

void convolution_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                         const NodeLimits& limits, std::vector<KernelPlan>& out) {
  const bool tf32 = allows_tf32(graph, attributes<collet_convolution_attrs>(graph, node).precision, 0);
  Convolution c = convolution_of(graph, node);
  FeatureOrder features(graph, c, limits.tuning);
  if (limits.moves_features && c.filters() >= limits.tuning.product_filters && features.worthwhile()) {
    std::vector<size_t> order;
    const ValueId result = features.apply(is_input, make, out, order);
    convolution_in_order(graph, c, is_input, make, tf32, limits, out, std::move(order));
    out.push_back(features.restore(result));
  } else {
    convolution_in_order(graph, c, is_input, make, tf32, limits, out);
  }
}

}  // namespace collet::codegen
