// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The instructions of NVIDIA's compute capability 9.0 for products by warpgroups: barriers in shared memory that count
/// bytes (mbarrier), copies of boxes by the tensor memory accelerator (cp.async.bulk.tensor), and matrix instructions of
/// four warps (wgmma). PTX ISA 8.0, "Data Movement and Conversion Instructions", "Parallel Synchronization and
/// Communication Instructions", "Asynchronous Warpgroup Level Matrix Instructions".

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <string>
#include <vector>

namespace collet::codegen {

/// Emits these instructions. Addresses in shared memory are i32, descriptors of matrices are i64.
class WarpgroupCode {
 public:
  using Value = llvm::Value;

  explicit WarpgroupCode(llvm::IRBuilder<>& b) : b_(b) {}

  /// Returns the address of shared memory as an i32.
  Value* address(Value* shared);

  /// Prepares a barrier, whose phase ends when `arrivals` threads have arrived and all announced bytes have come.
  void init_barrier(Value* barrier, uint32_t arrivals);
  /// Makes prepared barriers visible to the copies that the device makes by itself.
  void publish_barriers();
  /// Arrives at a barrier and announces bytes for this phase.
  void arrive_with_bytes(Value* barrier, int64_t bytes);
  void arrive(Value* barrier);
  /// Returns an i1: whether the phase with this parity, an i32, has ended. It may wait for a while.
  Value* has_ended(Value* barrier, Value* parity);

  /// Starts the copy of a box of the array that `map` describes to shared memory at `to`. `coordinates` are i32, those of
  /// the contiguous dimension first. The box's bytes are counted by the barrier.
  void copy_box(Value* to, Value* map, const std::vector<Value*>& coordinates, Value* barrier);
  /// Changes the number of registers of each thread of this warpgroup. All its threads must take part.
  void set_registers(int count, bool increases);
  /// Loads the descriptor of an array into the cache of descriptors.
  void prefetch_map(Value* map);

  /// A matrix instruction: 64 rows by `columns`.
  struct Product {
    std::string types;           ///< such as "f32.bf16.bf16"
    int columns = 0;             ///< a multiple of 8, at most 256
    int depth = 0;               ///< steps of one instruction
    bool can_transpose = false;  ///< whether the instruction says how its factors lie
    bool a_by_depth = true, b_by_depth = true;
    bool begins = false;  ///< whether the first product of a call is not added to the sums
  };
  /// Returns the matrix instruction that multiplies elements of type `type`: BF16, F16, F32 as tf32, S8 or U8.
  static Product product_of(uint32_t type, int columns, bool a_by_depth, bool b_by_depth);
  /// Starts `b.size()` products of this warpgroup, which add to `sums`. `b` are descriptors of factors, and so are `a`; or
  /// `a` has the four registers of each first factor, i32. Waits until at most `most_groups` calls have not ended, of
  /// which this is one; -1: does not wait. Returns the sums, which must not be used before finish_products.
  std::vector<Value*> start_products(const Product& what, const std::vector<Value*>& a, const std::vector<Value*>& b,
                                     const std::vector<Value*>& sums, int most_groups);
  /// Waits until all products of this warpgroup have ended.
  std::vector<Value*> finish_products(const std::vector<Value*>& sums);

  /// Returns the descriptor of a matrix in shared memory whose lines of 128 bytes are swizzled. `leading` and `stride` are
  /// the distances in bytes between blocks: see PTX ISA, "Matrix Descriptor Format".
  Value* descriptor(Value* at, int64_t leading, int64_t stride);

 private:
  Value* assembly(llvm::Type* result, const std::string& text, const std::string& constraints,
                  const std::vector<Value*>& operands);
  std::vector<Value*> with_sums(const std::string& text, const std::vector<Value*>& sums,
                                const std::vector<Value*>& others);

  llvm::IRBuilder<>& b_;
};

}  // namespace collet::codegen
