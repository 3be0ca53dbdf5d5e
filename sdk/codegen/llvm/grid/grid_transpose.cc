// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>
#include <vector>

#include "sdk/codegen/llvm/grid/grid_emitter.h"

namespace collet::codegen {
namespace {

/// Emits an elementwise kernel by square tiles of two loops, see TransposeSchedule. Threads first load elements along one
/// of the loops and store them in shared memory; then each thread computes points along the other.
class TransposeEmitter final : public GridEmitter {
 public:
  TransposeEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : GridEmitter(kernel, module, target, function),
        transpose_(schedule_.transpose),
        last_(k_.outer - 1),
        across_(transpose_.across) {}

 private:
  static constexpr int64_t kSide = TransposeSchedule::kSide;

  void thread() override {
    const auto in_tiles = [&](size_t l) { return (k_.loops[l].size + kSide - 1) / kSide; };
    const uint64_t others = ~(uint64_t{1} << last_) & ~(uint64_t{1} << across_);
    in_warp_ = b_.CreateURem(thread_, number(kSide));
    warp_number_ = b_.CreateUDiv(thread_, number(kSide));
    loop(block_, number(count_tiles(k_, transpose_)), schedule_.blocks, [&](Value* tile) {
      Value* const rest = b_.CreateUDiv(tile, number(in_tiles(last_)));
      set_loops(0, k_.outer, others, b_.CreateUDiv(rest, number(in_tiles(across_))));
      Value* const first_last = b_.CreateMul(b_.CreateURem(tile, number(in_tiles(last_))), number(kSide));
      Value* const first_across = b_.CreateMul(b_.CreateURem(rest, number(in_tiles(across_))), number(kSide));
      each_line([&](Value* line) { at(first_last, line, first_across, in_warp_, [&] { read(line); }); });
      barrier();
      each_line([&](Value* line) { at(first_last, in_warp_, first_across, line, [&] { write(line); }); });
      barrier();  // before the memory is used again
    });
  }

  /// Emits a loop over the lines of the tile that this thread processes.
  template <typename Body>
  void each_line(const Body& body) {
    const int64_t warps = schedule_.block_threads / kSide;
    for (int64_t line = 0; line < kSide; line += warps) body(b_.CreateAdd(warp_number_, number(line)));
  }

  /// Runs `body` at a point of the tile, unless the point is outside of the loops.
  template <typename Body>
  void at(Value* first_last, Value* in_last, Value* first_across, Value* in_across, const Body& body) {
    iv_[last_] = b_.CreateAdd(first_last, in_last);
    iv_[across_] = b_.CreateAdd(first_across, in_across);
    Value* const inside = b_.CreateAnd(b_.CreateICmpULT(iv_[last_], number(k_.loops[last_].size)),
                                       b_.CreateICmpULT(iv_[across_], number(k_.loops[across_].size)));
    branch(inside, body);
  }

  void read(Value* line) {
    for (ExprId k : transpose_.transposed) {
      const Val v = instruction(k_.exprs[static_cast<size_t>(k)]);
      b_.CreateStore(stored(v.v), place(k, v.v, 0, line, in_warp_));
      if (v.im) b_.CreateStore(stored(v.im), place(k, v.im, 1, line, in_warp_));
      types_[k] = {v.v->getType(), v.im != nullptr};
    }
  }

  void write(Value* line) {
    for (size_t k = 0; k < k_.exprs.size(); ++k) {
      const auto transposed = types_.find(static_cast<ExprId>(k));
      if (transposed == types_.end()) {
        vals_[k] = instruction(k_.exprs[k]);
        continue;
      }
      const auto [type, is_complex] = transposed->second;
      vals_[k].v = loaded(transposed->first, type, 0, line);
      vals_[k].im = is_complex ? loaded(transposed->first, type, 1, line) : nullptr;
    }
    for (const Store& s : k_.stores) store(s);
  }

  Value* loaded(ExprId k, Type* type, int part, Value* line) {
    llvm::GlobalVariable* const array = arrays_.at({k, part});
    Type* const t = array->getValueType()->getArrayElementType();
    Value* const x = b_.CreateLoad(t, element(array, in_warp_, line));
    return x->getType() == type ? x : b_.CreateTrunc(x, type);
  }

  /// Returns a value as it is stored in memory, where a pred has one byte.
  Value* stored(Value* x) { return x->getType()->isIntegerTy(1) ? b_.CreateZExt(x, b_.getInt8Ty()) : x; }

  Value* place(ExprId k, Value* x, int part, Value* line, Value* column) {
    llvm::GlobalVariable*& array = arrays_[{k, part}];
    if (!array) array = shared_array(stored(x)->getType(), kSide * (kSide + 1));
    return element(array, line, column);
  }

  /// Returns the address of an element of a tile in shared memory. Lines have one element more than needed, so that the
  /// elements of a column are in different memory banks.
  Value* element(llvm::GlobalVariable* array, Value* line, Value* column) {
    Type* const t = array->getValueType()->getArrayElementType();
    return b_.CreateGEP(t, array, b_.CreateAdd(b_.CreateMul(line, number(kSide + 1)), column));
  }

  const TransposeSchedule& transpose_;
  const size_t last_;
  const size_t across_;
  Value* in_warp_ = nullptr;
  Value* warp_number_ = nullptr;
  /// By load and part of a complex number: the tile in shared memory.
  std::map<std::pair<ExprId, int>, llvm::GlobalVariable*> arrays_;
  std::map<ExprId, std::pair<Type*, bool>> types_;  ///< by load: the type of its values, and whether they are complex
};

}  // namespace

void emit_grid_transpose(const GridKernel& kernel, llvm::Module& module, const Target& target,
                         llvm::Function* function) {
  TransposeEmitter(kernel, module, target, function).emit();
}

}  // namespace collet::codegen
