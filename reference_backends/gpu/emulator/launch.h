// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "reference_backends/gpu/driver/driver_api.h"
#include "reference_backends/gpu/emulator/memory.h"
#include "reference_backends/gpu/emulator/options.h"

namespace collet::gpu::emulator {

struct Thread;

/// A compiled kernel.
struct Kernel {
  std::string name;
  void (*code)(Thread*) = nullptr;  ///< runs one thread until it exits
  /// True if the kernel's threads wait for each other, so that each needs its own stack.
  bool meets = false;
  bool uses_shared = false;
  uint32_t static_shared = 0;  ///< bytes of shared memory that the kernel declares
  uint32_t local_bytes = 0;    ///< bytes of local memory of a thread
  unsigned max_threads = 1024;
  unsigned required_threads[3] = {0, 0, 0};
  struct Parameter {
    uint32_t offset, bytes;
  };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
};

/// The lowest offset in shared memory. Offsets below it are never valid, so that null pointers are noticed.
inline constexpr uint32_t kSharedBase = 1024;
inline constexpr uint32_t kMostSharedStatic = 48 << 10;
inline constexpr uint32_t kMostShared = 227 << 10;
/// Bases of the generic addresses of shared memory, and of a thread's local memory.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 56;

/// The state that all launches of a process share.
struct Machine {
  Options options;
  DeviceMemory* memory = nullptr;
  HostMemory host;
};

/// One launch of a kernel. Several host threads run its blocks.
struct Launch {
  Machine* machine = nullptr;
  const Kernel* kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;
  /// Bytes of all parameters, laid out as Kernel::parameters describes, in whole words.
  std::vector<uint64_t> parameters;

  uint32_t tag = 0;  ///< number of the launch in its records of memory accesses
  std::atomic<uint64_t> next_block{0};
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point begin;

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  /// Records a failure; only the first one counts. May be called from any thread.
  void fail(CUresult result, const std::string& message);
  bool out_of_time() const;

  std::mutex mutex;
  CUresult result = CUDA_SUCCESS;
  std::string message;
};

/// Runs launches, one at a time, on its own host threads and that of the caller.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();
  /// Runs a launch. Returns when it has ended or failed.
  void run(Launch& launch);

 private:
  struct State;
  State* state_;
};

}  // namespace collet::gpu::emulator
