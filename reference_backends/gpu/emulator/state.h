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

/// The objects behind the handles of the driver's interface.
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
  std::shared_ptr<emulator::CompiledModule> code;  ///< alive while a launch needs it
  const emulator::Kernel* kernel = nullptr;
  uint32_t most_dynamic = 0;
  bool was_raised = false;
};
struct CUmod_st {
  int device = 0;
  std::shared_ptr<emulator::CompiledModule> code;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};
/// A node that was added by name, so that it can be changed in what was made of its graph.
struct CUgraphNode_st {
  CUgraph graph = nullptr;
  size_t index = 0;
  bool is_kernel = false;
};
struct CUgraph_st {
  std::vector<emulator::Capture::Node> nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> handles;
  int device = 0;
};
struct CUgraphExec_st {
  std::shared_ptr<std::vector<emulator::Capture::Node>> nodes;  ///< launches have it too: what they were is not changed
  CUgraph graph = nullptr;                                      ///< that it was made of, null when that has gone
  int device = 0;
};

namespace emulator {

struct Device {
  CUctx_st context;
  CUmemPoolHandle_st pool;
  unsigned retained = 0;
  std::shared_ptr<StreamState> null_stream;
  CUresult failure = CUDA_SUCCESS;  ///< sticky
  std::set<uint64_t> module_memory;
  std::array<int, 16> peers{};
};

/// Everything of the process. Made by cuInit, never destroyed.
struct State {
  Machine machine;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<Device> devices;

  // Handles that are alive, under the scheduler's lock.
  std::set<CUstream> streams;
  std::set<CUevent> events;
  std::set<CUmodule> modules;
  std::set<CUfunction> functions;
  std::set<CUgraph> graphs;
  std::set<CUgraphNode> nodes;
  std::set<CUgraphExec> executables;

  /// Notes a finding: for colletCudaEmulatorLastError() and stderr. Any thread, no lock.
  void report(const std::string& message);
  /// A finding that ends the use of a device. Any thread, no lock of the scheduler.
  void fail_device(int device, CUresult result, const std::string& message);
};

/// Null before cuInit.
State* state();
/// Sets options over those of the environment. They count when nobody has called cuInit before.
CUresult configure(const char* options);
/// Makes it, or says why not.
CUresult initialise();

/// The last finding, for people; empty where there is none.
const char* last_finding();

}  // namespace emulator
}  // namespace collet::gpu
