// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/reduce_window.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/window.h"

namespace collet::codegen {
namespace {

/// Prefix products of more numbers are computed in product_type: one of 64 numbers has an error of 64 roundings at most.
constexpr int64_t kFewFactors = 64;

/// The type of accumulators for a result of `type`.
uint32_t accumulator_type(uint32_t type) {
  return is_narrow_float(type) ? static_cast<uint32_t>(COLLET_TYPE_F32) : type;
}

/// Returns how result `i` of a body combines its arguments: one of the known combinations, or OTHER.
uint32_t combine_of(const Graph& graph, const Block& block, size_t i, uint32_t type) {
  const size_t n = block.results.size();
  uint32_t combine = COLLET_COMBINE_OTHER;
  if (n == 1) {
    combine = block.combine <= COLLET_COMBINE_XOR ? block.combine : combine;
  } else if (const Node* node = graph.def(block.results[i]); node && node->operands.size() == 2) {
    const ValueId held = block.arguments[i];
    const ValueId next = block.arguments[n + i];
    const auto& operands = node->operands;
    const bool both = (operands[0] == held && operands[1] == next) || (operands[0] == next && operands[1] == held);
    for (uint32_t c = COLLET_COMBINE_ADD; both && c <= COLLET_COMBINE_XOR; ++c) {
      if (combine_opcode(c) == node->opcode) combine = c;
    }
  }
  const bool ordered = combine == COLLET_COMBINE_MINIMUM || combine == COLLET_COMBINE_MAXIMUM;
  return ordered && collet_type_kind(type) == COLLET_KIND_COMPLEX ? static_cast<uint32_t>(COLLET_COMBINE_OTHER)
                                                                  : combine;
}

/// Operands that are reduced together, their initial values, their results, and the combination.
struct Group {
  std::vector<ValueId> operands;
  std::vector<ValueId> inits;
  std::vector<ValueId> results;
  uint32_t combine = COLLET_COMBINE_OTHER;
};

enum class Mode : uint8_t {
  kNone,       ///< the window does nothing in this dimension
  kDirect,     ///< every window is reduced by itself
  kForward,    ///< all windows begin before the operand, so the results are a scan
  kBackward,   ///< all windows end after the operand, so the results are a scan in reverse
  kBlockScans  ///< the results combine scans of blocks, see reduce_window.h
};

class Folder {
 public:
  Folder(const Graph& graph, const Block& block, const Window& window, const InputTest& is_input, const MakeValue& make,
         const NodeLimits& limits, std::vector<KernelPlan>& out)
      : graph_(graph), block_(block), window_(window), is_input_(is_input), make_(make), limits_(limits), out_(out) {}

  void run(const Group& group) {
    group_ = group;
    from_ = graph_.type(group.operands[0]).dims;
    to_ = graph_.type(group.results[0]).dims;
    values_ = group.operands;
    const std::vector<Pass> passes = choose();
    for (const Pass& p : passes) {
      const bool last = &p == &passes.back();
      const ValueId result = group_.results[0];
      const bool is_long = p.mode != Mode::kDirect && from_[p.dims[0]] > kFewFactors;
      const uint32_t type = product_type(group_.combine, graph_.type(result).element);
      if (!last || !is_long || type == 0 || !limits_.widens_products) {
        run(p, last);
        continue;
      }
      group_.results[0] = make_(type, to_);
      run(p, true);
      out_.push_back(convert_kernel(graph_, group_.results[0], result));
    }
  }

 private:
  /// A step that reduces some dimensions: several at once if the mode is kDirect, else one.
  struct Pass {
    Mode mode = Mode::kDirect;
    std::vector<size_t> dims;
  };

  bool known() const { return group_.combine != COLLET_COMBINE_OTHER; }

  // Choice of the passes.

  /// True if the window neither reduces nor moves elements in dimension `d`.
  bool is_trivial(size_t d) const {
    return window_.size[d] == 1 && window_.stride[d] == 1 && window_.low[d] == 0 && window_.base_dilation[d] == 1 &&
           from_[d] == to_[d];
  }

  /// Returns the product of the operand's dimensions from `d` on.
  int64_t elements_from(size_t d) const {
    return std::accumulate(from_.begin() + static_cast<int64_t>(d), from_.end(), int64_t{1}, std::multiplies<>());
  }

  Mode mode_of(size_t d) const {
    if (is_trivial(d)) return Mode::kNone;
    const Tuning& tuning = limits_.tuning;
    const int64_t n = from_[d];
    const int64_t m = to_[d];
    const int64_t taps = taps_of(window_, d, n, m).iterations;
    // A scan whose lanes are columns, or many short rows, takes one step for each element. One along the lanes takes
    // several.
    const int64_t columns = elements_from(d + 1);
    const bool in_rows = columns == 1 && m <= tuning.scanned_short_row && elements_from(0) >= tuning.scan_rows * n;
    const bool in_columns = known() && (columns >= tuning.scan_columns || in_rows);
    if (taps <= (in_columns ? 2 : tuning.direct_window)) return Mode::kDirect;
    const auto cost = static_cast<double>(taps) * static_cast<double>(m);
    if (window_.stride[d] == 1 && window_.base_dilation[d] == 1 && window_.dilation[d] == 1 &&
        cost > (in_columns ? 1 : tuning.scan_cost) * static_cast<double>(n + m)) {
      if (window_.low[d] >= m - 1) return Mode::kForward;
      if (window_.size[d] - n >= window_.low[d]) return Mode::kBackward;
    }
    if (!known() || taps <= tuning.direct_window) return Mode::kDirect;
    const Reach reach = reach_of(window_, d, n, m);
    const double positions = static_cast<double>(m) * static_cast<double>(window_.stride[d]) +
                             static_cast<double>(reach.count) * static_cast<double>(window_.dilation[d]);
    return cost > tuning.block_scan_cost * positions ? Mode::kBlockScans : Mode::kDirect;
  }

  std::vector<Pass> choose() const {
    std::vector<Pass> passes;
    Pass direct;
    double taps = 1;
    double separate = 0;
    for (size_t d = 0; d < from_.size(); ++d) {
      const Mode mode = mode_of(d);
      if (mode == Mode::kNone) continue;
      if (mode != Mode::kDirect) {
        passes.push_back({mode, {d}});
        continue;
      }
      direct.dims.push_back(d);
      const auto iterations = static_cast<double>(taps_of(window_, d, from_[d], to_[d]).iterations);
      taps *= iterations;
      separate += iterations;
    }
    const bool empty = std::find(to_.begin(), to_.end(), 0) != to_.end();
    const size_t dims = passes.size() + direct.dims.size();
    // A body that need not be associative must be applied in the order of the window's positions.
    if (empty || (!known() && dims > 1)) {
      direct.dims.resize(from_.size());
      std::iota(direct.dims.begin(), direct.dims.end(), size_t{0});
      return {direct};
    }
    if (known() && direct.dims.size() > 1 && taps > static_cast<double>(limits_.tuning.joint_window) &&
        taps > 4 * separate) {
      for (size_t d : direct.dims) passes.push_back({Mode::kDirect, {d}});
    } else if (!direct.dims.empty() || passes.empty()) {
      passes.push_back(direct);
    }
    return passes;
  }

  /// Reduces the dimensions of pass `p`: into the group's results if it is the last pass, else into temporary arrays.
  void run(const Pass& p, bool last) {
    Dims dims = from_;
    for (size_t d : p.dims) dims[d] = to_[d];
    std::vector<ValueId> targets = group_.results;
    if (!last) {
      for (ValueId& v : targets) v = make_(accumulator_type(graph_.type(v).element), dims);
    }
    if (p.mode == Mode::kDirect) {
      direct(p.dims, dims, targets, last);
    } else if (p.mode == Mode::kBlockScans) {
      block_scans(p.dims[0], targets[0], last);
    } else {
      edge_scan(p.mode == Mode::kBackward, p.dims[0], targets, last);
    }
    values_ = targets;
    from_ = dims;
  }

  // Scans.

  /// The order in which a scan visits one dimension. Iteration t of block b of class c is position
  /// (b * length + t) * classes + c. Element e of the operand is at position e * spread + offset; other positions are empty.
  struct ScanOrder {
    size_t d = 0;
    int64_t classes = 1;
    int64_t blocks = 1;
    int64_t length = 0;
    int64_t spread = 1;
    int64_t offset = 0;
    int64_t shift = 0;  ///< the result of a position is stored at the position plus this
    bool reverse = false;
  };

  /// The loops of an order, and the index of their point in an array with the dimensions from_.
  struct ScanLoops {
    KernelPlan plan;
    Position at;      ///< set for all dimensions but d
    Index block;      ///< number of the block
    Index iteration;  ///< number of the iteration, counted over all blocks
    Index from_class;
  };

  ScanLoops nest(const ScanOrder& w) const {
    ScanLoops n;
    n.at.at.resize(from_.size());
    Kernel& k = n.plan.kernel;
    auto add = [&](int64_t size) {
      k.loops.push_back({size});
      return loop_index(k.loops.size() - 1);
    };
    for (size_t d = 0; d < from_.size(); ++d) {
      if (d != w.d) {
        n.at[d] = add(from_[d]);
        continue;
      }
      n.from_class = add(w.classes);
      n.block = add(w.blocks);
    }
    k.outer = k.loops.size();
    n.iteration = add_scaled(add(w.length), n.block, w.length);
    return n;
  }

  /// Returns the element at a point of an order. Adds to `inside` the condition that there is an element at the
  /// position.
  ExprId element(KernelBuilder& builder, const ScanOrder& w, const ScanLoops& n, ValueId v, ExprId& inside) const {
    Index position = add_scaled(n.from_class, n.iteration, w.classes);
    position.constant -= w.offset;
    Index index;
    Index rest;
    builder.divide(position, w.spread, index, rest);
    inside = builder.both(inside, builder.in_range(rest, 1));
    inside = builder.both(inside, builder.in_range(index, from_[w.d]));
    Position at = n.at;
    at[w.d] = index;
    return builder.value(v, at, inside);
  }

  /// Scans along an order and writes the results to `targets`, arrays that have `size` instead of from_[d] elements in
  /// dimension d. `start` returns the initial values, or kNoExpr.
  void scan(const ScanOrder& w, const std::vector<ValueId>& targets, int64_t size,
            const std::function<ExprId(KernelBuilder&, const ScanLoops&, size_t)>& start) {
    ScanLoops n = nest(w);
    Kernel& k = n.plan.kernel;
    KernelBuilder builder(graph_, k, is_input_);
    Scan s;
    s.reverse = w.reverse;
    s.reduction.combine = group_.combine;
    s.fresh = !known() && w.reverse;
    for (size_t i = 0; i < targets.size(); ++i) {
      const uint32_t type = graph_.type(targets[i]).element;
      s.reduction.condition = kNoExpr;
      s.reduction.inputs.push_back(builder.convert(element(builder, w, n, values_[i], s.reduction.condition), type));
      const ExprId first = start(builder, n, i);
      s.reduction.inits.push_back(first == kNoExpr ? kNoExpr : builder.convert(first, type));
      s.reduction.types.push_back(type);
    }
    if (!known()) s.reduction.body = builder.body(block_);
    Dims dims = from_;
    dims[w.d] = size;
    Index index = add_scaled(n.iteration, n.from_class, w.blocks * w.length);
    index.constant += w.shift;
    const ExprId mask = builder.in_range(index, size);
    Position at = n.at;
    at[w.d] = index;
    for (size_t i = 0; i < targets.size(); ++i) {
      Expr scanned;
      scanned.op = ExprOp::kScanned;
      scanned.type = s.reduction.types[i];
      scanned.a = static_cast<int64_t>(i);
      k.exprs.push_back(scanned);
      const auto value = static_cast<ExprId>(k.exprs.size() - 1);
      k.stores.push_back({builder.output(targets[i]), value, builder.linear(at, dims), mask});
      n.plan.writes.push_back(targets[i]);
    }
    k.scan = std::move(s);
    n.plan.buffers = builder.buffers();
    out_.push_back(std::move(n.plan));
  }

  /// Computes kForward and kBackward: result i is the reduction of all elements up to, or in reverse from, element i + ahead.
  void edge_scan(bool reverse, size_t d, const std::vector<ValueId>& targets, bool last) {
    const int64_t n = from_[d];
    const int64_t m = to_[d];
    ScanOrder w;
    w.d = d;
    w.reverse = reverse;
    if (reverse) {
      const int64_t ahead = std::clamp(-window_.low[d], -(m - 1), n);
      w.offset = -ahead;
      w.length = std::max(m, n - ahead);
    } else {
      const int64_t ahead = std::clamp(window_.size[d] - 1 - window_.low[d], -m, n - 1);
      w.shift = std::min<int64_t>(0, -ahead);
      w.offset = -(w.shift + ahead);
      w.length = m - w.shift;
    }
    auto initial = [&](KernelBuilder& builder, const ScanLoops&, size_t i) {
      return last || !known() ? builder.value(group_.inits[i], {}) : kNoExpr;
    };
    int64_t rows = 1;
    for (size_t e = 0; e < from_.size(); ++e) rows *= e == d ? 1 : from_[e];
    const bool is_contiguous = elements_from(d + 1) == 1;
    if (known() && rows <= limits_.scans.most_rows && w.length >= limits_.scans.least_length &&
        (is_contiguous || !limits_.scans.contiguous_rows_only)) {
      shared_scan(w, targets[0], initial);
    } else {
      scan(w, targets, m, initial);
    }
  }

  /// Returns the number of blocks into which a row is cut: if possible one that divides the length.
  int64_t blocks_of(int64_t length) const {
    const int64_t most =
        std::max(std::min(limits_.scans.most_blocks, length / limits_.scans.least_block), limits_.scans.fewest_blocks);
    for (int64_t b = most; b >= std::max(limits_.scans.fewest_blocks, most / 4); --b) {
      if (length % b == 0) return b;
    }
    return most;
  }

  /// Scans few long rows with all threads in three kernels: the total of each block, a scan of the totals, which gives the initial
  /// value of each block, and the scans of the blocks.
  void shared_scan(ScanOrder w, ValueId target,
                   const std::function<ExprId(KernelBuilder&, const ScanLoops&, size_t)>& initial) {
    w.blocks = blocks_of(w.length);
    w.length = (w.length + w.blocks - 1) / w.blocks;
    Dims dims = from_;
    dims[w.d] = w.blocks;
    const uint32_t type = accumulator_type(graph_.type(target).element);
    const ValueId totals = make_(type, dims);
    const ValueId starts = make_(type, dims);
    block_totals(w, totals);
    const Dims whole = std::exchange(from_, dims);
    const std::vector<ValueId> all = std::exchange(values_, {totals});
    ScanOrder before;
    before.d = w.d;
    before.length = w.blocks;
    before.offset = w.reverse ? -1 : 1;
    before.reverse = w.reverse;
    scan(before, {starts}, w.blocks, initial);
    from_ = whole;
    values_ = all;
    scan(w, {target}, to_[w.d], [&](KernelBuilder& builder, const ScanLoops& n, size_t) {
      Position at = n.at;
      at[w.d] = n.block;
      return builder.load_at(starts, builder.linear(at, dims), kNoExpr);
    });
  }

  void block_totals(const ScanOrder& w, ValueId totals) {
    ScanLoops n = nest(w);
    Kernel& k = n.plan.kernel;
    KernelBuilder builder(graph_, k, is_input_);
    Reduction r;
    r.combine = group_.combine;
    const uint32_t type = graph_.type(totals).element;
    r.inputs = {builder.convert(element(builder, w, n, values_[0], r.condition), type)};
    r.inits = {kNoExpr};
    r.types = {type};
    k.reductions.push_back(std::move(r));
    Position at = n.at;
    at[w.d] = n.block;
    store_reduced(builder, n.plan, totals, 0, builder.linear(at, graph_.type(totals).dims));
    n.plan.buffers = builder.buffers();
    out_.push_back(std::move(n.plan));
  }

  static void store_reduced(KernelBuilder& builder, KernelPlan& plan, ValueId to, size_t result, const Index& index) {
    Expr reduced;
    reduced.op = ExprOp::kReduced;
    reduced.type = plan.kernel.reductions[0].types[result];
    reduced.a = static_cast<int64_t>(result);
    plan.kernel.exprs.push_back(reduced);
    const auto value = static_cast<ExprId>(plan.kernel.exprs.size()) - 1;
    plan.kernel.stores.push_back({builder.output(to), value, index, kNoExpr});
    plan.writes.push_back(to);
  }

  /// Computes kBlockScans. The positions are cut into blocks as long as the window, so that each window consists of the
  /// end of one block and the begin of the next. Nothing is subtracted.
  void block_scans(size_t d, ValueId target, bool last) {
    const Reach reach = reach_of(window_, d, from_[d], to_[d]);
    ScanOrder w;
    w.d = d;
    w.classes = window_.dilation[d];
    w.length = reach.count;
    w.spread = window_.base_dilation[d];
    w.offset = window_.low[d] - reach.first * window_.dilation[d];
    const int64_t iterations = (to_[d] - 1) * window_.stride[d] / w.classes + reach.count;
    w.blocks = (iterations + w.length - 1) / w.length;
    const int64_t size = w.classes * w.blocks * w.length;
    Dims dims = from_;
    dims[d] = size;
    const uint32_t type = accumulator_type(graph_.type(target).element);
    const ValueId begun = make_(type, dims);
    const ValueId left = make_(type, dims);
    auto none = [](KernelBuilder&, const ScanLoops&, size_t) { return kNoExpr; };
    scan(w, {begun}, size, none);
    w.reverse = true;
    scan(w, {left}, size, none);

    KernelPlan plan;
    Kernel& k = plan.kernel;
    Dims result = from_;
    result[d] = to_[d];
    for (int64_t extent : result) k.loops.push_back({extent});
    k.outer = result.size();
    KernelBuilder builder(graph_, k, is_input_);
    Position at = loop_position(0, result.size());
    const Index to = builder.linear(at, result);
    Index first = add_scaled({}, at[d], window_.stride[d]);
    Index iteration;
    Index from_class;
    builder.divide(first, w.classes, iteration, from_class);
    Index block;
    Index begins;
    builder.divide(iteration, w.length, block, begins);
    at[d] = add_scaled(iteration, from_class, w.blocks * w.length);
    ExprId x = builder.load_at(left, builder.linear(at, dims), kNoExpr);
    at[d].constant += w.length - 1;
    const ExprId more = builder.load_at(begun, builder.linear(at, dims), kNoExpr);
    const ExprId both = builder.op(combine_opcode(group_.combine), type, {x, more});
    const ExprId alone = builder.in_range(begins, 1);  // the window is exactly one block
    x = alone == kNoExpr ? x : builder.op(COLLET_OP_SELECT, type, {alone, x, both});
    if (last) {
      const ExprId init = builder.convert(builder.value(group_.inits[0], {}), type);
      x = builder.op(combine_opcode(group_.combine), type, {init, x});
      x = builder.convert(x, graph_.type(target).element);
    }
    k.stores.push_back({builder.output(target), x, to, kNoExpr});
    plan.writes = {target};
    plan.buffers = builder.buffers();
    out_.push_back(std::move(plan));
  }

  // Windows that are reduced one by one.

  void direct(const std::vector<size_t>& which, const Dims& to, const std::vector<ValueId>& targets, bool last) {
    KernelPlan plan;
    Kernel& k = plan.kernel;
    for (int64_t d : to) k.loops.push_back({d});
    k.outer = to.size();
    std::vector<Taps> taps;
    for (size_t d : which) {
      taps.push_back(taps_of(window_, d, from_[d], to[d]));
      k.loops.push_back({taps.back().iterations});
    }
    KernelBuilder builder(graph_, k, is_input_);
    const Position at = loop_position(0, to.size());
    Position from = at;
    ExprId inside = kNoExpr;
    for (size_t i = 0; i < which.size(); ++i) {
      const size_t d = which[i];
      from[d] = tap_index(builder, window_, d, taps[i], at[d], loop_index(k.outer + i), from_[d], inside);
    }
    Reduction r;
    r.combine = group_.combine;
    for (size_t i = 0; i < targets.size(); ++i) {
      const uint32_t type = graph_.type(targets[i]).element;
      r.inputs.push_back(builder.convert(builder.value(values_[i], from, inside), type));
      r.inits.push_back(last ? builder.convert(builder.value(group_.inits[i], {}), type) : kNoExpr);
      r.types.push_back(type);
    }
    r.condition = inside;
    if (!known()) r.body = builder.body(block_);
    k.reductions.push_back(std::move(r));
    const Index index = builder.linear(at, to);
    for (size_t i = 0; i < targets.size(); ++i) store_reduced(builder, plan, targets[i], i, index);
    plan.buffers = builder.buffers();
    out_.push_back(std::move(plan));
  }

  const Graph& graph_;
  const Block& block_;
  const Window& window_;
  const InputTest& is_input_;
  const MakeValue& make_;
  const NodeLimits& limits_;
  std::vector<KernelPlan>& out_;
  Group group_;
  std::vector<ValueId> values_;  ///< results of the passes so far, with the dimensions from_
  Dims from_;
  Dims to_;
};

}  // namespace

void reduce_window_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                           const NodeLimits& limits, std::vector<KernelPlan>& out) {
  const Window window = window_of(graph, attributes<collet_window_attrs>(graph, node).window);
  const Block& block = graph.blocks[node.blocks[0]];
  const size_t n = node.results.size();
  std::vector<Group> groups(1);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t combine = combine_of(graph, block, i, graph.type(node.results[i]).element);
    groups.push_back({{node.operands[i]}, {node.operands[n + i]}, {node.results[i]}, combine});
    Group& all = groups[0];
    all.operands.push_back(node.operands[i]);
    all.inits.push_back(node.operands[n + i]);
    all.results.push_back(node.results[i]);
  }
  const bool apart =
      std::all_of(groups.begin() + 1, groups.end(), [](const Group& g) { return g.combine != COLLET_COMBINE_OTHER; });
  groups.erase(apart ? groups.begin() : groups.begin() + 1, apart ? groups.begin() + 1 : groups.end());
  for (const Group& g : groups) Folder(graph, block, window, is_input, make, limits, out).run(g);
}

}  // namespace collet::codegen
