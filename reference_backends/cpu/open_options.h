// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/codegen/status.h>
#include <collet/codegen/target.h>
#include <collet/float_modes.hpp>

#include <string>
#include <vector>

namespace collet::cpu {

/// Options of an instance.
struct OpenOptions {
  OpenOptions();

  std::string features;  ///< changes to the processor's features, for codegen::host_target
  /// Compile for this processor, by LLVM's name, instead of this machine's; empty for this machine's. Ahead of time:
  /// the name of a codegen::cross_target.
  std::string cpu;
  bool is_virtual = false;  ///< only compile, for the processor `cpu`, which need not be this machine's
  int threads;              ///< by default the number of usable processors; ahead of time 1
  bool fuse = true;
  std::vector<std::string> rules_off;  ///< rules of schedules that are not applied, in the order of their names
  std::string schedules;               ///< schedules by hand, see codegen::CompileOptions
  std::string tuning;           ///< the contents of a file that `collet tune` wrote; schedules by hand come first
  bool list_schedules = false;  ///< see codegen::CompileOptions
  codegen::Tuning numbers;      ///< Target::tuning
  Subnormals subnormals = Subnormals::kKeep;
  bool verify = false;       ///< check kernels after each stage, to find mistakes of the compiler
  bool as_function = false;  ///< compile a program to one function, for one thread and without routines
  bool is_ahead = false;     ///< compile object files and C headers ahead of time, for the architecture `cpu`
  bool is_source = false;    ///< C in place of object files: `cpu` is the name of a codegen::source_target

  /// The options of ahead-of-time compilation.
  struct Ahead {
    std::string name;   ///< name of the C function; empty for the program's name
    bool embed = true;  ///< store constants in the object file; else in a separate file
  };
  Ahead ahead;
};

/// Reads the environment variables COLLET_CPU_FEATURES, COLLET_CPU_THREADS and COLLET_CPU_FUSE, then the options
/// `given`, which take precedence and may be null. A target other than "host" is a processor by LLVM's name, or, for
/// code that is compiled ahead of time, "x86_64", "aarch64" or "riscv64", optionally followed by ":" and a processor.
/// Returns INVALID_ARGUMENT for an unknown option or value.
codegen::Status read_options(const collet_open_options* given, OpenOptions& out);

}  // namespace collet::cpu
