// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/codegen/status.h>

#include <string>

namespace collet::cpu {

/// Options of an instance.
struct OpenOptions {
  OpenOptions();

  std::string features;  ///< changes to the processor's features, for codegen::host_target
  /// Make code for this processor, by LLVM's name, and not for the one that is there; empty: that one. Ahead of time:
  /// the name of a codegen::cross_target.
  std::string cpu;
  bool is_virtual = false;  ///< only compile, for the processor `cpu`, which need not be there
  int threads;              ///< as many as the machine has, unless told; ahead of time: 1
  bool fuse = true;
  bool verify = false;       ///< check the compiler's kernels, to find its mistakes
  bool as_function = false;  ///< a program is one function, on one thread, without routines
  bool is_ahead = false;     ///< make object files and C headers, for the architecture `cpu`

  /// The options of ahead-of-time compilation.
  struct Ahead {
    std::string name;   ///< of the C function; empty: that of the program
    bool embed = true;  ///< constants stand in the object file; else in a file of their own
  };
  Ahead ahead;
};

/// Reads the environment's COLLET_CPU_FEATURES, COLLET_CPU_THREADS and COLLET_CPU_FUSE, then `given`, which may be null:
/// its options go before them. A target other than "host" is a processor by LLVM's name, or, for code that is made ahead of
/// time, "x86_64", "aarch64" or "riscv64", perhaps with ":" and a processor. An unknown option or a value that means nothing
/// is INVALID_ARGUMENT.
codegen::Status read_options(const collet_open_options* given, OpenOptions& out);

}  // namespace collet::cpu
