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

  /// Returns the last finding of the emulator's checks as text; null in other drivers. See docs/gpu_emulator.md.
  const char* (*colletCudaEmulatorLastError)() = nullptr;

  int version = 0;       ///< version as cuDriverGetVersion returns it: 12040 for 12.4
  int device_count = 0;  ///< at least 1
};

/// Opens the driver's library, finds all its functions and calls cuInit. `name_or_path` is passed to dlopen; empty
/// stands for "libcuda.so.1". The library stays open until the process ends.
/// Returns UNAVAILABLE "no CUDA driver: ..." if the library or its kernel module is missing, UNIMPLEMENTED "the CUDA
/// driver lacks cuXxx" if the driver is too old, and NOT_FOUND "no CUDA device" if there is no device.
/// `emulator_options` are options for the emulator, as in the environment variable COLLET_CUDA_EMULATOR, which they
/// override. For other drivers they must be empty, else INVALID_ARGUMENT is returned.
codegen::Status open_driver(const std::string& name_or_path, Driver& out, const std::string& emulator_options = {});

/// Returns a result as text, such as "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". Does not call the driver.
std::string result_text(CUresult result);

/// Returns the driver's name of a result, or null.
const char* result_name(CUresult result);

/// Returns the meaning of a result, or null.
const char* result_meaning(CUresult result);

}  // namespace collet::gpu
