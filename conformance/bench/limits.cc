// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/limits.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace collet::bench {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Each kernel exists once per vector width; the one to use is selected at run time. `sink` keeps the compiler from
// removing the work.
struct Kernels {
  const char* name;
  uint64_t flops_per_round;
  float (*multiply_add)(uint64_t rounds);
  float (*read)(const float* data, uint64_t blocks);  // a block is 256 bytes
  void (*write)(float* data, uint64_t blocks, float value);
};

// Hides a value from the optimiser, so that computations on it are neither removed nor moved.
template <class T>
void hide(T& value) {
  __asm__ volatile("" : "+m"(value) : : "memory");
}

constexpr uint64_t kBlock = 256;
constexpr int kChains = 12;  // number of independent sums, enough to hide the latency of a multiply-add

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float sum_512(__m512 x) {
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, x);
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

__attribute__((target("avx512f"))) float multiply_add_512(uint64_t rounds) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
  hide(sums);
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  __m512 total = sums[0];
  for (int i = 1; i < kChains; ++i) total = _mm512_add_ps(total, sums[i]);
  return sum_512(total);
}

__attribute__((target("avx512f"))) float read_512(const float* data, uint64_t blocks) {
  __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
    a = _mm512_add_ps(a, _mm512_load_ps(data));
    b = _mm512_add_ps(b, _mm512_load_ps(data + 16));
    c = _mm512_add_ps(c, _mm512_load_ps(data + 32));
    d = _mm512_add_ps(d, _mm512_load_ps(data + 48));
  }
  return sum_512(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)));
}

__attribute__((target("avx512f"))) void write_512(float* data, uint64_t blocks, float value) {
  const __m512 all = _mm512_set1_ps(value);
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
#pragma GCC unroll 16
    for (int j = 0; j < 64; j += 16) _mm512_store_ps(data + j, all);
  }
}

__attribute__((target("avx2,fma"))) float sum_256(__m256 x) {
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, x);
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

__attribute__((target("avx2,fma"))) float multiply_add_256(uint64_t rounds) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  hide(sums);
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  __m256 total = sums[0];
  for (int i = 1; i < kChains; ++i) total = _mm256_add_ps(total, sums[i]);
  return sum_256(total);
}

__attribute__((target("avx2,fma"))) float read_256(const float* data, uint64_t blocks) {
  __m256 sums[8];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
#pragma GCC unroll 16
    for (int j = 0; j < 8; ++j) sums[j] = _mm256_add_ps(sums[j], _mm256_load_ps(data + 8 * j));
  }
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_add_ps(sums[0], sums[j]);
  return sum_256(sums[0]);
}

__attribute__((target("avx2,fma"))) void write_256(float* data, uint64_t blocks, float value) {
  const __m256 all = _mm256_set1_ps(value);
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
#pragma GCC unroll 16
    for (int j = 0; j < 64; j += 8) _mm256_store_ps(data + j, all);
  }
}
#endif

// For other processors: vectors of four floats, which the compiler supports for every target.
typedef float Four __attribute__((vector_size(16)));

float sum_128(Four x) {
  return x[0] + x[1] + x[2] + x[3];
}

__attribute__((noinline)) float multiply_add_128(uint64_t rounds) {
  Four sums[kChains];
  for (Four& sum : sums) sum = Four{1, 1, 1, 1};
  const Four factor = {0.999f, 0.999f, 0.999f, 0.999f}, term = {0.001f, 0.001f, 0.001f, 0.001f};
  hide(sums);
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (Four& sum : sums) sum = sum * factor + term;
  }
  for (int i = 1; i < kChains; ++i) sums[0] += sums[i];
  return sum_128(sums[0]);
}

__attribute__((noinline)) float read_128(const float* data, uint64_t blocks) {
  Four sums[8] = {};
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) {
      Four here;
      std::memcpy(&here, data + 4 * j, sizeof here);
      sums[j % 8] += here;
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] += sums[j];
  return sum_128(sums[0]);
}

__attribute__((noinline)) void write_128(float* data, uint64_t blocks, float value) {
  const Four all = {value, value, value, value};
  for (uint64_t i = 0; i < blocks; ++i, data += 64) {
#pragma GCC unroll 16
    for (int j = 0; j < 64; j += 4) std::memcpy(data + j, &all, sizeof all);
  }
}

Kernels choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"avx512f", kChains * 32, multiply_add_512, read_512, write_512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {"avx2", kChains * 16, multiply_add_256, read_256, write_256};
  }
#endif
  return {"generic", kChains * 8, multiply_add_128, read_128, write_128};
}

std::atomic<float> sink{0};

// Runs work(thread) on `threads` threads at once. Returns the nanoseconds from the start, when all threads are ready,
// until the last one ends.
template <class Work>
double run_together(uint32_t threads, const Work& work) {
  std::atomic<uint32_t> waiting{0};
  std::vector<Clock::time_point> begins(threads), ends(threads);
  const auto body = [&](uint32_t thread) {
    waiting.fetch_add(1);
    while (waiting.load() < threads) {
    }
    begins[thread] = Clock::now();
    work(thread);
    ends[thread] = Clock::now();
  };
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& other : others) other.join();
  const auto begin = *std::min_element(begins.begin(), begins.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

double measure_flops(const Kernels& kernels, uint32_t threads) {
  constexpr uint64_t kRounds = 400000;
  double best = 0;
  for (int i = 0; i < 12; ++i) {
    const double time = run_together(threads, [&](uint32_t) { sink = kernels.multiply_add(kRounds); });
    best = std::max(best, static_cast<double>(kernels.flops_per_round * kRounds * threads) / time);
  }
  return best;
}

struct FreeAligned {
  void operator()(float* data) const { ::operator delete[](data, std::align_val_t(64)); }
};
using Floats = std::unique_ptr<float[], FreeAligned>;

Floats make_floats(uint64_t bytes) {
  Floats floats(new (std::align_val_t(64)) float[std::max<uint64_t>(bytes, kBlock) / sizeof(float)]);
  std::memset(floats.get(), 0, std::max<uint64_t>(bytes, kBlock));
  return floats;
}

}  // namespace

uint32_t available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(std::max(CPU_COUNT(&set), 1));
  return std::max(1u, std::thread::hardware_concurrency());
}

Peak measure_peak(uint32_t threads) {
  const Kernels kernels = choose();
  Peak peak;
  peak.threads = threads;
  peak.vectors = kernels.name;
  peak.flops_per_ns_1 = measure_flops(kernels, 1);
  peak.flops_per_ns = std::max(peak.flops_per_ns_1, measure_flops(kernels, peak.threads));
  return peak;
}

double measure_stream(uint64_t read, uint64_t written, uint32_t most) {
  const Kernels kernels = choose();
  const uint64_t read_blocks = (read + kBlock - 1) / kBlock, written_blocks = (written + kBlock - 1) / kBlock;
  const Floats from = make_floats(read_blocks * kBlock), to = make_floats(written_blocks * kBlock);
  double best = 1e300;
  for (const uint32_t threads : {1u, most}) {
    const auto pass = [&](uint32_t thread, float value) {
      const auto share = [&](uint64_t blocks, uint32_t i) { return blocks * i / threads; };
      const uint64_t r = share(read_blocks, thread), w = share(written_blocks, thread);
      sink = kernels.read(from.get() + r * kBlock / sizeof(float), share(read_blocks, thread + 1) - r);
      kernels.write(to.get() + w * kBlock / sizeof(float), share(written_blocks, thread + 1) - w, value);
    };
    const Clock::time_point start = Clock::now();
    pass(0, 1);
    const double once = std::max(nanoseconds_since(start), 10.0);
    const auto passes = static_cast<uint64_t>(std::clamp(4e6 / once, 2.0, 1e6));
    for (int i = 0; i < 6; ++i) {
      const double time = run_together(threads, [&](uint32_t thread) {
        for (uint64_t p = 0; p < passes; ++p) pass(thread, static_cast<float>(p));
      });
      best = std::min(best, time / static_cast<double>(passes));
    }
  }
  return best;
}

}  // namespace collet::bench
