// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/block.h"

namespace collet::hlo {
namespace {

__extension__ using Wide = unsigned __int128;

// Combines both halves of the 128-bit product, so that every input bit affects every output bit.
uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t load(const char* p, size_t n) {
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  return word;
}

// Constants without a pattern: the fractional bits of the square roots of 2, 3, 5 and 7, made odd.
constexpr uint64_t kKeys[4] = {0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1};

}  // namespace

ContentId content_id(std::span<const char> bytes, uint64_t seed) {
  uint64_t a = fold(seed ^ kKeys[0], kKeys[1]), b = fold(bytes.size() ^ kKeys[2], kKeys[3]);
  const char* p = bytes.data();
  size_t n = bytes.size();
  while (n > 0) {
    const size_t first = n < 8 ? n : 8;
    const size_t second = n < 16 ? n - first : 8;
    const uint64_t x = load(p, first), y = second ? load(p + 8, second) : 0;
    a = fold(a ^ x ^ kKeys[0], y ^ kKeys[1]) + b;
    b = fold(b ^ y ^ kKeys[2], x ^ kKeys[3]) ^ (a << 23 | a >> 41);
    p += first + second;
    n -= first + second;
  }
  return {{fold(a ^ kKeys[2], b ^ kKeys[1]), fold(b ^ kKeys[0], a ^ kKeys[3])}};
}

}  // namespace collet::hlo
