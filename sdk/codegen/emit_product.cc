// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/emit_product.h"

#include "sdk/codegen/emit.h"
#include "sdk/codegen/ir.h"

namespace collet::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Type;
using llvm::Value;

class MicroEmitter {
 public:
  MicroEmitter(const MicroKernel& kernel, llvm::Module& module, const Target& target, const std::string& name)
      : k_(kernel), ir_(module, target), b_(ir_.b) {
    Type* ptr = b_.getPtrTy();
    Type* i64 = b_.getInt64Ty();
    function_ = llvm::Function::Create(
        llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr, i64, i64, i64, i64, i64, i64}, false),
        llvm::Function::ExternalLinkage, name, module);
    set_function_attributes(function_, target);
    scalar_ = ir_.scalar(k_.type);
    lanes_ = target.vector_bits / static_cast<int>(scalar_->getScalarSizeInBits());
    vector_ = ir_.wide(scalar_, lanes_);
  }

  llvm::Function* run() {
    auto& context = ir_.context();
    BasicBlock* entry = BasicBlock::Create(context, "entry", function_);
    BasicBlock* unrolled = BasicBlock::Create(context, "unrolled", function_);
    BasicBlock* middle = BasicBlock::Create(context, "middle", function_);
    BasicBlock* rest = BasicBlock::Create(context, "rest", function_);
    BasicBlock* exit = BasicBlock::Create(context, "exit", function_);
    b_.SetInsertPoint(entry);
    make_mask();
    Value* depth = function_->getArg(3);
    Value* whole = b_.CreateAnd(depth, b_.getInt64(~uint64_t{kUnroll - 1}));
    std::vector<Value*> zero(static_cast<size_t>(k_.rows * k_.vectors), llvm::Constant::getNullValue(vector_));
    b_.CreateCondBr(b_.CreateICmpSGT(whole, b_.getInt64(0)), unrolled, middle);
    auto after_unrolled = loop(entry, unrolled, middle, b_.getInt64(0), whole, kUnroll, zero);
    b_.SetInsertPoint(middle);
    std::vector<Value*> start = join(middle, {entry, unrolled}, {zero, after_unrolled});
    b_.CreateCondBr(b_.CreateICmpSLT(whole, depth), rest, exit);
    auto after_rest = loop(middle, rest, exit, whole, depth, 1, start);
    b_.SetInsertPoint(exit);
    store(join(exit, {middle, rest}, {start, after_rest}));
    b_.CreateRetVoid();
    return function_;
  }

 private:
  static constexpr unsigned kUnroll = 4;

  std::vector<Value*> join(BasicBlock*, const std::vector<BasicBlock*>& from,
                           const std::vector<std::vector<Value*>>& values) {
    std::vector<Value*> r;
    for (size_t i = 0; i < values[0].size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(vector_, 2);
      for (size_t k = 0; k < from.size(); ++k) phi->addIncoming(values[k][i], from[k]);
      r.push_back(phi);
    }
    return r;
  }

  /// Steps of the depth from `begin` to `end`; leaves the sums. Pointers into a are kept for every third row, so that an
  /// address is one of them plus nothing, one or two steps.
  std::vector<Value*> loop(BasicBlock* before, BasicBlock* body, BasicBlock* exit, Value* begin, Value* end,
                           unsigned unroll, const std::vector<Value*>& start) {
    b_.SetInsertPoint(before->getTerminator());
    Value* a_step = function_->getArg(4);
    Value* b_step = function_->getArg(5);
    std::vector<Value*> firsts{offset(function_->getArg(1), b_.CreateMul(begin, b_step))};
    if (k_.by_depth) {
      firsts.push_back(offset(function_->getArg(0), b_.CreateMul(begin, a_step)));
    } else {
      Value* row = offset(function_->getArg(0), begin);
      Value* three = b_.CreateMul(a_step, b_.getInt64(3));
      for (int r = 0; r < k_.rows; r += 3) {
        firsts.push_back(row);
        row = offset(row, three);
      }
    }
    b_.SetInsertPoint(body);
    auto phi_of = [&](Value* first) {
      llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
      phi->addIncoming(first, before);
      return phi;
    };
    llvm::PHINode* k = phi_of(begin);
    std::vector<llvm::PHINode*> pointers;
    for (Value* p : firsts) pointers.push_back(phi_of(p));
    std::vector<llvm::PHINode*> phis;
    std::vector<Value*> sums;
    for (Value* s : start) {
      phis.push_back(phi_of(s));
      sums.push_back(phis.back());
    }
    std::vector<Value*> at(pointers.begin(), pointers.end());
    for (unsigned u = 0; u < unroll; ++u) {
      step(at, u, sums);
      at[0] = offset(at[0], b_step);
      if (k_.by_depth) at[1] = offset(at[1], a_step);
    }
    if (!k_.by_depth) {
      for (size_t i = 1; i < at.size(); ++i) at[i] = offset(at[i], b_.getInt64(unroll));
    }
    Value* next = b_.CreateAdd(k, b_.getInt64(unroll), "", true, true);
    k->addIncoming(next, body);
    for (size_t i = 0; i < pointers.size(); ++i) pointers[i]->addIncoming(at[i], body);
    for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(sums[i], body);
    b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, exit);
    return sums;
  }

  Value* offset(Value* p, Value* elements) { return b_.CreateGEP(scalar_, p, elements); }
  Value* offset(Value* p, int64_t elements) {
    return b_.CreateGEP(scalar_, p, llvm::ConstantInt::getSigned(b_.getInt64Ty(), elements));
  }

  void step(const std::vector<Value*>& at, unsigned u, std::vector<Value*>& sums) {
    std::vector<Value*> right;
    for (int v = 0; v < k_.vectors; ++v) {
      Value* p = offset(at[0], v * lanes_);
      right.push_back(is_partial(v)
                          ? b_.CreateMaskedLoad(vector_, p, align(), mask_, llvm::Constant::getNullValue(vector_))
                          : static_cast<Value*>(b_.CreateAlignedLoad(vector_, p, align())));
    }
    for (int r = 0; r < k_.rows; ++r) {
      Value* p = nullptr;
      if (k_.by_depth) {
        p = offset(at[1], r);
      } else {
        p = at[static_cast<size_t>(1 + r / 3)];
        if (r % 3 != 0) p = offset(p, b_.CreateMul(function_->getArg(4), b_.getInt64(static_cast<uint64_t>(r % 3))));
        p = offset(p, static_cast<int64_t>(u));
      }
      Value* left = ir_.splat(b_.CreateAlignedLoad(scalar_, p, align()), lanes_);
      for (int v = 0; v < k_.vectors; ++v) {
        auto i = static_cast<size_t>(r * k_.vectors + v);
        sums[i] = ir_.fma(left, right[static_cast<size_t>(v)], sums[i]);
      }
    }
  }

  bool is_partial(int v) const { return k_.masked && v + 1 == k_.vectors; }

  llvm::Align align() { return llvm::Align(scalar_->getScalarSizeInBits() / 8); }

  void make_mask() {
    if (!k_.masked) return;
    std::vector<llvm::Constant*> steps;
    for (int i = 0; i < lanes_; ++i) steps.push_back(b_.getInt32(static_cast<uint32_t>(i)));
    Value* tail = b_.CreateTrunc(function_->getArg(7), b_.getInt32Ty());
    mask_ = b_.CreateICmpULT(llvm::ConstantVector::get(steps), ir_.splat(tail, lanes_));
  }

  void store(const std::vector<Value*>& sums) {
    auto& context = ir_.context();
    BasicBlock* add = BasicBlock::Create(context, "add", function_);
    BasicBlock* put = BasicBlock::Create(context, "put", function_);
    b_.CreateCondBr(b_.CreateICmpNE(function_->getArg(8), b_.getInt64(0)), add, put);
    for (BasicBlock* block : {put, add}) {
      b_.SetInsertPoint(block);
      for (int r = 0; r < k_.rows; ++r) {
        Value* row = b_.CreateGEP(scalar_, function_->getArg(2),
                                  b_.CreateMul(function_->getArg(6), b_.getInt64(static_cast<uint64_t>(r))));
        for (int v = 0; v < k_.vectors; ++v) write(offset(row, v * lanes_), sums, r, v, block == add);
      }
      b_.CreateRetVoid();
    }
    b_.SetInsertPoint(BasicBlock::Create(context, "end", function_));
  }

  void write(Value* p, const std::vector<Value*>& sums, int r, int v, bool accumulate) {
    Value* x = sums[static_cast<size_t>(r * k_.vectors + v)];
    const bool partial = is_partial(v);
    if (accumulate) {
      Value* old = partial ? static_cast<Value*>(
                                 b_.CreateMaskedLoad(vector_, p, align(), mask_, llvm::Constant::getNullValue(vector_)))
                           : b_.CreateAlignedLoad(vector_, p, align());
      x = b_.CreateFAdd(old, x);
    }
    if (partial) {
      b_.CreateMaskedStore(x, p, align(), mask_);
    } else {
      b_.CreateAlignedStore(x, p, align());
    }
  }

  const MicroKernel& k_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  Type* scalar_ = nullptr;
  Type* vector_ = nullptr;
  int lanes_ = 1;
  Value* mask_ = nullptr;
};

}  // namespace

std::string name_of(const MicroKernel& k) {
  return std::string("micro_") + collet_type_name(k.type) + "_" + std::to_string(k.rows) + "x" +
         std::to_string(k.vectors) + (k.masked ? "_masked" : "") + (k.by_depth ? "_by_depth" : "");
}

llvm::Function* emit_micro_kernel(const MicroKernel& kernel, llvm::Module& module, const Target& target,
                                  const std::string& name) {
  return MicroEmitter(kernel, module, target, name).run();
}

}  // namespace collet::codegen
