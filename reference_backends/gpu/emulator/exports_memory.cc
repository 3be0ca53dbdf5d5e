// SPDX-License-Identifier: Apache-2.0
// Implements allocation of device and host memory, and copies.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "reference_backends/gpu/emulator/operations.h"

namespace collet::gpu {

using emulator::Entry;
using emulator::has_failed;
using emulator::in_context;

namespace {

/// Checks a piece of device memory that a copy reads or writes. Returns false, and reports an error, if the copy may
/// not access it. The caller must not hold the lock.
bool may_access(emulator::State& s, int device, const char* what, uint64_t address, uint64_t bytes, bool is_write) {
  const emulator::DeviceMemory& memory = *s.machine.memory;
  std::string problem;
  if (s.machine.options.checks) {
    problem = memory.problem_of(address, bytes, is_write, false);
  } else if (!memory.contains(address) || bytes > memory.size() - (address - memory.base())) {
    problem = "no memory of a device";
  }
  if (problem.empty()) return true;
  s.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + ": " + problem);
  return false;
}

void mark_written(emulator::DeviceMemory& memory, uint64_t address, uint64_t bytes) {
  std::memset(memory.states(address), emulator::kByteAllocated | emulator::kByteWritten, bytes);
}

void to_device(emulator::State& s, int device, CUdeviceptr to, const void* from, size_t bytes) {
  if (has_failed(s, device) || !may_access(s, device, "a copy from host to device", to, bytes, true)) return;
  std::memcpy(s.machine.memory->host(to), from, bytes);
  mark_written(*s.machine.memory, to, bytes);
}

void to_host(emulator::State& s, int device, void* to, CUdeviceptr from, size_t bytes) {
  if (has_failed(s, device) || !may_access(s, device, "a copy from device to host", from, bytes, false)) return;
  std::memcpy(to, s.machine.memory->host(from), bytes);
}

/// Copies within device memory, including the states that tell which bytes have been written.
void on_device(emulator::State& s, int device, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (has_failed(s, device)) return;
  if (!may_access(s, device, "a copy from device to device", from, bytes, false)) return;
  if (!may_access(s, device, "a copy from device to device", to, bytes, true)) return;
  emulator::DeviceMemory& memory = *s.machine.memory;
  std::memmove(memory.host(to), memory.host(from), bytes);
  std::memmove(memory.states(to), memory.states(from), bytes);
}

template <typename T>
CUresult set_memory(CUdeviceptr to, T value, size_t count, CUstream stream_handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (count == 0) return CUDA_SUCCESS;
    if (to % sizeof(T) || !e.memory().contains(to) || count > e.memory().size() / sizeof(T))
      return CUDA_ERROR_INVALID_VALUE;
    emulator::State* const s = e.state;
    const int device = e.index;
    e.scheduler().enqueue(stream, [=] {
      const size_t bytes = count * sizeof(T);
      if (has_failed(*s, device) || !may_access(*s, device, "a memset", to, bytes, true)) return;
      std::fill_n(reinterpret_cast<T*>(s->machine.memory->host(to)), count, value);
      mark_written(*s->machine.memory, to, bytes);
    });
    return CUDA_SUCCESS;
  });
}

/// Puts a copy on a stream. A copy of pageable memory has ended when the call returns, as in CUDA.
template <typename F>
CUresult copy(CUdeviceptr address, const void* host, size_t bytes, CUstream stream_handle, bool waits, F&& function) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (bytes == 0) return CUDA_SUCCESS;
    if (!e.memory().contains(address) || bytes > e.memory().size()) return CUDA_ERROR_INVALID_VALUE;
    if (host == reinterpret_cast<const void*>(0)) return CUDA_ERROR_INVALID_VALUE;
    if (waits && stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    emulator::State* const s = e.state;
    const int device = e.index;
    e.scheduler().enqueue(stream, [=] { function(*s, device); });
    const bool pinned = s->machine.host.contains(reinterpret_cast<uint64_t>(host), bytes);
    if (waits || (!pinned && !stream->capture)) {
      e.scheduler().wait_for(e.lock, stream);
      return e.device->failure;
    }
    return CUDA_SUCCESS;
  });
}

uint64_t allocate(Entry& e, size_t bytes) {
  return e.memory().reserve(static_cast<unsigned>(e.index), bytes);
}

CUresult refuse_free(Entry& e, const std::string& problem) {
  e.lock.unlock();
  e.state->report("free: " + problem);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return in_context([&](Entry& e) -> CUresult {
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t made = allocate(e, bytes);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    e.memory().mark_allocated(made);
    *address = made;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return in_context([&](Entry& e) -> CUresult {
    if (!address) return CUDA_SUCCESS;
    std::string problem;
    if (!e.memory().begin_free(address, problem)) return refuse_free(e, problem);
    e.scheduler().wait_for_device(e.lock, e.index);
    e.memory().finish_free(address);
    return e.device->failure;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream_handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    uint64_t made = allocate(e, bytes);
    if (!made) {  // waits for frees that are queued on streams, then tries again
      e.scheduler().wait_for_device(e.lock, e.index);
      made = allocate(e, bytes);
    }
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    emulator::DeviceMemory* const memory = &e.memory();
    e.scheduler().enqueue(stream, [=] { memory->mark_allocated(made); });
    *address = made;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream_handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    std::string problem;
    if (!e.memory().begin_free(address, problem)) return refuse_free(e, problem);
    emulator::DeviceMemory* const memory = &e.memory();
    e.scheduler().enqueue(stream, [=] { memory->finish_free(address); });
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return in_context([&](Entry& e) -> CUresult {
    if (!pool || pool != &e.state->devices[static_cast<size_t>(pool->device)].pool || !value)
      return CUDA_ERROR_INVALID_VALUE;
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
                   attribute <= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return in_context([&](Entry&) -> CUresult { return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return in_context([&](Entry& e) -> CUresult {
    if (!free_bytes || !total_bytes) return CUDA_ERROR_INVALID_VALUE;
    *free_bytes = e.memory().free_bytes(static_cast<unsigned>(e.index));
    *total_bytes = e.memory().bytes_each();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  return in_context([&](Entry& e) -> CUresult {
    if (!memory || !bytes || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    e.state->machine.host.add(made, bytes, true);
    *memory = made;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void* memory) {
  return in_context([&](Entry& e) -> CUresult {
    uint64_t bytes = 0;
    // As in CUDA, all work that may use the memory ends first.
    e.scheduler().wait_for_device(e.lock, e.index);
    if (!e.state->machine.host.remove(memory, true, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    munmap(memory, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned int) {
  return in_context([&](Entry& e) -> CUresult {
    if (!memory || !bytes) return CUDA_ERROR_INVALID_VALUE;
    return e.state->machine.host.add(memory, bytes, false) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

CUresult cuMemHostUnregister(void* memory) {
  return in_context([&](Entry& e) -> CUresult {
    e.scheduler().wait_for_device(e.lock, e.index);
    return e.state->machine.host.remove(memory, false, nullptr) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(to, from, bytes, nullptr, true,
              [=](emulator::State& s, int device) { to_device(s, device, to, from, bytes); });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(from, to, bytes, nullptr, true,
              [=](emulator::State& s, int device) { to_host(s, device, to, from, bytes); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(to, from, bytes, stream, false,
              [=](emulator::State& s, int device) { to_device(s, device, to, from, bytes); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(from, to, bytes, stream, false,
              [=](emulator::State& s, int device) { to_host(s, device, to, from, bytes); });
}

namespace emulator {

bool has_failed(State& s, int device) {
  std::lock_guard lock(s.scheduler->mutex);
  return s.devices[static_cast<size_t>(device)].failure != CUDA_SUCCESS;
}

CUresult make_copy(Entry& e, CUdeviceptr to, CUdeviceptr from, size_t bytes, std::function<void()>& out) {
  if (!e.memory().contains(to) || !e.memory().contains(from)) return CUDA_ERROR_INVALID_VALUE;
  State* const s = e.state;
  const int device = e.index;
  out = [=] { on_device(*s, device, to, from, bytes); };
  return CUDA_SUCCESS;
}

}  // namespace emulator

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream_handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (bytes == 0) return CUDA_SUCCESS;
    std::function<void()> run;
    const CUresult made = emulator::make_copy(e, to, from, bytes, run);
    if (made == CUDA_SUCCESS) e.scheduler().enqueue(stream, std::move(run));
    return made;
  });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set_memory<uint8_t>(to, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return set_memory<uint32_t>(to, value, count, stream);
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return in_context([&](Entry& e) -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    const bool on_host = e.state->machine.host.contains(address, 1);
    const auto found = e.memory().contains(address) ? e.memory().find(address) : std::nullopt;
    const bool is_ours = found && !found->is_freed && address - found->address < found->bytes;
    if (!on_host && !is_ours) return CUDA_ERROR_INVALID_VALUE;
    const unsigned device = is_ours ? e.memory().device_of(address) : static_cast<unsigned>(e.index);
    switch (static_cast<unsigned>(attribute)) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(value) = &e.state->devices[device].context;
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned int*>(value) = on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *static_cast<CUdeviceptr*>(value) = address;
        break;
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!on_host) return CUDA_ERROR_INVALID_VALUE;
        *static_cast<void**>(value) = reinterpret_cast<void*>(address);
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(value) = static_cast<int>(device);
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace collet::gpu
