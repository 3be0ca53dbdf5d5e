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
    return r;
  }

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
        ExprId r = to_.in_range(index(i.index), i.a);
        return r == kNoExpr ? to_.integer(COLLET_TYPE_PRED, 1) : r;
      }
      case ExprOp::kLoad: {
        Index at = index(i.index);
        ExprId mask = value(i.mask);
        return to_.load_at(buffers_[i.buffer], at, mask);
      }
      case ExprOp::kOp: {
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

  const Kernel& from_;
  const std::vector<ValueId>& buffers_;
  std::vector<Index> loops_;
  KernelBuilder& to_;
  Kernel& target_;
  std::map<ExprId, ExprId> done_;
};

}  // namespace collet::codegen
