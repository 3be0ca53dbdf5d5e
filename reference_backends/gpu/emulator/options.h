// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace collet::gpu::emulator {

/// The options in the environment variable COLLET_CUDA_EMULATOR, such as "checks=0,seed=3". docs/gpu_emulator.md
/// describes each.
struct Options {
  /// False disables all checks below; accesses outside of device memory are found in any case.
  bool checks = true;
  bool initialised = true;  ///< report reads of bytes that nobody has written
  bool races = true;        ///< report conflicting accesses without an order between them
  bool exits = true;        ///< report a thread that exits while others wait at a barrier for the whole block
  /// true: an allocation that outlives its context is an error; false: only a message on stderr
  bool leaks = false;
  bool quiet = false;  ///< do not write findings to stderr
  /// Seed of the random order of streams, blocks and warps; 0 for the order in which they were started.
  uint64_t seed = 1;
  unsigned threads = 0;  ///< host threads that run blocks; 0 for one per processor
  unsigned devices = 1;
  unsigned timeout = 120;               ///< seconds that a kernel may run; 0 for no limit
  unsigned sm = 80;                     ///< compute capability, 80 for 8.0
  uint64_t memory = uint64_t{8} << 30;  ///< bytes of memory of each device
  /// Bytes of host memory that freed allocations may hold before their addresses are reused.
  uint64_t quarantine = uint64_t{8} << 20;
};

/// Parses options. Returns false with a message in `problem` for an unknown option or an invalid value.
bool read_options(const std::string& text, Options& out, std::string& problem);

}  // namespace collet::gpu::emulator
