// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "sdk/codegen/llvm/grid/grid_emitter.h"

namespace collet::codegen {
namespace {

/// Emits the kernels of a scatter, see UpdateSchedule.
class UpdatesEmitter final : public GridEmitter {
 public:
  UpdatesEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function),
        updates_(schedule_.updates),
        keys_(function->getArg(k_.buffers)),
        places_(function->getArg(k_.buffers + 1)) {}

 private:
  void thread() override {
    const bool writes_keys = updates_.part == UpdateSchedule::Part::kKeys;
    const int64_t points = updates_.ordered_points * (writes_keys ? 1 : updates_.free_points);
    Value* const first = b_.CreateAdd(b_.CreateMul(block_, number(schedule_.block_threads)), thread_);
    loop(first, number(points), int64_t{schedule_.blocks} * schedule_.block_threads,
         [&](Value* point) { writes_keys ? write_key(point) : update_group(point); });
  }

  /// Writes the key of a point. It is made of the index of the element that it updates, with all other loops at their begin. A point
  /// whose index is out of range may get the key of another element; then one thread processes both, in their order.
  void write_key(Value* point) {
    set_loops(0, k_.outer, updates_.ordered, point);
    const Index& index = k_.updates[0].index;
    std::vector<ExprId> terms;
    for (const auto& [term, scale] : index.terms) terms.push_back(term);
    const std::vector<bool> needed = needed_for(terms);
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      if (needed[k]) vals_[k] = instruction(k_.exprs[k]);
    }
    Value* key = b_.CreateSub(lanes(index).scalar, number(index.constant));
    if (updates_.key_step > 1) key = b_.CreateExactSDiv(key, number(updates_.key_step));
    key = b_.CreateAnd(key, number((int64_t{1} << updates_.key_bits) - 1));
    b_.CreateStore(b_.CreateTrunc(key, b_.getInt32Ty()), element(keys_, point));
  }

  /// Makes all updates of a group of equal keys, if such a group begins at this position of the sorted keys.
  void update_group(Value* point) {
    Value* const begin = b_.CreateUDiv(point, number(updates_.free_points));
    set_loops(0, k_.outer, schedule_.parallel, b_.CreateURem(point, number(updates_.free_points)));
    Value* const key = read(keys_, begin);
    Value* const is_first = b_.CreateICmpEQ(begin, number(0));
    Value* const before = b_.CreateSelect(is_first, number(0), b_.CreateSub(begin, number(1)));
    Value* const differs = b_.CreateICmpNE(read(keys_, before), key);
    branch(b_.CreateOr(is_first, differs), [&] {
      Value* const going = slot(b_.getInt1Ty());
      b_.CreateStore(b_.getTrue(), going);
      Value* const at = slot(b_.getInt64Ty());
      b_.CreateStore(begin, at);
      while_true(going, [&] {
        Value* const now = b_.CreateLoad(b_.getInt64Ty(), at);
        set_loops(0, k_.outer, updates_.ordered, b_.CreateZExt(read(places_, now), b_.getInt64Ty()));
        for (size_t k = 0; k < k_.exprs.size(); ++k) vals_[k] = instruction(k_.exprs[k]);
        update(k_.updates[0]);
        Value* const next = b_.CreateAdd(now, number(1));
        Value* const exists = b_.CreateICmpSLT(next, number(updates_.ordered_points));
        b_.CreateStore(next, at);
        b_.CreateStore(b_.getFalse(), going);
        branch(exists, [&] { b_.CreateStore(b_.CreateICmpEQ(read(keys_, next), key), going); });
      });
    });
  }

  /// Emits a loop that runs `body` while the variable `going` is true.
  template <typename Body>
  void while_true(Value* going, const Body& body) {
    llvm::BasicBlock* const head = llvm::BasicBlock::Create(ir_.context(), "group", function_);
    llvm::BasicBlock* const exit = llvm::BasicBlock::Create(ir_.context(), "end", function_);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    body();
    b_.CreateCondBr(b_.CreateLoad(b_.getInt1Ty(), going), head, exit);
    b_.SetInsertPoint(exit);
  }

  Value* element(Value* base, Value* at) { return b_.CreateGEP(b_.getInt32Ty(), base, at); }
  Value* read(Value* base, Value* at) { return b_.CreateLoad(b_.getInt32Ty(), element(base, at)); }

  const UpdateSchedule& updates_;
  Value* keys_;    ///< the sorted keys, s32
  Value* places_;  ///< for each sorted key the number of its point, s32
};

}  // namespace

void emit_grid_updates(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function) {
  UpdatesEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
