// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "reference_backends/gpu/emulator/state.h"

/// \file
/// Entry, with which every function that the library exports begins: it locks the state and finds the current device.
namespace collet::gpu::emulator {

/// Returns a reference to the device of the calling thread's context; -1 if there is no context.
int& current_device();

/// Holds the locked state of the driver and the device of the current context.
struct Entry {
  State* state = nullptr;
  Device* device = nullptr;
  int index = -1;
  std::unique_lock<std::mutex> lock;

  Options& options() const { return state->machine.options; }
  DeviceMemory& memory() const { return *state->machine.memory; }
  Scheduler& scheduler() const { return *state->scheduler; }
  /// Returns the stream of a handle, where a null handle is the device's null stream. Returns null for an invalid
  /// handle.
  std::shared_ptr<StreamState> stream(CUstream handle) const {
    if (!handle) return device->null_stream;
    return state->streams.count(handle) ? handle->state : nullptr;
  }
};

/// Runs a function with an Entry. There must be a current context whose device has not failed.
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

/// Like in_context, but needs no current context.
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

/// Destroys the object of a handle that is in `all`.
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
