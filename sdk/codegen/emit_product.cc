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
    BasicBlock* body = BasicBlock::Create(context, "depth", function_);
    BasicBlock* exit = BasicBlock::Create(context, "exit", function_);
    b_.SetInsertPoint(entry);
    make_mask();
    b_.CreateBr(body);
    std::vector<Value*> sums = loop(entry, body, exit);
    b_.SetInsertPoint(exit);
    store(sums);
    return function_;
  }

 private:
  /// All steps of the depth, of which there is at least one; leaves the sums. One step a turn: more, and the compiler
  /// moves loads about until it runs out of registers. Pointers into a are kept for every third row, so that an address
  /// is one of them plus nothing, one or two steps.
  std::vector<Value*> loop(BasicBlock* before, BasicBlock* body, BasicBlock* exit) {
    b_.SetInsertPoint(before->getTerminator());
    Value* a_step = function_->getArg(4);
    std::vector<Value*> firsts{function_->getArg(1), function_->getArg(0)};
    if (!k_.by_depth) {
      Value* three = b_.CreateMul(a_step, b_.getInt64(3));
      for (int r = 3; r < k_.rows; r += 3) firsts.push_back(offset(firsts.back(), three));
    }
    b_.SetInsertPoint(body);
    auto phi_of = [&](Value* first) {
      llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
      phi->addIncoming(first, before);
      return phi;
    };
    llvm::PHINode* k = phi_of(b_.getInt64(0));
    std::vector<llvm::PHINode*> pointers;
    for (Value* p : firsts) pointers.push_back(phi_of(p));
    std::vector<llvm::PHINode*> phis;
    std::vector<Value*> sums;
    for (int i = 0; i < k_.rows * k_.vectors; ++i) {
      phis.push_back(phi_of(llvm::Constant::getNullValue(vector_)));
      sums.push_back(phis.back());
    }
    prefetch(pointers[0]);
    step({pointers.begin(), pointers.end()}, sums);
    pointers[0]->addIncoming(offset(pointers[0], function_->getArg(5)), body);
    for (size_t i = 1; i < pointers.size(); ++i) {
      pointers[i]->addIncoming(offset(pointers[i], k_.by_depth ? a_step : b_.getInt64(1)), body);
    }
    Value* next = b_.CreateAdd(k, b_.getInt64(1), "", true, true);
    k->addIncoming(next, body);
    for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(sums[i], body);
    b_.CreateCondBr(b_.CreateICmpSLT(next, function_->getArg(3)), body, exit);
    return sums;
  }

  /// Asks for what b has in store: its rows may lie far apart.
  void prefetch(Value* b) {
    constexpr uint64_t kAhead = 12;
    Value* far = offset(b, b_.CreateMul(function_->getArg(5), b_.getInt64(kAhead)));
    const int line = 64 / static_cast<int>(scalar_->getScalarSizeInBits() / 8);
    for (int at = 0; at < k_.vectors * lanes_; at += line) {
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {offset(far, at), b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
    }
  }

  Value* offset(Value* p, Value* elements) { return b_.CreateGEP(scalar_, p, elements); }
  Value* offset(Value* p, int64_t elements) {
    return b_.CreateGEP(scalar_, p, llvm::ConstantInt::getSigned(b_.getInt64Ty(), elements));
  }

  void step(const std::vector<Value*>& at, std::vector<Value*>& sums) {
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
