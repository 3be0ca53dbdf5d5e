// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid_sort.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <functional>
#include <vector>

#include "sdk/codegen/llvm/emit_memory.h"
#include "sdk/codegen/llvm/grid_emitter.h"
#include "sdk/codegen/llvm/grid_function.h"
#include "sdk/codegen/llvm/kernel_emitter.h"

namespace collet::codegen {
namespace {

using llvm::Value;

/// One kernel of a sort, as the program of a thread, which compares pairs of elements.
class SortEmitter {
 public:
  SortEmitter(const GridSort& sort, llvm::Module& module, const Target& target, llvm::Function* function)
      : s_(sort), ir_(module, target), b_(ir_.b), function_(function) {}

  void emit() {
    b_.SetInsertPoint(block("entry"));
    const auto special = [&](llvm::Intrinsic::ID id) {
      return b_.CreateZExt(b_.CreateIntrinsic(id, {}, {}), b_.getInt64Ty());
    };
    Value* const thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    Value* const first = b_.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), number(s_.block_threads));
    const int64_t pairs = s_.rows << (s_.log_length - 1);
    // All threads of a block turn alike, as they wait for each other.
    loop(first, number(pairs), int64_t{s_.block_threads} * s_.blocks, [&](Value* chunk) {
      Value* const pair = b_.CreateAdd(chunk, thread);
      inside_ = b_.CreateICmpSLT(pair, number(pairs));
      Value* const row = b_.CreateLShr(pair, number(s_.log_length - 1));
      Value* const outer = b_.CreateUDiv(row, number(s_.step));
      base_ = b_.CreateAdd(b_.CreateMul(outer, number(s_.length * s_.step)), b_.CreateURem(row, number(s_.step)));
      pair_ = b_.CreateAnd(pair, number((int64_t{1} << (s_.log_length - 1)) - 1));
      part();
    });
    b_.CreateRetVoid();
  }

 private:
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(ir_.context(), name, function_); }
  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  Value* power(Value* exponent) { return b_.CreateShl(number(1), exponent); }
  Value* buffer(size_t i) { return function_->getArg(static_cast<unsigned>(i)); }
  size_t arrays() const { return s_.comparator.types.size(); }
  void barrier() { b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

  void loop(Value* begin, Value* end, int64_t step, const std::function<void(Value*)>& body) {
    llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block("loop"), *exit = block("done");
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, exit);
    b_.SetInsertPoint(head);
    llvm::PHINode* const i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    body(i);
    Value* const next = b_.CreateAdd(i, number(step));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, exit);
    b_.SetInsertPoint(exit);
  }

  void branch(Value* condition, const std::function<void()>& body) {
    llvm::BasicBlock *then = block("then"), *exit = block("next");
    b_.CreateCondBr(condition, then, exit);
    b_.SetInsertPoint(then);
    body();
    b_.CreateBr(exit);
    b_.SetInsertPoint(exit);
  }

  void part() {
    switch (s_.part) {
      case GridSort::Part::kSegments:
        number_elements();
        barrier();
        loop(number(1), number(s_.log_segment + 1), 1, [&](Value* length) {
          mirror(length);
          barrier();
          down_from(b_.CreateSub(length, number(2)));
        });
        return;
      case GridSort::Part::kMirror:
        return mirror(buffer(arrays() + 1));
      case GridSort::Part::kDistance:
        return distance(buffer(arrays() + 1));
      case GridSort::Part::kMerge:
        return down_from(number(s_.log_segment - 1));
    }
  }

  /// Distances from 2^longest down to 1.
  void down_from(Value* longest) {
    loop(number(0), b_.CreateAdd(longest, number(1)), 1, [&](Value* i) {
      distance(b_.CreateSub(longest, i));
      barrier();
    });
  }

  void number_elements() {
    for (int64_t i = 0; i < 2; ++i) {
      Value* const at = b_.CreateAdd(b_.CreateShl(pair_, number(1)), number(i));
      branch(b_.CreateAnd(inside_, b_.CreateICmpSLT(at, number(s_.length))),
             [&] { b_.CreateStore(b_.CreateTrunc(at, b_.getInt32Ty()), number_of(at)); });
    }
  }

  Value* element(Value* at) { return b_.CreateAdd(base_, b_.CreateMul(at, number(s_.step))); }
  Value* number_of(Value* at) { return b_.CreateGEP(b_.getInt32Ty(), buffer(arrays()), element(at)); }

  /// The pairs of each block of 2^length elements: the first with the last, and so on.
  void mirror(Value* length) {
    Value* const half = b_.CreateSub(length, number(1));
    Value* const within = b_.CreateAnd(pair_, b_.CreateSub(power(half), number(1)));
    Value* const start = b_.CreateShl(b_.CreateLShr(pair_, half), length);
    exchange(b_.CreateAdd(start, within),
             b_.CreateSub(b_.CreateAdd(start, b_.CreateSub(power(length), number(1))), within));
  }

  void distance(Value* exponent) {
    Value* const within = b_.CreateAnd(pair_, b_.CreateSub(power(exponent), number(1)));
    Value* const low =
        b_.CreateAdd(b_.CreateShl(b_.CreateLShr(pair_, exponent), b_.CreateAdd(exponent, number(1))), within);
    exchange(low, b_.CreateAdd(low, power(exponent)));
  }

  /// Puts the element that comes first at `low`. What would be at `high` behind the end of the row comes last already.
  void exchange(Value* low, Value* high) {
    branch(b_.CreateAnd(inside_, b_.CreateICmpSLT(high, number(s_.length))), [&] {
      std::vector<Val> x;
      std::vector<Val> y;
      std::vector<Val> forward;
      std::vector<Val> backward;
      for (size_t i = 0; i < arrays(); ++i) {
        x.push_back(load_lanes(ir_, buffer(i), s_.comparator.types[i], {element(low), 0, nullptr, 1}, nullptr));
        y.push_back(load_lanes(ir_, buffer(i), s_.comparator.types[i], {element(high), 0, nullptr, 1}, nullptr));
        forward.insert(forward.end(), {x[i], y[i]});
        backward.insert(backward.end(), {y[i], x[i]});
      }
      Value* const first = b_.CreateLoad(b_.getInt32Ty(), number_of(low));
      Value* const second = b_.CreateLoad(b_.getInt32Ty(), number_of(high));
      Value* const is_before = emit_body(ir_, s_.comparator.body, forward)[0].v;
      Value* const is_after = emit_body(ir_, s_.comparator.body, backward)[0].v;
      Value* const earlier = b_.CreateICmpSLT(second, first);
      // Equal elements keep their order. With a comparator that is true of them, as LE is, the order is turned round, as by a stable
      // sort that moves each element before all that it comes before.
      Value* const of_equal = b_.CreateXor(is_after, earlier);
      Value* const swap = b_.CreateSelect(b_.CreateXor(is_before, is_after), is_after, of_equal);
      branch(swap, [&] {
        for (size_t i = 0; i < arrays(); ++i) {
          store_lanes(ir_, buffer(i), s_.comparator.types[i], {element(low), 0, nullptr, 1}, y[i], nullptr);
          store_lanes(ir_, buffer(i), s_.comparator.types[i], {element(high), 0, nullptr, 1}, x[i], nullptr);
        }
        b_.CreateStore(second, number_of(low));
        b_.CreateStore(first, number_of(high));
      });
    });
  }

  const GridSort& s_;
  Ir ir_;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_;
  Value* inside_ = nullptr;  ///< whether there is a pair for this thread
  Value* base_ = nullptr;    ///< the first element of its row
  Value* pair_ = nullptr;    ///< its number in the row
};

}  // namespace

llvm::Function* emit_grid_sort(const GridSort& sort, llvm::Module& module, const Target& target,
                               const std::string& name) {
  const size_t arrays = sort.comparator.types.size();
  std::vector<llvm::Type*> parameters(arrays + 1, llvm::PointerType::get(module.getContext(), 0));
  if (sort.part == GridSort::Part::kMirror || sort.part == GridSort::Part::kDistance)
    parameters.push_back(llvm::Type::getInt64Ty(module.getContext()));
  llvm::Function* const function = make_grid_function(module, target, name, parameters, sort.block_threads);
  SortEmitter(sort, module, target, function).emit();
  return function;
}

}  // namespace collet::codegen
