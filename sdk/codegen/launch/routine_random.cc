// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "sdk/codegen/launch/routine.h"

namespace collet::codegen {
namespace {

uint32_t rotate(uint32_t x, int r) {
  return x << r | x >> (32 - r);
}

/// Computes a block of the generator Threefry2x32 with 20 rounds.
uint64_t threefry(uint64_t key, uint64_t counter) {
  const uint32_t k[3] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
                         0x1BD11BDA ^ static_cast<uint32_t>(key) ^ static_cast<uint32_t>(key >> 32)};
  constexpr int kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t x0 = static_cast<uint32_t>(counter) + k[0];
  uint32_t x1 = static_cast<uint32_t>(counter >> 32) + k[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (int r : kTurns[(group - 1) % 2]) {
      x0 += x1;
      x1 = rotate(x1, r) ^ x0;
    }
    x0 += k[group % 3];
    x1 += k[(group + 1) % 3] + group;
  }
  return x0 | static_cast<uint64_t>(x1) << 32;
}

/// Computes a block of the generator Philox4x32 with 10 rounds.
void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x[4] = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
                   static_cast<uint32_t>(high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(x[0]) * 0xD2511F53;
    const uint64_t p1 = static_cast<uint64_t>(x[2]) * 0xCD9E8D57;
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    std::memcpy(x, next, sizeof x);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  std::memcpy(out, x, sizeof x);
}

class RandomBits : public Routine {
 public:
  explicit RandomBits(const RoutineCall& call) : type_(call.results[1]) {
    threefry_ = call.numbers[0] == COLLET_RNG_THREE_FRY;
    words_ = call.operands[0].bytes() / 8;
    bytes_ = collet_type_bytes(type_.element);
  }

  void run(char* const* buffers, Threads&) const override {
    uint64_t state[3] = {};
    std::memcpy(state, buffers[0], static_cast<size_t>(words_) * 8);
    if (threefry_) {
      run_threefry(state, buffers[2]);
    } else {
      run_philox(state, buffers[2]);
    }
    std::memcpy(buffers[1], state, static_cast<size_t>(words_) * 8);
  }

 private:
  void put(char* out, int64_t i, uint64_t bits) const {
    if (i < type_.elements) std::memcpy(out + static_cast<size_t>(i) * bytes_, &bits, bytes_);
  }

  void run_threefry(uint64_t* state, char* out) const {
    const uint64_t key = state[0];
    const uint64_t counter = state[1];
    const int64_t n = type_.elements;
    if (bytes_ == 8) {
      for (int64_t i = 0; i < n; ++i) put(out, i, threefry(key, counter + static_cast<uint64_t>(i)));
      state[1] += static_cast<uint64_t>(n);
      return;
    }
    // The array is halved along the first even dimension, or along the largest if none is even. The two words of a
    // block become adjacent elements along that dimension.
    size_t dim = 0;
    bool even = false;
    for (size_t d = 0; d < type_.dims.size() && !even; ++d) {
      if (type_.dims[d] % 2 == 0) {
        dim = d;
        even = true;
      }
    }
    if (!even) {
      for (size_t d = 0; d < type_.dims.size(); ++d) {
        if (type_.dims[d] > type_.dims[dim]) dim = d;
      }
    }
    const int64_t length = type_.dims.empty() ? 1 : type_.dims[dim];
    int64_t inner = 1;
    for (size_t d = dim + 1; d < type_.dims.size(); ++d) inner *= type_.dims[d];
    const int64_t half = (length + 1) / 2;
    const int64_t outer = length == 0 ? 0 : n / length / std::max<int64_t>(inner, 1);
    uint64_t block = counter;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < half; ++j) {
        for (int64_t i = 0; i < inner; ++i) {
          const uint64_t bits = threefry(key, block++);
          const int64_t at = (o * length + 2 * j) * inner + i;
          put(out, at, bits & 0xffffffff);
          if (2 * j + 1 < length) put(out, at + inner, bits >> 32);
        }
      }
    }
    state[1] = block;
  }

  void run_philox(uint64_t* state, char* out) const {
    const uint64_t key = state[0];
    uint64_t low = state[1];
    uint64_t high = words_ > 2 ? state[2] : state[0];
    const int64_t n = type_.elements;
    const int64_t per_block = bytes_ == 8 ? 2 : 4;
    for (int64_t i = 0; i < n; i += per_block) {
      uint32_t w[4];
      philox(key, low, high, w);
      if (++low == 0) ++high;
      if (bytes_ == 8) {
        put(out, i, w[0] | static_cast<uint64_t>(w[1]) << 32);
        put(out, i + 1, w[2] | static_cast<uint64_t>(w[3]) << 32);
      } else {
        for (int k = 0; k < 4; ++k) put(out, i + k, w[k]);
      }
    }
    state[1] = low;
    if (words_ > 2) state[2] = high;
  }

  ArrayType type_;
  size_t bytes_ = 0;
  int64_t words_ = 0;
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
