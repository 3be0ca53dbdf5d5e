// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "reference_backends/gpu/emulator/entry.h"

/// The operations of streams and graphs: made and checked by the call, run later on the scheduler's thread.
namespace collet::gpu::emulator {

/// Has the device failed? Not under the lock.
bool has_failed(State& s, int device);

/// A launch of a kernel. Where it is refused the result says so, the reason is reported, and the lock may be gone.
CUresult make_launch(Entry& e, const CUDA_KERNEL_NODE_PARAMS_v2& what, std::function<void()>& out);

/// A copy within device memory, or from one device to another.
CUresult make_copy(Entry& e, CUdeviceptr to, CUdeviceptr from, size_t bytes, std::function<void()>& out);

}  // namespace collet::gpu::emulator
