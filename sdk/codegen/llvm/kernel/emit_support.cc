// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/kernel/emit_support.h"

#include <llvm/IR/IRBuilder.h>

#include <iterator>
#include <utility>

#include "sdk/codegen/base/real_functions.h"
#include "sdk/codegen/llvm/kernel/emit.h"

namespace collet::codegen {
namespace {

using llvm::Value;

/// Emits collet_reduce_quarter, see emit_support.h.
class QuarterWriter {
 public:
  QuarterWriter(llvm::Function* function, llvm::Module& module)
      : b_(module.getContext()), module_(module), function_(function), i64_(b_.getInt64Ty()), i128_(b_.getInt128Ty()) {}

  void run() {
    const std::vector<uint64_t> words(std::begin(kTwoOverPi), std::end(kTwoOverPi));
    llvm::Constant* const data = llvm::ConstantDataArray::get(module_.getContext(), words);
    words_ = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data);
    llvm::BasicBlock *entry = block("entry"), *head = block("head"), *body = block("body"), *end = block("end");
    b_.SetInsertPoint(entry);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* const i = b_.CreatePHI(i64_, 2);
    i->addIncoming(word(0), entry);
    b_.CreateCondBr(b_.CreateICmpSLT(i, function_->getArg(1)), body, end);
    b_.SetInsertPoint(body);
    element(i);
    i->addIncoming(b_.CreateAdd(i, word(1)), b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
  }

 private:
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, function_); }
  Value* word(uint64_t x) { return b_.getInt64(x); }
  Value* real(double x) { return llvm::ConstantFP::get(b_.getDoubleTy(), x); }
  Value* wide(Value* x) { return b_.CreateZExt(x, i128_); }
  Value* low(Value* x) { return b_.CreateTrunc(x, i64_); }
  Value* high(Value* x) { return low(b_.CreateLShr(x, llvm::ConstantInt::get(i128_, 64))); }
  Value* as_real(Value* x) { return b_.CreateUIToFP(x, b_.getDoubleTy()); }

  /// Returns 64 bits of 2 / pi, beginning `bit` bits after the binary point. Bits before the point are zero.
  Value* word_at(Value* bit) {
    Value* const safe = b_.CreateSelect(b_.CreateICmpSLT(bit, word(0)), word(0), bit);
    Value* const index = b_.CreateLShr(safe, word(6));
    Value* const shift = b_.CreateAnd(safe, word(63));
    Value* const first = b_.CreateLoad(i64_, b_.CreateGEP(i64_, words_, index));
    Value* const next_index = b_.CreateSelect(b_.CreateICmpEQ(shift, word(0)), index, b_.CreateAdd(index, word(1)));
    Value* const next = b_.CreateLoad(i64_, b_.CreateGEP(i64_, words_, next_index));
    Value* const rest = b_.CreateLShr(b_.CreateLShr(next, word(1)), b_.CreateSub(word(63), shift));
    Value* const joined =
        b_.CreateOr(b_.CreateShl(first, shift), b_.CreateSelect(b_.CreateICmpEQ(shift, word(0)), word(0), rest));
    // For a negative `bit`, the first word is shifted so that zeros precede it.
    Value* const minus = b_.CreateNeg(bit);
    Value* const small = b_.CreateSelect(b_.CreateICmpSGT(minus, word(63)), word(63), minus);
    Value* const shifted =
        b_.CreateLShr(word(kTwoOverPi[0]), b_.CreateSelect(b_.CreateICmpSLT(small, word(0)), word(0), small));
    Value* const before =
        b_.CreateSelect(b_.CreateICmpSLE(bit, b_.getInt64(static_cast<uint64_t>(-64))), word(0), shifted);
    return b_.CreateSelect(b_.CreateICmpSLT(bit, word(0)), before, joined);
  }

  void element(Value* i) {
    llvm::Type* const f64 = b_.getDoubleTy();
    Value* const x = b_.CreateLoad(f64, b_.CreateGEP(f64, function_->getArg(0), i));
    Value* const all = b_.CreateBitCast(x, i64_);
    Value* const sign = b_.CreateICmpSLT(all, word(0));
    Value* const raw = b_.CreateAnd(all, word(0x7fffffffffffffff));
    Value* const finite = b_.CreateICmpULT(raw, word(0x7ff0000000000000));
    Value* const small = b_.CreateFCmpOLT(b_.CreateBitCast(raw, f64), real(0.75));
    // |x| = m * 2^e. Computes m * (2 / pi) modulo 4 with 192 bits. For infinities and NaNs the value does not matter.
    Value* const exponent = b_.CreateSelect(finite, b_.CreateLShr(raw, word(52)), word(1075));
    Value* const m = wide(b_.CreateOr(b_.CreateAnd(raw, word((uint64_t{1} << 52) - 1)), word(uint64_t{1} << 52)));
    Value* const first = b_.CreateSub(exponent, word(1077));
    Value* const p0 = b_.CreateMul(m, wide(word_at(first)));
    Value* const p1 = b_.CreateMul(m, wide(word_at(b_.CreateAdd(first, word(64)))));
    Value* const p2 = b_.CreateMul(m, wide(word_at(b_.CreateAdd(first, word(128)))));
    Value* const shifted = b_.CreateShl(p1, llvm::ConstantInt::get(i128_, 64));
    Value* const low_words = b_.CreateAdd(shifted, p2);
    Value* const carry = b_.CreateZExt(b_.CreateICmpULT(low_words, shifted), i64_);
    Value* const top = b_.CreateAdd(b_.CreateAdd(low(p0), high(p1)), carry);
    Value* const fraction = b_.CreateOr(b_.CreateShl(wide(top), llvm::ConstantInt::get(i128_, 66)),
                                        b_.CreateLShr(low_words, llvm::ConstantInt::get(i128_, 62)));
    Value* const negative = b_.CreateICmpSLT(fraction, llvm::ConstantInt::get(i128_, 0));
    Value* const integer = b_.CreateAdd(b_.CreateLShr(top, word(62)), b_.CreateZExt(negative, i64_));
    Value* const nearest = b_.CreateSelect(negative, b_.CreateNeg(fraction), fraction);
    Value* const head_bits = high(nearest);
    Value* const tail = b_.CreateFMul(as_real(low(nearest)), real(0x1p-128));
    Value* const head = b_.CreateFMul(as_real(b_.CreateAnd(head_bits, word(~uint64_t{0x7ff}))), real(0x1p-64));
    Value* const rest =
        b_.CreateFAdd(b_.CreateFMul(as_real(b_.CreateAnd(head_bits, word(0x7ff))), real(0x1p-64)), tail);
    Value* const half_pi = real(1.57079632679489655800e+00);
    Value* const product = b_.CreateFMul(head, half_pi);
    Value* const residue = b_.CreateIntrinsic(llvm::Intrinsic::fma, {f64}, {head, half_pi, b_.CreateFNeg(product)});
    Value* const error = b_.CreateFAdd(b_.CreateFAdd(residue, b_.CreateFMul(head, real(6.12323399573676603587e-17))),
                                       b_.CreateFMul(rest, half_pi));
    Value* const sum = b_.CreateFAdd(product, error);
    Value* const left = b_.CreateFAdd(b_.CreateFSub(product, sum), error);
    Value* const flip = b_.CreateICmpNE(negative, sign);
    const auto flipped = [&](Value* v) { return b_.CreateSelect(flip, b_.CreateFNeg(v), v); };
    Value* const quarter = b_.CreateAnd(integer, word(3));
    Value* const none = b_.CreateFSub(x, x);  // NaN for infinities and NaNs
    const auto chosen = [&](Value* large, Value* near_zero, Value* not_finite) {
      return b_.CreateSelect(finite, b_.CreateSelect(small, near_zero, large), not_finite);
    };
    b_.CreateStore(chosen(flipped(sum), x, none), b_.CreateGEP(f64, function_->getArg(2), i));
    b_.CreateStore(chosen(flipped(left), real(0), none), b_.CreateGEP(f64, function_->getArg(3), i));
    b_.CreateStore(chosen(b_.CreateSelect(sign, b_.CreateNeg(quarter), quarter), word(0), word(0)),
                   b_.CreateGEP(i64_, function_->getArg(4), i));
  }

  llvm::IRBuilder<> b_;
  llvm::Module& module_;
  llvm::Function* function_;
  llvm::Type *i64_, *i128_;
  Value* words_ = nullptr;
};

/// Emits collet_fmod: exact long division of the significands, bit by bit.
class FmodWriter {
 public:
  FmodWriter(llvm::Function* function, llvm::Module& module)
      : b_(module.getContext()), module_(module), function_(function), i64_(b_.getInt64Ty()) {}

  void run() {
    llvm::BasicBlock *entry = block("entry"), *divide = block("divide"), *head = block("head"), *next = block("next"),
                     *end = block("end"), *simple = block("simple");
    b_.SetInsertPoint(entry);
    Value* const x = b_.CreateBitCast(function_->getArg(0), i64_);
    Value* const sign = b_.CreateAnd(x, word(uint64_t{1} << 63));
    Value* const a = b_.CreateAnd(x, word(kMagnitude));
    Value* const c = b_.CreateAnd(b_.CreateBitCast(function_->getArg(1), i64_), word(kMagnitude));
    Value* const invalid = b_.CreateOr(b_.CreateICmpEQ(c, word(0)), b_.CreateOr(b_.CreateICmpUGE(a, word(kInfinity)),
                                                                                b_.CreateICmpUGT(c, word(kInfinity))));
    b_.CreateCondBr(b_.CreateOr(invalid, b_.CreateICmpULT(a, c)), simple, divide);
    b_.SetInsertPoint(simple);
    b_.CreateRet(b_.CreateSelect(invalid, llvm::ConstantFP::getNaN(b_.getDoubleTy()), function_->getArg(0)));

    b_.SetInsertPoint(divide);
    const auto [significand, exponent] = split(a);
    const auto [divisor, least] = split(c);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* const left = b_.CreatePHI(i64_, 2);
    llvm::PHINode* const at = b_.CreatePHI(i64_, 2);
    left->addIncoming(significand, divide);
    at->addIncoming(exponent, divide);
    Value* const enough = b_.CreateICmpUGE(left, divisor);
    Value* const reduced = b_.CreateSelect(enough, b_.CreateSub(left, divisor), left);
    b_.CreateCondBr(b_.CreateICmpSGT(at, least), next, end);
    b_.SetInsertPoint(next);
    left->addIncoming(b_.CreateShl(reduced, word(1)), next);
    at->addIncoming(b_.CreateSub(at, word(1)), next);
    b_.CreateBr(head);

    b_.SetInsertPoint(end);
    Value* const shift = leading(reduced);
    Value* const normal = b_.CreateShl(reduced, shift);
    Value* const power = b_.CreateSub(least, shift);
    Value* const usual = b_.CreateOr(b_.CreateAnd(normal, word(kSignificand)), b_.CreateShl(power, word(52)));
    Value* const down = b_.CreateSub(word(1), power);
    Value* const tiny = b_.CreateLShr(normal, b_.CreateAnd(down, word(63)));
    Value* bits = b_.CreateSelect(b_.CreateICmpSGT(power, word(0)), usual, tiny);
    bits = b_.CreateSelect(b_.CreateICmpEQ(reduced, word(0)), word(0), bits);
    b_.CreateRet(b_.CreateBitCast(b_.CreateOr(bits, sign), b_.getDoubleTy()));
  }

 private:
  static constexpr uint64_t kMagnitude = ~uint64_t{0} >> 1;
  static constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  static constexpr uint64_t kSignificand = (uint64_t{1} << 52) - 1;

  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, function_); }
  Value* word(uint64_t x) { return b_.getInt64(x); }
  /// Returns by how many bits a number below 2^53 must be shifted so that its highest bit is bit 52. The result is less than 64
  /// for 0 too.
  Value* leading(Value* x) {
    Value* const zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, b_.CreateOr(x, word(1)), b_.getFalse());
    return b_.CreateSub(zeros, word(11));
  }
  /// Returns the significand, shifted so that its highest bit is bit 52, and the exponent as it is stored; for
  /// subnormal numbers the exponent is 0 or less.
  std::pair<Value*, Value*> split(Value* magnitude) {
    Value* const stored = b_.CreateLShr(magnitude, word(52));
    Value* const low = b_.CreateAnd(magnitude, word(kSignificand));
    Value* const shift = leading(low);
    Value* const is_normal = b_.CreateICmpNE(stored, word(0));
    return {b_.CreateSelect(is_normal, b_.CreateOr(low, word(uint64_t{1} << 52)), b_.CreateShl(low, shift)),
            b_.CreateSelect(is_normal, stored, b_.CreateSub(word(1), shift))};
  }

  llvm::IRBuilder<> b_;
  llvm::Module& module_;
  llvm::Function* function_;
  llvm::Type* i64_;
};

/// Returns the declaration of function `name`, made internal, if the module calls it; else null.
llvm::Function* called(llvm::Module& module, const Target& target, const char* name) {
  llvm::Function* const function = module.getFunction(name);
  if (!function) return nullptr;
  function->setLinkage(llvm::Function::InternalLinkage);
  set_function_attributes(function, target);
  return function;
}

}  // namespace

void define_support(llvm::Module& module, const Target& target) {
  if (auto* const quarter = called(module, target, "collet_reduce_quarter")) QuarterWriter(quarter, module).run();
  if (auto* const fmod = called(module, target, "collet_fmod")) FmodWriter(fmod, module).run();
}

}  // namespace collet::codegen
