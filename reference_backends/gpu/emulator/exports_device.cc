// SPDX-License-Identifier: Apache-2.0
// Implements the driver's functions for devices and contexts.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/emulator/entry.h"

namespace collet::gpu {

using emulator::in_context;
using emulator::in_driver;

namespace emulator {

int& current_device() {
  static thread_local int device = -1;
  return device;
}

namespace {

int attribute_of(const Options& o, CUdevice device, unsigned attribute) {
  const bool hopper = o.sm >= 90;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return kMostSharedStatic;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1000000;  // clock rate in kHz
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 128;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(o.threads);
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      return device;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(o.sm / 10);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(o.sm % 10);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return (hopper ? 228 : 164) << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return (hopper ? 227 : 163) << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return kSharedBase;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      return 0;
    default:
      return -1;
  }
}

}  // namespace
}  // namespace emulator

namespace {

bool is_device(const emulator::State& s, CUdevice device) {
  return device >= 0 && static_cast<size_t>(device) < s.devices.size();
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  try {
    return emulator::initialise();
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 12080;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = result_name(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = result_meaning(error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult colletCudaEmulatorConfigure(const char* options) {
  try {
    return emulator::configure(options);
  } catch (const std::exception&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

const char* colletCudaEmulatorLastError() {
  return emulator::last_finding();
}

CUresult cuDeviceGetCount(int* count) {
  return in_driver([&](emulator::State& s) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(s.devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return in_driver([&](emulator::State& s) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!name || size < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, static_cast<size_t>(size), "Collet CUDA emulator");
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::memcpy(uuid->bytes, "collet-emulator", 15);
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    const int found = emulator::attribute_of(s.machine.options, device, attribute);
    if (found < 0) return CUDA_ERROR_INVALID_VALUE;
    *value = found;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = s.machine.memory->bytes_each();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return in_driver([&](emulator::State& s) {
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device) || !is_device(s, peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    *pool = &s.devices[static_cast<size_t>(device)].pool;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(s.scheduler->mutex);
    emulator::Device& d = s.devices[static_cast<size_t>(device)];
    ++d.retained;
    ++d.retains;
    *context = &d.context;
    return CUDA_SUCCESS;
  });
}

// The last release frees the device's memory, modules, streams and events, and reports allocations that were not freed.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return in_driver([&](emulator::State& s) {
    if (!is_device(s, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::unique_lock lock(s.scheduler->mutex);
    emulator::Device& d = s.devices[static_cast<size_t>(device)];
    // During the wait others may retain the context, use it, and release it.
    for (uint64_t before = d.retains - 1; d.retained == 1 && before != d.retains;) {
      before = d.retains;
      s.scheduler->wait_for_device(lock, device);
    }
    if (!d.retained) return CUDA_ERROR_INVALID_CONTEXT;
    if (--d.retained) return CUDA_SUCCESS;
    std::string leaks;
    for (auto it = s.modules.begin(); it != s.modules.end();) {
      CUmodule const m = *it;
      if (m->device != device) {
        ++it;
        continue;
      }
      for (const auto& [name, f] : m->functions) s.functions.erase(f.get());
      delete m;
      it = s.modules.erase(it);
    }
    std::erase_if(s.streams, [&](CUstream one) {
      if (one->state->device != device) return false;
      s.scheduler->remove_stream(one->state);
      delete one;
      return true;
    });
    std::erase_if(s.events, [&](CUevent one) {
      if (one->device != device) return false;
      delete one;
      return true;
    });
    emulator::DeviceMemory& memory = *s.machine.memory;
    std::string ignored;
    for (const uint64_t address : d.module_memory) {
      if (memory.begin_free(address, ignored)) memory.finish_free(address);
    }
    d.module_memory.clear();
    const auto [count, bytes] = memory.in_use(static_cast<unsigned>(device));
    if (count) {
      leaks = "leak: " + std::to_string(count) + " allocations of " + std::to_string(bytes) +
              " bytes were not freed when the context of device " + std::to_string(device) + " ended";
      while (const uint64_t address = memory.first_in_use(static_cast<unsigned>(device))) {
        if (memory.begin_free(address, ignored)) memory.finish_free(address);
      }
    }
    const auto is_retained = [](const emulator::Device& other) { return other.retained != 0; };
    if (std::none_of(s.devices.begin(), s.devices.end(), is_retained)) memory.end_quarantine();
    d.failure = CUDA_SUCCESS;
    lock.unlock();
    if (leaks.empty() || !s.machine.options.checks) return CUDA_SUCCESS;
    s.report(leaks);
    return s.machine.options.leaks ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return in_driver([&](emulator::State& s) {
    if (!context) {
      emulator::current_device() = -1;
      return CUDA_SUCCESS;
    }
    for (const emulator::Device& d : s.devices) {
      if (context == &d.context) {
        emulator::current_device() = context->device;
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return in_driver([&](emulator::State& s) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    const int device = emulator::current_device();
    *context = device < 0 ? nullptr : &s.devices[static_cast<size_t>(device)].context;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return in_context([&](emulator::Entry& e) {
    e.scheduler().wait_for_device(e.lock, e.index);
    return e.device->failure;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return in_context([&](emulator::Entry& e) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    for (const emulator::Device& d : e.state->devices) {
      if (peer != &d.context) continue;
      if (peer->device == e.index) return CUDA_ERROR_INVALID_DEVICE;
      int& enabled = e.device->peers[static_cast<size_t>(peer->device)];
      if (enabled) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
      enabled = 1;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_CONTEXT;
  });
}

}  // namespace collet::gpu
