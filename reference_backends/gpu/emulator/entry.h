// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "reference_backends/gpu/emulator/state.h"

/// The first steps of every function that the library exports.
namespace collet::gpu::emulator {

/// The device of the calling thread's context, or -1.
int& current_device();

/// The state of the driver, locked, and the device of the current context.
struct Entry {
  State* state = nullptr;
  Device* device = nullptr;
  int index = -1;
  std::unique_lock<std::mutex> lock;

  Options& options() const { return state->machine.options; }
  DeviceMemory& memory() const { return *state->machine.memory; }
  Scheduler& scheduler() const { return *state->scheduler; }
  /// The stream of a handle, where null is the device's own; null where there is none.
  std::shared_ptr<StreamState> stream(CUstream handle) const {
    if (!handle) return device->null_stream;
    return state->streams.count(handle) ? handle->state : nullptr;
  }
};

/// Runs a function with an Entry. It wants a current context that has not failed.
template <typename F>
CUresult in_context(F&& function) noexcept {
  try {
    Entry e;
    e.state = state();
    if (!e.state) return CUDA_ERROR_NOT_INITIALIZED;
    e.index = current_device();
    if (e.index < 0) return CUDA_ERROR_INVALID_CONTEXT;
    e.device = &e.state->devices[static_cast<size_t>(e.index)];
    e.lock = std::unique_lock(e.state->scheduler->mutex);
    if (!e.device->retained) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (e.device->failure != CUDA_SUCCESS) return e.device->failure;
    return function(e);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& x) {
    if (state()) state()->report(x.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

/// The same without a context.
template <typename F>
CUresult in_driver(F&& function) noexcept {
  try {
    State* const s = state();
    return s ? function(*s) : CUDA_ERROR_NOT_INITIALIZED;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Ends what a handle of `all` stands for.
template <typename Handle>
CUresult destroy(std::set<Handle> State::* all, Handle handle) {
  return in_context([&](Entry& e) -> CUresult {
    if (!(e.state->*all).erase(handle)) return CUDA_ERROR_INVALID_HANDLE;
    delete handle;
    return CUDA_SUCCESS;
  });
}

/// Marks the functions that the library exports.
#define COLLET_EXPORT extern "C" __attribute__((visibility("default")))

}  // namespace collet::gpu::emulator

namespace collet::gpu {
#define COLLET_CUDA_FUNCTION(name, parameters) COLLET_EXPORT CUresult name parameters;
#include "reference_backends/gpu/driver/driver_functions.def"
COLLET_EXPORT const char* colletCudaEmulatorLastError();
COLLET_EXPORT CUresult colletCudaEmulatorConfigure(const char* options);
}  // namespace collet::gpu
