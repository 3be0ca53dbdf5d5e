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
  void (*code)(Thread*) = nullptr;  ///< runs one thread to its end
  bool meets = false;               ///< its threads wait for each other: they need stacks of their own
  bool uses_shared = false;
  uint32_t static_shared = 0;  ///< bytes
  uint32_t local_bytes = 0;    ///< of a thread
  unsigned max_threads = 1024;
  unsigned required_threads[3] = {0, 0, 0};
  struct Parameter {
    uint32_t offset, bytes;
  };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
};

/// Offsets in shared memory begin here: what lies before is never valid.
inline constexpr uint32_t kSharedBase = 1024;
inline constexpr uint32_t kMostSharedStatic = 48 << 10;
inline constexpr uint32_t kMostShared = 227 << 10;
/// The generic addresses of the memory of a block or a thread.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 56;

/// The state that all launches of a process share.
struct Machine {
  Options options;
  DeviceMemory* memory = nullptr;
  HostMemory host;
};

/// One launch of a kernel. Blocks of it run on several threads.
struct Launch {
  Machine* machine = nullptr;
  const Kernel* kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;
  std::vector<uint64_t> parameters;  ///< the bytes of Kernel::parameters, in whole words

  uint32_t tag = 0;  ///< of its records of accesses
  std::atomic<uint64_t> next_block{0};
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point begin;

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  /// The first failure counts. Any thread.
  void fail(CUresult result, const std::string& message);
  bool out_of_time() const;

  std::mutex mutex;
  CUresult result = CUDA_SUCCESS;
  std::string message;
};

/// Runs launches, one at a time, on its own threads and that of the caller.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();
  /// Until the launch is over or has failed.
  void run(Launch& launch);

 private:
  struct State;
  State* state_;
};

}  // namespace collet::gpu::emulator
