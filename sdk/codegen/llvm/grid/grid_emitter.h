// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <vector>

#include "sdk/codegen/llvm/kernel/kernel_emitter.h"
#include "sdk/codegen/schedule/grid.h"

namespace collet::codegen {

/// Adds the kernel to the module as a function that each thread of a grid runs for its own part. Its parameters are the
/// addresses of the kernel's buffers.
llvm::Function* emit_grid_kernel(const GridKernel& kernel, llvm::Module& module, const Target& target,
                                 const std::string& name);

/// Emits a kernel as the program of one thread. This base class has what all schedules have in common.
class GridEmitter : public KernelEmitter {
 public:
  /// Emits the body of the function.
  void emit();

 protected:
  GridEmitter(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function)
      : KernelEmitter(kernel.kernel, module, target, function), schedule_(kernel.schedule), warp_(target.grid.warp) {}

  /// Emits the work of the thread. thread_ and block_ are set.
  virtual void thread() = 0;

  Value* number(int64_t x) { return b_.getInt64(static_cast<uint64_t>(x)); }
  /// Returns the number of iterations of loop `l`, where an iteration of a loop with lanes computes all lanes.
  int64_t turns_of(size_t l) const;
  /// Returns the product of the iteration counts of the chosen loops (a bit set) among [first, last).
  int64_t size_of(size_t first, size_t last, uint64_t chosen) const;
  /// Sets the variables of the chosen loops among [first, last) from the linear number of their point.
  void set_loops(size_t first, size_t last, uint64_t chosen, Value* point);
  /// Computes the expressions that do not depend on all outer loops, except results of reductions.
  void outer_values();
  /// Computes the expressions of stage `stage` that do not depend on inner loops, except results of reductions.
  void values_of_stage(int stage);
  /// Sets the values of the expressions that use reduction number `reduction`, in their own type.
  void set_reduced(int64_t reduction, Value* x);
  /// Returns the set of expressions that these values depend on, including themselves.
  std::vector<bool> needed_for(const std::vector<ExprId>& values) const;
  /// Emits a barrier for all threads of the block.
  void barrier();
  /// Selects the thread of the warp from which a value comes.
  enum class Exchange {
    kFlipped,  ///< the thread whose number is this thread's number xor `distance`
    kBefore,   ///< the thread `distance` before this one; this thread itself if there is none
    kNumber,   ///< the thread with number `distance`
  };
  /// Returns the value of another thread of the warp. All threads of the warp must take part.
  Val of_thread(const Val& x, Exchange which, Value* distance);
  Value* of_thread(Value* x, Exchange which, Value* distance);
  /// Adds an array in the shared memory of the block.
  llvm::GlobalVariable* shared_array(Type* t, int64_t elements);

  const GridSchedule& schedule_;
  const int warp_;
  Value* thread_ = nullptr;  ///< number of the thread in its block, i64
  Value* block_ = nullptr;   ///< number of the block, i64
};

/// Emits a matrix product in tiles, see grid_tiles.cc.
void emit_grid_tiles(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function);

/// Emits a matrix product by warpgroups, see grid_warpgroups.cc. The function has two parameters more, after the kernel's
/// buffers: the descriptors of the factors.
void emit_grid_warpgroups(const GridKernel& kernel, llvm::Module& module, const Target& target,
                          llvm::Function* function);

/// Emits attention, see grid_attention.cc.
void emit_grid_attention(const GridKernel& kernel, llvm::Module& module, const Target& target,
                         llvm::Function* function);

/// Emits attention by warpgroups, see warpgroup_attention.cc. The function has parameters more, after the kernel's buffers:
/// the descriptors of queries, keys and values.
void emit_warpgroup_attention(const GridKernel& kernel, llvm::Module& module, const Target& target,
                              llvm::Function* function);

/// Emits the kernels of a scatter, see grid_updates.cc. The function has two parameters more, after the kernel's
/// buffers: the sorted keys and their points.
void emit_grid_updates(const GridKernel& kernel, llvm::Module& module, const Target& target, llvm::Function* function);

/// Emits a kernel that transposes through shared memory, see grid_transpose.cc.
void emit_grid_transpose(const GridKernel& kernel, llvm::Module& module, const Target& target,
                         llvm::Function* function);

}  // namespace collet::codegen
