// SPDX-License-Identifier: Apache-2.0
// Implements modules, kernels and their launches.
#include <algorithm>
#include <cstring>

#include "reference_backends/gpu/emulator/operations.h"

namespace collet::gpu {

using emulator::Entry;
using emulator::has_failed;
using emulator::in_context;

namespace {

/// The options of cuModuleLoadDataEx that the emulator supports: buffers for messages.
struct Logs {
  char* error = nullptr;
  void** error_size = nullptr;
  char* info = nullptr;
  void** info_size = nullptr;

  static void fill(char* buffer, void** size, const std::string& text) {
    if (!size) return;
    const auto capacity = static_cast<unsigned int>(reinterpret_cast<uintptr_t>(*size));
    size_t written = 0;
    if (buffer && capacity) {
      written = std::min<size_t>(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), written);
      buffer[written] = '\0';
    }
    *size = reinterpret_cast<void*>(static_cast<uintptr_t>(written));
  }
};

CUresult read_logs(unsigned int count, const CUjit_option* options, void** values, Logs& out) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int i = 0; i < count; ++i) {
    switch (static_cast<unsigned>(options[i])) {
      case CU_JIT_ERROR_LOG_BUFFER:
        out.error = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        out.error_size = &values[i];
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        out.info = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        out.info_size = &values[i];
        break;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

/// Runs one launch on the device. After a failure the device cannot be used any more.
void run_launch(emulator::State& s, int device, emulator::Launch& launch) {
  s.pool->run(launch);
  if (launch.result != CUDA_SUCCESS) s.fail_device(device, launch.result, launch.message);
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int option_count, CUjit_option* options,
                            void** option_values) {
  return in_context([&](Entry& e) -> CUresult {
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    Logs logs;
    if (const CUresult r = read_logs(option_count, options, option_values, logs); r != CUDA_SUCCESS) return r;
    const std::string_view text(static_cast<const char*>(image));
    emulator::DeviceMemory& memory = e.memory();
    const int index = e.index;
    e.lock.unlock();
    const emulator::DeviceVariables variables{
        [&](uint64_t bytes) {
          const uint64_t address = memory.reserve(static_cast<unsigned>(index), bytes);
          if (address) memory.mark_allocated(address);
          return address;
        },
        [&](uint64_t address, const void* bytes, uint64_t size) {
          std::memcpy(memory.host(address), bytes, size);
          std::memset(memory.states(address), emulator::kByteAllocated | emulator::kByteWritten, size);
        }};
    std::vector<uint64_t> allocations;
    std::string problem;
    std::shared_ptr<emulator::CompiledModule> code = emulator::compile_module(text, variables, allocations, problem);
    CUresult result = CUDA_SUCCESS;
    if (!code) {
      result = CUDA_ERROR_INVALID_PTX;
    } else if (code->target > e.options().sm) {
      problem = "the module is for sm_" + std::to_string(code->target) + ", and the device is sm_" +
                std::to_string(e.options().sm);
      result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    Logs::fill(logs.error, logs.error_size, problem.empty() ? "" : "ptx: " + problem);
    Logs::fill(logs.info, logs.info_size, "");
    if (result != CUDA_SUCCESS) {
      std::string ignored;
      for (const uint64_t address : allocations) {
        if (memory.begin_free(address, ignored)) memory.finish_free(address);
      }
      e.state->report("cuModuleLoadDataEx: " + problem);
      return result;
    }
    code->allocations = allocations;
    auto made = std::make_unique<CUmod_st>();
    made->device = index;
    made->code = code;
    e.lock.lock();
    e.device->module_memory.insert(allocations.begin(), allocations.end());
    e.state->modules.insert(made.get());
    *module = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
    e.scheduler().wait_for_device(e.lock, module->device);
    std::string ignored;
    for (const uint64_t address : module->code->allocations) {
      if (e.memory().begin_free(address, ignored)) e.memory().finish_free(address);
      e.device->module_memory.erase(address);
    }
    for (const auto& [name, f] : module->functions) e.state->functions.erase(f.get());
    e.state->modules.erase(module);
    delete module;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return in_context([&](Entry& e) -> CUresult {
    if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = module->code->kernels.find(name);
    if (found == module->code->kernels.end()) return CUDA_ERROR_NOT_FOUND;
    std::unique_ptr<CUfunc_st>& f = module->functions[name];
    if (!f) {
      f = std::make_unique<CUfunc_st>();
      f->module = module;
      f->code = module->code;
      f->kernel = found->second.get();
      f->most_dynamic = emulator::kMostSharedStatic - std::min(emulator::kMostSharedStatic, f->kernel->static_shared);
      e.state->functions.insert(f.get());
    }
    *function = f.get();
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return in_context([&](Entry& e) -> CUresult {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->modules.count(module)) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = module->code->globals.find(name);
    if (found == module->code->globals.end()) return CUDA_ERROR_NOT_FOUND;
    if (address) *address = found->second.address;
    if (bytes) *bytes = found->second.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
      return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
    int most = 0;
    cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, e.index);
    if (value < 0 || static_cast<uint64_t>(value) + function->kernel->static_shared > static_cast<uint64_t>(most)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    function->most_dynamic = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return in_context([&](Entry& e) -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
    const emulator::Kernel& k = *function->kernel;
    switch (static_cast<unsigned>(attribute)) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(k.max_threads);
        break;
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(k.static_shared);
        break;
      case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
      case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(k.local_bytes);
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = static_cast<int>(function->code->ptx_version);
        break;
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = static_cast<int>(e.options().sm);
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(function->most_dynamic);
        break;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return in_context([&](Entry& e) -> CUresult {
    if (!blocks || block_size < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->functions.count(function)) return CUDA_ERROR_INVALID_HANDLE;
    int shared = 0;
    cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, e.index);
    const uint64_t each = function->kernel->static_shared + dynamic_shared_bytes + emulator::kSharedBase;
    const bool fits =
        block_size <= static_cast<int>(function->kernel->max_threads) && dynamic_shared_bytes <= function->most_dynamic;
    *blocks =
        fits ? static_cast<int>(std::min<uint64_t>({32, 2048u / ((static_cast<unsigned>(block_size) + 31) / 32 * 32),
                                                    static_cast<uint64_t>(shared) / each}))
             : 0;
    return CUDA_SUCCESS;
  });
}

namespace emulator {

CUresult make_launch(Entry& e, const CUDA_KERNEL_NODE_PARAMS_v2& what, std::function<void()>& out) {
  if (!e.state->functions.count(what.func)) return CUDA_ERROR_INVALID_HANDLE;
  const emulator::Kernel& kernel = *what.func->kernel;
  const auto refuse = [&](const std::string& why, CUresult result = CUDA_ERROR_INVALID_VALUE) {
    e.lock.unlock();
    e.state->report("launch of " + kernel.name + ": " + why);
    return result;
  };
  const uint64_t threads = uint64_t{what.blockDimX} * what.blockDimY * what.blockDimZ;
  if (!what.gridDimX || !what.gridDimY || !what.gridDimZ || what.gridDimX > INT32_MAX || what.gridDimY > 65535 ||
      what.gridDimZ > 65535) {
    return refuse("a grid of " + std::to_string(what.gridDimX) + " x " + std::to_string(what.gridDimY) + " x " +
                  std::to_string(what.gridDimZ));
  }
  if (!threads || what.blockDimX > 1024 || what.blockDimY > 1024 || what.blockDimZ > 64 || threads > 1024) {
    return refuse("a block of " + std::to_string(what.blockDimX) + " x " + std::to_string(what.blockDimY) + " x " +
                  std::to_string(what.blockDimZ));
  }
  if (threads > kernel.max_threads) {
    return refuse(
        "a block of " + std::to_string(threads) + " threads, and .maxntid says " + std::to_string(kernel.max_threads),
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  }
  const unsigned* const required = kernel.required_threads;
  if (required[0] &&
      (required[0] != what.blockDimX || required[1] != what.blockDimY || required[2] != what.blockDimZ)) {
    return refuse("another block than .reqntid says");
  }
  if (what.sharedMemBytes > what.func->most_dynamic) {
    return refuse(std::to_string(what.sharedMemBytes) + " bytes of dynamic shared memory, and " +
                  std::to_string(what.func->most_dynamic) + " are allowed");
  }
  std::vector<uint64_t> values((kernel.parameter_bytes + 7) / 8 + 2);
  auto* const bytes = reinterpret_cast<uint8_t*>(values.data());
  if (!kernel.parameters.empty() && !what.extra) {
    if (!what.kernelParams) return refuse("no parameters");
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      if (!what.kernelParams[i]) return refuse("parameter " + std::to_string(i) + " is null");
      std::memcpy(bytes + kernel.parameters[i].offset, what.kernelParams[i], kernel.parameters[i].bytes);
    }
  } else if (what.extra) {
    const void* buffer = nullptr;
    size_t size = 0;
    for (size_t i = 0; what.extra[i]; i += 2) {
      if (what.extra[i] == reinterpret_cast<void*>(1)) buffer = what.extra[i + 1];
      if (what.extra[i] == reinterpret_cast<void*>(2)) size = *static_cast<size_t*>(what.extra[i + 1]);
    }
    if (!buffer || size < kernel.parameter_bytes) return refuse("the buffer of parameters is too small");
    std::memcpy(bytes, buffer, kernel.parameter_bytes);
  }
  emulator::State* const s = e.state;
  const int device = e.index;
  const auto keep = what.func->code;
  const emulator::Kernel* const k = &kernel;
  const std::array<uint32_t, 3> grid{what.gridDimX, what.gridDimY, what.gridDimZ};
  const std::array<uint32_t, 3> block{what.blockDimX, what.blockDimY, what.blockDimZ};
  const uint32_t dynamic_shared = what.sharedMemBytes;
  out = [=] {
    if (has_failed(*s, device)) return;
    Launch launch;
    launch.machine = &s->machine;
    launch.kernel = k;
    std::copy(grid.begin(), grid.end(), launch.grid);
    std::copy(block.begin(), block.end(), launch.block);
    launch.dynamic_shared = dynamic_shared;
    launch.parameters = values;
    run_launch(*s, device, launch);
    static_cast<void>(keep);
  };
  return CUDA_SUCCESS;
}

}  // namespace emulator

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream_handle, void** parameters, void** extra) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    std::function<void()> run;
    const CUresult made = emulator::make_launch(e,
                                                {function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                                 shared_bytes, parameters, extra, nullptr, nullptr},
                                                run);
    if (made == CUDA_SUCCESS) e.scheduler().enqueue(stream, std::move(run));
    return made;
  });
}

CUresult cuLaunchHostFunc(CUstream stream_handle, CUhostFn function, void* data) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    emulator::State* const s = e.state;
    const int device = e.index;
    e.scheduler().enqueue(
        stream,
        [=] {
          // As in CUDA, the function is not called if the device has failed.
          if (!has_failed(*s, device)) function(data);
        },
        true);
    return CUDA_SUCCESS;
  });
}

}  // namespace collet::gpu
