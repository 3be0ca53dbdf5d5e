// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel.h>

#include <algorithm>
#include <cstdlib>

namespace collet::codegen {

uint32_t product_type(uint32_t combine, uint32_t type) {
  if (combine != COLLET_COMBINE_MULTIPLY) return 0;
  if (type == COLLET_TYPE_C64) return COLLET_TYPE_C128;
  const bool is_short = collet_type_kind(type) == COLLET_KIND_FLOAT && type != COLLET_TYPE_F64;
  return is_short ? static_cast<uint32_t>(COLLET_TYPE_F64) : 0;
}

bool is_float_product(const Reduction& reduction) {
  return reduction.combine == COLLET_COMBINE_MULTIPLY && collet_type_kind(reduction.types[0]) == COLLET_KIND_FLOAT;
}

bool windows_share(int64_t step, int64_t by, int64_t count) {
  return step != 0 && by != 0 && step % by == 0 && std::abs(step / by) < count;
}

bool updates_neighbours(const Update& update, size_t loop, const std::vector<uint64_t>& dependencies) {
  return update.index.coefficient(loop) == 1 &&
         std::none_of(update.index.terms.begin(), update.index.terms.end(),
                      [&](const auto& t) { return (dependencies[static_cast<size_t>(t.first)] >> loop & 1) != 0; });
}

bool may_update_in_order(const Kernel& kernel) {
  if (kernel.updates.size() != 1 || !kernel.stores.empty() || kernel.scan || !kernel.reductions.empty()) return false;
  if (kernel.outer == 0 || kernel.outer != kernel.loops.size()) return false;
  const std::vector<uint32_t>& updated = kernel.updates[0].buffers;
  return std::none_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& e) {
    return e.op == ExprOp::kLoad && std::find(updated.begin(), updated.end(), e.buffer) != updated.end();
  });
}

int64_t inner_points(const Kernel& kernel) {
  int64_t points = 1;
  for (size_t l = kernel.outer; l < kernel.loops.size(); ++l) {
    points *= kernel.loops[l].size;
    if (points > INT32_MAX) break;
  }
  return points;
}

bool Index::is_constant() const {
  return terms.empty() && std::all_of(coefficients.begin(), coefficients.end(), [](int64_t c) { return c == 0; });
}

Index loop_index(size_t loop) {
  Index i;
  i.coefficients.assign(loop + 1, 0);
  i.coefficients[loop] = 1;
  return i;
}

Index add_scaled(const Index& a, const Index& b, int64_t scale) {
  if (scale == 0) return a;
  Index r = a;
  r.coefficients.resize(std::max(a.coefficients.size(), b.coefficients.size()), 0);
  for (size_t i = 0; i < b.coefficients.size(); ++i) r.coefficients[i] += scale * b.coefficients[i];
  while (!r.coefficients.empty() && r.coefficients.back() == 0) r.coefficients.pop_back();
  r.constant += scale * b.constant;
  for (auto [value, c] : b.terms) {
    auto found = std::find_if(r.terms.begin(), r.terms.end(), [&](const auto& t) { return t.first == value; });
    if (found == r.terms.end()) {
      r.terms.emplace_back(value, scale * c);
    } else {
      found->second += scale * c;
      if (found->second == 0) r.terms.erase(found);
    }
  }
  return r;
}

void split_index(const Index& index, int64_t by, Index& whole, Index& rest) {
  whole = {};
  rest = {};
  whole.coefficients.assign(index.coefficients.size(), 0);
  rest.coefficients = whole.coefficients;
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    const int64_t c = index.coefficients[l];
    (c % by == 0 ? whole : rest).coefficients[l] = c % by == 0 ? c / by : c;
  }
  for (const auto& [term, c] : index.terms)
    (c % by == 0 ? whole : rest).terms.emplace_back(term, c % by == 0 ? c / by : c);
  rest.constant = (index.constant % by + by) % by;
  whole.constant = (index.constant - rest.constant) / by;
  for (Index* part : {&whole, &rest}) {
    while (!part->coefficients.empty() && part->coefficients.back() == 0) part->coefficients.pop_back();
  }
}

void clear_schedule(Kernel& kernel) {
  for (Loop& l : kernel.loops) l = {l.size};
  for (Store& s : kernel.stores) s.bypasses_caches = false;
  kernel.passes.clear();
  kernel.kept.clear();
  kernel.scalable = kernel.unordered = false;
}

std::vector<uint64_t> loop_dependencies(const Kernel& kernel) {
  std::vector<uint64_t> deps(kernel.exprs.size(), 0);
  uint64_t outer = kernel.outer >= 64 ? ~uint64_t{0} : (uint64_t{1} << kernel.outer) - 1;
  for (size_t k = 0; k < kernel.exprs.size(); ++k) {
    const Expr& i = kernel.exprs[k];
    uint64_t d = 0;
    for (ExprId a : i.args) d |= deps[static_cast<size_t>(a)];
    for (size_t l = 0; l < i.index.coefficients.size(); ++l) {
      if (i.index.coefficients[l] != 0) d |= uint64_t{1} << l;
    }
    for (auto& term : i.index.terms) d |= deps[static_cast<size_t>(term.first)];
    if (i.mask != kNoExpr) d |= deps[static_cast<size_t>(i.mask)];
    if (i.op == ExprOp::kReduced) d |= outer;
    if (i.op == ExprOp::kScanned) d |= outer << 1 | 1;
    deps[k] = d;
  }
  return deps;
}

bool is_plain(const Kernel& kernel) {
  return kernel.reductions.empty() && !kernel.scan && kernel.updates.empty() && !kernel.sequential &&
         kernel.outer == kernel.loops.size();
}

bool is_tiny(const Kernel& kernel) {
  constexpr int64_t kMostElements = 7;
  constexpr int64_t kMostPoints = 27;  // of all loops: a product of two matrices of 3 x 3
  if (kernel.lanes > 1 || kernel.scan || !kernel.updates.empty() || kernel.sequential) return false;
  int64_t elements = 1;
  int64_t points = 1;
  for (size_t l = 0; l < kernel.loops.size() && points <= kMostPoints; ++l) {
    points *= kernel.loops[l].size;
    if (l < kernel.outer) elements *= kernel.loops[l].size;
  }
  return points <= kMostPoints && (elements <= kMostElements || kernel.outer < kernel.loops.size());
}

std::optional<size_t> loop_of(const Index& index) {
  if (index.coefficients.empty()) return std::nullopt;
  const size_t loop = index.coefficients.size() - 1;
  return index == loop_index(loop) ? std::optional(loop) : std::nullopt;
}

Expr op_expr(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a, int64_t b) {
  Expr e;
  e.op = ExprOp::kOp;
  e.opcode = opcode;
  e.type = type;
  e.args = std::move(args);
  e.a = a;
  e.b = b;
  return e;
}

}  // namespace collet::codegen
