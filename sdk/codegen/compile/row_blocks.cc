// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_transform.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "sdk/codegen/compile/compiler.h"
#include "sdk/codegen/compile/pipeline.h"
#include "sdk/codegen/kernel/used_range.h"
#include "sdk/codegen/matmul/blocking.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {

/// True if the iterations of the first `count` loops address one block of `elements` elements after the other with
/// `index`, and the other loops address elements of that block only.
bool is_block_by_block(const Kernel& kernel, const Index& index, size_t count, int64_t elements) {
  if (!index.terms.empty() || index.constant < 0) return false;
  int64_t step = elements;
  for (size_t l = count; l-- > 0;) {
    if (index.coefficient(l) != step && kernel.loops[l].size > 1) return false;
    step *= kernel.loops[l].size;
  }
  int64_t last = index.constant;
  for (size_t l = count; l < kernel.loops.size(); ++l) {
    if (index.coefficient(l) < 0) return false;
    last += index.coefficient(l) * (kernel.loops[l].size - 1);
  }
  return last < elements;
}

/// True if the first `count` loops of a kernel address the buffers of `v` block by block.
bool passes_blocks(const KernelPlan& plan, ValueId v, size_t count, int64_t elements) {
  const Kernel& k = plan.kernel;
  for (const Expr& e : k.exprs) {
    if (e.op == ExprOp::kLoad && plan.buffers[e.buffer] == v && !is_block_by_block(k, e.index, count, elements))
      return false;
  }
  return std::all_of(k.stores.begin(), k.stores.end(), [&](const Store& s) {
    return plan.buffers[s.buffer] != v || is_block_by_block(k, s.index, count, elements);
  });
}

bool is_simple(const KernelPlan& plan) {
  const Kernel& k = plan.kernel;
  return !k.scan && k.updates.empty() && !k.sequential && plan.copies.empty() && !plan.has_edges &&
         plan.writes.size() == 1 && plan.buffers.size() <= kMostBlockPlaces;
}

int64_t count_loads(const KernelPlan& plan, ValueId v) {
  return std::count_if(plan.kernel.exprs.begin(), plan.kernel.exprs.end(),
                       [&](const Expr& e) { return e.op == ExprOp::kLoad && plan.buffers[e.buffer] == v; });
}

/// True if a kernel loads the elements of `from` that it stores in `to` at the same points.
bool has_one_index(const KernelPlan& plan, ValueId from, ValueId to) {
  const Index& stored = plan.kernel.stores[0].index;
  if (plan.kernel.stores.size() != 1 || plan.buffers[plan.kernel.stores[0].buffer] != to) return false;
  return std::all_of(plan.kernel.exprs.begin(), plan.kernel.exprs.end(), [&](const Expr& e) {
    return e.op != ExprOp::kLoad || plan.buffers[e.buffer] != from || e.index == stored;
  });
}

/// Returns the size of the last of the first loops of a kernel that together count `rows` rows; 0 if there are no such
/// loops.
int64_t last_rows(const Kernel& kernel, int64_t rows) {
  int64_t size = 1;
  for (size_t l = 0; l < kernel.outer; ++l) {
    size *= kernel.loops[l].size;
    if (size == rows) return kernel.loops[l].size;
  }
  return 0;
}

}  // namespace

class Compiler::RowBlocksFinder {
 public:
  RowBlocksFinder(Compiler& compiler, const Block& block, const std::vector<FusionGroup>& groups,
                  const Readers& readers, const std::vector<bool>& done)
      : c_(compiler), block_(block), groups_(groups), readers_(readers), done_(done) {}

  /// Looks for the steps before the product that is group `last`. `replaced` becomes the groups that are computed with
  /// it.
  bool run(size_t last, RowBlocks& out, std::set<size_t>& replaced) {
    KernelPlan second;
    if (!product_kernel(last, second)) return false;
    for (ValueId weights : second.buffers) {
      replaced_ = {};
      Chain chain;
      if (!find_chain(weights, last, chain)) continue;
      replaced = replaced_;
      return !replaced.contains(last) && build(chain, second, weights, out);
    }
    return false;
  }

 private:
  /// A product and the kernels that read its result, one after the other.
  struct Chain {
    KernelPlan product;
    ValueId scores = kNone;  ///< the product's result
    std::vector<KernelPlan> rows;
    std::vector<ValueId> results;  ///< of `rows`
  };

  /// Finds the chain that ends with `weights`, which group `reader` alone reads.
  bool find_chain(ValueId weights, size_t reader, Chain& out) {
    bool reduces = false;
    ValueId v = weights;
    while (out.rows.size() < c_.target_.tuning.chain_kernels) {
      const std::optional<size_t> group = producer(v, reader);
      if (!group || !groups_[*group].fused || groups_[*group].values.roots.size() != 1) return false;
      KernelPlan kernel;
      if (!fused_kernel(c_.graph_, groups_[*group].values, inputs_, kernel) || !is_simple(kernel)) return false;
      share_names(kernel);
      replaced_.insert(*group);
      const std::vector<bool>& inner = groups_[*group].values.inner;
      reduces = reduces || std::find(inner.begin(), inner.end(), true) != inner.end();
      ValueId before = kNone;
      for (ValueId operand : kernel.buffers) {
        const bool fits = operand != v && c_.graph_.type(operand).elements == c_.graph_.type(weights).elements;
        const std::optional<size_t> from = fits ? producer(operand, *group) : std::nullopt;
        if (!from) continue;
        before = operand;
        if (product_kernel(*from, out.product)) {
          replaced_.insert(*from);
          out.scores = operand;
          break;
        }
      }
      out.rows.insert(out.rows.begin(), std::move(kernel));
      out.results.insert(out.results.begin(), v);
      if (out.scores != kNone) return reduces;
      if (before == kNone) return false;
      v = before;
      reader = *group;
    }
    return false;
  }

  /// Builds the kernel of a dot. Values that are reshapes of others are replaced by these.
  bool product_kernel(size_t group, KernelPlan& out) {
    const Node& n = c_.graph_.nodes[groups_[group].nodes[0]];
    if (groups_[group].fused || n.opcode != COLLET_OP_DOT || is_outer_product(c_.graph_, n)) return false;
    std::vector<KernelPlan> kernels;
    const auto make = [this](uint32_t element, Dims dims) { return c_.temporary(element, std::move(dims)); };
    if (!node_kernels(c_.graph_, n, inputs_, make, c_.pipeline_.node_limits(c_.target_), kernels) ||
        kernels.size() != 1)
      return false;
    out = std::move(kernels[0]);
    share_names(out);
    return is_simple(out) && out.writes[0] == n.results[0];
  }

  void share_names(KernelPlan& plan) const {
    for (ValueId& v : plan.buffers) {
      while (c_.fusion_.alias[v]) v = c_.graph_.def(v)->operands[0];
    }
  }

  /// Returns the group that computes `v`; nullopt if it does not come before group `reader`, or if any group other than
  /// `reader` reads `v`.
  std::optional<size_t> producer(ValueId v, size_t reader) {
    const auto group = readers_.group_of.find(c_.graph_.value(v).def);
    if (group == readers_.group_of.end() || group->second >= reader || done_[group->second]) return std::nullopt;
    std::vector<size_t> names;
    if (c_.only_reader(block_, readers_, v, &names) != reader) return std::nullopt;
    replaced_.insert(names.begin(), names.end());
    return group->second;
  }

  /// Makes the steps for one block of rows from the kernels of the chain and of the second product. Returns false if a
  /// block would need anything of another block.
  bool build(Chain& chain, KernelPlan& second, ValueId weights, RowBlocks& out) {
    // Copies, because adding values moves the types of others.
    const ArrayType type = c_.graph_.type(chain.scores);
    const ArrayType result = c_.graph_.type(second.writes[0]);
    const KernelPlan& last = chain.rows.back();
    int64_t count = 1;  // of rows
    for (size_t l = 0; l < last.kernel.outer; ++l) count *= last.kernel.loops[l].size;
    if (last.kernel.outer == 0 || last.kernel.outer == last.kernel.loops.size() || type.elements % count != 0)
      return false;
    const int64_t columns = type.elements / count;
    if (result.elements % count != 0) return false;
    order_rows(chain, second, columns);
    int64_t together = std::gcd(last_rows(chain.product.kernel, count), last_rows(second.kernel, count));
    for (const KernelPlan& k : chain.rows) together = std::gcd(together, last_rows(k.kernel, count));
    const int64_t block = block_rows(together, count, columns);
    if (block == 0) return false;
    out.blocks = count / block;
    find_reader(chain.rows[0], chain.scores, columns, out);
    if (!add_product(chain.product, chain.scores, block, columns, count, out.first)) return false;
    out.passed.emplace_back(chain.scores, 0);
    if (out.first.converts) {
      const ValueId sums = c_.temporary(out.first.type, type.dims);
      out.between.push_back(convert_kernel(c_.graph_, sums, chain.scores));
      out.first.result = sums;
      out.passed.emplace_back(sums, 0);
    }
    for (KernelPlan& k : chain.rows) out.between.push_back(std::move(k));
    for (ValueId v : chain.results) out.passed.emplace_back(v, 0);
    const auto features = result.elements / count;
    if (count_loads(second, weights) != 1 || !passes_second(second, weights, block, columns, count)) return false;
    if (!add_product(second, second.writes[0], block, features, count, out.second)) return false;
    if (out.second.starts() == Starts::kRows) return false;  // steps before the blocks would need the weights
    if (out.second.converts) {
      const ValueId sums = c_.temporary(out.second.type, result.dims);
      out.after.push_back(convert_kernel(c_.graph_, sums, out.second.result));
      out.second.result = sums;
      out.passed.emplace_back(sums, 0);
    }
    for (auto& [v, bytes] : out.passed) {
      const ArrayType& t = c_.graph_.type(v);
      bytes = static_cast<uint64_t>(t.bytes() / out.blocks);
    }
    for (KernelPlan& k : out.between) {
      if (!make_blocks(k, block, count, out)) return false;
    }
    return std::all_of(out.after.begin(), out.after.end(),
                       [&](KernelPlan& k) { return make_blocks(k, block, count, out); });
  }

  /// Returns the number of rows of a block: a divisor of `together`. Returns 0 if blocks do not pay.
  int64_t block_rows(int64_t together, int64_t rows, int64_t columns) const {
    const int64_t bytes = columns * 4;  // of a row of scores
    if (together == 0 || rows * bytes <= c_.target_.second_cache) return 0;
    const int64_t fits = c_.target_.second_cache / 2 / bytes;
    const int64_t enough = std::max<int64_t>(rows / (4 * int64_t{c_.target_.threads}), 1);
    const int64_t most = std::min({fits, enough, together});
    for (int64_t n = most; n >= std::min(c_.target_.tuning.block_rows, together); --n) {
      if (together % n == 0) return n;
    }
    return 0;
  }

  /// Makes the product of a kernel whose result has rows of `columns` elements, with a batch for each block of rows.
  bool add_product(KernelPlan plan, ValueId result, int64_t block, int64_t columns, int64_t rows, Product& out) const {
    const size_t loops = split_rows(plan.kernel, rows, block);
    if (loops == 0 || !passes_blocks(plan, result, loops, block * columns)) return false;
    if (!find_product(plan, c_.graph_, c_.target_, out, loops)) return false;
    if (out.rows != block || out.columns != columns || out.ldc != columns || out.batches() != rows / block)
      return false;
    const std::vector<int64_t> at = offsets_of(out.batch, out.c_offset);
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] != static_cast<int64_t>(i) * block * columns) return false;
    }
    return true;
  }

  /// True if a block of the second product reads that block of the weights only.
  static bool passes_second(const KernelPlan& plan, ValueId weights, int64_t block, int64_t columns, int64_t rows) {
    KernelPlan copy = plan;
    const size_t loops = split_rows(copy.kernel, rows, block);
    return loops != 0 && passes_blocks(copy, weights, loops, block * columns);
  }

  /// Lets all kernels of the chain compute the rows in the order in which the second product reads them. The order may
  /// differ if several heads share their keys.
  static void order_rows(Chain& chain, KernelPlan& second, int64_t columns) {
    KernelPlan* reader = &second;
    for (size_t i = chain.rows.size(); i-- > 0; reader = &chain.rows[i])
      order_rows(chain.rows[i].kernel, *reader, chain.results[i], columns);
    order_rows(chain.product.kernel, *reader, chain.scores, columns);
  }

  /// Reorders the loops of `writer`, and the rows of `v` in memory, as `reader` has them. Does nothing if the loops do
  /// not correspond.
  static void order_rows(Kernel& writer, KernelPlan& reader, ValueId v, int64_t columns) {
    Index* loaded = nullptr;
    for (Expr& e : reader.kernel.exprs) {
      if (e.op != ExprOp::kLoad || reader.buffers[e.buffer] != v) continue;
      if (loaded) return;
      loaded = &e.index;
    }
    if (!loaded || !loaded->terms.empty() || writer.stores.size() != 1) return;
    Index& stored = writer.stores[0].index;
    std::vector<size_t> order;      // loops of the writer
    std::vector<size_t> in_reader;  // the corresponding loops of the reader
    for (size_t l = 0; l < reader.kernel.outer; ++l) {
      const int64_t size = reader.kernel.loops[l].size;
      const int64_t step = loaded->coefficient(l);
      if (size == 1 || step == 0) continue;
      size_t same = 0;
      while (same < writer.outer && (writer.loops[same].size != size || stored.coefficient(same) != step)) ++same;
      if (same == writer.outer || std::find(order.begin(), order.end(), same) != order.end()) return;
      order.push_back(same);
      in_reader.push_back(l);
    }
    if (std::is_sorted(order.begin(), order.end())) return;
    int64_t step = columns;
    for (size_t i = order.size(); i-- > 0;) {
      stored.coefficients[order[i]] = step;
      loaded->coefficients[in_reader[i]] = step;
      step *= writer.loops[order[i]].size;
    }
    for (size_t l = 0; l < writer.loops.size(); ++l) {
      if (std::find(order.begin(), order.end(), l) == order.end()) order.push_back(l);
    }
    reorder_loops(writer, order);
  }

  /// Keeps the kernel that reads the scores in `out.reader` if it may not use all of them: it selects, and each of its
  /// points reads the score of its own row and column, where the one inner loop runs over the columns.
  void find_reader(const KernelPlan& plan, ValueId scores, int64_t columns, RowBlocks& out) const {
    const Kernel& k = plan.kernel;
    const size_t column = k.outer;
    const bool selects = std::any_of(k.exprs.begin(), k.exprs.end(),
                                     [](const Expr& e) { return e.op == ExprOp::kOp && e.opcode == COLLET_OP_SELECT; });
    if (!selects || k.loops.size() != column + 1 || k.loops[column].size != columns) return;
    const auto in_order = [&](const Index& i) {
      int64_t step = 1;
      for (size_t l = column + 1; l-- > 0; step *= k.loops[l].size) {
        if (i.coefficient(l) != step && k.loops[l].size > 1) return false;
      }
      return i.constant == 0 && i.terms.empty();
    };
    const bool suits = std::all_of(k.exprs.begin(), k.exprs.end(), [&](const Expr& e) {
      return e.op != ExprOp::kLoad || plan.buffers[e.buffer] != scores || in_order(e.index);
    });
    if (!suits) return;
    out.reader = k;
    out.read =
        static_cast<uint32_t>(std::find(plan.buffers.begin(), plan.buffers.end(), scores) - plan.buffers.begin());
    for (ValueId v : plan.buffers) out.sequences.push_back(sequence_of(v));
  }

  /// Returns a constant whose elements are those of an arithmetic sequence.
  std::optional<Sequence> sequence_of(ValueId v) const {
    const Value& value = c_.graph_.value(v);
    if (!value.constant || value.type.element != COLLET_TYPE_S32 || value.type.elements == 0) return std::nullopt;
    const auto at = [&](int64_t i) {
      int32_t x = 0;
      if (!value.splat) std::memcpy(&x, static_cast<const char*>(value.constant) + i * 4, 4);
      if (value.splat) std::memcpy(&x, value.constant, 4);
      return int64_t{x};
    };
    Sequence found{at(0), value.type.elements > 1 ? at(1) - at(0) : 0};
    for (int64_t i = 1; i < value.type.elements; ++i) {
      if (at(i) != found.first + i * found.step) return std::nullopt;
    }
    return found;
  }

  /// Makes a kernel compute one block of rows in each iteration of its first loop.
  bool make_blocks(KernelPlan& plan, int64_t block, int64_t rows, const RowBlocks& r) const {
    Kernel& k = plan.kernel;
    c_.verify(k, "lowering");
    const size_t loops = split_rows(k, rows, block);
    if (loops == 0) return false;
    for (const auto& [v, bytes] : r.passed) {
      const int64_t elements = c_.graph_.type(v).elements / r.blocks;
      if (!passes_blocks(plan, v, loops, elements)) return false;
    }
    merge_first_loops(k, loops);
    collapse_loops(k, 1);
    k.in_parts = true;
    choose_lanes(k, c_.target_);
    c_.schedule(k);
    return true;
  }

  Compiler& c_;
  const Block& block_;
  const std::vector<FusionGroup>& groups_;
  const Readers& readers_;
  const std::vector<bool>& done_;
  const InputTest inputs_ = [this](ValueId v) { return c_.is_input(v); };
  std::set<size_t> replaced_;
};

void Compiler::find_row_blocks(Groups& g) {
  std::map<size_t, RowBlocks>& found = g.row_blocks;
  RowBlocksFinder finder(*this, g.block, g.groups, g.readers, g.done);
  for (size_t i = 0; i < g.groups.size(); ++i) {
    RowBlocks blocks;
    std::set<size_t> replaced;
    if (g.done[i] || !finder.run(i, blocks, replaced)) continue;
    if (std::any_of(replaced.begin(), replaced.end(), [&](size_t r) { return found.contains(r); })) continue;
    for (size_t r : replaced) g.done[r] = true;
    found.emplace(i, std::move(blocks));
  }
}

LoopRange Compiler::RowBlocks::used_columns(int64_t row, int64_t rows) const {
  const size_t column = reader.outer;
  std::vector<LoopRange> ranges(reader.loops.size(), {0, reader.loops[column].size});
  for (size_t l = column; l-- > 0;) {
    ranges[l] = {0, 1};
    if (reader.loops[l].size == 1) continue;
    const int64_t at = row % reader.loops[l].size;
    ranges[l] = {at, at + rows};
    row /= reader.loops[l].size;
    rows = 1;
  }
  const LoopRange found = used_range(reader, read, column, ranges, sequences);
  return found.first < found.end ? found : LoopRange{0, 1};
}

void Compiler::RowBlocks::set_parts(BlockedProduct& scores, BlockedProduct& result) const {
  if (reader.loops.empty()) return;
  const auto of_tiles = [&](const BlockedProduct& call, int64_t divisor, std::vector<int64_t>& begins,
                            std::vector<int64_t>& ends) {
    for (int64_t tile = 0; tile < call.batches * call.tiles; ++tile) {
      const int64_t row = tile % call.tiles * call.tile_rows;
      const LoopRange range =
          used_columns(tile / call.tiles * first.rows + row, std::min(call.tile_rows, call.rows - row));
      begins.push_back(range.first / divisor);
      ends.push_back((range.end + divisor - 1) / divisor);
    }
  };
  of_tiles(scores, 1, scores.first_column, scores.end_column);
  int64_t used = 0;
  for (size_t i = 0; i < scores.end_column.size(); ++i) used += scores.end_column[i] - scores.first_column[i];
  if (used == static_cast<int64_t>(scores.end_column.size()) * scores.columns) {
    scores.first_column = scores.end_column = {};
    return;
  }
  // The columns of the scores are the depth of the second product, which may have several columns in one element.
  const int64_t columns_of_element = scores.columns / result.depth;
  const bool is_plain = !result.a_packed && result.a_depth == 1 && result.segments.empty();
  const bool reads_b = !result.packs_b && !result.copies_b && result.b_starts == 0 && result.element_bytes == 4;
  if (!is_plain || !reads_b || !result.first_step.empty()) return;
  result.checks_parts = true;
  of_tiles(result, columns_of_element, result.first_step, result.end_step);
}

void Compiler::add_row_blocks(RowBlocks& r, Drafts& drafts) {
  BlockedProduct first = choose_blocking(r.first, target_, true);
  BlockedProduct second = choose_blocking(r.second, target_, true);
  r.set_parts(first, second);
  const PreparedOperands of_first = prepare_operands(r.first, first, drafts);
  const PreparedOperands of_second = prepare_operands(r.second, second, drafts);
  ++time_;
  const auto threads = static_cast<uint64_t>(target_.threads);
  std::map<RangeId, uint64_t> own;  // live ranges that each thread has for itself, and their bytes for one thread
  for (const auto& [v, bytes] : r.passed) {
    range_[v] = buffers_.add(threads * bytes, time_);
    own.emplace(range_[v], bytes);
  }
  for (const KernelPlan& k : r.between) {
    for (const auto& [from, to] : k.in_place) {
      const bool both = own.contains(range_[from]) && own.contains(range_[to]);
      if (both && bytes_of(from) == bytes_of(to) && has_one_index(k, from, to)) range_[to] = range_[from];
    }
  }
  Draft d;
  d.step.kind = StepKind::kBlocks;
  d.step.kernel.range = r.blocks;
  d.step.kernel.cost_ns = first.cost_ns + second.cost_ns;
  d.children.emplace_back();
  Drafts& steps = d.children.back();
  steps.push_back(product_step(r.first, std::move(first), of_first, r.first.result));
  add_block_kernels(r.between, d);
  steps.push_back(product_step(r.second, std::move(second), of_second, r.second.result));
  add_block_kernels(r.after, d);
  for (Draft& one : steps) {
    for (RangeId range : one.ranges) {
      const auto found = own.find(range);
      one.step.block_bytes.push_back(found == own.end() ? 0 : found->second);
    }
  }
  d.step.kernel.parallel = target_.threads > 1 && r.blocks > 1 && d.step.kernel.cost_ns > target_.awake_ns;
  drafts.push_back(std::move(d));
}

void Compiler::add_block_kernels(std::vector<KernelPlan>& kernels, Draft& blocks) {
  for (KernelPlan& k : kernels) {
    Draft& one = blocks.children.back().emplace_back();
    one.step.kernel.function = function_of(k.kernel);
    add_buffers(k, one);
    describe(k.kernel, one.step);
    blocks.step.kernel.cost_ns += one.step.kernel.cost_ns;
    ++plan_->kernels;
  }
}

bool Compiler::add_in_blocks(std::vector<KernelPlan>& kernels, ValueId result, size_t dim, Drafts& drafts) {
  const Dims& dims = graph_.type(result).dims;
  const auto bytes = static_cast<int64_t>(bytes_of(result));
  if (kernels.size() < 2 || dim == 0 || bytes <= target_.second_cache) return false;
  const int64_t rows =
      std::accumulate(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(dim), int64_t{1}, std::multiplies<>());
  const int64_t together = dims[dim - 1], row_bytes = bytes / rows;
  // The smaller a block, the more of its pages and lines are near; but calling the kernels of a block takes time.
  int64_t block = std::clamp(target_.first_cache / 4 / row_bytes, int64_t{1}, together);
  while (together % block != 0) --block;
  if (block * row_bytes < target_.first_cache / 8) return false;
  std::vector<KernelPlan> parts = kernels;
  for (KernelPlan& part : parts) {
    Product product;
    if (!is_simple(part) || !part.in_place.empty() || find_product(part, graph_, target_, product)) return false;
    const size_t loops = split_rows(part.kernel, rows, block);
    if (loops == 0) return false;
    merge_first_loops(part.kernel, loops);
    collapse_loops(part.kernel, 1);
    part.kernel.in_parts = true;
    choose_lanes(part.kernel, target_);
    schedule(part.kernel);
  }
  ++time_;
  Draft d;
  d.step.kind = StepKind::kBlocks;
  d.step.kernel.range = rows / block;
  d.children.emplace_back();
  add_block_kernels(parts, d);
  for (Draft& one : d.children.back()) one.step.block_bytes.assign(one.ranges.size(), 0);
  for (const KernelPlan& part : parts)
    for (ValueId v : part.buffers) plan_->traffic_bytes += bytes_of(v);
  d.step.kernel.parallel = target_.threads > 1 && d.step.kernel.range > 1 && d.step.kernel.cost_ns > target_.awake_ns;
  drafts.push_back(std::move(d));
  return true;
}

}  // namespace collet::codegen
