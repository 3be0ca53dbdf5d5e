// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace collet::gpu::emulator {

/// The options in the environment's COLLET_CUDA_EMULATOR: "checks=0,seed=3". docs/gpu_emulator.md describes each.
struct Options {
  bool checks = true;       ///< all of the checks below; accesses stay inside device memory in any case
  bool initialised = true;  ///< reads of bytes that nobody wrote
  bool races = true;        ///< conflicting accesses without an order between them
  bool exits = true;        ///< a thread that exits while others wait at a barrier for the whole block
  bool leaks = false;       ///< an allocation that outlives its context is an error, and not only a line on stderr
  bool quiet = false;       ///< findings are not written to stderr
  uint64_t seed = 1;        ///< orders streams, blocks and warps; 0: as they come
  unsigned threads = 0;     ///< host threads that run blocks; 0: as many as processors
  unsigned devices = 1;
  unsigned timeout = 120;               ///< seconds that a kernel may run; 0: without limit
  unsigned sm = 80;                     ///< compute capability, 80 for 8.0
  uint64_t memory = uint64_t{8} << 30;  ///< bytes of each device
  /// Bytes of the host's memory that freed allocations hold before addresses are used again.
  uint64_t quarantine = uint64_t{8} << 20;
};

/// Reads such a text. An option that does not exist or a value that means nothing gives a message in `problem`.
bool read_options(const std::string& text, Options& out, std::string& problem);

}  // namespace collet::gpu::emulator
