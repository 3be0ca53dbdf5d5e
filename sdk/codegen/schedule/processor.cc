// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/processor.h"

#include <collet/codegen/kernel_verify.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/legality.h"
#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {

bool is_costly(const Expr& i) {
  return is_expensive(i.opcode) || i.opcode == COLLET_OP_DIVIDE;
}

/// Returns how many vectors are computed at a time whose operations wait for each other: about as much work as a processor looks
/// ahead over.
int most_together(const Target& target) {
  return std::clamp(target.tuning.latency_bits / target.vector_bits, 1, target.tuning.most_together);
}

int work_of(const Expr& i) {
  if (i.op == ExprOp::kLoad) return 1;
  if (i.op != ExprOp::kOp) return 0;
  if (is_costly(i)) return 12;
  return i.opcode == COLLET_OP_ADD || i.opcode == COLLET_OP_MULTIPLY ? 1 : 3;
}

class Scheduler {
 public:
  Scheduler(Kernel& kernel, const Target& target) : k_(kernel), target_(target), deps_(loop_dependencies(kernel)) {}

  void run(const std::vector<std::string>& off, ScheduleLog* log);

  // The rules. Each returns null if it acted, or why it did not.
  const char* unroll_short_loops();
  const char* interleave_windows();
  const char* transpose_in_squares();
  const char* reduce_in_strips();
  const char* use_scalable_vectors();
  const char* take_any_order();
  const char* keep_costly_values();
  const char* widen_reductions();
  const char* interleave_rows();
  const char* interleave_gathers();
  const char* compute_together();
  const char* write_past_caches();

 private:
  void interleave(size_t l, int factor);
  bool is_interleaved() const { return interleaved_loops(k_) > 0; }
  bool is_transposing() const;
  bool lanes_inside() const { return k_.lanes > 1 && k_.lane_loop >= k_.outer; }
  bool is_by_rows() const { return k_.lane_loop < k_.loops.size() && k_.loops[k_.lane_loop].strip != 0; }
  uint64_t inner() const;
  /// Returns the schedules of the kernel's passes. If the kernel has none yet, adds one for each pass, with the lanes of
  /// the kernel.
  std::vector<PassSchedule>& passes_of(const KernelPasses& passes);
  /// Removes the schedules of the passes again if all of them have the lanes of the kernel and one vector at a time.
  void drop_usual_passes();
  std::vector<bool> find_costly(const KernelPasses& passes) const;
  bool windows_overlap(size_t l) const;
  int width_of(const KernelPasses& passes, int pass, int most) const;
  int together_of(const KernelPasses& passes, int pass, int most) const;

  Kernel& k_;
  const Target& target_;
  const std::vector<uint64_t> deps_;
};

/// A rule of schedules. The rules are applied in this order; later ones see what those before have done.
struct Rule {
  const char* name;
  const char* (Scheduler::*apply)();
  bool is_for_grids;  ///< whether it is applied to kernels of grids, too, whose loops are shared among threads
};

constexpr Rule kRules[] = {
    // Loops of few iterations take longer to run than what is in them.
    {"unroll", &Scheduler::unroll_short_loops, true},
    // Neighbouring windows of a convolution read the same elements, and registers are left.
    {"interleave_windows", &Scheduler::interleave_windows, false},
    // A gather along the lanes takes as long as its elements; a square of registers is read by rows.
    {"transpose", &Scheduler::transpose_in_squares, false},
    // Sums of more columns than registers hold are in memory: each strip of them stays in the first cache.
    {"strips", &Scheduler::reduce_in_strips, false},
    {"scalable", &Scheduler::use_scalable_vectors, false},
    // Two vectors of bf16 become two of f32 by a shift and a mask, if it does not matter which element is where.
    {"any_order", &Scheduler::take_any_order, false},
    // To load a value takes less than to compute a function again.
    {"keep", &Scheduler::keep_costly_values, false},
    // An addition waits for the one before; several vectors of sums do not wait for each other.
    {"widen", &Scheduler::widen_reductions, false},
    {"interleave_rows", &Scheduler::interleave_rows, false},
    {"interleave_gathers", &Scheduler::interleave_gathers, false},
    // The operations of a function wait for each other, and a processor looks ahead over too few instructions to reach
    // the next vector.
    {"together", &Scheduler::compute_together, false},
    // A result that no cache holds need not be read into one before it is written.
    {"past_caches", &Scheduler::write_past_caches, false},
};

void Scheduler::run(const std::vector<std::string>& off, ScheduleLog* log) {
  clear_schedule(k_);
  for (const Rule& rule : kRules) {
    if (target_.has_grid() && !rule.is_for_grids) continue;
    const bool is_off = std::find(off.begin(), off.end(), rule.name) != off.end();
    const char* const why_not = is_off ? "it is switched off" : (this->*rule.apply)();
    if (log) log->push_back({rule.name, why_not});
  }
}

void Scheduler::interleave(size_t l, int factor) {
  factor = std::min(factor, kMostAtATime);
  if (factor < 2) return;
  k_.loops[l].kind = LoopKind::kInterleave;
  k_.loops[l].factor = factor;
}

bool Scheduler::is_transposing() const {
  return std::any_of(k_.loops.begin(), k_.loops.end(), [](const Loop& l) { return l.kind == LoopKind::kTranspose; });
}

uint64_t Scheduler::inner() const {
  uint64_t out = 0;
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) out |= uint64_t{1} << l;
  return out;
}

std::vector<PassSchedule>& Scheduler::passes_of(const KernelPasses& passes) {
  if (k_.passes.empty()) k_.passes.assign(static_cast<size_t>(passes.last()) + 1, {k_.lanes, 1});
  return k_.passes;
}

void Scheduler::drop_usual_passes() {
  if (std::all_of(k_.passes.begin(), k_.passes.end(),
                  [&](const PassSchedule& p) { return p == PassSchedule{k_.lanes, 1}; }))
    k_.passes.clear();
}

/// Finds values that are worth keeping from one pass over a row to the next, because they cost more than a load.
std::vector<bool> Scheduler::find_costly(const KernelPasses& passes) const {
  std::vector<bool> costly(k_.exprs.size(), false);
  if (passes.last() == 0 || !(k_.lanes == 1 || lanes_inside()) || inner_points(k_) > target_.tuning.kept_row)
    return costly;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& i = k_.exprs[k];
    const uint32_t kind = collet_type_kind(i.type);
    if ((deps_[k] & inner()) != inner() || i.op != ExprOp::kOp || kind != COLLET_KIND_FLOAT) continue;
    const bool has_costly =
        std::any_of(i.args.begin(), i.args.end(), [&](ExprId a) { return costly[static_cast<size_t>(a)]; });
    costly[k] = is_costly(i) || has_costly;
  }
  return costly;
}

/// Decides which of the costly values are kept: those that a pass needs after another has computed them, the last ones
/// of a computation first.
class Keeper {
 public:
  Keeper(Kernel& kernel, const KernelPasses& passes, const std::vector<bool>& costly)
      : k_(kernel),
        passes_(passes),
        costly_(costly),
        first_(kernel.exprs.size(), -1),
        kept_(kernel.exprs.size(), false) {}

  void run() {
    for (int pass = 0; pass <= passes_.last(); ++pass) {
      seen_.assign(k_.exprs.size(), false);
      passes_.each_root(pass, [&](ExprId t) { need(pass, t); });
    }
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (kept_[k]) k_.kept.push_back(static_cast<ExprId>(k));
    }
  }

 private:
  void need(int pass, ExprId t) {
    if (t == kNoExpr || passes_.level_of(t) <= k_.outer) return;
    const auto k = static_cast<size_t>(t);
    if (seen_[k]) return;
    seen_[k] = true;
    if (costly_[k] && first_[k] >= 0 && first_[k] < pass && keep(k)) return;
    if (first_[k] < 0) first_[k] = pass;
    const Expr& e = k_.exprs[k];
    for (const ExprId a : e.args) need(pass, a);
    for (const auto& term : e.index.terms) need(pass, term.first);
    need(pass, e.mask);
  }

  bool keep(size_t k) {
    if (kept_[k]) return true;
    const Expr& e = k_.exprs[k];
    const bool is_cheap = !is_costly(e) && std::all_of(e.args.begin(), e.args.end(), [&](ExprId a) {
      return !costly_[static_cast<size_t>(a)] || kept_[static_cast<size_t>(a)];
    });
    const int64_t row = inner_points(k_) * compute_bytes(e.type);
    if (is_cheap || bytes_ + row > kMostStackBytes) return false;
    bytes_ += row;
    kept_[k] = true;
    return true;
  }

  Kernel& k_;
  const KernelPasses& passes_;
  const std::vector<bool>& costly_;
  std::vector<bool> seen_;
  std::vector<int> first_;  ///< by expression: the first pass that computes it
  std::vector<bool> kept_;
  int64_t bytes_ = 0;
};

const char* Scheduler::keep_costly_values() {
  const KernelPasses passes(k_);
  if (passes.last() == 0) return "there is one pass";
  Keeper(k_, passes, find_costly(passes)).run();
  return k_.kept.empty() ? "no pass computes again what costs more than a load, or rows are too long" : nullptr;
}

const char* Scheduler::unroll_short_loops() {
  if (k_.reductions.empty() || k_.outer == k_.loops.size()) return "nothing is reduced over inner loops";
  if (k_.lanes == 1 || k_.lane_loop >= k_.outer) return "no outer loop is in lanes";
  if (k_.sequential || !k_.updates.empty()) return "iterations have an order";
  for (const Reduction& r : k_.reductions) {
    if (r.combine == COLLET_COMBINE_OTHER) return "a reduction has a body";
    if (r.condition != kNoExpr && (deps_[static_cast<size_t>(r.condition)] >> k_.lane_loop & 1) != 0)
      return "lanes skip different points";
  }
  const int64_t points = inner_points(k_);
  if (points > target_.tuning.unrolled_points ||
      points * static_cast<int64_t>(k_.exprs.size()) > target_.tuning.straight_exprs)
    return "there are too many points, or expressions";
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) k_.loops[l].kind = LoopKind::kUnroll;
  return nullptr;
}

const char* Scheduler::interleave_windows() {
  const KernelPasses passes(k_);
  if (!passes.is_straight()) return "the inner loops are not unrolled";
  if (passes.last() > 1) return "there are several passes";
  if (std::any_of(k_.stores.begin(), k_.stores.end(), [&](const Store& s) { return passes.is_inner(s); }))
    return "there are stores in the inner loops";
  int bytes = 1;
  for (const Reduction& r : k_.reductions) bytes = std::max(bytes, compute_bytes(r.types[0]));
  const int registers = std::max(1, k_.lanes * bytes * 8 / target_.vector_bits);
  const int available = target_.vector_registers / 2 / registers;
  int columns = 1;
  size_t side = 0;
  for (size_t l = k_.outer; l-- > 0 && columns == 1;) {
    if (l == k_.lane_loop || k_.loops[l].size < 4) continue;
    const bool shares = std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
      const uint64_t depends = deps_[static_cast<size_t>(&e - k_.exprs.data())];
      return e.op == ExprOp::kLoad && (depends & inner()) != 0 && (depends >> l & 1) == 0;
    });
    if (!shares) continue;
    side = l;
    columns = std::clamp(available, 1, target_.tuning.window_columns);
    // The unrolling factor divides the loop's size, because remaining iterations would need code of their own.
    for (int unroll = columns; unroll > 1; --unroll) {
      if (k_.loops[l].size % unroll != 0) continue;
      columns = unroll;
      break;
    }
  }
  if (columns == 1) return "no loop of at least 4 iterations shares loads, or registers are full";
  interleave(side, columns);
  const int64_t emitted =
      inner_points(k_) * static_cast<int64_t>(k_.exprs.size()) * columns * target_.tuning.window_rows;
  if (columns * int64_t{target_.tuning.window_rows} > available || emitted > target_.tuning.window_exprs)
    return nullptr;
  for (size_t l = side; l-- > 0;) {
    if (l == k_.lane_loop || k_.loops[l].size < 2 * int64_t{target_.tuning.window_rows} || !windows_overlap(l))
      continue;
    interleave(l, target_.tuning.window_rows);
    break;
  }
  return nullptr;
}

/// True if a load reads some of the same elements in neighbouring iterations of outer loop `l`, for other points of the
/// inner loops.
bool Scheduler::windows_overlap(size_t l) const {
  return std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
    const int64_t step = e.index.coefficient(l);
    if (e.op != ExprOp::kLoad) return false;
    for (size_t m = k_.outer; m < k_.loops.size(); ++m) {
      if (windows_share(step, e.index.coefficient(m), k_.loops[m].size)) return true;
    }
    return false;
  });
}

const char* Scheduler::take_any_order() {
  const char* const refusal = refusal_of_any_order(k_);
  if (!refusal) k_.unordered = true;
  return refusal;
}

/// Interleaves rows that are gathered at the same positions, which are then computed once.
const char* Scheduler::interleave_gathers() {
  if (!is_plain(k_) || k_.sequential || k_.lanes == 1 || is_transposing() || k_.scalable)
    return "it is no plain kernel in lanes of fixed length";
  if (k_.outer < 2 || k_.lane_loop + 1 != k_.outer) return "the last of several loops is not in lanes";
  if (k_.exprs.size() > target_.tuning.gathered_body) return "there are too many expressions";
  const size_t l = k_.lane_loop - 1;
  const int64_t rows = k_.loops[l].size;
  if (rows <= target_.tuning.gathered_short_rows && k_.loops[k_.lane_loop].size <= k_.lanes &&
      k_.exprs.size() * static_cast<size_t>(rows) <= target_.tuning.gathered_exprs) {
    if (rows == 1) return "there is one row";
    interleave(l, static_cast<int>(rows));
    return nullptr;
  }
  if (rows < 4 * int64_t{target_.tuning.gathered_rows}) return "there are few rows";
  const bool shares = std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
    if (e.op != ExprOp::kLoad || e.index.coefficient(l) == 0) return false;
    uint64_t depends = 0;
    for (const auto& t : e.index.terms) depends |= deps_[static_cast<size_t>(t.first)];
    return (depends >> k_.lane_loop & 1) != 0 && (depends >> l & 1) == 0;
  });
  if (!shares) return "rows are not gathered at the same positions";
  interleave(l, target_.tuning.gathered_rows);
  return nullptr;
}

/// Interleaves iterations that each reduce a row of few vectors: the operations on one row wait for each other, and those
/// on the others fill the time.
const char* Scheduler::interleave_rows() {
  if (!lanes_inside() || k_.reductions.empty() || k_.scan || k_.sequential || !k_.updates.empty() || k_.scalable)
    return "lanes of fixed length are not reduced";
  if (k_.outer == 0 || k_.outer + 1 != k_.loops.size() ||
      k_.loops[k_.outer - 1].size < 4 * int64_t{target_.tuning.reduced_rows})
    return "there are few rows, or several inner loops";
  const int64_t vectors = (k_.loops[k_.outer].size + k_.lanes - 1) / k_.lanes;
  const int64_t emitted = vectors <= target_.tuning.straight_row_vectors ? vectors : 2;
  if (vectors > target_.tuning.reduced_row_vectors ||
      k_.exprs.size() * static_cast<size_t>(emitted) * target_.tuning.reduced_rows > target_.tuning.reduced_rows_exprs)
    return "a row has many vectors, or expressions";
  interleave(k_.outer - 1, target_.tuning.reduced_rows);
  return nullptr;
}

const char* Scheduler::transpose_in_squares() {
  const size_t loop = transposing_loop(k_);
  if (loop == k_.loops.size()) return "no load is contiguous along the last loop and not along the lanes";
  k_.loops[loop].kind = LoopKind::kTranspose;
  return nullptr;
}

/// Computes a matrix row by row if registers cannot hold a sum for each column, see reduces_rows.
const char* Scheduler::reduce_in_strips() {
  if (!reduces_rows(k_, target_)) return "registers hold a sum for each column, or rows are not reduced alike";
  int rows = 8;
  while (rows > 1 && k_.exprs.size() * static_cast<size_t>(rows) > target_.tuning.strip_exprs) rows /= 2;
  int64_t bytes = 0;  // bytes of a column: its accumulators, which sums have two of
  for (const Reduction& r : k_.reductions) bytes += 2 * compute_bytes(r.types[0]);
  if (rows > 1) interleave(k_.outer, rows);
  k_.loops[k_.lane_loop].strip = std::max<int64_t>(target_.first_cache / 2 / bytes / k_.lanes, 4) * k_.lanes;
  return nullptr;
}

const char* Scheduler::use_scalable_vectors() {
  if (target_.scalable_bits == 0) return "the processor has none";
  if (k_.lanes == 1 || is_transposing() || is_by_rows() || k_.scan) return "lanes are rearranged, or there are none";
  // A vector must have at least one lane for each multiple of the scalable unit.
  if (k_.lanes * target_.scalable_bits < target_.vector_bits) return "there are too few lanes";
  if (std::any_of(k_.updates.begin(), k_.updates.end(),
                  [&](const Update& u) { return !updates_neighbours(u, k_.lane_loop, deps_); }))
    return "lanes are updated one after the other";
  // A kWhile returns several values packed in one, which scalable vectors cannot do. LLVM computes the remainder of
  // floats lane by lane.
  const auto unsuited = [](const Expr& e) {
    return e.op == ExprOp::kWhile || (e.op == ExprOp::kOp && e.opcode == COLLET_OP_REMAINDER);
  };
  const auto body_is_suited = [&](const ScalarBody& body) {
    return std::none_of(body.exprs.begin(), body.exprs.end(), unsuited);
  };
  constexpr const char* kUnsuited = "an expression is computed lane by lane";
  if (std::any_of(k_.exprs.begin(), k_.exprs.end(), unsuited)) return kUnsuited;
  for (const Update& u : k_.updates) {
    if (!body_is_suited(u.body)) return kUnsuited;
  }
  for (const Reduction& r : k_.reductions) {
    if (!body_is_suited(r.body)) return kUnsuited;
    if (!lanes_inside()) continue;
    const bool folds =
        r.combine != COLLET_COMBINE_OTHER && r.combine != COLLET_COMBINE_MULTIPLY && r.combine <= COLLET_COMBINE_XOR;
    if (!folds || collet_type_kind(r.types[0]) == COLLET_KIND_COMPLEX) return "lanes are combined by no instruction";
  }
  k_.scalable = true;
  return nullptr;
}

const char* Scheduler::widen_reductions() {
  const KernelPasses passes(k_);
  for (int pass = 0; pass <= passes.last(); ++pass)
    passes_of(passes)[static_cast<size_t>(pass)].lanes = width_of(passes, pass, most_together(target_));
  drop_usual_passes();
  return k_.passes.empty() ? "no pass reduces lanes and does little else" : nullptr;
}

int Scheduler::width_of(const KernelPasses& passes, int pass, int most) const {
  if (!lanes_inside()) return k_.lanes;
  bool reduces = false;
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (passes.reduction_pass(r) != pass) continue;
    if (k_.reductions[r].combine == COLLET_COMBINE_OTHER) return k_.lanes;
    reduces = true;
  }
  if (!reduces) return k_.lanes;
  int work = 0;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes.needs(pass, k)) work += passes.is_loaded(pass, k) ? 1 : work_of(k_.exprs[k]);
  }
  const int64_t size = k_.loops[k_.lane_loop].size;
  for (int times = 4; times >= 2; times /= 2) {
    const int64_t lanes = static_cast<int64_t>(k_.lanes) * times;
    // A long computation is repeated if that leaves no elements over, which would be computed one by one.
    const bool fits = work * times <= target_.tuning.widened_work ||
                      (work <= target_.tuning.widened_work && times <= most && size % lanes == 0);
    if (fits && size >= lanes * 2) return static_cast<int>(lanes);
  }
  return k_.lanes;
}

const char* Scheduler::compute_together() {
  const KernelPasses passes(k_);
  bool any = false;
  for (int pass = 0; pass <= passes.last(); ++pass) {
    int& together = passes_of(passes)[static_cast<size_t>(pass)].together;
    together = together_of(passes, pass, most_together(target_));
    any = any || together > 1;
  }
  drop_usual_passes();
  return any ? nullptr : "no pass without reductions computes few functions of neighbours";
}

int Scheduler::together_of(const KernelPasses& passes, int pass, int most) const {
  if (k_.lanes == 1 || k_.scan || k_.sequential || !k_.updates.empty()) return 1;
  if (k_.scalable || is_transposing() || passes.is_straight() || is_interleaved()) return 1;
  if (!lanes_inside() && !is_plain(k_)) return 1;
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (passes.reduction_pass(r) == pass) return 1;
  }
  const auto suits = [&](const Index& index) {
    const int64_t step = index.coefficient(k_.lane_loop);
    return index.terms.empty() && (step == 0 || step == 1);
  };
  int functions = 0;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    const bool is_needed = !lanes_inside() || passes.needs(pass, k);
    if (passes.level_of(static_cast<ExprId>(k)) <= k_.lane_loop || !is_needed || passes.is_loaded(pass, k)) continue;
    if (e.op != ExprOp::kOp && e.op != ExprOp::kLoad && e.op != ExprOp::kInRange) return 1;
    if (!suits(e.index) || collet_type_kind(e.type) == COLLET_KIND_COMPLEX) return 1;
    if (e.op != ExprOp::kOp || collet_type_kind(e.type) != COLLET_KIND_FLOAT) continue;
    // A division by the same number in all lanes is a product with its reciprocal, and a branch.
    const bool divides = e.opcode == COLLET_OP_DIVIDE && passes.level_of(e.args[1]) > k_.lane_loop;
    if (divides || is_expensive(e.opcode)) ++functions;
  }
  const auto is_far = [&](const Store& s) { return !suits(s.index); };
  if (functions == 0 || std::any_of(k_.stores.begin(), k_.stores.end(), is_far)) return 1;
  const int64_t size = k_.loops[k_.lane_loop].size;
  int times = most;
  while (times > 1 && (times * functions > target_.tuning.functions_together || times * k_.lanes > size)) times /= 2;
  return times;
}

const char* Scheduler::write_past_caches() {
  if (target_.triple.rfind("x86_64", 0) != 0 || target_.vector_bits < target_.tuning.stores_past_caches)
    return "the processor has no such stores";
  std::vector<bool> found;
  for (const Store& s : k_.stores) found.push_back(bypasses_caches(k_, s, target_));
  for (size_t i = 0; i < found.size(); ++i) k_.stores[i].bypasses_caches = found[i];
  const bool any = std::find(found.begin(), found.end(), true) != found.end();
  return any ? nullptr : "no result is larger than the caches, in whole vectors, and not read";
}

}  // namespace

void schedule_for(Kernel& kernel, const Target& target, const std::vector<std::string>& off, ScheduleLog* log) {
  Scheduler(kernel, target).run(off, log);
}

const char* schedule_rule(size_t index) {
  return index < std::size(kRules) ? kRules[index].name : nullptr;
}

int64_t grain_of(const Kernel& kernel) {
  if (kernel.outer == 0) return 1;
  if (kernel.lane_loop == 0) return kernel.lanes;
  const bool has_rows = kernel.loops[0].kind == LoopKind::kInterleave && interleaved_loops(kernel) > 1;
  return has_rows ? kernel.loops[0].factor : 1;
}

}  // namespace collet::codegen
