// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <vector>

#include "sdk/codegen/llvm/kernel_emitter.h"
#include "sdk/codegen/schedule/grid.h"

namespace collet::codegen {

/// Adds the kernel to the module as a function that a grid of threads runs, each of them for its own part. Its parameters are the
/// addresses of the kernel's buffers.
llvm::Function* emit_grid_kernel(const GridKernel& kernel, llvm::Module& module, const Target& target,
                                 const std::string& name);

/// A kernel as the program of one thread: what all schedules have in common.
class GridEmitter : public KernelEmitter {
 public:
  /// Fills `function`.
  void emit();

 protected:
  GridEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : KernelEmitter(kernel.kernel, module, target, function), schedule_(kernel.schedule), warp_(target.grid.warp) {}

  /// Emits the work of the thread. Its number and that of its block are known.
  virtual void thread() = 0;

  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  /// How often loop `l` turns, lanes at a time where it has them.
  int64_t turns_of(size_t l) const;
  /// Points of the chosen loops among [first, last), in this sense.
  int64_t size_of(size_t first, size_t last, uint64_t chosen) const;
  /// Sets the variables of the chosen loops among [first, last) from the number of their point.
  void set_loops(size_t first, size_t last, uint64_t chosen, Value* point);
  /// Computes what depends on fewer than all outer loops, but for what is reduced.
  void outer_values();
  /// The expressions that these values follow from, themselves among them.
  std::vector<bool> needed_for(const std::vector<ExprId>& values) const;
  /// Waits for all threads of the block.
  void barrier();
  /// From which thread of the warp a value comes.
  enum class Exchange {
    kFlipped,  ///< its number differs in one bit
    kBefore,   ///< so many before this one; where there is none, from this one
    kNumber,   ///< of this number
  };
  /// Returns the value of another thread of the warp. All threads of the warp must take part.
  Val of_thread(const Val& x, Exchange which, Value* distance);
  Value* of_thread(Value* x, Exchange which, Value* distance);
  /// New shared memory of the block.
  llvm::GlobalVariable* shared_array(Type* t, int64_t elements);

  const GridSchedule& schedule_;
  const int warp_;
  Value* thread_ = nullptr;  ///< number in its block, i64
  Value* block_ = nullptr;   ///< i64
};

/// The emitter of a matrix product in tiles, in grid_tiles.cc.
void emit_grid_tiles(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function);

/// The emitter of attention, in grid_attention.cc.
void emit_grid_attention(const GridKernel& kernel, llvm::Module& module, const Target& target,
                         llvm::Function* function);

/// The emitter of the kernels of a scatter, in grid_updates.cc. Behind the kernel's buffers the function has two parameters more.
void emit_grid_updates(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function);

/// The emitter of a kernel that transposes, in grid_squares.cc.
void emit_grid_squares(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function);

}  // namespace collet::codegen
