// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Converts elements to integer keys that have the elements' order, and sorts such keys.

#include <collet/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sdk/codegen/routines/key_rule.h"

namespace collet::codegen {

/// The constants of Keys, for generated code that computes keys: see Keys::key.
struct KeyConstants {
  uint64_t sign = 0;      ///< the bit of the sign
  uint64_t infinity = 0;  ///< the bits of infinity, if all NaNs are equal
  uint64_t flip = 0;      ///< the bits that are flipped in the end
  bool is_float = false;
  bool equal_zeros = false;
  bool equal_nans = false;
};

/// Converts elements to keys. U is the unsigned integer type of their width.
template <typename U>
class Keys {
 public:
  explicit Keys(const KeyRule& rule) : flip_(rule.descending ? static_cast<U>(~U{0}) : U{0}) {
    const uint32_t kind = collet_type_kind(rule.type);
    is_float_ = kind == COLLET_KIND_FLOAT;
    if (kind == COLLET_KIND_SIGNED) flip_ = static_cast<U>(flip_ ^ kSign);
    zeros_ = is_float_ && rule.equal_zeros;
    if (is_float_ && rule.equal_nans) infinity_ = infinity_of(rule.type);
  }

  U key(U bits) const {
    if (zeros_ && bits == kSign) bits = 0;
    if (static_cast<U>(bits & static_cast<U>(~kSign)) > infinity_) bits = static_cast<U>(kSign - 1);
    return plain_key(bits);
  }
  /// Returns key(bits), without branches, if is_plain().
  U plain_key(U bits) const {
    using S = std::make_signed_t<U>;
    const U negative = static_cast<U>(static_cast<S>(bits) >> (8 * sizeof(U) - 1));
    const U turned = is_float_ ? static_cast<U>(negative | kSign) : U{0};
    return static_cast<U>(bits ^ turned ^ flip_);
  }
  /// True if other elements have the same key, so that the element cannot be computed from its key.
  bool is_ambiguous(U bits) const {
    return (zeros_ && bits == kSign) || static_cast<U>(bits & static_cast<U>(~kSign)) > infinity_;
  }
  bool is_nan(U bits, uint32_t type) const {
    return is_float_ && static_cast<U>(bits & static_cast<U>(~kSign)) > infinity_of(type);
  }
  /// True if all elements have different keys.
  bool is_plain() const { return !zeros_ && infinity_ == static_cast<U>(~U{0}); }
  bool is_float() const { return is_float_; }
  bool equal_zeros() const { return zeros_; }
  bool equal_nans() const { return infinity_ != static_cast<U>(~U{0}); }
  U flip() const { return flip_; }
  KeyConstants constants() const { return {kSign, infinity_, flip_, is_float_, equal_zeros(), equal_nans()}; }
  /// Returns the element with this key. The key must not be ambiguous.
  U element(U key) const {
    const U turned = static_cast<U>(key ^ flip_);
    if (!is_float_) return turned;
    return static_cast<U>(turned & kSign ? turned ^ kSign : ~turned);
  }

  /// Returns the bits of infinity. The type is a floating-point type of U's width.
  static U infinity_of(uint32_t type) {
    if (type == COLLET_TYPE_F16) return static_cast<U>(0x7c00);
    if (type == COLLET_TYPE_BF16) return static_cast<U>(0x7f80);
    if (type == COLLET_TYPE_F32) return static_cast<U>(0x7f800000u);
    return static_cast<U>(0x7ff0000000000000u);
  }

 private:
  static constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));

  U flip_;
  U infinity_ = static_cast<U>(~U{0});
  bool is_float_ = false;
  bool zeros_ = false;
};

/// Returns the constants of the keys of elements in this order.
inline KeyConstants key_constants(const KeyRule& rule) {
  switch (collet_type_bytes(rule.type)) {
    case 1:
      return Keys<uint8_t>(rule).constants();
    case 2:
      return Keys<uint16_t>(rule).constants();
    case 4:
      return Keys<uint32_t>(rule).constants();
    default:
      return Keys<uint64_t>(rule).constants();
  }
}

/// A key of up to 64 bits and the number of its element.
struct KeyAndPlace {
  uint64_t key;
  uint64_t place;
};

/// Returns the bits of an entry that are sorted: the entry itself, or its key.
inline uint64_t sort_bits(uint8_t x) {
  return x;
}
inline uint64_t sort_bits(uint16_t x) {
  return x;
}
inline uint64_t sort_bits(uint32_t x) {
  return x;
}
inline uint64_t sort_bits(uint64_t x) {
  return x;
}
inline uint64_t sort_bits(const KeyAndPlace& x) {
  return x.key;
}

/// Sorts `from` stably by kDigits digits of kDigit bits, beginning with bit `first` of sort_bits. Overwrites `to`.
/// Returns `from` or `to`, whichever has the result. Runs in linear time; digits that all elements share are skipped.
template <int kDigit, int kDigits, typename E>
E* radix_sort(E* from, E* to, int64_t n, int first) {
  constexpr uint64_t kValues = uint64_t{1} << kDigit;
  uint32_t counts[kDigits][kValues];
  std::memset(counts, 0, sizeof counts);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = sort_bits(from[i]) >> first;
#pragma GCC unroll 8
    for (int d = 0; d < kDigits; ++d) ++counts[d][bits >> (d * kDigit) & (kValues - 1)];
  }
  for (int d = 0; d < kDigits; ++d) {
    const int shift = first + d * kDigit;
    uint32_t* next = counts[d];
    if (next[sort_bits(from[0]) >> shift & (kValues - 1)] == n) continue;
    uint32_t sum = 0;
    for (uint64_t v = 0; v < kValues; ++v) {
      const uint32_t count = next[v];
      next[v] = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; ++i) to[next[sort_bits(from[i]) >> shift & (kValues - 1)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

/// Like radix_sort, for `bytes` bytes from bit `first` on, with a digit size that suits the number of elements. Sorts
/// fewer than 2^32 elements.
template <typename E>
E* sort_by_bits(E* from, E* to, int64_t n, int first, size_t bytes) {
  if (n < 2) return from;
  if (n <= 64) {  // insertion sort
    for (int64_t i = 1; i < n; ++i) {
      const E x = from[i];
      const uint64_t bits = sort_bits(x) >> first;
      int64_t j = i;
      for (; j > 0 && sort_bits(from[j - 1]) >> first > bits; --j) from[j] = from[j - 1];
      from[j] = x;
    }
    return from;
  }
  const bool few = n < 8192;
  switch (bytes) {
    case 1:
      return radix_sort<8, 1>(from, to, n, first);
    case 2:
      return radix_sort<8, 2>(from, to, n, first);
    case 4:
      return few ? radix_sort<8, 4>(from, to, n, first) : radix_sort<11, 3>(from, to, n, first);
    default:
      return few ? radix_sort<8, 8>(from, to, n, first) : radix_sort<11, 6>(from, to, n, first);
  }
}

/// A key and the number of its element, ordered by keys and then by numbers. Stored as one 64-bit integer if the key
/// has at most 32 bits, else as two.
template <typename U>
struct Entry {
  using type = uint64_t;
  static type make(U key, int64_t place) { return uint64_t{key} << 32 | static_cast<uint64_t>(place); }
  static U key(type x) { return static_cast<U>(x >> 32); }
  static int64_t place(type x) { return static_cast<int64_t>(x & 0xffffffffu); }
  static bool less(type x, type y) { return x < y; }
  static constexpr int kFirst = 32;  ///< lowest bit of the key
};
template <>
struct Entry<uint64_t> {
  using type = KeyAndPlace;
  static type make(uint64_t key, int64_t place) { return {key, static_cast<uint64_t>(place)}; }
  static uint64_t key(const type& x) { return x.key; }
  static int64_t place(const type& x) { return static_cast<int64_t>(x.place); }
  static bool less(const type& x, const type& y) { return x.key != y.key ? x.key < y.key : x.place < y.place; }
  static constexpr int kFirst = 0;
};

/// Finds the first k elements of a row in the order of keys, without sorting the others.
template <typename U>
class Selection {
 public:
  using E = typename Entry<U>::type;
  static constexpr int64_t kBlock = 16;

  /// Returns the number of entries in one half of the work array of `run`, for rows of n elements.
  static int64_t capacity(int64_t n, int64_t k) {
    return k > n / 4 ? n + kBlock : std::min(n, std::max<int64_t>(4 * k, 64)) + kBlock;
  }

  /// Returns the first k entries, in order. `row` has n adjacent elements; `work` has 2 * capacity(n, k) entries.
  static const E* run(const Keys<U>& keys, const char* row, int64_t n, int64_t k, E* work) {
    if constexpr (std::is_integral_v<E>) {
      if (k <= 2 && n * 2 <= kShort) return few<2>(keys, row, n, k, work);
      if (k <= 4 && n * 4 <= kShort) return few<4>(keys, row, n, k, work);
      if (k <= 8 && n * 8 <= kShort) return few<8>(keys, row, n, k, work);
    }
    const int64_t most = capacity(n, k);
    const auto less = [](const E& x, const E& y) { return Entry<U>::less(x, y); };
    int64_t count = 0;
    bool limited = false;
    U limit = 0;  // k keys below this limit have been found, so keys from it on are skipped
    int64_t i = 0;
    while (i < n) {
      if (limited) i = skip(keys, row, i, n, limit);
      const int64_t end = std::min(i + kBlock, n);
      for (; i < end; ++i) {
        U bits;
        std::memcpy(&bits, row + static_cast<size_t>(i) * sizeof(U), sizeof bits);
        const U key = keys.key(bits);
        work[count] = Entry<U>::make(key, i);
        count += !limited || key < limit;
      }
      if (count + kBlock > most && i < n) {
        std::nth_element(work, work + k - 1, work + count, less);
        count = k;
        limit = Entry<U>::key(work[k - 1]);
        limited = true;
      }
    }
    if (count > k) std::nth_element(work, work + k - 1, work + count, less);
    if (k < 256) {
      std::sort(work, work + k, less);
      return work;
    }
    std::sort(work, work + k, [](const E& x, const E& y) { return Entry<U>::place(x) < Entry<U>::place(y); });
    return sort_by_bits(work, work + most, k, Entry<U>::kFirst, sizeof(U));
  }

 private:
  static constexpr int64_t kShort = 1024;  ///< most comparisons for which comparing each key with the best is fastest

  /// Finds the first k <= kMost entries of a short row: keeps the best entries in order, without branches.
  template <int kMost>
  static const E* few(const Keys<U>& keys, const char* row, int64_t n, int64_t k, E* work) {
    E best[kMost];
    std::fill(best, best + kMost, ~E{0});
    const bool plain = keys.is_plain();
    for (int64_t i = 0; i < n; ++i) {
      U bits;
      std::memcpy(&bits, row + static_cast<size_t>(i) * sizeof(U), sizeof bits);
      E x = Entry<U>::make(plain ? keys.plain_key(bits) : keys.key(bits), i);
#pragma GCC unroll 8
      for (int j = 0; j < kMost; ++j) {
        const E first = std::min(best[j], x);
        x = std::max(best[j], x);
        best[j] = first;
      }
    }
    std::copy(best, best + k, work);
    return work;
  }

  /// Returns the next block, from element i on, that may have a key below `limit`.
  static int64_t skip(const Keys<U>& keys, const char* row, int64_t i, int64_t n, U limit) {
    using S = std::make_signed_t<U>;
    // Lanes of 128-bit vectors, which every supported processor has.
    constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(S));
    typedef S Vector __attribute__((vector_size(16)));
    if (!keys.is_plain()) return i;
    const S sign = static_cast<S>(U{1} << (8 * sizeof(U) - 1));
    const S magnitude = keys.is_float() ? static_cast<S>(~sign) : S{0};
    const S flip = static_cast<S>(keys.flip() ^ (keys.is_float() ? U{0} : static_cast<U>(sign)));
    const S worst = static_cast<S>(limit ^ static_cast<U>(sign));
    for (; i + kBlock <= n; i += kBlock) {
      Vector any = {};
#pragma GCC unroll 8
      for (int64_t part = 0; part < kBlock; part += kLanes) {
        Vector x;
        std::memcpy(&x, row + static_cast<size_t>(i + part) * sizeof(U), sizeof x);
        any |= (x ^ ((x >> (8 * sizeof(S) - 1)) & magnitude) ^ flip) < worst;
      }
      uint64_t words[2];
      std::memcpy(words, &any, sizeof any);
      if (words[0] | words[1]) break;
    }
    return i;
  }
};

}  // namespace collet::codegen
