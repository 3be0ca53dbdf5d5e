// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/codegen/launch_plan.h>
#include <collet/codegen/status.h>
#include <collet/codegen/target.h>

#include <string>
#include <utility>
#include <vector>

/// \file
/// From a program to object code: what `supports` and `compile` of backend.h ask for, for any target. All functions may be
/// called from any thread.

namespace collet::codegen {

/// A list of pairs: name of a file, its contents.
using Artifacts = std::vector<std::pair<std::string, std::string>>;

/// Answers `supports` of backend.h: which of `count` ops of `program`, by number, can be compiled for `target`. Fills
/// answers and reasons of `verdicts`. Returns OUT_OF_RANGE if a number is no op of the program, and another error if
/// the program breaks a rule of program.h.
Status answer_ops(const collet_program* program, const Target& target, const uint32_t* ops, uint32_t count,
                  collet_verdict* verdicts);

/// Returns names for the optional table "patterns" of a backend whose target has `routines`: composites that run as
/// library routines, such as "collet.eigh". Returns null past the last name. There are no names if this process finds
/// no LAPACK library, see docs/building.md.
const char* routine_composite(uint32_t index);

/// Returns the same for a target with grids that has GridLibraries::factorizations: composites that libraries of the
/// device compute.
const char* library_composite(uint32_t index);

/// Returns OK if all ops of the program's entry can be compiled for `target`, else UNIMPLEMENTED with the first reason.
/// Unless `rejection` is null, the numbers of the first `rejection->count` refused ops are stored in it, and `count`
/// becomes the number of refused ops.
Status check_program(const collet_program* program, const Target& target, collet_rejection* rejection);

/// Forms of the code of a program.
enum class CodeForm {
  /// One function, void name(char* const* slots), that runs the whole launch plan. A slot is the address of an argument, of a
  /// result, then of the workspace and, unless they are embedded, of the constants; see LaunchPlan. For a target with more than
  /// one thread, the slot behind that of the constants is the address of a SharedLoops, or null: the caller's threads. It
  /// allocates nothing, expects 256 KiB of stack, and calls at most memcpy, memset, memmove, and fma, fmod and the rounding
  /// functions of C's <math.h>.
  /// UNIMPLEMENTED for programs with routines: compile for a target with `routines` false, so that they are not accepted.
  kOneFunction,
  /// The functions of the launch plan, under their names. The caller interprets the plan and calls them.
  kFunctions,
  /// The same function as kOneFunction as text: one translation unit of C99 for a compiler that the caller has. Only compile_source
  /// makes it. The text includes <math.h>, <stdbool.h>, <stdint.h> and <string.h>, and calls functions of the first and the last. It is
  /// right for compilers that neither contract products and sums of double, nor reorder operations on floats
  /// (-ffp-contract=off, no -ffast-math), and best for those that assume that floating-point operations set no errno and do not trap.
  /// Above each kernel stands a comment with the ops that it computes. For a target with `routines`, the slot behind that of the
  /// constants, which is there in any case, is HostRoutines::table.
  kSource,
  /// The kernels of the launch plan as text: a program of OpenCL C 1.2 for a device with double. Only compile_source makes it, for a
  /// neutral grid, see grid_machine, or for the threads of a processor, of which each is a group of one work-item. The steps of the plan are
  /// kernels, copies, loops and branches, and values of the host for a grid; KernelCall::blocks is the number of groups, and
  /// block_threads the number of work-items in each. A kernel has two parameters for each of its places, `__global char *`, the memory,
  /// and `long`, the offset in bytes. The program is right for compilers that do not reorder operations on floats, and whose divisions and
  /// roots of float are rounded correctly. The target has no `routines`; with `sort_kernels`, sorts are kernels.
  kOpenCl,
  /// The same function as kOneFunction as LLVM IR, for a compiler that is made of LLVM `llvm_version`, 15 or newer, and of which no more
  /// is known than its target. Nothing is optimised: the compiler does what clang -O2 does. It calls what kOneFunction calls.
  kLlvm,
  /// The kernels of the launch plan as data: see kernel_program.h, whose compile_kernels alone makes it.
  kKernels
};

/// Threads that run parts of a loop at the same time, for a program that is one function. The layout is that of C.
struct SharedLoops {
  /// Calls body(context, begin, end, worker) for parts of [0, range), each a multiple of `grain` but the last, and returns when
  /// all have ended. `worker`, below Target::threads, is never used twice at once.
  void (*loop)(void* user, int64_t range, int64_t grain,
               void (*body)(void* context, int64_t begin, int64_t end, int32_t worker), void* context);
  void* user;
};

/// Options for compiling a program.
struct CompileOptions {
  bool fuse = true;             ///< false: one kernel for each op
  bool keep_artifacts = false;  ///< fill CompiledProgram::artifacts
  /// Checks each kernel after lowering and after scheduling, and returns INTERNAL if one breaks a rule. Meant for tests
  /// of this library.
  bool verify = false;
  /// Names of rules of schedules that are not applied, see schedule_rule_name; others are ignored. It shows what a rule is
  /// worth.
  std::vector<std::string> rules_off;
  /// Schedules by hand for kernels of a processor, in place of what the rules decide: lines "kernel3: interleave i0 4", or lines of a file
  /// that `collet tune` wrote, see docs/tuning.md. INVALID_ARGUMENT if a kernel does not exist, or if a schedule is not legal.
  std::string schedules;
  /// The contents of a file that `collet tune` wrote: schedules by keys, which stand for the same kernel in any program. Those of other
  /// machines, and of kernels that a program does not have, are not used.
  std::string tuning;
  /// Adds the artifact schedules.txt, from which `collet tune` searches, if artifacts are kept: a line "target NAME", then for each kernel and
  /// each matrix product a line "NAME KEY", a line "= ACTIONS" with its schedule, and lines "+ ACTIONS" with schedules near it. A key that
  /// has stood there before has no such lines.
  bool list_schedules = false;
  CodeForm form = CodeForm::kOneFunction;
  int llvm_version = 19;         ///< for kLlvm
  std::string name = "program";  ///< C name of the function of kOneFunction
  /// For kOneFunction: true stores the constants in the object code, false passes them in an additional slot.
  bool embed_constants = true;
};

/// Reads a file for CompileOptions::tuning. Returns INVALID_ARGUMENT, with the number of the line, if it is no such file.
Status read_tuning_file(const std::string& path, std::string& out);

/// Returns the name of a rule of schedules for processors, such as "interleave_rows"; null past the last one.
const char* schedule_rule_name(uint32_t index);

/// Object code and how to launch it.
struct CompiledProgram {
  LaunchPlan plan;
  /// An ELF object file, position-independent; for a target with grids, PTX; for CodeForm::kSource, C99; for
  /// kOpenCl, OpenCL C; for kLlvm, LLVM IR.
  std::string object;
  /// The stages of compilation: graph, fusion groups, kernels, launch plan, LLVM IR, assembly.
  Artifacts artifacts;
};

/// Compiles a program that check_program accepts. `out.artifacts` is filled after an error, too.
Status compile(const collet_program* program, const Target& target, const CompileOptions& options,
               CompiledProgram& out);

/// Compiles a program that check_program accepts to source text, in `out.object`, without LLVM: OpenCL C if `options.form` is kOpenCl, else
/// C99, for which the target has no grids and one thread.
Status compile_source(const collet_program* program, const Target& target, const CompileOptions& options,
                      CompiledProgram& out);

/// Returns `name` as an identifier of C: other characters become '_'. Returns "program" if nothing is left. "_program"
/// is appended to keywords of C and functions of its library.
std::string c_identifier(const std::string& name);

/// Returns the C header of a program that was compiled ahead of time as one function. It declares structs of the
/// arguments and results, the size of the workspace, and the function `options.name` + "_slots". It is valid C99 and
/// C++.
std::string c_header(const collet_program* program, const LaunchPlan& plan, const CompileOptions& options,
                     const Target& target);

/// Makes a static library with one object file, whose member name is `name`.
Status make_archive(const std::string& object, const std::string& name, std::string& archive);

/// Machine code as it is laid out in a device's memory.
struct CodeImage {
  std::string bytes;
  uint64_t address = 0;                                   ///< address for which the code is linked
  std::vector<std::pair<std::string, uint64_t>> symbols;  ///< names and addresses of its functions

  /// Returns the address of a function; 0 if the image has none of that name.
  uint64_t find(const std::string& name) const;
};

/// Provides memory for an image, and the addresses of the functions that it may call.
class CodeMemory {
 public:
  virtual ~CodeMemory() = default;
  /// Allocates memory for an image and returns its address, a multiple of `alignment`. Returns 0 if there is not enough.
  virtual uint64_t allocate(uint64_t bytes, uint64_t alignment) = 0;
  /// Returns the address of a function that the device has, such as memcpy; 0 if it has none of that name.
  virtual uint64_t find(const std::string& name) const = 0;
};

/// Links an object file, of any architecture, for the address that `memory` gives. The image is one block:
/// instructions, then data that they only read. Returns RESOURCE_EXHAUSTED if `memory` cannot allocate the image, and
/// NOT_FOUND with the name of a function that is missing.
Status link_image(const std::string& object, CodeMemory& memory, CodeImage& out);

}  // namespace collet::codegen
