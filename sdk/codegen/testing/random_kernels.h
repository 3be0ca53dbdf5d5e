// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel.h>
#include <collet/program.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/scalar.h"

namespace collet::codegen {

/// Generates random kernels that the verifier accepts. Values are small integers, so that no sum of floats is rounded.
class RandomKernels {
 public:
  explicit RandomKernels(uint64_t seed) : random_(seed) {}

  Kernel next() {
    k_ = Kernel();
    constexpr uint32_t kTypes[] = {COLLET_TYPE_F32, COLLET_TYPE_F32,   COLLET_TYPE_F64, COLLET_TYPE_S32,
                                   COLLET_TYPE_S64, COLLET_TYPE_U8,    COLLET_TYPE_S8,  COLLET_TYPE_S16,
                                   COLLET_TYPE_F16, COLLET_TYPE_BF16,  COLLET_TYPE_S4,  COLLET_TYPE_U32,
                                   COLLET_TYPE_C64, COLLET_TYPE_F8E5M2};
    type_ = kTypes[pick(std::size(kTypes))];
    const size_t form = pick(8);
    if (form == 0) {
      scan();
    } else if (form == 1) {
      update();
    } else {
      nest(1 + pick(3), form == 2 ? 0 : pick(3));
      fill(3 + pick(8));
      if (k_.outer < k_.loops.size()) reductions(1 + pick(2));
      finish();
    }
    return k_;
  }

 private:
  size_t pick(size_t n) { return random_() % n; }
  bool chance(size_t of) { return pick(of) == 0; }

  void nest(size_t outer, size_t inner) {
    constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
    for (size_t l = 0; l < outer + inner; ++l) k_.loops.push_back({kSizes[pick(std::size(kSizes))]});
    k_.loops[pick(outer + inner)].size = chance(2) ? 33 : 70;
    k_.outer = outer;
  }

  ExprId add(Expr e) {
    k_.exprs.push_back(std::move(e));
    return static_cast<ExprId>(k_.exprs.size()) - 1;
  }
  uint32_t type_of(ExprId id) const { return k_.exprs[static_cast<size_t>(id)].type; }

  ExprId op(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a = 0) {
    return add(op_expr(opcode, type, std::move(args), a));
  }

  /// Returns an affine index over some of the first `loops` loops that is never negative.
  Index affine(size_t loops) {
    Index index;
    int64_t stride = 1;
    for (size_t l = loops; l-- > 0;) {
      if (chance(3)) continue;
      const int64_t c = chance(5) ? -stride : stride;
      index = add_scaled(index, loop_index(l), c);
      if (c < 0) index.constant += stride * (k_.loops[l].size - 1);
      stride *= k_.loops[l].size + static_cast<int64_t>(pick(2));
    }
    return index;
  }

  /// Returns the row-major index over the first `loops` loops in some order, so that no two points write the same
  /// element.
  Index injective(size_t loops) {
    std::vector<size_t> order;
    for (size_t l = 0; l < loops; ++l) order.push_back(l);
    if (chance(3)) std::shuffle(order.begin(), order.end(), random_);
    Index index;
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      index = add_scaled(index, loop_index(order[i]), stride);
      stride *= k_.loops[order[i]].size;
    }
    return index;
  }

  ExprId load(uint32_t type, Index index, ExprId mask = kNoExpr) {
    Expr e;
    e.op = ExprOp::kLoad;
    e.type = type;
    e.index = std::move(index);
    e.buffer = k_.buffers++;
    e.mask = mask;
    return add(std::move(e));
  }

  ExprId in_range(size_t loops) {
    Expr e;
    e.op = ExprOp::kInRange;
    e.type = COLLET_TYPE_PRED;
    e.index = affine(loops);
    e.index.constant -= static_cast<int64_t>(pick(4));
    e.a = 3 + static_cast<int64_t>(pick(60));
    return add(std::move(e));
  }

  /// Returns the start of a slice, read from memory.
  ExprId start(size_t loops) {
    constexpr uint32_t kTypes[] = {COLLET_TYPE_S32, COLLET_TYPE_S64, COLLET_TYPE_U8, COLLET_TYPE_S8};
    const ExprId x = load(kTypes[pick(4)], affine(loops));
    Expr e;
    e.op = ExprOp::kStart;
    e.type = COLLET_TYPE_S64;
    e.args = {x};
    e.a = static_cast<int64_t>(1 + pick(6));
    return add(std::move(e));
  }

  ExprId quotient(size_t loops) {
    Expr e;
    e.op = chance(2) ? ExprOp::kModulo : ExprOp::kDivide;
    e.type = COLLET_TYPE_S64;
    e.index = affine(loops);
    e.a = static_cast<int64_t>(2 + pick(9));
    return add(std::move(e));
  }

  /// Returns a value of the kernel's type that does not depend on loops from `loops` on.
  ExprId leaf(size_t loops) {
    Index index = affine(loops);
    switch (pick(6)) {
      case 0:
        index.terms.emplace_back(start(loops), 1 + static_cast<int64_t>(pick(3)));
        break;
      case 1: {
        Expr e;
        e.op = ExprOp::kModulo;
        e.type = COLLET_TYPE_S64;
        e.index = affine(loops);
        e.a = static_cast<int64_t>(2 + pick(9));
        index = affine(loops);
        index.terms.emplace_back(add(std::move(e)), 1);
        break;
      }
      case 2: {
        const ExprId mask = in_range(loops);
        return load(type_, affine(loops), mask);
      }
      case 3: {
        const uint32_t kind = collet_type_kind(type_);
        if (kind == COLLET_KIND_COMPLEX || type_ == COLLET_TYPE_F8E5M2) break;
        // The value is small enough for every type to hold it exactly.
        const ExprId x = op(COLLET_OP_AND, COLLET_TYPE_S64, {quotient(loops), number(COLLET_TYPE_S64, 3)});
        return type_ == COLLET_TYPE_S64 ? x : op(COLLET_OP_CONVERT, type_, {x});
      }
      default:
        break;
    }
    return load(type_, std::move(index));
  }

  ExprId number(uint32_t type, int64_t x) {
    Expr e;
    e.op = ExprOp::kConstant;
    e.type = type;
    e.bits = collet_type_kind(type) == COLLET_KIND_COMPLEX ? element_of_complex(type, static_cast<long double>(x))
                                                           : element_of_real(type, static_cast<long double>(x));
    return add(std::move(e));
  }

  /// Returns an op of two values of the kernel's type. Sums and products stay small.
  ExprId combined(ExprId x, ExprId y) {
    const uint32_t kind = collet_type_kind(type_);
    if (kind == COLLET_KIND_COMPLEX) return op(chance(2) ? COLLET_OP_ADD : COLLET_OP_SUBTRACT, type_, {x, y});
    const bool integer = kind != COLLET_KIND_FLOAT;
    constexpr uint32_t kReal[] = {COLLET_OP_ADD, COLLET_OP_SUBTRACT, COLLET_OP_MAXIMUM, COLLET_OP_MINIMUM};
    constexpr uint32_t kInteger[] = {COLLET_OP_MULTIPLY, COLLET_OP_AND,       COLLET_OP_XOR,
                                     COLLET_OP_DIVIDE,   COLLET_OP_REMAINDER, COLLET_OP_SHIFT_LEFT};
    if (integer && chance(2)) return op(kInteger[pick(std::size(kInteger))], type_, {x, y});
    if (chance(4)) {
      const ExprId less = op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {x, y}, static_cast<int64_t>(pick(6)));
      return op(COLLET_OP_SELECT, type_, {less, x, y});
    }
    return op(kReal[pick(4)], type_, {x, y});
  }

  void fill(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t loops = chance(3) ? k_.outer : k_.loops.size();
      std::vector<ExprId> pool;
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        if (k_.exprs[k].type == type_ && k_.exprs[k].op != ExprOp::kConstant) pool.push_back(static_cast<ExprId>(k));
      }
      if (pool.size() < 2 || chance(2)) {
        leaf(loops);
      } else {
        combined(pool[pick(pool.size())], pool[pick(pool.size())]);
      }
    }
  }

  /// Returns the values of the kernel's type; with `outer`, only those that do not depend on inner loops.
  std::vector<ExprId> values(bool outer) const {
    const auto deps = loop_dependencies(k_);
    std::vector<ExprId> out;
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (k_.exprs[k].type == type_ && (!outer || deps[k] >> k_.outer == 0)) out.push_back(static_cast<ExprId>(k));
    }
    return out;
  }

  ScalarBody sum_body(size_t n) {
    // The arguments are the accumulators, then the inputs. The first accumulator is combined with its input by a sum,
    // the others by the larger value.
    ScalarBody b;
    b.arguments = static_cast<uint32_t>(2 * n);
    for (size_t i = 0; i < 2 * n; ++i) {
      Expr e;
      e.op = ExprOp::kArgument;
      e.type = type_;
      e.a = static_cast<int64_t>(i);
      b.exprs.push_back(e);
    }
    for (size_t i = 0; i < n; ++i) {
      const bool sum = i == 0 || collet_type_kind(type_) == COLLET_KIND_COMPLEX;
      b.results.push_back(static_cast<ExprId>(b.exprs.size()));
      b.exprs.push_back(op_expr(sum ? COLLET_OP_ADD : COLLET_OP_MAXIMUM, type_,
                                {static_cast<ExprId>(i), static_cast<ExprId>(n + i)}));
    }
    return b;
  }

  uint32_t known_combine() {
    const uint32_t kind = collet_type_kind(type_);
    if (kind == COLLET_KIND_COMPLEX) return COLLET_COMBINE_ADD;
    const bool integer = kind != COLLET_KIND_FLOAT;
    constexpr uint32_t kAll[] = {COLLET_COMBINE_ADD, COLLET_COMBINE_MAXIMUM,  COLLET_COMBINE_MINIMUM,
                                 COLLET_COMBINE_XOR, COLLET_COMBINE_MULTIPLY, COLLET_COMBINE_OR};
    return kAll[pick(integer ? 6 : 3)];
  }

  Reduction reduction_of(const std::vector<ExprId>& inputs, const std::vector<ExprId>& outer) {
    Reduction r;
    const bool known = inputs.size() == 1 && !chance(3);
    r.combine = known ? known_combine() : uint32_t{COLLET_COMBINE_OTHER};
    for (ExprId x : inputs) {
      r.inputs.push_back(x);
      r.types.push_back(type_);
      r.inits.push_back(known && chance(2) ? kNoExpr : outer[pick(outer.size())]);
    }
    if (!known) r.body = sum_body(inputs.size());
    return r;
  }

  void reductions(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const std::vector<ExprId> all = values(false);
      ExprId seed = number(type_, 1);
      std::vector<ExprId> outer = values(true);
      outer.push_back(seed);
      std::vector<ExprId> inputs{all[pick(all.size())]};
      if (chance(4)) inputs.push_back(all[pick(all.size())]);
      const ExprId condition = chance(4) ? in_range(k_.loops.size()) : kNoExpr;
      Reduction r = reduction_of(inputs, outer);
      r.condition = condition;
      const auto number_of_fold = static_cast<int64_t>(k_.reductions.size());
      k_.reductions.push_back(std::move(r));
      for (size_t n = 0; n < inputs.size(); ++n) {
        Expr e;
        e.op = ExprOp::kReduced;
        e.type = type_;
        e.a = static_cast<int64_t>(n);
        e.b = number_of_fold;
        const ExprId id = add(std::move(e));
        if (chance(2)) combined(id, leaf(k_.outer));
        if (chance(3)) combined(id, leaf(k_.loops.size()));
      }
    }
  }

  void store(ExprId value, size_t loops, ExprId mask) {
    Store s;
    s.value = value;
    s.index = injective(loops);
    s.buffer = k_.buffers++;
    s.mask = mask;
    k_.stores.push_back(std::move(s));
  }

  void finish() {
    const std::vector<ExprId> outer = values(true);
    const std::vector<ExprId> all = values(false);
    if (!outer.empty()) store(outer.back(), k_.outer, chance(4) ? in_range(k_.outer) : kNoExpr);
    if (outer.empty() || all.back() != outer.back() || chance(3)) {
      store(all.back(), k_.loops.size(), chance(4) ? in_range(k_.loops.size()) : kNoExpr);
    }
  }

  void scan() {
    nest(1 + pick(2), 1);
    fill(2 + pick(4));
    const std::vector<ExprId> all = values(false);
    std::vector<ExprId> outer = values(true);
    outer.push_back(number(type_, 1));
    std::vector<ExprId> inputs{all[pick(all.size())]};
    if (chance(3)) inputs.push_back(all[pick(all.size())]);
    Scan s;
    const ExprId condition = chance(4) ? in_range(k_.loops.size()) : kNoExpr;
    s.reduction = reduction_of(inputs, outer);
    s.reduction.condition = condition;
    s.reverse = chance(2);
    s.fresh = s.reduction.combine == COLLET_COMBINE_OTHER && chance(2);
    k_.scan = std::move(s);
    for (size_t n = 0; n < inputs.size(); ++n) {
      Expr e;
      e.op = ExprOp::kScanned;
      e.type = type_;
      e.a = static_cast<int64_t>(n);
      store(add(std::move(e)), k_.loops.size(), kNoExpr);
    }
  }

  void update() {
    nest(1 + pick(2), 0);
    k_.sequential = true;
    fill(2 + pick(3));
    const std::vector<ExprId> all = values(false);
    Update u;
    const size_t n = chance(3) ? 2 : 1;
    // The first loop selects rows; if there is another loop, it runs over the elements of a row.
    const size_t last = k_.loops.size() - 1;
    const ExprId row = start(last == 0 ? 1 : last);
    if (last > 0) u.index = loop_index(last);
    u.index.terms.emplace_back(row, last > 0 ? k_.loops[last].size : 1);
    u.mask = chance(3) ? in_range(k_.loops.size()) : kNoExpr;
    u.combine = n == 1 && !chance(3) ? known_combine() : uint32_t{COLLET_COMBINE_OTHER};
    if (n == 1 && chance(4)) u.combine = COLLET_COMBINE_SECOND;
    for (size_t i = 0; i < n; ++i) {
      u.buffers.push_back(k_.buffers++);
      u.values.push_back(all[pick(all.size())]);
      u.types.push_back(type_);
    }
    if (u.combine == COLLET_COMBINE_OTHER) u.body = sum_body(n);
    k_.updates.push_back(std::move(u));
  }

  std::mt19937_64 random_;
  Kernel k_;
  uint32_t type_ = 0;
};

}  // namespace collet::codegen
