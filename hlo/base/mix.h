// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet {

/// One step of SplitMix64: numbers that follow each other give numbers that look random. The numbers are the same everywhere, so
/// that a seed means the same inputs on all machines.
inline uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace collet
