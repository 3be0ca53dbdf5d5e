// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collet {

/// Computes SHA-256 (FIPS 180-4) of bytes that are added in pieces. Uses the SHA instructions of x86 where the processor
/// has them.
class Sha256 {
 public:
  using Digest = std::array<unsigned char, 32>;
  using State = std::array<uint32_t, 8>;
  /// Updates the state by blocks of 64 bytes.
  using TakeBlocks = void (*)(State& state, const unsigned char* blocks, size_t count);

  Sha256() : Sha256(fastest()) {}
  /// Uses the given implementation, for tests.
  explicit Sha256(TakeBlocks take_blocks) : take_blocks_(take_blocks) {}

  Sha256& add(std::string_view bytes);
  /// Returns the digest of all added bytes. Nothing may be added afterwards.
  Digest digest();
  /// Returns the digest as 64 hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

  /// Returns the implementation without special instructions.
  static TakeBlocks portable();
  /// Returns the fastest implementation for this processor.
  static TakeBlocks fastest();

 private:
  TakeBlocks take_blocks_;
  State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  uint64_t bytes_ = 0;
};

/// Returns the hash of all of `bytes`, as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

/// Returns the HMAC (RFC 2104) of `bytes` with SHA-256 under a key of any length.
Sha256::Digest hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace collet
