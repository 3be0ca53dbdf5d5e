// SPDX-License-Identifier: Apache-2.0
// Compiles sorts for a grid, and scatters, whose updates are sorted by the element that they update.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sdk/codegen/compile/compiler.h"

namespace collet::codegen {
namespace {

/// Returns the comparator x < y of s32 elements.
Comparator ascending() {
  Comparator out;
  out.types = {COLLET_TYPE_S32};
  out.body.arguments = 2;
  for (int64_t i = 0; i < 2; ++i) {
    Expr argument;
    argument.op = ExprOp::kArgument;
    argument.type = COLLET_TYPE_S32;
    argument.a = i;
    out.body.exprs.push_back(argument);
  }
  out.body.exprs.push_back(
      op_expr(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {0, 1}, COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED));
  out.body.results = {2};
  return out;
}

/// Number of elements of a segment, which a block of threads sorts in shared memory.
constexpr int64_t kSortedSegment = int64_t{1} << kLogSegment;
/// Most elements of each segment that a selection may keep. Above a quarter, sorting everything is as fast.
constexpr int64_t kMostSelected = kSortedSegment / 4;
/// Rows are sorted by their keys, one pass for each byte of a key, if they have more elements than this for each pass. The
/// network takes fewer instructions for shorter rows.
constexpr int64_t kLeastElementsPerPass = 128;

}  // namespace

void Compiler::sort_on_grid(GridSort sort, const std::vector<ValueId>& arrays, ValueId numbers, Drafts& drafts) {
  for (const GridSortLaunch& launch : launches_of_sort(sort)) {
    ++time_;
    sort.part = launch.part;
    sort.levels = launch.levels;
    const auto [it, fresh] = sorts_.try_emplace(sort, kNoFunction);
    if (fresh) it->second = add_function({"sort" + std::to_string(sources_.size()), sort, false});
    Draft d;
    d.step.kernel.function = it->second;
    d.step.kernel.blocks = sort.blocks;
    d.step.kernel.block_threads = sort.block_threads;
    if (launch.power >= 0) d.step.kernel.numbers = {launch.power};
    for (ValueId v : arrays) d.ranges.push_back(write(v));
    d.ranges.push_back(write(numbers));
    for (RangeId w : d.ranges) plan_->traffic_bytes += 2 * buffers_.bytes(w);
    ++plan_->kernels;
    drafts.push_back(std::move(d));
  }
}

void Compiler::add_radix_step(const GridRadix& radix, std::vector<RangeId> ranges, Drafts& drafts) {
  const auto [it, fresh] = radix_sorts_.try_emplace(radix, kNoFunction);
  if (fresh) {
    const char* const name = radix.part == GridRadix::Part::kRows     ? "radix_rows"
                             : radix.part == GridRadix::Part::kSelect ? "radix_select"
                             : radix.part == GridRadix::Part::kCounts ? "radix_counts"
                                                                      : "radix_pass";
    it->second = add_function({name + std::to_string(sources_.size()), radix, false});
  }
  Draft d;
  d.step.kernel.function = it->second;
  d.step.kernel.blocks = radix.blocks();
  d.step.kernel.block_threads = radix.block_threads;
  d.ranges = std::move(ranges);
  for (RangeId w : d.ranges) plan_->traffic_bytes += buffers_.bytes(w);
  ++plan_->kernels;
  drafts.push_back(std::move(d));
}

bool Compiler::radix_on_grid(const KeyRule& key, int64_t rows, int64_t length, const RadixArrays& arrays,
                             Drafts& drafts) {
  std::vector<uint32_t> types;
  for (ValueId v : arrays.others) types.push_back(graph_.type(v).element);
  const bool keeps_numbers = arrays.sorted_numbers != kNone;
  const std::optional<GridRadix> found = schedule_radix(key, rows, length, types, keeps_numbers, target_.grid);
  if (!found) return false;
  GridRadix sort = *found;
  if (arrays.key_bits > 0) sort.passes = std::min(sort.passes, (arrays.key_bits + 7) / 8);
  const auto add_gathered = [&](std::vector<RangeId>& ranges) {
    if (!sort.gathers()) return;
    for (ValueId v : arrays.others) ranges.push_back(read(v));
    for (ValueId v : arrays.sorted_others) ranges.push_back(write(v));
  };
  if (sort.part == GridRadix::Part::kRows) {
    ++time_;
    std::vector<RangeId> ranges{read(arrays.keys), write(arrays.sorted_keys)};
    if (sort.writes_values()) ranges.push_back(write(arrays.sorted_numbers));
    add_gathered(ranges);
    add_radix_step(sort, std::move(ranges), drafts);
    return true;
  }
  const ValueId state = temporary(COLLET_TYPE_S32, {sort.state_words()});
  KernelPlan clear = fill_kernel(state, sort.cleared_words());
  add_kernel(clear, drafts);
  ++time_;
  GridRadix counts = sort;
  counts.part = GridRadix::Part::kCounts;
  counts.payload = GridRadix::Payload::kNothing;
  counts.value_bytes = 0;
  counts.gathered.clear();
  add_radix_step(counts, {read(arrays.keys), write(state)}, drafts);
  const int64_t passes = sort.passes;
  const Dims dims{rows * length};
  const ValueId spare_keys = passes > 1 ? temporary(graph_.type(arrays.keys).element, dims) : kNone;
  const bool has_values = sort.payload != GridRadix::Payload::kNothing;
  // Values, or the numbers of elements, alternate between two arrays as keys do. Numbers that are no result need two
  // arrays of their own.
  ValueId values = kNone;
  ValueId sorted_values = kNone;
  ValueId spare_values = kNone;
  if (sort.payload == GridRadix::Payload::kValues) {
    values = arrays.others[0];
    sorted_values = arrays.sorted_others[0];
  } else if (has_values) {
    sorted_values = keeps_numbers ? arrays.sorted_numbers : temporary(COLLET_TYPE_S32, dims);
  }
  if (has_values && passes > 1) {
    const uint32_t type = graph_.type(sort.payload == GridRadix::Payload::kValues ? values : sorted_values).element;
    spare_values = temporary(type, dims);
  }
  for (int64_t p = 0; p < passes; ++p) {
    ++time_;
    sort.is_first = p == 0;
    sort.is_last = p + 1 == passes;
    if (sort.payload != GridRadix::Payload::kNumbers) sort.is_first = false;
    if (sort.gathered.empty()) sort.is_last = false;
    const bool to_result = (passes - p) % 2 == 1;
    const auto from = [&](ValueId first, ValueId result, ValueId spare) {
      return p == 0 ? first : to_result ? spare : result;
    };
    std::vector<RangeId> ranges{read(from(arrays.keys, arrays.sorted_keys, spare_keys)),
                                write(to_result ? arrays.sorted_keys : spare_keys)};
    if (sort.reads_values()) ranges.push_back(read(from(values, sorted_values, spare_values)));
    if (sort.writes_values()) ranges.push_back(write(to_result ? sorted_values : spare_values));
    add_gathered(ranges);
    ranges.push_back(write(state));
    add_radix_step(sort, std::move(ranges), drafts);
    drafts.back().step.kernel.numbers = {p};
  }
  return true;
}

bool Compiler::select_by_radix(const KeyRule& key, int64_t rows, int64_t length, int64_t kept, RadixArrays arrays,
                               Drafts& drafts) {
  const int64_t pitch = length;
  std::vector<uint32_t> types;
  for (ValueId v : arrays.others) types.push_back(graph_.type(v).element);
  const auto sort_of_rows = [&] { return schedule_radix(key, rows, length, types, false, target_.grid); };
  std::optional<GridRadix> last = sort_of_rows();
  if (!last) return false;
  std::vector<GridRadix> selections;
  while (last->part != GridRadix::Part::kRows) {
    const std::optional<GridRadix> selection = schedule_selection(key, rows, length, kept, types, target_.grid);
    if (!selection) return false;
    selections.push_back(*selection);
    length = selection->pitch;
    last = sort_of_rows();
    if (!last) return false;
  }
  for (const GridRadix& selection : selections) {
    ++time_;
    const Dims dims{rows * selection.pitch};
    std::vector<RangeId> ranges{read(arrays.keys)};
    for (ValueId v : arrays.others) ranges.push_back(read(v));
    arrays.keys = temporary(key.type, dims);
    ranges.push_back(write(arrays.keys));
    for (ValueId& v : arrays.others) {
      v = temporary(graph_.type(v).element, dims);
      ranges.push_back(write(v));
    }
    add_radix_step(selection, std::move(ranges), drafts);
  }
  ++time_;
  last->kept = kept;
  last->pitch = pitch;
  std::vector<RangeId> ranges{read(arrays.keys), write(arrays.sorted_keys)};
  for (ValueId v : arrays.others) ranges.push_back(read(v));
  for (ValueId v : arrays.sorted_others) ranges.push_back(write(v));
  add_radix_step(*last, std::move(ranges), drafts);
  return true;
}

KernelPlan Compiler::fill_kernel(ValueId v, int64_t count) {
  KernelPlan plan;
  plan.kernel.loops = {{count}};
  plan.kernel.outer = 1;
  plan.kernel.buffers = 1;
  Expr zero;
  zero.op = ExprOp::kConstant;
  zero.type = graph_.type(v).element;
  plan.kernel.exprs.push_back(std::move(zero));
  plan.kernel.stores.push_back({0, 0, Index{{1}, 0, {}}, kNoExpr});
  plan.buffers = plan.writes = {v};
  return plan;
}

Compiler::RowShape Compiler::rows_of_sort(const Node& n) const {
  const Dims& dims = graph_.type(n.results[0]).dims;
  const auto dimension = attributes<collet_sort_attrs>(graph_, n).dimension;
  RowShape out;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    (at < dimension ? out.above : at == dimension ? out.length : out.below) *= dims[d];
  }
  return out;
}

bool Compiler::has_numbers(const Node& n, size_t operand) const {
  const Node* const maker = graph_.def(n.operands[operand]);
  const uint32_t type = graph_.type(n.operands[operand]).element;
  return maker && maker->opcode == COLLET_OP_IOTA && (type == COLLET_TYPE_S32 || type == COLLET_TYPE_U32) &&
         attributes<collet_iota_attrs>(graph_, *maker).dimension == attributes<collet_sort_attrs>(graph_, n).dimension;
}

std::vector<SortKey> Compiler::keys_of_sort(const Node& n) const {
  std::vector<SortKey> keys = sort_keys_of(graph_, n);
  // Equal elements keep their order anyway.
  while (keys.size() > 1 && has_numbers(n, keys.back().operand) && !keys.back().rule.descending) keys.pop_back();
  return keys;
}

Compiler::SortForm Compiler::form_of_sort(const Node& n) {
  const RowShape rows = rows_of_sort(n);
  if (rows.length < 2 || rows.rows() == 0) return SortForm::kNetwork;
  const int64_t needed = needed_of_sort(graph_, n);
  const bool selects = rows.length > kSortedSegment && needed <= kMostSelected;
  const SortForm other = selects ? SortForm::kSelected : SortForm::kNetwork;
  const std::vector<SortKey> keys = keys_of_sort(n);
  // To select few elements of columns, the array need not be transposed.
  if (keys.empty() || (selects && (rows.below > 1 || keys.size() > 1))) return other;
  int64_t passes = 0;
  for (const SortKey& key : keys) passes += static_cast<int64_t>(collet_type_bytes(key.rule.type));
  if (rows.length <= kLeastElementsPerPass * passes) return other;
  const auto is_possible = [&](const SortKey& key) {
    return schedule_radix(key.rule, rows.rows(), rows.length, {}, true, target_.grid).has_value();
  };
  if (!std::all_of(keys.begin(), keys.end(), is_possible)) return other;
  if (keys.size() > 1 || keys[0].operand != 0) return SortForm::kSeveralKeys;
  const bool makes_numbers =
      n.results.size() == 2 && needed == rows.length && n.operands[0] != n.operands[1] && has_numbers(n, 1);
  return makes_numbers ? SortForm::kNumbers : SortForm::kRadix;
}

void Compiler::find_unread_numbers(Groups& g) {
  for (size_t i = 0; i < g.groups.size(); ++i) {
    const Node& n = graph_.nodes[g.groups[i].nodes[0]];
    if (n.opcode != COLLET_OP_SORT || form_of_sort(n) != SortForm::kNumbers) continue;
    const auto maker = g.readers.group_of.find(graph_.value(n.operands[1]).def);
    const bool alone = maker != g.readers.group_of.end() && g.groups[maker->second].nodes.size() == 1;
    if (alone && only_reader(g.block, g.readers, n.operands[1]) == i) g.done[maker->second] = true;
  }
}

void Compiler::add_radix_sort(const Node& n, SortForm form, Drafts& drafts) {
  const std::vector<SortKey> keys = keys_of_sort(n);
  const RowShape rows = rows_of_sort(n);
  const Dims dims = graph_.type(n.results[0]).dims;
  const auto dimension = static_cast<size_t>(attributes<collet_sort_attrs>(graph_, n).dimension);
  // Rows that are not contiguous are copied first, and the sorted rows are copied back.
  const bool is_strided = rows.below > 1;
  Dims row_dims = dims;
  std::vector<size_t> to_rows;
  std::vector<size_t> from_rows(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d != dimension) to_rows.push_back(d);
  }
  to_rows.push_back(dimension);
  for (size_t d = 0; d < dims.size(); ++d) {
    row_dims[d] = dims[to_rows[d]];
    from_rows[to_rows[d]] = d;
  }
  std::vector<ValueId> from;
  std::vector<ValueId> sorted;
  for (size_t i = 0; i < n.results.size(); ++i) {
    const uint32_t type = graph_.type(n.results[i]).element;
    from.push_back(n.operands[i]);
    sorted.push_back(is_strided ? temporary(type, row_dims) : n.results[i]);
    if (!is_strided || (i == 1 && form == SortForm::kNumbers)) continue;
    from.back() = temporary(type, row_dims);
    KernelPlan copied = permute_kernel(graph_, n.operands[i], to_rows, from.back());
    add_kernel(copied, drafts);
  }
  RadixArrays arrays;
  arrays.keys = from[0];
  arrays.sorted_keys = sorted[0];
  if (form == SortForm::kSeveralKeys) {
    sort_by_keys(keys, rows.rows(), rows.length, from, sorted, drafts);
  } else if (form == SortForm::kNumbers) {
    arrays.sorted_numbers = sorted[1];
    radix_on_grid(keys[0].rule, rows.rows(), rows.length, arrays, drafts);
  } else {
    arrays.others.assign(from.begin() + 1, from.end());
    arrays.sorted_others.assign(sorted.begin() + 1, sorted.end());
    const int64_t needed = needed_of_sort(graph_, n);
    const bool is_selected = !is_strided && needed < rows.length &&
                             select_by_radix(keys[0].rule, rows.rows(), rows.length, needed, arrays, drafts);
    if (!is_selected) radix_on_grid(keys[0].rule, rows.rows(), rows.length, arrays, drafts);
  }
  for (size_t i = 0; i < n.results.size() && is_strided; ++i) {
    KernelPlan copied = permute_kernel(graph_, sorted[i], from_rows, n.results[i]);
    add_kernel(copied, drafts);
  }
}

KernelPlan Compiler::gather_kernel(const std::vector<ValueId>& from, ValueId numbers, int64_t rows, int64_t length,
                                   const std::vector<ValueId>& to) {
  KernelPlan plan;
  Kernel& k = plan.kernel;
  k.loops = {{rows}, {length}};
  k.outer = 2;
  k.buffers = static_cast<uint32_t>(1 + 2 * from.size());
  const Index element{{length, 1}, 0, {}};
  Expr number;
  number.op = ExprOp::kLoad;
  number.type = COLLET_TYPE_S32;
  number.index = element;
  k.exprs.push_back(std::move(number));
  k.exprs.push_back(op_expr(COLLET_OP_CONVERT, COLLET_TYPE_S64, {0}));
  for (size_t i = 0; i < from.size(); ++i) {
    Expr load;
    load.op = ExprOp::kLoad;
    load.type = graph_.type(from[i]).element;
    load.buffer = static_cast<uint32_t>(1 + i);
    load.index = Index{{length}, 0, {{1, 1}}};
    k.exprs.push_back(std::move(load));
    k.stores.push_back(
        {static_cast<uint32_t>(1 + from.size() + i), static_cast<ExprId>(k.exprs.size() - 1), element, kNoExpr});
  }
  plan.buffers = {numbers};
  plan.buffers.insert(plan.buffers.end(), from.begin(), from.end());
  plan.buffers.insert(plan.buffers.end(), to.begin(), to.end());
  plan.writes = to;
  return plan;
}

void Compiler::sort_by_keys(const std::vector<SortKey>& keys, int64_t rows, int64_t length,
                            const std::vector<ValueId>& from, const std::vector<ValueId>& to, Drafts& drafts) {
  const Dims dims{rows * length};
  ValueId numbers = kNone;
  for (size_t j = keys.size(); j-- > 0;) {
    const SortKey& key = keys[j];
    RadixArrays arrays;
    arrays.keys = from[key.operand];
    arrays.sorted_keys = j == 0 ? to[key.operand] : temporary(key.rule.type, dims);
    const ValueId next = temporary(COLLET_TYPE_S32, dims);
    if (numbers == kNone) {
      arrays.sorted_numbers = next;
    } else {
      arrays.keys = temporary(key.rule.type, dims);
      KernelPlan in_order = gather_kernel({from[key.operand]}, numbers, rows, length, {arrays.keys});
      add_kernel(in_order, drafts);
      arrays.others = {numbers};
      arrays.sorted_others = {next};
    }
    radix_on_grid(key.rule, rows, length, arrays, drafts);
    numbers = next;
  }
  std::vector<ValueId> others;
  std::vector<ValueId> sorted_others;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i == keys[0].operand) continue;
    others.push_back(from[i]);
    sorted_others.push_back(to[i]);
  }
  if (others.empty()) return;
  KernelPlan gathered = gather_kernel(others, numbers, rows, length, sorted_others);
  add_kernel(gathered, drafts);
}

void Compiler::add_sort(const Node& n, Drafts& drafts) {
  const SortForm form = form_of_sort(n);
  if (form != SortForm::kNetwork && form != SortForm::kSelected) return add_radix_sort(n, form, drafts);
  for (size_t i = 0; i < n.results.size(); ++i) copy(range(n.operands[i]), n.results[i], drafts);
  const RowShape rows = rows_of_sort(n);
  if (rows.length < 2 || rows.rows() == 0) return;
  const Comparator comparator = comparator_of(graph_, n);
  if (form == SortForm::kSelected)
    return select_on_grid(comparator, n.results, rows, needed_of_sort(graph_, n), drafts);
  GridSort sort = schedule_sort(comparator, rows.rows(), rows.length, rows.below, target_.grid);
  sort_on_grid(std::move(sort), n.results, temporary(COLLET_TYPE_S32, graph_.type(n.results[0]).dims), drafts);
}

void Compiler::select_on_grid(const Comparator& comparator, std::vector<ValueId> arrays, RowShape rows, int64_t needed,
                              Drafts& drafts) {
  const std::vector<ValueId> results = arrays;
  const RowShape all = rows;
  for (;;) {
    const int64_t count = rows.above * rows.below;
    GridSort sort = schedule_sort(comparator, count, rows.length, rows.below, target_.grid);
    const bool is_last = rows.length <= kSortedSegment;
    sort.only_segments = true;
    sort_on_grid(std::move(sort), arrays, temporary(COLLET_TYPE_S32, {count * rows.length}), drafts);
    if (is_last) break;
    const int64_t whole = rows.length / kSortedSegment;
    const int64_t rest = std::min(needed, rows.length % kSortedSegment);
    const RowShape fewer{rows.above, whole * needed + rest, rows.below};
    std::vector<ValueId> next;
    for (ValueId v : arrays)
      next.push_back(temporary(graph_.type(v).element, {fewer.above, fewer.length, fewer.below}));
    copy_first(arrays, rows, kSortedSegment, needed, next, fewer, drafts);
    arrays = std::move(next);
    rows = fewer;
  }
  copy_first(arrays, rows, rows.length, needed, results, all, drafts);
}

void Compiler::copy_first(const std::vector<ValueId>& from, const RowShape& rows, int64_t segment, int64_t needed,
                          const std::vector<ValueId>& to, const RowShape& to_rows, Drafts& drafts) {
  const auto copy_part = [&](int64_t first, int64_t segments, int64_t elements) {
    if (segments == 0 || elements == 0) return;
    KernelPlan plan;
    plan.kernel.loops = {{rows.above}, {segments}, {elements}, {rows.below}};
    plan.kernel.outer = plan.kernel.loops.size();
    plan.kernel.buffers = static_cast<uint32_t>(2 * from.size());
    const Index source{
        {rows.length * rows.below, segment * rows.below, rows.below, 1}, first * segment * rows.below, {}};
    const Index target{
        {to_rows.length * to_rows.below, needed * rows.below, rows.below, 1}, first * needed * rows.below, {}};
    for (size_t i = 0; i < from.size(); ++i) {
      Expr load;
      load.op = ExprOp::kLoad;
      load.type = graph_.type(from[i]).element;
      load.buffer = static_cast<uint32_t>(i);
      load.index = source;
      plan.kernel.exprs.push_back(std::move(load));
      plan.kernel.stores.push_back({static_cast<uint32_t>(from.size() + i), static_cast<ExprId>(i), target, kNoExpr});
    }
    plan.buffers = from;
    plan.buffers.insert(plan.buffers.end(), to.begin(), to.end());
    plan.writes = to;
    add_kernel(plan, drafts);
  };
  const int64_t whole = rows.length / segment;
  copy_part(0, whole, needed);
  copy_part(whole, 1, std::min(needed, rows.length % segment));
}

void Compiler::add_grouped_updates(const KernelPlan& k, UpdateSchedule updates, Drafts& drafts) {
  int64_t updated = 0;  // elements of the largest array that is updated
  for (uint32_t b : k.kernel.updates[0].buffers) updated = std::max(updated, graph_.type(k.buffers[b]).elements);
  choose_keys(k.kernel, updated, updates);
  const Dims points{updates.ordered_points};
  ValueId keys = temporary(COLLET_TYPE_S32, points);
  const ValueId places = temporary(COLLET_TYPE_S32, points);
  const auto add = [&](UpdateSchedule::Part part, const char* name) {
    updates.part = part;
    ++time_;
    Draft d;
    d.step.kernel.function = add_function(
        {name + std::to_string(sources_.size()), schedule_updates(k.kernel, updates, target_.grid), false});
    add_buffers(k, d);
    describe(k.kernel, d.step);
    for (ValueId v : {keys, places}) d.ranges.push_back(part == UpdateSchedule::Part::kKeys ? write(v) : read(v));
    for (ValueId v : {keys, places}) plan_->traffic_bytes += bytes_of(v);
    ++plan_->kernels;
    drafts.push_back(std::move(d));
  };
  add(UpdateSchedule::Part::kKeys, "keys");
  const KeyRule rule{COLLET_TYPE_U32, false, false, false};
  const ValueId sorted = temporary(COLLET_TYPE_S32, points);
  const RadixArrays arrays{keys, sorted, {}, {}, places, updates.key_bits};
  const bool is_long = updates.ordered_points > kLeastElementsPerPass * 4;
  if (!is_long || !radix_on_grid(rule, 1, updates.ordered_points, arrays, drafts)) {
    GridSort sort = schedule_sort(ascending(), 1, updates.ordered_points, 1, target_.grid);
    sort.keeps_numbers = true;
    sort_on_grid(std::move(sort), {keys}, places, drafts);
  } else {
    keys = sorted;
  }
  add(UpdateSchedule::Part::kUpdates, "updates");
  for (ValueId v : k.buffers) plan_->traffic_bytes += bytes_of(v);
}

}  // namespace collet::codegen
