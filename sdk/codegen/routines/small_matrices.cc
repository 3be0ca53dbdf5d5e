// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/small_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sdk/codegen/routines/worker_memory.h"

#pragma GCC diagnostic ignored "-Wpsabi"

#define COLLET_INLINE [[gnu::always_inline]] inline

namespace collet::codegen {
namespace {

constexpr int64_t kMostElements = kMostSmall * kMostSmall;

template <typename T>
struct Job {
  enum class Kind : uint8_t { kCholesky, kTriangle, kLu } kind;
  const T* a;
  const T* b;
  T* x;
  int32_t* pivots;
  int32_t* order;
  int64_t count;  ///< number of matrices in the lanes
  int64_t m;
  int64_t n;
  bool lower;
  SmallTriangle form;
};

template <typename T, int kBytes>
struct SmallLanes {
  static constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(T));
  using S = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T V __attribute__((vector_size(kBytes)));
  typedef S M __attribute__((vector_size(kBytes)));

  /// Loads the matrices of `count` lanes. Other lanes repeat the first matrix.
  COLLET_INLINE static void load(const T* from, int64_t size, int64_t count, V* x) {
    T* to = reinterpret_cast<T*>(x);
    for (int64_t l = 0; l < kLanes; ++l) {
      const T* p = from + (l < count ? l : 0) * size;
      for (int64_t e = 0; e < size; ++e) to[e * kLanes + l] = p[e];
    }
  }
  COLLET_INLINE static void store(const V* x, int64_t size, int64_t count, T* to) {
    const T* from = reinterpret_cast<const T*>(x);
    for (int64_t l = 0; l < count; ++l) {
      for (int64_t e = 0; e < size; ++e) to[l * size + e] = from[e * kLanes + l];
    }
  }

  COLLET_INLINE static void cholesky(const Job<T>& job) {
    alignas(64) V x[kMostElements];
    const int64_t n = job.n;
    load(job.a, n * n, job.count, x);
    const int64_t down = job.lower ? n : 1;
    const int64_t right = job.lower ? 1 : n;
    bool is_definite[kLanes];
    std::fill(is_definite, is_definite + kLanes, true);
    for (int64_t j = 0; j < n; ++j) {
      V& pivot = x[j * (n + 1)];
      T roots[kLanes];
      std::memcpy(roots, &pivot, sizeof roots);
      for (int64_t l = 0; l < kLanes; ++l) {
        is_definite[l] &= roots[l] > 0;
        roots[l] = std::sqrt(roots[l]);
      }
      std::memcpy(&pivot, roots, sizeof roots);
      for (int64_t i = j + 1; i < n; ++i) {
        x[i * down + j * right] /= pivot;
        x[j * down + i * right] = V{};
      }
      // Subtracts the outer product of the column with itself from the remaining matrix.
      for (int64_t i = j + 1; i < n; ++i) {
        const V factor = x[i * down + j * right];
        for (int64_t c = j + 1; c <= i; ++c) x[i * down + c * right] -= factor * x[c * down + j * right];
      }
    }
    store(x, n * n, job.count, job.x);
    for (int64_t l = 0; l < job.count; ++l) {
      if (is_definite[l]) continue;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k <= i; ++k) job.x[l * n * n + i * down + k * right] = std::numeric_limits<T>::quiet_NaN();
    }
  }

  COLLET_INLINE static void triangle(const Job<T>& job) {
    alignas(64) V a[kMostElements];
    alignas(64) V x[kMostElements];
    const SmallTriangle& form = job.form;
    const int64_t side = form.left_side ? job.m : job.n;
    const int64_t others = form.left_side ? job.n : job.m;
    load(job.a, side * side, job.count, a);
    load(job.b, job.m * job.n, job.count, x);
    const int64_t down = form.transposed ? 1 : side;
    const int64_t right = form.transposed ? side : 1;
    const int64_t step = form.left_side ? job.n : 1;  // distance between the elements of one solution
    const int64_t next = form.left_side ? 1 : job.n;
    for (int64_t at = 0; at < side; ++at) {
      const int64_t i = form.forward ? at : side - 1 - at;
      const int64_t first = form.forward ? 0 : i + 1;
      const int64_t last = form.forward ? i : side;
      for (int64_t k = first; k < last; ++k) {
        const V factor = a[i * down + k * right];
        for (int64_t j = 0; j < others; ++j) x[i * step + j * next] -= factor * x[k * step + j * next];
      }
      for (int64_t j = 0; !form.unit_diagonal && j < others; ++j) x[i * step + j * next] /= a[i * (side + 1)];
    }
    store(x, job.m * job.n, job.count, job.x);
  }

  COLLET_INLINE static void lu(const Job<T>& job) {
    alignas(64) V x[kMostElements];
    const int64_t m = job.m;
    const int64_t n = job.n;
    const int64_t k = std::min(m, n);
    load(job.a, m * n, job.count, x);
    int32_t order[kLanes][kMostSmall];
    for (auto& rows : order) {
      for (int32_t i = 0; i < m; ++i) rows[i] = i;
    }
    for (int64_t j = 0; j < k; ++j) {
      V best = x[j * n + j];
      best = best < 0 ? -best : best;
      M place = M{} + static_cast<S>(j);
      for (int64_t i = j + 1; i < m; ++i) {
        V size = x[i * n + j];
        size = size < 0 ? -size : size;
        const M more = size > best;
        best = more ? size : best;
        place = more ? M{} + static_cast<S>(i) : place;
      }
      S places[kLanes];
      std::memcpy(places, &place, sizeof places);
      bool moved[kMostSmall] = {};
      for (int64_t l = 0; l < job.count; ++l) {
        const auto p = static_cast<int32_t>(places[l]);
        job.pivots[l * k + j] = p;
        std::swap(order[l][j], order[l][p]);
        moved[p] = true;
      }
      for (int64_t i = j + 1; i < m; ++i) {
        if (!moved[i]) continue;
        const M here = place == static_cast<S>(i);
        for (int64_t c = 0; c < n; ++c) {
          const V low = x[i * n + c];
          const V high = x[j * n + c];
          x[i * n + c] = here ? high : low;
          x[j * n + c] = here ? low : high;
        }
      }
      const V pivot = x[j * n + j];
      const M singular = pivot == 0;
      for (int64_t i = j + 1; i < m; ++i) {
        const V raw = x[i * n + j];
        const V f = singular ? raw : raw / pivot;
        x[i * n + j] = f;
        for (int64_t c = j + 1; c < n; ++c) x[i * n + c] -= f * x[j * n + c];
      }
    }
    store(x, m * n, job.count, job.x);
    for (int64_t l = 0; l < job.count; ++l) std::copy_n(order[l], m, job.order + l * m);
  }

  COLLET_INLINE static void run(const Job<T>& job) {
    switch (job.kind) {
      case Job<T>::Kind::kCholesky:
        return cholesky(job);
      case Job<T>::Kind::kTriangle:
        return triangle(job);
      case Job<T>::Kind::kLu:
        return lu(job);
    }
  }
};

template <typename T>
void run16(const Job<T>& job) {
  SmallLanes<T, 16>::run(job);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] void run32(const Job<T>& job) {
  SmallLanes<T, 32>::run(job);
}
template <typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]] void run64(const Job<T>& job) {
  SmallLanes<T, 64>::run(job);
}
#endif

/// Selects the implementation for the widest vectors of this processor.
template <typename T>
struct Chosen {
  void (*function)(const Job<T>&) = run16<T>;
  int64_t lanes = 16 / static_cast<int64_t>(sizeof(T));

  static Chosen get() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return {run64<T>, 64 / static_cast<int64_t>(sizeof(T))};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      return {run32<T>, 32 / static_cast<int64_t>(sizeof(T))};
#endif
    return {};
  }
};

/// Runs the job on all matrices of a batch. The sizes are the numbers of elements of one matrix.
template <typename T>
void run_batch(const Job<T>& job, int64_t batch, int64_t a_size, int64_t b_size, int64_t x_size, Threads& threads) {
  const Chosen<T> chosen = Chosen<T>::get();
  const int64_t groups = (batch + chosen.lanes - 1) / chosen.lanes;
  const double ns = static_cast<double>(a_size + x_size) * static_cast<double>(std::max(job.m, job.n)) / 4;
  for_each_part(groups, ns, threads, [&](int64_t g, int) {
    const int64_t first = g * chosen.lanes;
    Job<T> one = job;
    one.count = std::min(chosen.lanes, batch - first);
    one.a += first * a_size;
    if (one.b) one.b += first * b_size;
    one.x += first * x_size;
    if (one.pivots) one.pivots += first * std::min(job.m, job.n);
    if (one.order) one.order += first * job.m;
    chosen.function(one);
  });
}

}  // namespace

bool is_small_batch(int64_t batch, int64_t m, int64_t n) {
  return batch >= 4 && m > 0 && n > 0 && m <= kMostSmall && n <= kMostSmall;
}

template <typename T>
void factor_small_cholesky(const T* a, T* l, int64_t batch, int64_t n, bool lower, Threads& threads) {
  const Job<T> job{Job<T>::Kind::kCholesky, a, nullptr, l, nullptr, nullptr, 0, n, n, lower, {}};
  run_batch(job, batch, n * n, 0, n * n, threads);
}

template <typename T>
void solve_small_triangle(const T* a, const T* b, T* x, int64_t batch, int64_t m, int64_t n, const SmallTriangle& form,
                          Threads& threads) {
  const int64_t side = form.left_side ? m : n;
  const Job<T> job{Job<T>::Kind::kTriangle, a, b, x, nullptr, nullptr, 0, m, n, false, form};
  run_batch(job, batch, side * side, m * n, m * n, threads);
}

template <typename T>
void factor_small_lu(const T* a, T* lu, int32_t* pivots, int32_t* order, int64_t batch, int64_t m, int64_t n,
                     Threads& threads) {
  const Job<T> job{Job<T>::Kind::kLu, a, nullptr, lu, pivots, order, 0, m, n, false, {}};
  run_batch(job, batch, m * n, 0, m * n, threads);
}

template void factor_small_cholesky(const float*, float*, int64_t, int64_t, bool, Threads&);
template void factor_small_cholesky(const double*, double*, int64_t, int64_t, bool, Threads&);
template void solve_small_triangle(const float*, const float*, float*, int64_t, int64_t, int64_t, const SmallTriangle&,
                                   Threads&);
template void solve_small_triangle(const double*, const double*, double*, int64_t, int64_t, int64_t,
                                   const SmallTriangle&, Threads&);
template void factor_small_lu(const float*, float*, int32_t*, int32_t*, int64_t, int64_t, int64_t, Threads&);
template void factor_small_lu(const double*, double*, int32_t*, int32_t*, int64_t, int64_t, int64_t, Threads&);

}  // namespace collet::codegen
