// SPDX-License-Identifier: Apache-2.0
#include "device.h"

namespace kernel_ir {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;

constexpr int kUsualLanes = 8;

/// The option `lanes` is a number of f32 in a vector, by which loops are chosen to run in lanes.
int lanes_of(const kernel::Options& options) {
  const auto found = options.values.find("lanes");
  if (found == options.values.end()) return kUsualLanes;
  for (const auto& [text, lanes] : {std::pair("1", 1), std::pair("4", 4), std::pair("8", 8), std::pair("16", 16)})
    if (found->second == text) return lanes;
  throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option lanes is 1, 4, 8 or 16");
}

/// The option `machine` is processor or grid: whether kernels come with a loop in lanes, or with what the threads of a grid share.
codegen::Target target_of(const kernel::Options& options) {
  const auto machine = options.values.find("machine");
  const std::string name = machine == options.values.end() ? "processor" : machine->second;
  constexpr int kProcessors = 8, kLocalBytes = 32 << 10;
  if (name == "grid") return codegen::grid_machine(kProcessors, kLocalBytes);
  if (name != "processor") throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option machine is processor or grid");
  const int lanes = lanes_of(options);
  return lanes == 1 ? codegen::scalar_machine() : codegen::vector_machine(lanes);
}

void configure(const kernel::Options& options, kernel::Backend* mine) {
  mine->device_count = options.device_count ? options.device_count : 1;
  if (options.values.count("lanes") + options.values.count("machine") > 0)
    codegen::set_kernels(mine, target_of(options), compile);
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "kernel_ir";
  backend.version = "0.1.0";
  backend.opset = 1;
  backend.device_kind = "kernel IR machine";
  backend.fingerprint = ";kernel_ir-1";
  backend.memory_bytes = kMemoryBytes;
  backend.options = {"lanes", "machine"};
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(kMemoryBytes); };
  backend.configure = configure;
  codegen::set_kernels(&backend, target_of({}), compile);
  return backend;
}

}  // namespace kernel_ir

COLLET_KERNEL_BACKEND(kernel_ir::describe)
