// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/compile.h>
#include <collet/codegen/kernel.h>

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// A program as kernels of kernel IR and a launch plan, for a compiler that is not ours and takes neither LLVM IR nor source text.
/// Nothing here needs LLVM. C++20.

namespace collet::codegen {

/// A kernel of a program.
struct PlannedKernel {
  std::string name;  ///< an identifier of C, unique in its program
  std::string ops;   ///< the ops that it computes, as messages name them
  Kernel kernel;
};

/// What compile_kernels makes.
struct KernelProgram {
  /// The steps, which are kernels, copies, loops and branches. A FunctionId is the number of a kernel. Buffer i of a kernel is the i-th
  /// place of its step, or of the tail; it runs over all of its points. Nothing runs in parts, and `threads` has no meaning.
  LaunchPlan plan;
  std::vector<PlannedKernel> kernels;
  Artifacts artifacts;  ///< as in CompiledProgram
  /// A hash of the plan and of the kernels: code belongs to a program of the same one.
  uint64_t fingerprint = 0;
};

/// Fuses, lowers and schedules a program that check_program accepts, plans its memory, and leaves its kernels as they are. Products of
/// matrices are kernels with reductions, which find_contraction recognises. The target is that of a processor without `routines` and
/// with one thread, such as scalar_machine or vector_machine; it decides which loop is in lanes.
Status compile_kernels(const collet_program* program, const Target& target, const CompileOptions& options,
                       KernelProgram& out);

}  // namespace collet::codegen
