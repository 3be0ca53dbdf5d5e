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

/// File names and contents.
using Artifacts = std::vector<std::pair<std::string, std::string>>;

/// Answers `supports` of backend.h: which of `count` ops of `program`, by number, can be compiled for `target`. Fills answers and
/// reasons of `verdicts`. OUT_OF_RANGE where there is no such op; the error of a program that is not as program.h says.
Status answer_ops(const collet_program* program, const Target& target, const uint32_t* ops, uint32_t count,
                  collet_verdict* verdicts);

/// Names for the optional table "patterns" of a backend whose target has `routines`: composites that run as routines, such as
/// "collet.eigh". Null past the last. None where this process finds no LAPACK: see docs/building.md.
const char* routine_composite(uint32_t index);

/// OK if all ops of the program's entry can be compiled for `target`; else UNIMPLEMENTED with the first reason. Numbers of up to
/// rejection->count refused ops are put into `rejection`, unless it is null; then count is how many there are.
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
  /// The functions of the launch plan, by their names; whoever runs the plan calls them.
  kFunctions
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
  /// Checks each kernel after lowering and after scheduling, INTERNAL where one breaks a rule: for tests of this library.
  bool verify = false;
  CodeForm form = CodeForm::kOneFunction;
  std::string name = "program";  ///< of the function, in C
  bool embed_constants = true;   ///< of kOneFunction: they stand in the object code; else they are a slot of their own
};

/// Object code and how to launch it.
struct CompiledProgram {
  LaunchPlan plan;
  std::string object;  ///< an ELF object file, position-independent; for a target with grids, PTX
  /// The stages of compilation: graph, fusion groups, kernels, launch plan, LLVM IR, assembly.
  Artifacts artifacts;
};

/// Compiles a program of which check_program approves. Artifacts are there after an error, too.
Status compile(const collet_program* program, const Target& target, const CompileOptions& options,
               CompiledProgram& out);

/// `name` as an identifier of C: other characters become '_'. "program" where nothing is left; words of C and functions of its
/// library get "_program" at their end.
std::string c_identifier(const std::string& name);

/// The header of a program that was compiled ahead of time as one function, `options.name` + "_slots": structs of its arguments
/// and results, the size of its workspace, and the function. C99 and C++.
std::string c_header(const collet_program* program, const LaunchPlan& plan, const CompileOptions& options,
                     const Target& target);

/// A static library with one object file, which is called `name` in it.
Status make_archive(const std::string& object, const std::string& name, std::string& archive);

/// Machine code as it stands in a device's memory.
struct CodeImage {
  std::string bytes;
  uint64_t address = 0;                                   ///< where it must lie
  std::vector<std::pair<std::string, uint64_t>> symbols;  ///< names and addresses of its functions

  /// The address of a function; 0 where there is none.
  uint64_t find(const std::string& name) const;
};

/// The addresses of an image, and the functions that it may call.
class CodeMemory {
 public:
  virtual ~CodeMemory() = default;
  /// Allocates memory for an image and returns its address, a multiple of `alignment`. Returns 0 if there is not enough.
  virtual uint64_t allocate(uint64_t bytes, uint64_t alignment) = 0;
  /// The address of a function that the device has, such as memcpy; 0: it has none of that name.
  virtual uint64_t find(const std::string& name) const = 0;
};

/// Links an object file, of any architecture, for the address that `memory` gives. The image is one block: instructions, then
/// data that they only read. RESOURCE_EXHAUSTED if `memory` cannot allocate it; NOT_FOUND, with its name, where a function is missing.
Status link_image(const std::string& object, CodeMemory& memory, CodeImage& out);

}  // namespace collet::codegen
