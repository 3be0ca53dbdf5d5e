// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/sort_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

/// Converts vectors of elements to signed integers that have the elements' order, like Keys.
template <typename U>
struct LaneKeys {
  using S = std::make_signed_t<U>;
  S magnitude;      ///< the bits that are inverted if the sign bit is set
  S flip;           ///< the bits that are inverted in all elements
  S most;           ///< elements whose magnitude is larger are NaNs that equal each other
  S infinity;       ///< floating-point elements whose magnitude is larger are NaNs
  bool zeros;       ///< -0 equals 0
  bool is_integer;  ///< there are no NaNs

  explicit LaneKeys(const Keys<U>& keys, uint32_t type) {
    const S sign = std::numeric_limits<S>::min();
    const S all = std::numeric_limits<S>::max();
    magnitude = keys.is_float() ? all : S{0};
    flip = static_cast<S>(keys.flip() ^ (keys.is_float() ? U{0} : static_cast<U>(sign)));
    infinity = static_cast<S>(keys.is_float() ? Keys<U>::infinity_of(type) : static_cast<U>(all));
    most = keys.equal_nans() ? infinity : all;
    zeros = keys.equal_zeros();
    is_integer = !keys.is_float();
  }
};

/// Calls f(low, high) for each step of Batcher's merge exchange of n elements.
template <typename F>
constexpr void for_each_step(int n, F f) {
  const int top = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(n, 1))) / 2);
  for (int p = top; p > 0; p /= 2) {
    int r = 0;
    int d = p;
    for (int q = top;; q /= 2) {
      for (int i = 0; i + d < n; ++i) {
        if ((i & p) == r) f(i, i + d);
      }
      if (q == p) break;
      d = q - p;
      r = p;
    }
  }
}

/// The steps that sort K elements, at most kMostSelected.
template <int K>
struct FewSteps {
  NetworkStep steps[63] = {};
  int count = 0;
  constexpr FewSteps() {
    for_each_step(
        K, [this](int low, int high) { steps[count++] = {static_cast<uint16_t>(low), static_cast<uint16_t>(high)}; });
  }
};

#define COLLET_INLINE [[gnu::always_inline]] inline

/// Sorts elements of the unsigned type U. E is the signed integer type of what is sorted: that of an element's width to
/// sort elements by themselves, or one of twice the width to sort elements with their places.
template <typename U, typename E, int kBytes>
struct SortLanes {
  using S = std::make_signed_t<U>;
  static constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(E));
  static constexpr bool kWithPlaces = sizeof(E) > sizeof(U);
  static constexpr int kPlaceBits = kWithPlaces ? 8 * static_cast<int>(sizeof(U)) : 0;
  typedef E V __attribute__((vector_size(kBytes)));
  typedef S X __attribute__((vector_size(kLanes * static_cast<int64_t>(sizeof(S)))));

  COLLET_INLINE static LaneSorted run(const LaneSort<U>& job, const LaneKeys<U>& keys, char* work) {
    V* x = reinterpret_cast<V*>(work);
    Found found;
    if (job.needed <= 1) {
      select<1>(job, keys, x, found);
    } else if (job.needed <= 2) {
      select<2>(job, keys, x, found);
    } else if (job.needed <= 4) {
      select<4>(job, keys, x, found);
    } else if (job.needed <= 8) {
      select<8>(job, keys, x, found);
    } else if (job.needed <= kMostSelected) {
      static_assert(kMostSelected == 16);
      select<16>(job, keys, x, found);
    } else {
      for (int64_t i = 0; i < job.n; i += kChunk) load(job, keys, i, std::min(i + kChunk, job.n), x + i, found);
      for (size_t k = 0; k < job.step_count; ++k) {
        const NetworkStep s = job.steps[k];
        V low = x[s.low];
        V high = x[s.high];
        order(low, high);
        x[s.low] = low;
        x[s.high] = high;
      }
    }
    if (job.refuse_nan && any(found.nan)) return LaneSorted::kNaN;
    if constexpr (kWithPlaces) {
      const E* places = reinterpret_cast<const E*>(x);
      for (int64_t l = 0; l < job.rows; ++l) {
        int32_t* to = job.places + l * job.needed;
        for (int64_t i = 0; i < job.needed; ++i)
          to[i] = static_cast<int32_t>(places[i * kLanes + l] & ((E{1} << kPlaceBits) - 1));
      }
    } else {
      if (any(found.ambiguous)) return LaneSorted::kAmbiguous;
      store(job, keys, x);
    }
    return LaneSorted::kYes;
  }

 private:
  /// What load() has found in any row.
  struct Found {
    X nan{};
    X ambiguous{};
  };
  static constexpr int64_t kChunk = 64;

  COLLET_INLINE static void order(V& low, V& high) {
    const V least = low < high ? low : high;
    high = low < high ? high : low;
    low = least;
  }

  COLLET_INLINE static bool any(const X& x) {
    S lanes[kLanes];
    std::memcpy(lanes, &x, sizeof lanes);
    S all = 0;
    for (S lane : lanes) all |= lane;
    return all != 0;
  }

  template <int D, int... I>
  COLLET_INLINE static void exchange(X& x, X& y, std::integer_sequence<int, I...>) {
    constexpr int kAll = static_cast<int>(kLanes);
    const X low = __builtin_shufflevector(x, y, ((I & D) ? kAll + I - D : I)...);
    y = __builtin_shufflevector(x, y, ((I & D) ? kAll + I : I + D)...);
    x = low;
  }
  /// Transposes kLanes rows of kLanes elements.
  template <int D = 1>
  COLLET_INLINE static void transpose(X* x) {
    if constexpr (D < kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < kLanes; ++k) {
        if (!(k & D)) exchange<D>(x[k], x[k | D], std::make_integer_sequence<int, static_cast<int>(kLanes)>());
      }
      transpose<2 * D>(x);
    }
  }

  /// Moves elements [begin, end) of the rows to x, element i of all rows to x[i - begin].
  COLLET_INLINE static void gather(const LaneSort<U>& job, int64_t begin, int64_t end, X* x) {
    const S* from = reinterpret_cast<const S*>(job.from);
    int64_t i = begin;
    if constexpr (sizeof(S) >= 4) {
      for (; job.distance == 1 && i + kLanes <= end; i += kLanes) {
        X block[kLanes];
#pragma GCC unroll 16
        for (int64_t l = 0; l < kLanes; ++l)
          std::memcpy(&block[l], from + job.starts[l < job.rows ? l : 0] + i, sizeof(X));
        transpose(block);
#pragma GCC unroll 16
        for (int64_t k = 0; k < kLanes; ++k) x[i - begin + k] = block[k];
      }
    }
    S* to = reinterpret_cast<S*>(x);
    for (int64_t l = 0; i < end && l < kLanes; ++l) {
      const S* p = from + job.starts[l < job.rows ? l : 0];
      for (int64_t k = i; k < end; ++k) to[(k - begin) * kLanes + l] = p[k * job.distance];
    }
  }

  /// Loads what is sorted of elements [begin, end), at most kChunk of them, of each row.
  COLLET_INLINE static void load(const LaneSort<U>& job, const LaneKeys<U>& keys, int64_t begin, int64_t end, V* to,
                                 Found& found) {
    const S sign = std::numeric_limits<S>::min();
    const S* adjacent = reinterpret_cast<const S*>(job.from) + job.starts[0];
    X between[kChunk];
    if (!job.adjacent) gather(job, begin, end, between);
    for (int64_t i = begin; i < end; ++i) {
      X y;
      std::memcpy(&y, job.adjacent ? adjacent + i * job.distance : reinterpret_cast<const S*>(between + i - begin),
                  sizeof y);
      if (!keys.is_integer) {
        const X size = y & std::numeric_limits<S>::max();
        found.nan |= size > keys.infinity;
        const X same = size > keys.most;
        y = same ? X{} + std::numeric_limits<S>::max() : y;
        found.ambiguous |= same;
        if (keys.zeros) {
          const X zero = y == sign;
          y = zero ? X{} : y;
          found.ambiguous |= zero;
        }
        y ^= (y >> (8 * static_cast<int>(sizeof(S)) - 1)) & keys.magnitude;
      }
      y ^= keys.flip;
      if constexpr (kWithPlaces) {
        to[i - begin] = (__builtin_convertvector(y, V) << kPlaceBits) | static_cast<E>(i);
      } else {
        to[i - begin] = y;
      }
    }
  }

  /// Sorts the first K elements of each row, of which job.needed are needed, to x.
  template <int K>
  COLLET_INLINE static void select(const LaneSort<U>& job, const LaneKeys<U>& keys, V* x, Found& found) {
    const V most = V{} + std::numeric_limits<E>::max();
    V best[K];
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) best[k] = most;
    V next[kChunk];
    for (int64_t begin = 0; begin < job.n; begin += kChunk) {
      const int64_t count = std::min(kChunk, job.n - begin);
      load(job, keys, begin, begin + count, next, found);
      for (int64_t i = count; i % K; ++i) next[i] = most;
      for (int64_t i = 0; i < count; i += K) {
        V y[K];
#pragma GCC unroll 16
        for (int k = 0; k < K; ++k) y[k] = next[i + k];
        sort_few<K>(y);
        // The first half of a bitonic merge: the lesser of each pair, of which one sequence is reversed, are the least
        // of both.
#pragma GCC unroll 16
        for (int k = 0; k < K; ++k) best[k] = best[k] < y[K - 1 - k] ? best[k] : y[K - 1 - k];
        halve<K / 2>(best, K);
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) x[k] = best[k];
  }

  /// Sorts sequences of 2 * D vectors that ascend and then descend.
  template <int D>
  COLLET_INLINE static void halve(V* y, int count) {
    if constexpr (D > 0) {
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) {
        if (!(k & D)) order(y[k], y[k + D]);
      }
      halve<D / 2>(y, count);
    }
  }

  template <int K>
  COLLET_INLINE static void sort_few(V* y) {
    constexpr FewSteps<K> few;
#pragma GCC unroll 64
    for (int k = 0; k < few.count; ++k) order(y[few.steps[k].low], y[few.steps[k].high]);
  }

  COLLET_INLINE static void store(const LaneSort<U>& job, const LaneKeys<U>& keys, V* x) {
    S* to = reinterpret_cast<S*>(job.to);
    for (int64_t i = 0; i < job.needed; ++i) {
      V y = x[i] ^ keys.flip;
      y ^= (y >> (8 * static_cast<int>(sizeof(S)) - 1)) & keys.magnitude;
      if (job.adjacent) {
        std::memcpy(to + job.starts[0] + i * job.distance, &y, sizeof y);
      } else {
        x[i] = y;
      }
    }
    if (job.adjacent) return;
    int64_t i = 0;
    if constexpr (sizeof(S) >= 4) {
      for (; job.distance == 1 && i + kLanes <= job.needed; i += kLanes) {
        X block[kLanes];
#pragma GCC unroll 16
        for (int64_t k = 0; k < kLanes; ++k) std::memcpy(&block[k], x + i + k, sizeof(X));
        transpose(block);
#pragma GCC unroll 16
        for (int64_t l = 0; l < kLanes; ++l) {
          if (l < job.rows) std::memcpy(to + job.starts[l] + i, &block[l], sizeof(X));
        }
      }
    }
    const S* sorted = reinterpret_cast<const S*>(x);
    for (int64_t l = 0; i < job.needed && l < job.rows; ++l) {
      S* p = to + job.starts[l];
      for (int64_t k = i; k < job.needed; ++k) p[k * job.distance] = sorted[k * kLanes + l];
    }
  }
};

#if defined(__x86_64__)
#define COLLET_SORT_AVX2 [[gnu::target("avx2")]]
#define COLLET_SORT_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,prefer-vector-width=512")]]
#else
#define COLLET_SORT_AVX2
#define COLLET_SORT_AVX512
#endif

template <typename U, typename E>
LaneSorted lanes16(const LaneSort<U>& job, const LaneKeys<U>& keys, char* work) {
  return SortLanes<U, E, 16>::run(job, keys, work);
}
template <typename U, typename E>
COLLET_SORT_AVX2 LaneSorted lanes32(const LaneSort<U>& job, const LaneKeys<U>& keys, char* work) {
  return SortLanes<U, E, 32>::run(job, keys, work);
}
template <typename U, typename E>
COLLET_SORT_AVX512 LaneSorted lanes64(const LaneSort<U>& job, const LaneKeys<U>& keys, char* work) {
  return SortLanes<U, E, 64>::run(job, keys, work);
}

/// Returns the bytes of the widest vectors of this processor.
int64_t vector_bytes() {
#if defined(__x86_64__)
  static const int64_t bytes = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      return 64;
    return __builtin_cpu_supports("avx2") ? 32 : 16;
  }();
  return bytes;
#else
  return 16;
#endif
}

template <typename U, typename E>
LaneSorted run(const LaneSort<U>& job, const LaneKeys<U>& keys, char* work) {
  switch (vector_bytes()) {
    case 64:
      return lanes64<U, E>(job, keys, work);
    case 32:
      return lanes32<U, E>(job, keys, work);
    default:
      return lanes16<U, E>(job, keys, work);
  }
}

/// The signed integer type of twice the width.
template <typename U>
struct Twice {
  using type = std::conditional_t<sizeof(U) == 1, int16_t, std::conditional_t<sizeof(U) == 2, int32_t, int64_t>>;
};

}  // namespace

std::vector<NetworkStep> sorting_network(int64_t n, int64_t needed) {
  std::vector<NetworkStep> all;
  if (needed <= kMostSelected) return all;
  for_each_step(static_cast<int>(n),
                [&](int low, int high) { all.push_back({static_cast<uint16_t>(low), static_cast<uint16_t>(high)}); });
  // Leaves out the steps on which no needed element depends.
  std::vector<bool> used(static_cast<size_t>(n), false);
  std::fill_n(used.begin(), std::min(needed, n), true);
  std::vector<NetworkStep> out;
  for (auto s = all.rbegin(); s != all.rend(); ++s) {
    if (!used[s->low] && !used[s->high]) continue;
    used[s->low] = used[s->high] = true;
    out.push_back(*s);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

int64_t lanes_of_sort(size_t element_bytes, bool with_places) {
  if (with_places && element_bytes > 4) return 0;
  return vector_bytes() / static_cast<int64_t>(element_bytes * (with_places ? 2 : 1));
}

template <typename U>
LaneSorted sort_lanes(const LaneSort<U>& job, const Keys<U>& keys, uint32_t type, bool with_places, char* work) {
  const LaneKeys<U> lane_keys(keys, type);
  if constexpr (sizeof(U) <= 4) {
    if (with_places) return run<U, typename Twice<U>::type>(job, lane_keys, work);
  }
  return run<U, std::make_signed_t<U>>(job, lane_keys, work);
}

template LaneSorted sort_lanes(const LaneSort<uint8_t>&, const Keys<uint8_t>&, uint32_t, bool, char*);
template LaneSorted sort_lanes(const LaneSort<uint16_t>&, const Keys<uint16_t>&, uint32_t, bool, char*);
template LaneSorted sort_lanes(const LaneSort<uint32_t>&, const Keys<uint32_t>&, uint32_t, bool, char*);
template LaneSorted sort_lanes(const LaneSort<uint64_t>&, const Keys<uint64_t>&, uint32_t, bool, char*);

}  // namespace collet::codegen
