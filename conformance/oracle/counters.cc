// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/counters.h"

#include <bit>

namespace collet::conformance {

// Section 3.3 and table 2 of the paper (see counters.h): each round is a MIX function, and after every fourth round the
// next two words of the key schedule and the number of the injection are added.
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 20;
  constexpr std::array<int, 8> kRotation = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr uint32_t kParity = 0x1BD11BDA;
  const std::array<uint32_t, 3> schedule = {key[0], key[1], kParity ^ key[0] ^ key[1]};
  auto [left, right] = counter;
  for (uint32_t round = 0; round <= kRounds; ++round) {
    if (round % 4 == 0) {
      const uint32_t injection = round / 4;
      left += schedule[injection % 3];
      right += schedule[(injection + 1) % 3] + injection;
    }
    if (round == kRounds) break;
    left += right;
    right = std::rotl(right, kRotation[round % 8]) ^ left;
  }
  return {left, right};
}

// Section 3.2 of the paper: each round multiplies two pairs of 32-bit words and permutes the halves of the products;
// the key is incremented by Weyl constants.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kFirst = 0xD2511F53, kSecond = 0xCD9E8D57;
  constexpr uint32_t kGolden = 0x9E3779B9, kRoot = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = kFirst * counter[0], second = kSecond * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + kGolden, key[1] + kRoot};
  }
  return counter;
}

}  // namespace collet::conformance
