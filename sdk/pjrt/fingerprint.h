// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

/// \file
/// Fingerprints of programs and topologies, which frontends use as cache keys.

namespace collet::pjrt {

constexpr uint64_t kFingerprintStart = 14695981039346656037ull;

/// Adds `text` to a hash by FNV-1a. `hash` is kFingerprintStart, or the result for the text before.
inline uint64_t fingerprint(std::string_view text, uint64_t hash = kFingerprintStart) {
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  return hash;
}

}  // namespace collet::pjrt
