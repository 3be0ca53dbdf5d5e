// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/routines/worker_memory.h"

namespace collet::codegen {
namespace {

#define COLLET_INLINE [[gnu::always_inline]] inline

COLLET_INLINE uint32_t rotate(uint32_t x, int r) {
  return x << r | x >> (32 - r);
}

/// Blocks whose words are computed before they are stored.
constexpr int64_t kChunk = 256;
/// Blocks of a part of the work that threads share.
constexpr int64_t kPart = 16 * kChunk;

/// The words of up to kChunk blocks: word w of block i is words[w][i].
struct Words {
  alignas(64) uint32_t words[4][kChunk];
};

/// Blocks that follow each other and differ in the lowest word of the counter alone.
struct Blocks {
  uint64_t key;
  uint64_t low;   ///< counter of the first block
  uint64_t high;  ///< upper half of the counter, for Philox
  int64_t count;
};

template <int... kTurns>
COLLET_INLINE void threefry_rounds(uint32_t& x0, uint32_t& x1) {
  ((x0 += x1, x1 = rotate(x1, kTurns) ^ x0), ...);
}

/// Computes blocks of the generator Threefry2x32 with 20 rounds. The loop over the blocks is vectorised.
COLLET_INLINE void threefry(const Blocks& blocks, Words& out) {
  const auto k0 = static_cast<uint32_t>(blocks.key);
  const auto k1 = static_cast<uint32_t>(blocks.key >> 32);
  const uint32_t k2 = 0x1BD11BDA ^ k0 ^ k1;
  const uint32_t first = static_cast<uint32_t>(blocks.low) + k0;
  const uint32_t second = static_cast<uint32_t>(blocks.low >> 32) + k1;
  for (int64_t i = 0; i < blocks.count; ++i) {
    uint32_t x0 = first + static_cast<uint32_t>(i);
    uint32_t x1 = second;
    threefry_rounds<13, 15, 26, 6>(x0, x1);
    x0 += k1;
    x1 += k2 + 1;
    threefry_rounds<17, 29, 16, 24>(x0, x1);
    x0 += k2;
    x1 += k0 + 2;
    threefry_rounds<13, 15, 26, 6>(x0, x1);
    x0 += k0;
    x1 += k1 + 3;
    threefry_rounds<17, 29, 16, 24>(x0, x1);
    x0 += k1;
    x1 += k2 + 4;
    threefry_rounds<13, 15, 26, 6>(x0, x1);
    out.words[0][i] = x0 + k2;
    out.words[1][i] = x1 + k0 + 5;
  }
}

COLLET_INLINE void philox_round(uint32_t k0, uint32_t k1, uint32_t& x0, uint32_t& x1, uint32_t& x2, uint32_t& x3) {
  const uint64_t p0 = uint64_t{x0} * 0xD2511F53;
  const uint64_t p1 = uint64_t{x2} * 0xCD9E8D57;
  x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
  x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
  x1 = static_cast<uint32_t>(p1);
  x3 = static_cast<uint32_t>(p0);
}

template <uint32_t... kRounds>
COLLET_INLINE void philox_rounds(std::integer_sequence<uint32_t, kRounds...>, uint32_t k0, uint32_t k1, uint32_t& x0,
                                 uint32_t& x1, uint32_t& x2, uint32_t& x3) {
  (philox_round(k0 + kRounds * 0x9E3779B9, k1 + kRounds * 0xBB67AE85, x0, x1, x2, x3), ...);
}

/// Computes blocks of the generator Philox4x32 with 10 rounds.
COLLET_INLINE void philox(const Blocks& blocks, Words& out) {
  const auto k0 = static_cast<uint32_t>(blocks.key);
  const auto k1 = static_cast<uint32_t>(blocks.key >> 32);
  const auto first = static_cast<uint32_t>(blocks.low);
  const auto second = static_cast<uint32_t>(blocks.low >> 32);
  const auto third = static_cast<uint32_t>(blocks.high);
  const auto fourth = static_cast<uint32_t>(blocks.high >> 32);
  for (int64_t i = 0; i < blocks.count; ++i) {
    uint32_t x0 = first + static_cast<uint32_t>(i);
    uint32_t x1 = second;
    uint32_t x2 = third;
    uint32_t x3 = fourth;
    philox_rounds(std::make_integer_sequence<uint32_t, 10>(), k0, k1, x0, x1, x2, x3);
    out.words[0][i] = x0;
    out.words[1][i] = x1;
    out.words[2][i] = x2;
    out.words[3][i] = x3;
  }
}

/// Stores words `w` and w + 1 of each block side by side.
template <typename T>
COLLET_INLINE void store_pairs(const Words& from, int w, int64_t first, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[2 * i] = static_cast<T>(from.words[w][first + i]);
    to[2 * i + 1] = static_cast<T>(from.words[w + 1][first + i]);
  }
}

/// Stores the four words of each block side by side.
template <typename T>
COLLET_INLINE void store_fours(const Words& from, int64_t count, T* to) {
  // Pairs that are put together first are what the compiler makes vectors of.
  using Pair = std::conditional_t<sizeof(T) == 1, uint16_t, std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
  alignas(64) T low[2 * kChunk];
  alignas(64) T high[2 * kChunk];
  store_pairs(from, 0, 0, count, low);
  store_pairs(from, 2, 0, count, high);
  for (int64_t i = 0; i < count; ++i) {
    Pair pairs[2];
    std::memcpy(&pairs[0], low + 2 * i, sizeof(Pair));
    std::memcpy(&pairs[1], high + 2 * i, sizeof(Pair));
    std::memcpy(to + 4 * i, &pairs[0], sizeof(Pair));
    std::memcpy(to + 4 * i + 2, &pairs[1], sizeof(Pair));
  }
}

/// Stores word `w` of each block.
template <typename T>
COLLET_INLINE void store_word(const Words& from, int w, int64_t first, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from.words[w][first + i]);
}

/// Where the words of blocks are stored. Elements of 64 bits count as two of 32.
struct Places {
  int64_t elements = 0;
  /// For Threefry: the array is halved along a dimension of `length`, each element of which has `inner` elements. The two words of a block
  /// become neighbours along that dimension.
  int64_t length = 0;
  int64_t inner = 1;
  int64_t half() const { return (length + 1) / 2; }
};

/// Stores the words of `count` blocks, of which `block` is the first.
template <bool kThreefry, typename T>
COLLET_INLINE void store(const Places& places, int64_t block, int64_t count, const Words& words, T* out) {
  if constexpr (kThreefry) {
    const int64_t run = places.inner == 1 ? places.half() : places.inner;
    for (int64_t done = 0; done < count;) {
      const int64_t at_run = (block + done) / run;
      const int64_t in_run = (block + done) % run;
      const int64_t n = std::min(count - done, run - in_run);
      if (places.inner == 1) {
        T* const to = out + at_run * places.length + 2 * in_run;
        const int64_t pairs = std::min(n, places.length / 2 - in_run);
        store_pairs(words, 0, done, pairs, to);
        if (pairs < n) to[2 * pairs] = static_cast<T>(words.words[0][done + pairs]);
      } else {
        const int64_t j = at_run % places.half() * 2;
        T* const to = out + (at_run / places.half() * places.length + j) * places.inner + in_run;
        store_word(words, 0, done, n, to);
        if (j + 1 < places.length) store_word(words, 1, done, n, to + places.inner);
      }
      done += n;
    }
  } else {
    const int64_t whole = std::min(count, places.elements / 4 - block);
    T* const to = out + 4 * block;
    store_fours(words, whole, to);
    for (int64_t i = 4 * whole; i < std::min(4 * count, places.elements - 4 * block); ++i)
      to[i] = static_cast<T>(words.words[i % 4][i / 4]);
  }
}

/// Computes and stores blocks [begin, end). `start` has the counter of block 0.
template <bool kThreefry, typename T>
COLLET_INLINE void fill(const Blocks& start, const Places& places, int64_t begin, int64_t end, T* out) {
  Words words;
  while (begin < end) {
    Blocks blocks = start;
    blocks.low += static_cast<uint64_t>(begin);
    if (blocks.low < start.low) ++blocks.high;
    const auto until_carry = static_cast<int64_t>((uint64_t{1} << 32) - (blocks.low & 0xffffffff));
    blocks.count = std::min({kChunk, end - begin, until_carry});
    if constexpr (kThreefry) {
      threefry(blocks, words);
    } else {
      philox(blocks, words);
    }
    store<kThreefry>(places, begin, blocks.count, words, out);
    begin += blocks.count;
  }
}

template <bool kThreefry, typename T>
void fill16(const Blocks& start, const Places& places, int64_t begin, int64_t end, T* out) {
  fill<kThreefry>(start, places, begin, end, out);
}
#if defined(__x86_64__)
template <bool kThreefry, typename T>
[[gnu::target("avx2")]] void fill32(const Blocks& start, const Places& places, int64_t begin, int64_t end, T* out) {
  fill<kThreefry>(start, places, begin, end, out);
}
template <bool kThreefry, typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,prefer-vector-width=512")]] void fill64(const Blocks& start,
                                                                                               const Places& places,
                                                                                               int64_t begin,
                                                                                               int64_t end, T* out) {
  fill<kThreefry>(start, places, begin, end, out);
}
#endif

template <typename T>
using Fill = void (*)(const Blocks& start, const Places& places, int64_t begin, int64_t end, T* out);

/// Returns the function for the widest vectors of this processor.
template <bool kThreefry, typename T>
Fill<T> widest() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return fill64<kThreefry, T>;
  if (__builtin_cpu_supports("avx2")) return fill32<kThreefry, T>;
#endif
  return fill16<kThreefry, T>;
}

class RandomBits : public Routine {
 public:
  explicit RandomBits(const RoutineCall& call) : type_(call.results[1]) {
    threefry_ = call.numbers[0] == COLLET_RNG_THREE_FRY;
    words_ = call.operands[0].bytes() / 8;
    bytes_ = collet_type_bytes(type_.element);
    place();
  }

  void run(char* const* buffers, Threads& threads) const override {
    uint64_t state[3] = {};
    std::memcpy(state, buffers[0], static_cast<size_t>(words_) * 8);
    const Blocks start{state[0], state[1], words_ > 2 ? state[2] : state[0], blocks_};
    switch (bytes_) {
      case 1:
        run_as(start, reinterpret_cast<uint8_t*>(buffers[2]), threads);
        break;
      case 2:
        run_as(start, reinterpret_cast<uint16_t*>(buffers[2]), threads);
        break;
      default:
        run_as(start, reinterpret_cast<uint32_t*>(buffers[2]), threads);
    }
    state[1] += static_cast<uint64_t>(blocks_);
    if (!threefry_ && words_ > 2 && state[1] < start.low) ++state[2];
    std::memcpy(buffers[1], state, static_cast<size_t>(words_) * 8);
  }

 private:
  void place() {
    places_.elements = type_.elements * (bytes_ == 8 ? 2 : 1);
    if (!threefry_) {
      blocks_ = (places_.elements + 3) / 4;
      return;
    }
    if (bytes_ == 8) {
      places_.length = places_.elements;
      blocks_ = type_.elements;
      return;
    }
    // The array is halved along the first even dimension, or along the largest if none is even.
    const auto& dims = type_.dims;
    size_t dim = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] > dims[dim]) dim = d;
    }
    const auto even = std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d % 2 == 0; });
    if (even != dims.end()) dim = static_cast<size_t>(even - dims.begin());
    places_.length = dims.empty() ? 1 : dims[dim];
    for (size_t d = dim + 1; d < dims.size(); ++d) places_.inner *= dims[d];
    blocks_ = type_.elements == 0 ? 0 : type_.elements / places_.length * places_.half();
  }

  template <typename T>
  void run_as(const Blocks& start, T* out, Threads& threads) const {
    constexpr double kBlockNs = 2;  ///< of vectors of AVX2
    const Fill<T> fill = threefry_ ? widest<true, T>() : widest<false, T>();
    for_each_part((blocks_ + kPart - 1) / kPart, kBlockNs * kPart, threads, [&](int64_t part, int) {
      fill(start, places_, part * kPart, std::min((part + 1) * kPart, blocks_), out);
    });
  }

  ArrayType type_;
  size_t bytes_ = 0;
  int64_t words_ = 0;
  int64_t blocks_ = 0;
  Places places_;
  bool threefry_ = false;
};

/// The state of one source of random numbers: each run continues where the last one ended. The sources of a program
/// differ in the upper word of the state, so that their sequences never overlap.
class RandomState : public Routine {
 public:
  RandomState(int64_t delta, uint64_t source)
      : delta_(static_cast<uint64_t>(delta)), state_{kFirstRandomState, source} {}

  void run(char* const* buffers, Threads&) const override {
    std::lock_guard lock(mutex_);
    std::memcpy(buffers[0], state_, sizeof state_);
    state_[0] += delta_;
    if (state_[0] < delta_) ++state_[1];
  }

 private:
  uint64_t delta_;
  mutable std::mutex mutex_;
  mutable uint64_t state_[2];
};

}  // namespace

std::unique_ptr<Routine> make_random_state(const RoutineCall& call) {
  return std::make_unique<RandomState>(call.numbers[0], static_cast<uint64_t>(call.numbers[1]));
}

std::unique_ptr<Routine> make_random_bits(const RoutineCall& call) {
  return std::make_unique<RandomBits>(call);
}

}  // namespace collet::codegen
