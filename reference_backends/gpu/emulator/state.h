// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "reference_backends/gpu/driver/driver_api.h"
#include "reference_backends/gpu/emulator/compile.h"
#include "reference_backends/gpu/emulator/launch.h"
#include "reference_backends/gpu/emulator/scheduler.h"

/// \file
/// The objects that the handles of the driver's interface point to.
namespace collet::gpu {

struct CUctx_st {
  int device = 0;
};
struct CUmemPoolHandle_st {
  int device = 0;
};
struct CUstream_st {
  std::shared_ptr<emulator::StreamState> state;
};
struct CUevent_st {
  std::shared_ptr<emulator::EventState> state = std::make_shared<emulator::EventState>();
  bool has_time = true;
  int device = 0;
};
struct CUfunc_st {
  CUmodule module = nullptr;
  std::shared_ptr<emulator::CompiledModule> code;  ///< kept alive while a launch needs it
  const emulator::Kernel* kernel = nullptr;
  uint32_t most_dynamic = 0;
  bool was_raised = false;
};
struct CUmod_st {
  int device = 0;
  std::shared_ptr<emulator::CompiledModule> code;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};
/// A node that was added explicitly, so that the parameters of its copies in executable graphs can be changed.
struct CUgraphNode_st {
  enum class Kind { kKernel, kCopy, kChild };
  CUgraph graph = nullptr;
  size_t index = 0;
  Kind kind = Kind::kKernel;
  std::vector<std::vector<size_t>> structure{};  ///< of a child graph: for each node, those before it
};
struct CUgraph_st {
  std::vector<emulator::Capture::Node> nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> handles;
  int device = 0;
};
struct CUgraphExec_st {
  /// Shared with launches that have not run, which keep the nodes that they were started with.
  std::shared_ptr<std::vector<emulator::Capture::Node>> nodes;
  /// The graph from which it was instantiated; null if that was destroyed.
  CUgraph graph = nullptr;
  int device = 0;
};

namespace emulator {

struct Device {
  CUctx_st context;
  CUmemPoolHandle_st pool;
  unsigned retained = 0;
  uint64_t retains = 0;  ///< number of times that the context was retained so far
  std::shared_ptr<StreamState> null_stream;
  CUresult failure = CUDA_SUCCESS;  ///< first failure of the device; all later calls return it
  std::set<uint64_t> module_memory;
  std::array<int, 16> peers{};
};

/// The state of the process. cuInit creates it, and it is never destroyed.
struct State {
  Machine machine;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<Device> devices;

  // Valid handles, guarded by the scheduler's lock.
  std::set<CUstream> streams;
  std::set<CUevent> events;
  std::set<CUmodule> modules;
  std::set<CUfunction> functions;
  std::set<CUgraph> graphs;
  std::set<CUgraphNode> nodes;
  std::set<CUgraphExec> executables;

  /// Records a message of a check, for colletCudaEmulatorLastError() and stderr. May be called from any thread, without
  /// a lock.
  void report(const std::string& message);
  /// Records a message and makes the device fail. May be called from any thread, without the scheduler's lock.
  void fail_device(int device, CUresult result, const std::string& message);
};

/// Returns the state, or null before cuInit.
State* state();
/// Sets options, which override those of the environment. They take effect only if they are set before cuInit.
CUresult configure(const char* options);
/// Creates the state, or returns why that is not possible.
CUresult initialise();

/// Returns the message of the last finding; empty if there is none.
const char* last_finding();

}  // namespace emulator
}  // namespace collet::gpu
