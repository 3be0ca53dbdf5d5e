// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <string>

#include "sdk/codegen/base/status.h"

namespace collet::cpu {

/// How an instance is opened.
struct OpenOptions {
  OpenOptions();

  std::string features;  ///< changes to the processor's features, for codegen::host_target
  std::string
      cpu;  ///< make code for this processor, by LLVM's name, and not for the one that is there; empty: that one
  bool is_virtual = false;  ///< only compile, for the processor `cpu`, which need not be there
  int threads;              ///< as many as the machine has, unless told
  bool fuse = true;
};

/// Reads the environment's COLLET_CPU_FEATURES, COLLET_CPU_THREADS and COLLET_CPU_FUSE, then `given`, which may be null:
/// its options features, threads, fuse and cpu go before them. A target other than "host" is a processor by LLVM's name. An unknown option or a value that means nothing is
/// INVALID_ARGUMENT.
codegen::Status read_options(const collet_open_options* given, OpenOptions& out);

}  // namespace collet::cpu
