// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "reference_backends/gpu/emulator/entry.h"

/// \file
/// Operations of streams and graphs. The calling function creates and checks them; the scheduler's thread runs them
/// later.
namespace collet::gpu::emulator {

/// True if the device has failed. The caller must not hold the lock.
bool has_failed(State& s, int device);

/// Makes the launch of a kernel. If it is refused, returns an error and reports the reason; the lock may have been
/// released then.
CUresult make_launch(Entry& e, const CUDA_KERNEL_NODE_PARAMS_v2& what, std::function<void()>& out);

/// Makes a copy within device memory, or from one device to another.
CUresult make_copy(Entry& e, CUdeviceptr to, CUdeviceptr from, size_t bytes, std::function<void()>& out);

}  // namespace collet::gpu::emulator
