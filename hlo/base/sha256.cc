// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace collet {
namespace {

constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr size_t kBlock = 64;

void take_block(Sha256::State& state, const unsigned char* block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           uint32_t{block[4 * i + 3]};
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const Sha256::State sums = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < sums.size(); ++i) state[i] += sums[i];
}

void take_blocks(Sha256::State& state, const unsigned char* blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) take_block(state, blocks + kBlock * i);
}

#if defined(__x86_64__)

// The instruction sha256rnds2 does two rounds. It wants the state as the words {A, B, E, F} and {C, D, G, H}, the first of them
// highest; sha256msg1 and sha256msg2 compute four words of the message schedule.
__attribute__((target("sha,sse4.1"))) void take_blocks_x86(Sha256::State& state, const unsigned char* blocks,
                                                           size_t count) {
  const auto at = [](const void* p) { return static_cast<const __m128i*>(p); };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(at(state.data())), 0xB1);       // words C D A B
  const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(at(state.data() + 4)), 0x1B);  // words E F G H
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  for (; count > 0; --count, blocks += kBlock) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule
    for (size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(_mm_loadu_si128(at(blocks + 16 * i)), big_endian);
    for (size_t i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i >= 4) {
        const __m128i last = w[(i + 3) % 4];
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(now, last);
      }
      const __m128i sum = _mm_add_epi32(now, _mm_loadu_si128(at(kRounds.data() + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

// __builtin_cpu_supports does not know SHA in all supported compilers: it is bit 29 of EBX in leaf 7.
bool has_sha() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1");
}

#endif

}  // namespace

Sha256::TakeBlocks Sha256::portable() {
  return take_blocks;
}

Sha256::TakeBlocks Sha256::fastest() {
#if defined(__x86_64__)
  static const TakeBlocks best = has_sha() ? take_blocks_x86 : take_blocks;
  return best;
#else
  return take_blocks;
#endif
}

Sha256& Sha256::add(std::string_view bytes) {
  const size_t used = bytes_ % kBlock;
  bytes_ += bytes.size();
  if (used > 0) {
    const size_t taken = std::min(kBlock - used, bytes.size());
    std::memcpy(block_.data() + used, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (used + taken < kBlock) return *this;
    take_blocks_(state_, block_.data(), 1);
  }
  if (const size_t whole = bytes.size() / kBlock; whole > 0) {
    take_blocks_(state_, reinterpret_cast<const unsigned char*>(bytes.data()), whole);
    bytes.remove_prefix(whole * kBlock);
  }
  if (!bytes.empty()) std::memcpy(block_.data(), bytes.data(), bytes.size());
  return *this;
}

Sha256::Digest Sha256::digest() {
  const uint64_t bits = 8 * bytes_;
  std::array<char, kBlock + 8> end{};  // a one, zeros, and the number of bits
  end[0] = static_cast<char>(0x80);
  const size_t zeros = (2 * kBlock - 9 - bytes_ % kBlock) % kBlock;
  for (size_t i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<char>(bits >> (56 - 8 * i));
  add({end.data(), 9 + zeros});
  Digest out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::string Sha256::finish() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  return Sha256().add(bytes).finish();
}

Sha256::Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  std::array<char, kBlock> inner{}, outer{};
  const auto text = [](const Sha256::Digest& digest) {
    return std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  Sha256::Digest short_key{};
  if (key.size() > kBlock) {
    short_key = Sha256().add(key).digest();
    key = text(short_key);
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const char c = i < key.size() ? key[i] : '\0';
    inner[i] = static_cast<char>(c ^ 0x36);
    outer[i] = static_cast<char>(c ^ 0x5c);
  }
  const Sha256::Digest digest = Sha256().add({inner.data(), kBlock}).add(bytes).digest();
  return Sha256().add({outer.data(), kBlock}).add(text(digest)).digest();
}

}  // namespace collet
