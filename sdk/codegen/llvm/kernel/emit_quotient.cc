// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sdk/codegen/llvm/kernel/kernel_emitter.h"

namespace collet::codegen {
namespace {

/// The exponents, base 2, for which the corrections are exact: within them quotients and remainders are normal numbers.
struct Exponents {
  int least, most;  ///< of the dividend
  int of_divisor;   ///< the largest magnitude of those of the divisor
};
Exponents exponents_of(const llvm::Type* type) {
  return type->isDoubleTy() ? Exponents{-600, 600, 300} : Exponents{-95, 95, 30};
}

/// The reciprocal of a divisor, rounded, and the error of that, rounded.
struct Reciprocal {
  double high, low;
};
Reciprocal reciprocal_of(double y, bool f64) {
  if (f64) return {1 / y, -std::fma(1 / y, y, -1) / y};
  const double high = static_cast<double>(static_cast<float>(1 / y));
  return {high, 1 / y - high};
}

/// Returns the value of a divisor for which the sequence with two reciprocals gives the right zeros, or 0.
double positive_constant(const llvm::Value* y) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantFP>(y);
  if (!constant) return 0;
  const double value = constant->getValueAPF().convertToDouble();
  const int most = exponents_of(y->getType()).of_divisor;
  return value > std::ldexp(1.0, -most) && value < std::ldexp(1.0, most) ? value : 0;
}

}  // namespace

bool KernelEmitter::is_quotient(uint32_t type, const std::vector<Val>& args) const {
  // For a few vectors, dividing takes no longer than the reciprocal and the branches.
  const bool few = k_.outer < k_.loops.size() && passes_.lanes_inside() && inner_points(k_) <= 2 * lanes_;
  return !few && (type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64) && ir_.target.fma && lanes_ > 1 &&
         ir_.lanes_of(args[0]) == lanes_ && ir_.lanes_of(args[1]) == 1;
}

bool KernelEmitter::is_whole(ExprId id) const {
  const Expr& e = k_.exprs[static_cast<size_t>(id)];
  if (e.op != ExprOp::kOp || e.opcode != COLLET_OP_CONVERT) return false;
  const uint32_t kind = collet_type_kind(k_.exprs[static_cast<size_t>(e.args[0])].type);
  return kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
}

llvm::Value* KernelEmitter::quotient(const Expr& division, Value* x, Value* y) {
  const double constant = positive_constant(y);
  if (llvm::isa<llvm::Constant>(y) && constant == 0) return b_.CreateFDiv(x, ir_.splat(y, lanes_));
  const bool whole = is_whole(division.args[0]);
  if (constant != 0 && whole) return corrected_quotient(x, y);
  const bool f64 = y->getType()->isDoubleTy();
  const Exponents range = exponents_of(y->getType());
  Value* usual = b_.getTrue();
  if (constant == 0) {
    Value* size = ir_.unary(llvm::Intrinsic::fabs, y);
    auto power = [&](int n) { return llvm::ConstantFP::get(y->getType(), std::ldexp(1.0, n)); };
    usual =
        b_.CreateAnd(b_.CreateFCmpOGT(size, power(-range.of_divisor)), b_.CreateFCmpOLT(size, power(range.of_divisor)));
  }
  if (!whole) {
    Type* bits = ir_.int_like(x);
    auto exponent = [&](int n) {
      return ir_.constant_int(bits, static_cast<uint64_t>(n + (f64 ? 1023 : 127)) << (f64 ? 52 : 23));
    };
    Value* pattern = ir_.bits_of(x);
    Value* above = b_.CreateSub(ir_.bits_of(ir_.unary(llvm::Intrinsic::fabs, x)), exponent(range.least));
    Value* inside = b_.CreateICmpULT(above, b_.CreateSub(exponent(range.most), exponent(range.least)));
    inside = b_.CreateOr(inside, b_.CreateICmpEQ(pattern, llvm::Constant::getNullValue(bits)));
    usual = b_.CreateAnd(usual, b_.CreateAndReduce(inside));
  }
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(ir_.context(), name, function_); };
  llvm::BasicBlock* fast = block("multiply");
  llvm::BasicBlock* slow = block("divide");
  llvm::BasicBlock* exit = block("quotient");
  b_.CreateCondBr(usual, fast, slow);
  b_.SetInsertPoint(fast);
  Value* q = corrected_quotient(x, y);
  b_.CreateBr(exit);
  b_.SetInsertPoint(slow);
  Value* divided = b_.CreateFDiv(x, ir_.splat(y, lanes_));
  b_.CreateBr(exit);
  b_.SetInsertPoint(exit);
  llvm::PHINode* result = b_.CreatePHI(x->getType(), 2);
  result->addIncoming(q, fast);
  result->addIncoming(divided, slow);
  return result;
}

llvm::Value* KernelEmitter::corrected_quotient(Value* x, Value* y) {
  Value* divisor = ir_.splat(y, lanes_);
  const auto correct = [&](Value* q, Value* r) { return ir_.exact_fma(ir_.exact_fma(ir_.neg(q), divisor, x), r, q); };
  if (const double constant = positive_constant(y); constant != 0) {
    const Reciprocal reciprocal = reciprocal_of(constant, y->getType()->isDoubleTy());
    Value* high = llvm::ConstantFP::get(x->getType(), reciprocal.high);
    Value* low = llvm::ConstantFP::get(x->getType(), reciprocal.low);
    return correct(ir_.exact_fma(x, high, b_.CreateFMul(x, low)), high);
  }
  Value* r = ir_.splat(b_.CreateFDiv(llvm::ConstantFP::get(y->getType(), 1.0), y), lanes_);
  return correct(correct(b_.CreateFMul(x, r), r), r);
}

}  // namespace collet::codegen
