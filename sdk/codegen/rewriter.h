// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "sdk/codegen/trace.h"

namespace collet::codegen {

/// Copies instructions of one tape to another, with other loops.
class Rewriter {
 public:
  Rewriter(const Kernel& from, const std::vector<ValueId>& buffers, std::vector<Index> loops, Tracer& to,
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

  TapeId value(TapeId t) {
    if (t == kNoTape) return kNoTape;
    if (auto it = done_.find(t); it != done_.end()) return it->second;
    TapeId r = copy(from_.tape[static_cast<size_t>(t)]);
    done_[t] = r;
    return r;
  }

 private:
  /// Quotients and remainders become affine where the new loops allow it.
  Index as_index(TapeId t) {
    const Instruction& i = from_.tape[static_cast<size_t>(t)];
    if (i.op == TapeOp::kDivide || i.op == TapeOp::kModulo) {
      Index q;
      Index r;
      to_.divide(index(i.index), i.a, q, r);
      return i.op == TapeOp::kDivide ? q : r;
    }
    if (i.op == TapeOp::kStart) return to_.start(value(i.args[0]), i.a);
    return to_.term(value(t));
  }

  TapeId copy(const Instruction& i) {
    switch (i.op) {
      case TapeOp::kConstant:
        return to_.constant(i.type, i.bits.data());
      case TapeOp::kIndex:
        return to_.index_value(index(i.index));
      case TapeOp::kInRange: {
        TapeId r = to_.in_range(index(i.index), i.a);
        return r == kNoTape ? to_.integer(COLLET_TYPE_PRED, 1) : r;
      }
      case TapeOp::kLoad: {
        Index at = index(i.index);
        TapeId mask = value(i.mask);
        return to_.load_at(buffers_[i.buffer], at, mask);
      }
      case TapeOp::kOp: {
        std::vector<TapeId> args;
        for (TapeId a : i.args) args.push_back(value(a));
        return to_.op(i.opcode, i.type, std::move(args), i.a, i.b);
      }
      case TapeOp::kLookup:
      case TapeOp::kWhile:
      case TapeOp::kPart: {
        Instruction r = i;
        for (TapeId& a : r.args) a = value(a);
        r.index = index(i.index);
        r.mask = value(i.mask);
        return to_.emit(std::move(r));
      }
      default:
        return to_.index_value(as_index_of(i));
    }
  }

  Index as_index_of(const Instruction& i) {
    Index q;
    Index r;
    if (i.op == TapeOp::kStart) return to_.start(value(i.args[0]), i.a);
    to_.divide(index(i.index), i.a, q, r);
    return i.op == TapeOp::kDivide ? q : r;
  }

  const Kernel& from_;
  const std::vector<ValueId>& buffers_;
  std::vector<Index> loops_;
  Tracer& to_;
  Kernel& target_;
  std::map<TapeId, TapeId> done_;
};

}  // namespace collet::codegen
