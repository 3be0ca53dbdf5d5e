// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::gpu::emulator {

/// Returns the next number of SplitMix64.
inline uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace collet::gpu::emulator
