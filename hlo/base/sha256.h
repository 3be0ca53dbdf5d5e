// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace collet {

/// Computes SHA-256 (FIPS 180-4) of bytes that are added in pieces.
class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  /// Returns the digest of all added bytes as 64 hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  void take_block(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  uint64_t bytes_ = 0;
};

/// Returns the hash of all of `bytes`.
std::string sha256(std::string_view bytes);

}  // namespace collet
