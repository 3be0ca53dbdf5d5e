// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>
#include <cstring>

#include "device.h"
#include "kernels.h"

namespace tile {

namespace kernel = collet::kernel;

namespace {

uint64_t number(const kernel::Options& options, const std::string& key) {
  const auto found = options.values.find(key);
  if (found == options.values.end()) return 0;
  char* end = nullptr;
  const uint64_t out = std::strtoull(found->second.c_str(), &end, 10);
  if (end == found->second.c_str() || *end != 0) {
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option " + key + " is a number, not '" + found->second + "'");
  }
  return out;
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "tile";
  backend.version = "0.2.0";
  backend.opset = 1;  // raise it after checking every row against the attributes and types that newer opsets added
  backend.device_kind = "Tile, a simulated machine";
  backend.fingerprint = "tile-1";
  backend.device_count = 2;
  backend.memory_bytes = kMemoryWords * 4;
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_U32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_PRED, COLLET_MAY_STORE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S8, COLLET_MAY_STORE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S4, COLLET_MAY_STORE | COLLET_MAY_COMPUTE}};
  backend.kernels = kernels();
  backend.queues = true;
  backend.control_flow = true;  // loops run without copying data back to the host
  backend.collectives = true;   // uses the link between machines, and the rows for add, maximum and so on
  backend.move = move_words;
  backend.host_scalars = true;  // the counters and conditions of loops, since the machine has no integer arithmetic
  backend.profile = true;
  backend.link = [](uint32_t, uint32_t, collet_link* link) {
    link->hops = 1;
    link->latency_ns = 500;
    link->bytes_per_ns = 8;
  };
  backend.options = {
      "fail_at",     // number, from 1, of the command list of each device that fails, to test how failures are reported
      "jitter_ns"};  // longest random delay of queues in ns, to find work that does not wait for its inputs
  backend.configure = [](const kernel::Options& options, kernel::Backend* mine) {
    if (options.device_count > 8) throw kernel::Error(COLLET_INVALID_ARGUMENT, "there are at most 8 machines");
    if (options.device_count != 0) mine->device_count = options.device_count;
    mine->queue_jitter_ns = number(options, "jitter_ns");
    const uint64_t fail_at = number(options, "fail_at");
    mine->open_device = [fail_at](uint32_t) { return std::make_unique<Device>(fail_at); };
  };
  return backend;
}

}  // namespace tile

COLLET_KERNEL_BACKEND(tile::describe)
