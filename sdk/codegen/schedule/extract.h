// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Extract copies parts of a kernel to another kernel.

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Copies expressions, with all expressions that they depend on, to a kernel with other loops.
class Extract {
 public:
  /// `loops` translates an index from the loops of `from` to those of `to`. It keeps the index's terms, which Extract
  /// replaces afterwards.
  Extract(const KernelPlan& from, KernelPlan& to, std::function<Index(const Index&)> loops)
      : from_(from), to_(to), loops_(std::move(loops)), done_(from.kernel.exprs.size(), kNoExpr) {}

  /// Returns the copy of an expression; copies it, and all that it depends on, if needed.
  ExprId value(ExprId t) {
    if (t == kNoExpr) return kNoExpr;
    ExprId& r = done_[static_cast<size_t>(t)];
    if (r != kNoExpr) return r;
    Expr i = from_.kernel.exprs[static_cast<size_t>(t)];
    for (ExprId& a : i.args) a = value(a);
    i.mask = value(i.mask);
    i.index = index(i.index);
    if (i.op == ExprOp::kLoad) i.buffer = buffer(from_.buffers[i.buffer]);
    return done_[static_cast<size_t>(t)] = add(std::move(i));
  }

  /// Uses `copy` as the copy of `t` from now on.
  void replace(ExprId t, ExprId copy) { done_[static_cast<size_t>(t)] = copy; }
  /// Forgets all copies. Must be called when the translation by `loops` changes.
  void forget() { std::fill(done_.begin(), done_.end(), kNoExpr); }

  Index index(const Index& old) {
    Index r = loops_(old);
    for (auto& term : r.terms) term.first = value(term.first);
    return r;
  }

  /// Returns an expression of `to` that is equal to `i`; adds it if there is none.
  ExprId add(Expr i) {
    auto& exprs = to_.kernel.exprs;
    auto found = std::find(exprs.begin(), exprs.end(), i);
    if (found == exprs.end()) found = exprs.insert(found, std::move(i));
    return static_cast<ExprId>(found - exprs.begin());
  }

  uint32_t buffer(ValueId v) {
    auto found = std::find(to_.buffers.begin(), to_.buffers.end(), v);
    if (found == to_.buffers.end()) found = to_.buffers.insert(found, v);
    to_.kernel.buffers = static_cast<uint32_t>(to_.buffers.size());
    return static_cast<uint32_t>(found - to_.buffers.begin());
  }

 private:
  const KernelPlan& from_;
  KernelPlan& to_;
  std::function<Index(const Index&)> loops_;
  std::vector<ExprId> done_;
};

}  // namespace collet::codegen
