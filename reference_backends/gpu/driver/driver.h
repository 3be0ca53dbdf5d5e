// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <string>

#include "reference_backends/gpu/driver/driver_api.h"

namespace collet::gpu {

/// The functions of a CUDA driver: one pointer for each line of driver_functions.def, by its exported name.
struct Driver {
#define COLLET_CUDA_FUNCTION(name, parameters) CUresult(*name) parameters = nullptr;
#include "reference_backends/gpu/driver/driver_functions.def"

  /// Returns the last finding of our emulator's checks, for people; null in drivers that are not the emulator. See
  /// docs/gpu_emulator.md.
  const char* (*colletCudaEmulatorLastError)() = nullptr;

  int version = 0;       ///< as cuDriverGetVersion gives it, 12040 for 12.4
  int device_count = 0;  ///< at least 1
};

/// Opens the driver's library, finds all its functions and calls cuInit. `name_or_path`: what dlopen takes; empty:
/// "libcuda.so.1". The library stays open for the life of the process.
/// UNAVAILABLE "no CUDA driver: ..." where the library or its kernel module is missing, UNIMPLEMENTED "the CUDA driver lacks
/// cuXxx" where it is too old, NOT_FOUND "no CUDA device" where it has none.
/// `emulator_options` go to our emulator, as those of COLLET_CUDA_EMULATOR and before it opens; drivers that are not the emulator take
/// none: INVALID_ARGUMENT.
codegen::Status open_driver(const std::string& name_or_path, Driver& out, const std::string& emulator_options = {});

/// A result for people: "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". Asks no driver.
std::string result_text(CUresult result);

/// The driver's name of a result, or null.
const char* result_name(CUresult result);

/// Returns the meaning of a result, or null.
const char* result_meaning(CUresult result);

}  // namespace collet::gpu
