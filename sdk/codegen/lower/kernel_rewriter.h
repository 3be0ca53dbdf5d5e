// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "sdk/codegen/lower/kernel_builder.h"

namespace collet::codegen {

/// Copies expressions of one kernel to another kernel with other loops.
class KernelRewriter {
 public:
  KernelRewriter(const Kernel& from, const std::vector<ValueId>& buffers, std::vector<Index> loops, KernelBuilder& to,
                 Kernel& target)
      : from_(from), buffers_(buffers), loops_(std::move(loops)), to_(to), target_(target) {}

  Index index(const Index& i) {
    Index r;
    r.constant = i.constant;
    for (size_t l = 0; l < i.coefficients.size(); ++l) {
      if (i.coefficients[l] != 0) r = add_scaled(r, loops_[l], i.coefficients[l]);
    }
    for (auto [t, c] : i.terms) r = add_scaled(r, as_index(t), c);
    return to_.recombined(std::move(r));
  }

  /// Returns mask `t`; kNoExpr if it is true at all points.
  ExprId mask(ExprId t) {
    const ExprId r = value(t);
    return is_always(r) ? kNoExpr : r;
  }

  /// True if `r`, an expression of the new kernel, is the constant false.
  bool is_never(ExprId r) const { return is_pred(r, false); }

  ExprId value(ExprId t) {
    if (t == kNoExpr) return kNoExpr;
    if (auto it = done_.find(t); it != done_.end()) return it->second;
    ExprId r = copy(from_.exprs[static_cast<size_t>(t)]);
    done_[t] = r;
    return r;
  }

 private:
  /// Returns expression `t` as an index. Quotients and remainders become affine if the new loops allow it.
  Index as_index(ExprId t) {
    const Expr& i = from_.exprs[static_cast<size_t>(t)];
    if (i.op == ExprOp::kDivide || i.op == ExprOp::kModulo) {
      Index q;
      Index r;
      to_.divide(index(i.index), i.a, q, r);
      return i.op == ExprOp::kDivide ? q : r;
    }
    if (i.op == ExprOp::kStart) return to_.start(value(i.args[0]), i.a);
    return to_.term(value(t));
  }

  ExprId copy(const Expr& i) {
    switch (i.op) {
      case ExprOp::kConstant:
        return to_.constant(i.type, i.bits.data());
      case ExprOp::kIndex:
        return to_.index_value(index(i.index));
      case ExprOp::kInRange: {
        if (to_.never_in_range(index(i.index), i.a)) return to_.integer(COLLET_TYPE_PRED, 0);
        ExprId r = to_.in_range(index(i.index), i.a);
        return r == kNoExpr ? to_.integer(COLLET_TYPE_PRED, 1) : r;
      }
      case ExprOp::kLoad: {
        Index at = index(i.index);
        const ExprId loaded = mask(i.mask);
        if (is_never(loaded)) return to_.integer(i.type, 0);
        const ExprId load = to_.load_at(buffers_[i.buffer], at, loaded);
        target_.exprs[static_cast<size_t>(load)].type = i.type;  // may be an integer in place of the array's type
        return load;
      }
      case ExprOp::kOp: {
        if (const ExprId r = without_constant_pred(i); r != kNoExpr) return r;
        std::vector<ExprId> args;
        for (ExprId a : i.args) args.push_back(value(a));
        return to_.op(i.opcode, i.type, std::move(args), i.a, i.b);
      }
      case ExprOp::kLookup:
      case ExprOp::kWhile:
      case ExprOp::kPart: {
        Expr r = i;
        for (ExprId& a : r.args) a = value(a);
        r.index = index(i.index);
        r.mask = value(i.mask);
        return to_.emit(std::move(r));
      }
      default:
        return to_.index_value(as_index_of(i));
    }
  }

  Index as_index_of(const Expr& i) {
    Index q;
    Index r;
    if (i.op == ExprOp::kStart) return to_.start(value(i.args[0]), i.a);
    to_.divide(index(i.index), i.a, q, r);
    return i.op == ExprOp::kDivide ? q : r;
  }

  bool is_pred(ExprId r, bool which) const {
    if (r == kNoExpr) return false;
    const Expr& e = target_.exprs[static_cast<size_t>(r)];
    return e.op == ExprOp::kConstant && e.type == COLLET_TYPE_PRED && (e.bits[0] & 1) == static_cast<uint64_t>(which);
  }
  bool is_always(ExprId r) const { return is_pred(r, true); }

  /// Returns a select by a constant, or a conjunction with one, as one of its operands; kNoExpr for other ops.
  ExprId without_constant_pred(const Expr& i) {
    if (i.opcode == COLLET_OP_SELECT) {
      const ExprId p = value(i.args[0]);
      if (is_always(p)) return value(i.args[1]);
      if (is_never(p)) return value(i.args[2]);
    } else if (i.opcode == COLLET_OP_AND && i.type == COLLET_TYPE_PRED) {
      const ExprId a = value(i.args[0]);
      const ExprId b = value(i.args[1]);
      if (is_always(a) || is_never(b)) return b;
      if (is_always(b) || is_never(a)) return a;
    }
    return kNoExpr;
  }

  const Kernel& from_;
  const std::vector<ValueId>& buffers_;
  std::vector<Index> loops_;
  KernelBuilder& to_;
  Kernel& target_;
  std::map<ExprId, ExprId> done_;
};

}  // namespace collet::codegen
