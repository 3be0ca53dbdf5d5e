// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>
#include <collet/codegen/kernel.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// \file
/// A program as kernels of kernel IR and a launch plan, for a compiler that is not ours and takes neither LLVM IR nor source text.
/// Nothing here needs LLVM. C++20.

namespace collet::codegen {

/// How the threads of a grid share the points of a kernel. Loops are bit sets of numbers of Kernel::loops.
struct KernelGrid {
  enum class Form : uint8_t {
    kPoints,  ///< a thread computes points of the loops `parallel`, and runs the other loops in their order
    /// `group` threads compute a point of the loops `parallel`, which are all outer loops: each runs some points of the inner loops, and
    /// they combine their partial reductions, whose combination is known.
    kRows,
    /// A block computes tiles of a product of matrices: the sum over the inner loops of products of two expressions, see `product`. Both
    /// factors of a tile go through the memory that the threads of a block share, in rounds of the depth.
    kTiles,
  };
  Form form = Form::kPoints;
  uint64_t parallel = 0;  ///< loops whose points may be computed at the same time, in any order
  int group = 1;          ///< threads that share a point, for kRows
  uint32_t blocks = 1;
  uint32_t block_threads = 1;

  /// A factor of a product.
  struct Factor {
    ExprId value = kNoExpr;  ///< the expression that goes through shared memory
    uint64_t loops = 0;  ///< the outer loops that only this factor depends on: the rows, or the columns, of the product
    uint64_t depth_loops = 0;   ///< the inner loops that it depends on
    bool is_contiguous = true;  ///< neighbours along the depth, rather than along `loops`, are adjacent in memory
  };
  struct Product {
    Factor a, b;             ///< the factors of rows and of columns
    uint64_t batch = 0;      ///< the outer loops that both depend on
    int rows = 0;            ///< of a tile of a block
    int columns = 0;         ///< of a tile of a block
    int thread_rows = 0;     ///< of the part of a tile that a thread computes
    int thread_columns = 0;  ///< of the part of a tile that a thread computes
    int round = 0;           ///< steps of the depth that are in shared memory at a time
  };
  Product product;  ///< for kTiles
};

/// Returns the grid of a kernel as text, such as "rows, 32 threads each, 100 blocks of 128 threads".
std::string print_grid(const KernelGrid& grid);

/// A kernel of a program.
struct PlannedKernel {
  std::string name;  ///< an identifier of C, unique in its program
  std::string ops;   ///< the ops that it computes, as messages name them
  Kernel kernel;
  /// For a target with grids. The kernel has no loop in lanes.
  std::optional<KernelGrid> grid;
};

/// What compile_kernels makes.
struct KernelProgram {
  /// The steps, which are kernels, copies, loops and branches and, for a grid, values that the host writes. A FunctionId is the number of a
  /// kernel. Buffer i of a kernel is the i-th
  /// place of its step, or of the tail; it runs over all of its points. Nothing runs in parts, and `threads` has no meaning.
  LaunchPlan plan;
  std::vector<PlannedKernel> kernels;
  Artifacts artifacts;  ///< as in CompiledProgram
  /// A hash of the plan and of the kernels: code belongs to a program of the same one.
  uint64_t fingerprint = 0;
};

/// Fuses, lowers and schedules a program that check_program accepts, plans its memory, and leaves its kernels as they are. Products of
/// matrices are kernels with reductions, which find_contraction recognises. The target is that of a processor with one thread, such as
/// scalar_machine or vector_machine, which decides which loop is in lanes; or a neutral grid, see grid_machine, which decides how threads
/// share the points and how many parts a long reduction has. It has neither `routines` nor `sort_kernels`.
Status compile_kernels(const collet_program* program, const Target& target, const CompileOptions& options,
                       KernelProgram& out);

}  // namespace collet::codegen
