// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reference_backends/gpu/emulator/tensor_map.h"

/// \file
/// What runs beside the threads of a block: barriers in shared memory that count threads and bytes (mbarrier), copies of
/// boxes of arrays (cp.async.bulk.tensor), and products by warpgroups (wgmma).
namespace collet::gpu::emulator {

/// A barrier in shared memory. A phase ends when all expected threads have arrived and all announced bytes have come.
struct MemoryBarrier {
  uint32_t expected = 0;    ///< arrivals of a phase
  int64_t pending = 0;      ///< arrivals that are missing
  int64_t bytes = 0;        ///< announced bytes that have not come
  uint64_t phase = 0;       ///< number of phases that have ended
  uint32_t gathered[32]{};  ///< clocks of each warp that happen before the end of this phase
  uint32_t released[32]{};  ///< the same for the phase that has ended last
};

/// A copy of a box that has been started. It takes place as late as possible: when all threads of the block wait.
struct BoxCopy {
  TensorMapData map;
  int32_t at[5] = {0, 0, 0, 0, 0};  ///< coordinates of the first element
  uint32_t to = 0;                  ///< offset in shared memory
  uint32_t barrier = 0;
  uint32_t thread = 0;
  uint32_t line = 0;
  uint32_t seen[32]{};  ///< what the thread had seen when it started the copy
};

/// Memory that a product reads, from its start until its warp waits for it.
struct ProductRead {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint64_t hash = 0;  ///< of the bytes when the product was started
  uint32_t line = 0;
};

/// The products that a warp has started and not waited for.
struct WarpProducts {
  std::vector<std::vector<ProductRead>> groups;  ///< oldest first; committed
  std::vector<ProductRead> open;                 ///< not committed yet
  bool is_fenced = false;                        ///< wgmma.fence came since the last wait
};

}  // namespace collet::gpu::emulator
