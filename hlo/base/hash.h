// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/hash.h>

#include <cstdint>
#include <string_view>

namespace collet {

/// Returns the hash of what `hash` stands for (0: nothing), followed by `text`.
inline uint64_t hash_text(std::string_view text, uint64_t hash = 0) {
  return collet_hash_bytes(hash, text.data(), text.size());
}

/// Computes one step of SplitMix64: numbers that follow each other give numbers that look random. The numbers are the same everywhere, so
/// that a seed means the same inputs on all machines.
inline uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace collet
