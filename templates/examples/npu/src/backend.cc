// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>

#include <cstdlib>

#include "compiler.h"

namespace npu {

namespace {

// Returns the value of an option that is a number of KiB.
uint64_t scratchpad_bytes(const kernel::Options& options) {
  const auto found = options.values.find("scratchpad_kib");
  if (found == options.values.end()) return UINT64_C(1) << 20;
  char* end = nullptr;
  const uint64_t kib = std::strtoull(found->second.c_str(), &end, 10);
  if (end == found->second.c_str() || *end != 0 || kib < 4 || kib > 65536) {
    throw kernel::Error(COLLET_INVALID_ARGUMENT,
                        "scratchpad_kib is a number from 4 to 65536, not '" + found->second + "'");
  }
  return kib << 10;
}

Fault fault_of(const kernel::Options& options) {
  const auto found = options.values.find("fault");
  if (found == options.values.end()) return Fault::kNone;
  const std::pair<const char*, Fault> faults[] = {{"rounding", Fault::kRounding},
                                                  {"zero_point", Fault::kZeroPoint},
                                                  {"saturation", Fault::kSaturation},
                                                  {"halo", Fault::kHalo},
                                                  {"address", Fault::kAddress}};
  for (const auto& one : faults) {
    if (found->second == one.first) return one.second;
  }
  throw kernel::Error(COLLET_INVALID_ARGUMENT,
                      "fault is rounding, zero_point, saturation, halo or address, not '" + found->second + "'");
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "npu";
  backend.version = "0.1.0";
  backend.opset = 1;  // raise it after checking the units against the attributes and types that newer opsets added
  backend.device_kind = "NPU, a simulated machine";
  backend.traits = COLLET_TRAIT_INLINE_CONSTANTS | COLLET_TRAIT_UNROLLED_LOOPS | COLLET_TRAIT_SHARED_CODE;
  backend.memory_bytes = kMemoryBytes;
  backend.memory_bytes_per_ns = 32;
  backend.flops_per_ns = 512;  // two for each of the 256 multiplications of a cycle
  backend.launch_ns = 1000;
  backend.types = {{COLLET_TYPE_S8, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_U8, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_F16, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_PRED, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE}};
  backend.queues = true;
  backend.profile = true;
  backend.options = {"scratchpad_kib",  // size of the scratchpad
                     "fault"};          // what the machine does wrong, to test that the tests find it
  backend.configure = [](const kernel::Options& options, kernel::Backend* mine) {
    const uint64_t bytes = scratchpad_bytes(options);
    const Fault fault = fault_of(options);
    mine->fingerprint = "npu-1;" + std::to_string(bytes) + ";" + std::to_string(static_cast<int>(fault));
    mine->compiler = std::make_shared<Compiler>(bytes, fault);
    mine->open_device = [bytes](uint32_t) { return std::make_unique<Device>(bytes); };
  };
  return backend;
}

}  // namespace npu

COLLET_KERNEL_BACKEND(npu::describe)
