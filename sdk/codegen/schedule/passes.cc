// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/passes.h"

#include <algorithm>
#include <cstdlib>

#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/schedule/lanes.h"

namespace collet::codegen {
namespace {

constexpr int64_t kLongestKeptRow = 8192;
/// Most bytes of values that are kept on the stack: threads of the host may have small stacks.
constexpr int64_t kMostKeptBytes = 128 << 10;

bool is_costly(const Expr& i) {
  return is_expensive(i.opcode) || i.opcode == COLLET_OP_DIVIDE;
}

/// Returns how many vectors are computed at a time whose operations wait for each other: about as much work as a processor looks
/// ahead over. A grid has other threads to fill the time.
int most_together(const Target& target) {
  constexpr int kBits = 1024;
  constexpr int kMost = 4;
  return target.has_grid() ? 1 : std::clamp(kBits / target.vector_bits, 1, kMost);
}

int work_of(const Expr& i) {
  if (i.op == ExprOp::kLoad) return 1;
  if (i.op != ExprOp::kOp) return 0;
  if (is_costly(i)) return 12;
  return i.opcode == COLLET_OP_ADD || i.opcode == COLLET_OP_MULTIPLY ? 1 : 3;
}

}  // namespace

size_t KernelPasses::level_of_index(const Index& index) const {
  size_t level = 0;
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    if (index.coefficients[l] != 0) level = l + 1;
  }
  for (auto& t : index.terms) level = std::max(level, level_[static_cast<size_t>(t.first)]);
  return level;
}

int KernelPasses::stage_of_index(const Index& index) const {
  int stage = 0;
  for (auto& t : index.terms) stage = std::max(stage, stage_of(t.first));
  return stage;
}

KernelPasses::KernelPasses(const Kernel& kernel, const Target& target) : k_(kernel) {
  const std::vector<uint64_t> deps = loop_dependencies(k_);
  find_stages(deps);
  needed_.assign(static_cast<size_t>(last_stage_) + 1, std::vector<bool>(k_.exprs.size(), false));
  first_pass_.assign(k_.exprs.size(), -1);
  kept_.assign(k_.exprs.size(), false);
  // A thread of a grid has no memory of its own in which to keep a row.
  costly_.assign(k_.exprs.size(), false);
  if (!target.has_grid()) find_costly(deps);
  find_straight(deps, target.vector_bits);
  find_transposed(deps);
  find_rows(target);
  find_scalable(target);
  unordered_ = !target.has_grid() && finds_unordered(deps);
  for (int pass = 0; pass <= last_stage_; ++pass) need_all(pass);
  const int most = most_together(target);
  for (int pass = 0; pass <= last_stage_; ++pass)
    widths_.push_back(target.has_grid() ? k_.lanes : width_of(pass, most));
  if (!target.has_grid()) find_interleaved();
  if (!target.has_grid()) find_gathers(deps);
  for (int pass = 0; pass <= last_stage_; ++pass) together_.push_back(together_of(pass, most));
}

void KernelPasses::find_stages(const std::vector<uint64_t>& deps) {
  reduction_stage_.assign(k_.reductions.size(), -1);
  level_.resize(k_.exprs.size());
  stage_.resize(k_.exprs.size());
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    level_[k] = deps[k] == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(deps[k]));
    const Expr& i = k_.exprs[k];
    int stage = std::max(stage_of_index(i.index), stage_of(i.mask));
    for (ExprId a : i.args) stage = std::max(stage, stage_of(a));
    if (i.op == ExprOp::kReduced) {
      auto r = static_cast<size_t>(i.b);
      if (reduction_stage_[r] < 0) {
        int s = stage_of(k_.reductions[r].condition);
        for (ExprId x : k_.reductions[r].inputs) s = std::max(s, stage_of(x));
        for (ExprId x : k_.reductions[r].inits) s = std::max(s, stage_of(x));
        reduction_stage_[r] = s;
      }
      stage = reduction_stage_[r] + 1;
      level_[k] = k_.outer;
    }
    stage_[k] = stage;
    last_stage_ = std::max(last_stage_, stage);
  }
}

void KernelPasses::find_costly(const std::vector<uint64_t>& deps) {
  if (last_stage_ == 0 || !(k_.lanes == 1 || k_.lane_loop >= k_.outer)) return;
  int64_t row = 1;
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) row *= k_.loops[l].size;
  if (row > kLongestKeptRow) return;
  row_ = row;
  uint64_t inner = 0;
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) inner |= uint64_t{1} << l;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& i = k_.exprs[k];
    const uint32_t kind = collet_type_kind(i.type);
    if ((deps[k] & inner) != inner || i.op != ExprOp::kOp || kind != COLLET_KIND_FLOAT) continue;
    const bool has_costly =
        std::any_of(i.args.begin(), i.args.end(), [&](ExprId a) { return costly_[static_cast<size_t>(a)]; });
    costly_[k] = is_costly(i) || has_costly;
  }
}

void KernelPasses::find_straight(const std::vector<uint64_t>& deps, int vector_bits) {
  constexpr int64_t kMostPoints = 32;
  constexpr int kMostColumns = 4;
  constexpr int kRowsAtATime = 2;
  constexpr int64_t kMostUnrolled = 1600;  ///< most expressions of all iterations that are computed at a time
  if (k_.reductions.empty() || k_.outer == k_.loops.size() || k_.lane_loop >= k_.outer || k_.lanes == 1) return;
  if (k_.sequential || !k_.updates.empty()) return;
  for (const Reduction& r : k_.reductions) {
    if (r.combine == COLLET_COMBINE_OTHER) return;
    if (r.condition != kNoExpr && (deps[static_cast<size_t>(r.condition)] >> k_.lane_loop & 1) != 0) return;
  }
  const int64_t points = inner_points(k_);
  if (points > kMostPoints || points * static_cast<int64_t>(k_.exprs.size()) > kMostStraight) return;
  straight_ = true;
  if (last_stage_ > 1) return;
  if (std::any_of(k_.stores.begin(), k_.stores.end(), [this](const Store& s) { return is_inner(s); })) return;
  uint64_t inner = 0;
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) inner |= uint64_t{1} << l;
  int bytes = 1;
  for (const Reduction& r : k_.reductions) bytes = std::max(bytes, compute_bytes(r.types[0]));
  const int registers = std::max(1, k_.lanes * bytes * 8 / vector_bits);
  const int available = (vector_bits >= 512 ? 16 : 8) / registers;
  for (size_t l = k_.outer; l-- > 0 && side_unroll_ == 1;) {
    if (l == k_.lane_loop || k_.loops[l].size < 4) continue;
    const bool shares = std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
      const uint64_t depends = deps[static_cast<size_t>(&e - k_.exprs.data())];
      return e.op == ExprOp::kLoad && (depends & inner) != 0 && (depends >> l & 1) == 0;
    });
    if (!shares) continue;
    side_loop_ = l;
    side_unroll_ = std::clamp(available, 1, kMostColumns);
    // The unrolling factor divides the loop's size, because remaining iterations would need code of their own.
    for (int unroll = side_unroll_; unroll > 1; --unroll) {
      if (k_.loops[l].size % unroll != 0) continue;
      side_unroll_ = unroll;
      break;
    }
  }
  const int64_t emitted = points * static_cast<int64_t>(k_.exprs.size()) * side_unroll_ * kRowsAtATime;
  if (side_unroll_ == 1 || side_unroll_ * kRowsAtATime > available || emitted > kMostUnrolled) return;
  for (size_t l = side_loop_; l-- > 0;) {
    if (l == k_.lane_loop || k_.loops[l].size < 2 * kRowsAtATime || !windows_overlap(l)) continue;
    row_loop_ = l;
    row_unroll_ = kRowsAtATime;
    return;
  }
}

bool KernelPasses::windows_overlap(size_t l) const {
  return std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
    const int64_t step = e.index.coefficient(l);
    if (e.op != ExprOp::kLoad || step == 0) return false;
    for (size_t inner = k_.outer; inner < k_.loops.size(); ++inner) {
      const int64_t by = e.index.coefficient(inner);
      if (by != 0 && step % by == 0 && std::abs(step / by) < k_.loops[inner].size) return true;
    }
    return false;
  });
}

bool KernelPasses::finds_unordered(const std::vector<uint64_t>& deps) const {
  if (!lanes_inside() || k_.reductions.empty() || k_.scan || !k_.updates.empty() || scalable_) return false;
  const auto is_known = [](const Reduction& r) { return r.combine != COLLET_COMBINE_OTHER && r.condition == kNoExpr; };
  if (!std::all_of(k_.reductions.begin(), k_.reductions.end(), is_known)) return false;
  if (std::any_of(k_.stores.begin(), k_.stores.end(), [&](const Store& s) { return is_inner(s); })) return false;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    if (e.op == ExprOp::kReduced || (deps[k] >> k_.lane_loop & 1) == 0) continue;
    const bool loads = e.op == ExprOp::kLoad && e.type == COLLET_TYPE_BF16 && e.mask == kNoExpr &&
                       e.index.terms.empty() && e.index.coefficient(k_.lane_loop) == 1;
    if (!loads && e.op != ExprOp::kOp) return false;
  }
  return last_stage_ == 1;
}

void KernelPasses::find_gathers(const std::vector<uint64_t>& deps) {
  constexpr int kRows = 4;
  constexpr int64_t kMostRows = 8;  ///< short rows that are unrolled completely
  constexpr size_t kMostUnrolled = 64;
  constexpr size_t kMostInstructions = 24;
  if (!is_plain(k_) || k_.sequential || k_.lanes == 1 || transposing_ || scalable_) return;
  if (k_.outer < 2 || k_.lane_loop + 1 != k_.outer || k_.exprs.size() > kMostInstructions) return;
  const size_t l = k_.lane_loop - 1;
  const int64_t rows = k_.loops[l].size;
  if (rows <= kMostRows && k_.loops[k_.lane_loop].size <= k_.lanes &&
      k_.exprs.size() * static_cast<size_t>(rows) <= kMostUnrolled) {
    side_loop_ = l;
    side_unroll_ = static_cast<int>(rows);
    return;
  }
  if (rows < 4 * kRows) return;
  const bool shares = std::any_of(k_.exprs.begin(), k_.exprs.end(), [&](const Expr& e) {
    if (e.op != ExprOp::kLoad || e.index.coefficient(l) == 0) return false;
    uint64_t depends = 0;
    for (const auto& t : e.index.terms) depends |= deps[static_cast<size_t>(t.first)];
    return (depends >> k_.lane_loop & 1) != 0 && (depends >> l & 1) == 0;
  });
  if (!shares) return;
  side_loop_ = l;
  side_unroll_ = kRows;
}

void KernelPasses::find_interleaved() {
  constexpr int kRows = 4;
  constexpr int64_t kMostVectors = 16;
  constexpr int64_t kMostStraightVectors = 4;  ///< for more of them, a loop and a tail are emitted
  constexpr size_t kMostInstructions = 200;    ///< most instructions of all rows that are computed at a time
  if (!lanes_inside() || k_.reductions.empty() || k_.scan || k_.sequential || !k_.updates.empty() || scalable_) return;
  if (k_.outer == 0 || k_.outer + 1 != k_.loops.size() || k_.loops[k_.outer - 1].size < 4 * kRows) return;
  const int64_t vectors = (k_.loops[k_.outer].size + k_.lanes - 1) / k_.lanes;
  const int64_t emitted = vectors <= kMostStraightVectors ? vectors : 2;
  if (vectors > kMostVectors || k_.exprs.size() * static_cast<size_t>(emitted) * kRows > kMostInstructions) return;
  side_loop_ = k_.outer - 1;
  side_unroll_ = kRows;
}

void KernelPasses::find_transposed(const std::vector<uint64_t>& deps) {
  const size_t loop = transposing_loop(k_);
  if (loop == k_.loops.size()) return;
  transposing_ = true;
  side_loop_ = loop;
  side_unroll_ = k_.lanes;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    transposed_.push_back(collet::codegen::is_transposed(k_, deps, k, loop));
  }
}

void KernelPasses::find_rows(const Target& target) {
  constexpr size_t kMostInstructions = 96;  ///< most instructions of all rows that are computed at a time
  if (!reduces_rows(k_)) return;
  rows_ = 8;
  while (rows_ > 1 && k_.exprs.size() * static_cast<size_t>(rows_) > kMostInstructions) rows_ /= 2;
  int64_t bytes = 0;  // bytes of a column: its accumulators, which sums have two of
  for (const Reduction& r : k_.reductions) bytes += 2 * compute_bytes(r.types[0]);
  strip_ = std::max<int64_t>(target.first_cache / 2 / bytes / k_.lanes, 4) * k_.lanes;
}

void KernelPasses::find_scalable(const Target& target) {
  masks_ = target.masks;
  if (target.scalable_bits == 0 || k_.lanes == 1 || transposing_ || is_row_by_row() || k_.scan) return;
  // A vector must have at least one lane for each multiple of the scalable unit.
  if (k_.lanes * target.scalable_bits < target.vector_bits) return;
  // A kWhile returns several values packed in one, which scalable vectors cannot do. LLVM computes the remainder of
  // floats lane by lane.
  const auto unsuited = [](const Expr& e) {
    return e.op == ExprOp::kWhile || (e.op == ExprOp::kOp && e.opcode == COLLET_OP_REMAINDER);
  };
  const auto body_is_suited = [&](const ScalarBody& body) {
    return std::none_of(body.exprs.begin(), body.exprs.end(), unsuited);
  };
  if (std::any_of(k_.exprs.begin(), k_.exprs.end(), unsuited)) return;
  for (const Update& u : k_.updates) {
    if (!body_is_suited(u.body)) return;
  }
  for (const Reduction& r : k_.reductions) {
    if (!body_is_suited(r.body)) return;
    if (!lanes_inside()) continue;
    const bool folds =
        r.combine != COLLET_COMBINE_OTHER && r.combine != COLLET_COMBINE_MULTIPLY && r.combine <= COLLET_COMBINE_XOR;
    if (!folds || collet_type_kind(r.types[0]) == COLLET_KIND_COMPLEX) return;
  }
  scalable_ = true;
}

void KernelPasses::need_all(int pass) {
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (reduction_stage_[r] != pass) continue;
    for (ExprId x : k_.reductions[r].inputs) need(reduction_stage_[r], x);
    need(reduction_stage_[r], k_.reductions[r].condition);
  }
  for (const Store& s : k_.stores) {
    if (!is_inner(s)) continue;
    int stage = pass_of(s);
    if (stage != pass) continue;
    need(stage, s.value);
    need(stage, s.mask);
    for (auto& t : s.index.terms) need(stage, t.first);
  }
}

bool KernelPasses::is_inner(const Store& s) const {
  return std::max({level_of(s.value), level_of(s.mask), level_of_index(s.index)}) > k_.outer;
}

int KernelPasses::pass_of(const Store& s) const {
  return std::max({stage_of(s.value), stage_of(s.mask), stage_of_index(s.index)});
}

void KernelPasses::need(int pass, ExprId t) {
  if (t == kNoExpr || level_of(t) <= k_.outer) return;
  auto k = static_cast<size_t>(t);
  auto& set = needed_[static_cast<size_t>(pass)];
  if (set[k]) return;
  set[k] = true;
  if (costly_[k] && first_pass_[k] >= 0 && first_pass_[k] < pass && keep(k)) return;
  if (first_pass_[k] < 0) first_pass_[k] = pass;
  const Expr& i = k_.exprs[k];
  for (ExprId a : i.args) need(pass, a);
  for (auto& term : i.index.terms) need(pass, term.first);
  need(pass, i.mask);
}

bool KernelPasses::keep(size_t k) {
  if (kept_[k]) return true;
  const Expr& i = k_.exprs[k];
  const bool cheap = !is_costly(i) && std::all_of(i.args.begin(), i.args.end(), [&](ExprId a) {
    return !costly_[static_cast<size_t>(a)] || kept_[static_cast<size_t>(a)];
  });
  if (cheap) return false;
  const int64_t bytes = row_ * compute_bytes(k_.exprs[k].type);
  if (kept_bytes_ + bytes > kMostKeptBytes) return false;
  kept_bytes_ += bytes;
  kept_[k] = true;
  return true;
}

int KernelPasses::largest_width() const {
  return *std::max_element(widths_.begin(), widths_.end());
}

int KernelPasses::width_of(int pass, int most) const {
  constexpr int kMostWork = 32;
  if (!lanes_inside()) return k_.lanes;
  bool reduces = false;
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (reduction_stage_[r] != pass) continue;
    if (k_.reductions[r].combine == COLLET_COMBINE_OTHER) return k_.lanes;
    reduces = true;
  }
  if (!reduces) return k_.lanes;
  int work = 0;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (!needed_[static_cast<size_t>(pass)][k]) continue;
    work += kept_[k] && first_pass_[k] < pass ? 1 : work_of(k_.exprs[k]);
  }
  const int64_t size = k_.loops[k_.lane_loop].size;
  for (int times = 4; times >= 2; times /= 2) {
    const int64_t lanes = static_cast<int64_t>(k_.lanes) * times;
    // A long computation is repeated if that leaves no elements over, which would be computed one by one.
    const bool fits = work * times <= kMostWork || (work <= kMostWork && times <= most && size % lanes == 0);
    if (fits && size >= lanes * 2) return static_cast<int>(lanes);
  }
  return k_.lanes;
}

int KernelPasses::together_of(int pass, int most) const {
  constexpr int kMostFunctions = 8;  ///< functions of all vectors: a body with more of them is enough work already
  if (k_.lanes == 1 || k_.scan || k_.sequential || !k_.updates.empty()) return 1;
  if (scalable_ || transposing_ || straight_ || side_unroll_ > 1 || (!lanes_inside() && !is_plain(k_))) return 1;
  if (std::find(reduction_stage_.begin(), reduction_stage_.end(), pass) != reduction_stage_.end()) return 1;
  const auto suits = [&](const Index& index) {
    const int64_t step = index.coefficient(k_.lane_loop);
    return index.terms.empty() && (step == 0 || step == 1);
  };
  int functions = 0;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    if (level_[k] <= k_.lane_loop || (lanes_inside() && !needs(pass, k))) continue;
    if (kept_[k] && first_pass_[k] < pass) continue;
    if (e.op != ExprOp::kOp && e.op != ExprOp::kLoad && e.op != ExprOp::kInRange) return 1;
    if (!suits(e.index) || collet_type_kind(e.type) == COLLET_KIND_COMPLEX) return 1;
    if (e.op != ExprOp::kOp || collet_type_kind(e.type) != COLLET_KIND_FLOAT) continue;
    // A division by the same number in all lanes is a product with its reciprocal, and a branch.
    const bool divides = e.opcode == COLLET_OP_DIVIDE && level_of(e.args[1]) > k_.lane_loop;
    if (divides || is_expensive(e.opcode)) ++functions;
  }
  const auto is_far = [&](const Store& s) { return !suits(s.index); };
  if (functions == 0 || std::any_of(k_.stores.begin(), k_.stores.end(), is_far)) return 1;
  const int64_t size = k_.loops[k_.lane_loop].size;
  int times = most;
  while (times > 1 && (times * functions > kMostFunctions || times * k_.lanes > size)) times /= 2;
  return times;
}

int64_t grain_of(const Kernel& kernel, const Target& target) {
  if (kernel.outer == 0) return 1;
  if (kernel.lane_loop == 0) return kernel.lanes;
  if (kernel.reductions.empty() || kernel.lanes == 1) return 1;
  const KernelPasses passes(kernel, target);
  return passes.row_unroll() > 1 && passes.row_loop() == 0 ? passes.row_unroll() : 1;
}

}  // namespace collet::codegen
