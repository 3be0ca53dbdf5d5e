// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Discrete Fourier transforms of several rows at once, one in each lane of a vector: no element has to move between lanes, and
/// all lengths are vectorised alike.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {

#define COLLET_INLINE [[gnu::always_inline]] inline

/// A pass over data in which each element is the sum of `radix` others times a root of unity.
template <typename T>
struct FftStage {
  int64_t radix = 1;
  int64_t groups = 1;      ///< number of groups, each of which has its own roots
  int64_t stride = 1;      ///< number of elements of a group
  std::vector<T> roots;    ///< for each group radix - 1 roots, each a real and an imaginary part
  std::vector<T> cosines;  ///< for a radix without a specialised pass: element [k][j] is e^(-2 pi i j k / radix)
  std::vector<T> sines;
};

/// The passes of a transform whose length has small prime factors only (at most kMostRadix).
template <typename T>
struct FftPlan {
  int64_t n = 1;
  std::vector<FftStage<T>> stages;
};

constexpr int64_t kMostRadix = 31;

/// How the elements of rows are stored.
enum class FftForm : uint8_t {
  kComplex,  ///< one row of complex numbers in each lane
  kReals,    ///< one row of real numbers in each lane, as a complex row
  kHalves    ///< one row of n / 2 + 1 complex numbers in each lane: the transform of a real row of n numbers
};

template <typename T>
struct FftRows {
  FftForm form = FftForm::kComplex;
  T* data = nullptr;
  int64_t step = 1;                 ///< distance between elements of a row
  const int64_t* begins = nullptr;  ///< offset of each row
  int64_t rows = 0;
  bool adjacent = false;  ///< row k begins k elements after the first row
  bool ahead = false;     ///< adjacent rows after these ones are to be loaded into the caches
};

/// One transform of as many rows as a vector has lanes.
template <typename T>
struct FftJob {
  const FftPlan<T>* plan = nullptr;
  FftRows<const T> from;
  FftRows<T> to;
  bool inverse = false;
  T scale = 1;
  /// Twiddle factors of a split transform: result k of row j is multiplied by e^(-2 pi i j k / N), where j counts from
  /// `first_row`. If `twiddles` is not null, it is a table of all factors, with the factor of j and k at k *
  /// twiddle_step + j. Otherwise, if `coarse` is not null, the factor is the product of entry j k / fine_size of
  /// `coarse` and entry j k % fine_size of `fine`.
  const T* twiddles = nullptr;
  int64_t twiddle_step = 0;
  const T* coarse = nullptr;
  const T* fine = nullptr;
  int64_t fine_size = 1;
  int64_t first_row = 0;
  // Not null for a transform of another length by Bluestein's algorithm: a factor for each element, applied before and
  // after, and the transform of the sequence with which the row is convolved.
  const T* chirp = nullptr;
  const T* filter = nullptr;
  /// Not null if the rows of kHalves are transforms of real rows of twice the length, whose pairs of neighbours are the complex
  /// numbers: element k is e^(-pi i k / length), for 2 k <= length.
  const T* real_roots = nullptr;
  int64_t length = 0;  ///< length of the rows; it differs from that of the plan only for Bluestein's algorithm
};

template <typename T, int kBytes>
class FftLanes {
 public:
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(kBytes)));
  struct C {
    V re;
    V im;
  };

  /// Runs a job. `work` has space for 2 * plan->n elements of type C.
  COLLET_INLINE static void run(const FftJob<T>& job, char* work) {
    C* x = reinterpret_cast<C*>(work);
    C* y = x + job.plan->n;
    load(job, x);
    if (job.chirp) {
      for (int64_t i = 0; i < job.length; ++i) multiply(x[i], job.chirp[2 * i], job.chirp[2 * i + 1]);
      for (int64_t i = job.length; i < job.plan->n; ++i) x[i] = C{V{}, V{}};
      C* z = stages(*job.plan, x, y);
      // The inverse transform is the conjugate of the transform of the conjugate.
      for (int64_t i = 0; i < job.plan->n; ++i) {
        multiply(z[i], job.filter[2 * i], job.filter[2 * i + 1]);
        z[i].im = -z[i].im;
      }
      z = stages(*job.plan, z, z == x ? y : x);
      for (int64_t i = 0; i < job.length; ++i) {
        z[i].im = -z[i].im;
        multiply(z[i], job.chirp[2 * i], job.chirp[2 * i + 1]);
      }
      store(job, z);
    } else {
      store(job, stages(*job.plan, x, y));
    }
  }

  /// Derives the transform of a real row from that of a complex row of half the length, whose elements are pairs of the
  /// real row's. `roots` are e^(-pi i k / half).
  COLLET_INLINE static void to_real_transform(const T* z, const T* roots, int64_t half, T* to) {
    to[0] = z[0] + z[1];
    to[1] = 0;
    to[2 * half] = z[0] - z[1];
    to[2 * half + 1] = 0;
    int64_t k = 1;
    for (; 2 * (k + kLanes - 1) < half; k += kLanes) {
      const int64_t m = half - k - kLanes + 1;  // the last lane's element m belongs to the first lane's element k
      const C a = read_apart(z + 2 * k);
      const C b = reversed(read_apart(z + 2 * m));
      const C w = read_apart(roots + 2 * k);
      const C e{(a.re + b.re) * T(0.5), (a.im - b.im) * T(0.5)};
      const V dr = (a.im + b.im) * T(0.5), di = (b.re - a.re) * T(0.5);
      const C t{dr * w.re - di * w.im, dr * w.im + di * w.re};
      write_together(to + 2 * k, C{e.re + t.re, e.im + t.im});
      write_together(to + 2 * m, reversed(C{e.re - t.re, t.im - e.im}));
    }
    for (; 2 * k <= half; ++k) {
      const int64_t m = half - k;
      const T er = (z[2 * k] + z[2 * m]) / 2, ei = (z[2 * k + 1] - z[2 * m + 1]) / 2;
      const T dr = (z[2 * k + 1] + z[2 * m + 1]) / 2, di = (z[2 * m] - z[2 * k]) / 2;
      const T wr = roots[2 * k], wi = roots[2 * k + 1];
      const T tr = dr * wr - di * wi, ti = dr * wi + di * wr;
      to[2 * k] = er + tr;
      to[2 * k + 1] = ei + ti;
      to[2 * m] = er - tr;
      to[2 * m + 1] = ti - ei;
    }
  }

  /// The inverse of to_real_transform().
  COLLET_INLINE static void from_real_transform(const T* from, const T* roots, int64_t half, T* z) {
    z[0] = (from[0] + from[2 * half]) / 2;
    z[1] = (from[0] - from[2 * half]) / 2;
    int64_t k = 1;
    for (; 2 * (k + kLanes - 1) < half; k += kLanes) {
      const int64_t m = half - k - kLanes + 1;
      const C a = read_apart(from + 2 * k);
      const C b = reversed(read_apart(from + 2 * m));
      const C w = read_apart(roots + 2 * k);
      const C e{(a.re + b.re) * T(0.5), (a.im - b.im) * T(0.5)};
      const V tr = (a.re - b.re) * T(0.5), ti = (a.im + b.im) * T(0.5);
      const C d{tr * w.re + ti * w.im, ti * w.re - tr * w.im};
      write_together(z + 2 * k, C{e.re - d.im, e.im + d.re});
      write_together(z + 2 * m, reversed(C{e.re + d.im, d.re - e.im}));
    }
    for (; 2 * k <= half; ++k) {
      const int64_t m = half - k;
      const T er = (from[2 * k] + from[2 * m]) / 2, ei = (from[2 * k + 1] - from[2 * m + 1]) / 2;
      const T tr = (from[2 * k] - from[2 * m]) / 2, ti = (from[2 * k + 1] + from[2 * m + 1]) / 2;
      const T wr = roots[2 * k], wi = -roots[2 * k + 1];
      const T dr = tr * wr - ti * wi, di = tr * wi + ti * wr;
      z[2 * k] = er - di;
      z[2 * k + 1] = ei + dr;
      z[2 * m] = er + di;
      z[2 * m + 1] = dr - ei;
    }
  }

 private:
  COLLET_INLINE static C read_apart(const T* p) {
    C x;
    apart(read(p), read(p + kLanes), x.re, x.im, std::make_integer_sequence<int, kLanes>());
    return x;
  }
  COLLET_INLINE static void write_together(T* p, const C& x) {
    V low;
    V high;
    together(x.re, x.im, low, high, std::make_integer_sequence<int, kLanes>());
    write(p, low);
    write(p + kLanes, high);
  }
  template <int... I>
  COLLET_INLINE static V reversed(const V& x, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(x, x, (kLanes - 1 - I)...);
  }
  COLLET_INLINE static C reversed(const C& x) {
    constexpr std::make_integer_sequence<int, kLanes> all;
    return C{reversed(x.re, all), reversed(x.im, all)};
  }

  COLLET_INLINE static void multiply(C& x, T re, T im) {
    const V r = x.re * re - x.im * im;
    x.im = x.re * im + x.im * re;
    x.re = r;
  }

  template <int S, int... I>
  COLLET_INLINE static void exchange(V& x, V& y, std::integer_sequence<int, I...>) {
    const V low = __builtin_shufflevector(x, y, ((I & S) ? kLanes + I - S : I)...);
    y = __builtin_shufflevector(x, y, ((I & S) ? kLanes + I : I + S)...);
    x = low;
  }

  /// Transposes kLanes / E rows, each of kLanes / E units of E numbers.
  template <int E, int S = E>
  COLLET_INLINE static void transpose(V* x) {
    if constexpr (S < kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < kLanes / E; ++k) {
        if (!(k & (S / E))) exchange<S>(x[k], x[k | (S / E)], std::make_integer_sequence<int, kLanes>());
      }
      transpose<E, 2 * S>(x);
    }
  }

  template <int... I>
  COLLET_INLINE static void apart(const V& x, const V& y, V& re, V& im, std::integer_sequence<int, I...>) {
    re = __builtin_shufflevector(x, y, (2 * I)...);
    im = __builtin_shufflevector(x, y, (2 * I + 1)...);
  }
  template <int... I>
  COLLET_INLINE static void together(const V& re, const V& im, V& x, V& y, std::integer_sequence<int, I...>) {
    x = __builtin_shufflevector(re, im, (I / 2 + (I % 2) * kLanes)...);
    y = __builtin_shufflevector(re, im, ((I + kLanes) / 2 + (I % 2) * kLanes)...);
  }

  static constexpr int kUnits = kLanes / 2;                               ///< complex numbers in a vector
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  ///< numbers in a cache line

  COLLET_INLINE static V read(const T* p) {
    V x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  COLLET_INLINE static void write(T* p, const V& x) { std::memcpy(p, &x, sizeof x); }

  /// Reads elements [i, i + count) of complex rows; count is at most kUnits. Lanes without a row get values that are
  /// not used.
  COLLET_INLINE static void read_complex(const FftRows<const T>& f, int64_t i, int64_t count, C* x) {
    constexpr std::make_integer_sequence<int, kLanes> all;
    if (f.rows == kLanes && f.adjacent) {
      for (int64_t j = 0; j < count; ++j) {
        const T* p = f.data + 2 * (f.begins[0] + (i + j) * f.step);
        if (f.ahead) {
          for (int64_t k = 0; k < 2 * kLanes; k += kLine) __builtin_prefetch(p + 2 * kLanes + k);
        }
        apart(read(p), read(p + kLanes), x[j].re, x[j].im, all);
      }
    } else if (f.rows == kLanes && f.step == 1 && count == kUnits) {
      V rows[2][kUnits];
#pragma GCC unroll 16
      for (int l = 0; l < kUnits; ++l) {
        rows[0][l] = read(f.data + 2 * (f.begins[l] + i));
        rows[1][l] = read(f.data + 2 * (f.begins[l + kUnits] + i));
      }
      transpose<2>(rows[0]);
      transpose<2>(rows[1]);
#pragma GCC unroll 16
      for (int j = 0; j < kUnits; ++j) apart(rows[0][j], rows[1][j], x[j].re, x[j].im, all);
    } else {
      T re[kUnits][kLanes];
      T im[kUnits][kLanes];
      for (int64_t l = 0; l < kLanes; ++l) {
        const T* p = f.data + 2 * (f.begins[l < f.rows ? l : 0] + i * f.step);
        for (int64_t j = 0; j < count; ++j) {
          re[j][l] = p[2 * j * f.step];
          im[j][l] = p[2 * j * f.step + 1];
        }
      }
      for (int64_t j = 0; j < count; ++j) x[j] = C{read(re[j]), read(im[j])};
    }
  }

  COLLET_INLINE static void write_complex(const FftRows<T>& t, int64_t i, int64_t count, const C* x) {
    constexpr std::make_integer_sequence<int, kLanes> all;
    if (t.rows == kLanes && t.adjacent) {
      for (int64_t j = 0; j < count; ++j) {
        T* p = t.data + 2 * (t.begins[0] + (i + j) * t.step);
        if (t.ahead) {
          for (int64_t k = 0; k < 2 * kLanes; k += kLine) __builtin_prefetch(p + 2 * kLanes + k, 1);
        }
        V low;
        V high;
        together(x[j].re, x[j].im, low, high, all);
        write(p, low);
        write(p + kLanes, high);
      }
    } else if (t.rows == kLanes && t.step == 1 && count == kUnits) {
      V rows[2][kUnits];
#pragma GCC unroll 16
      for (int j = 0; j < kUnits; ++j) together(x[j].re, x[j].im, rows[0][j], rows[1][j], all);
      transpose<2>(rows[0]);
      transpose<2>(rows[1]);
#pragma GCC unroll 16
      for (int l = 0; l < kUnits; ++l) {
        write(t.data + 2 * (t.begins[l] + i), rows[0][l]);
        write(t.data + 2 * (t.begins[l + kUnits] + i), rows[1][l]);
      }
    } else {
      T re[kUnits][kLanes];
      T im[kUnits][kLanes];
      for (int64_t j = 0; j < count; ++j) {
        write(re[j], x[j].re);
        write(im[j], x[j].im);
      }
      for (int64_t l = 0; l < t.rows; ++l) {
        T* p = t.data + 2 * (t.begins[l] + i * t.step);
        for (int64_t j = 0; j < count; ++j) {
          p[2 * j * t.step] = re[j][l];
          p[2 * j * t.step + 1] = im[j][l];
        }
      }
    }
  }

  /// Reads elements [i, i + count) of real rows; count is at most kLanes. Lanes without a row get zeros.
  COLLET_INLINE static void read_real(const FftRows<const T>& f, int64_t i, int64_t count, V* x) {
    if (f.rows == kLanes && count == kLanes) {
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) x[l] = read(f.data + f.begins[l] + i);
      return transpose<1>(x);
    }
    T a[kLanes][kLanes] = {};
    for (int64_t l = 0; l < f.rows; ++l) {
      for (int64_t j = 0; j < count; ++j) a[j][l] = f.data[f.begins[l] + i + j];
    }
    for (int64_t j = 0; j < count; ++j) x[j] = read(a[j]);
  }

  COLLET_INLINE static void write_real(const FftRows<T>& t, int64_t i, int64_t count, V* x) {
    if (t.rows == kLanes && count == kLanes) {
      transpose<1>(x);
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) write(t.data + t.begins[l] + i, x[l]);
      return;
    }
    T a[kLanes][kLanes];
    for (int64_t j = 0; j < count; ++j) write(a[j], x[j]);
    for (int64_t l = 0; l < t.rows; ++l) {
      for (int64_t j = 0; j < count; ++j) t.data[t.begins[l] + i + j] = a[j][l];
    }
  }

  /// Returns the begin of a block that ends within n elements. The last block is moved back if n >= block, so that it
  /// repeats elements of the block before.
  COLLET_INLINE static int64_t whole_block(int64_t at, int64_t block, int64_t n) {
    return at + block > n && n >= block ? n - block : at;
  }

  COLLET_INLINE static void load(const FftJob<T>& job, C* x) {
    const FftRows<const T>& f = job.from;
    const int64_t n = job.length;
    if (f.form == FftForm::kComplex) {
      for (int64_t at = 0; at < n; at += kUnits) {
        const int64_t i = whole_block(at, kUnits, n);
        const int64_t count = std::min<int64_t>(kUnits, n - i);
        read_complex(f, i, count, x + i);
        for (int64_t j = i; job.inverse && j < i + count; ++j) std::swap(x[j].re, x[j].im);
      }
      return;
    }
    if (f.form == FftForm::kReals) {
      for (int64_t at = 0; at < n; at += kLanes) {
        const int64_t i = whole_block(at, kLanes, n);
        const int64_t count = std::min<int64_t>(kLanes, n - i);
        V re[kLanes];
        read_real(f, i, count, re);
        for (int64_t j = 0; j < count; ++j) x[i + j] = C{re[j], V{}};
      }
      return;
    }
    // The other half follows from the conjugates. The imaginary part of an element that must be its own conjugate is ignored. The
    // inverse transform swaps real and imaginary parts.
    const int64_t all = (job.real_roots ? n : n / 2) + 1;
    for (int64_t at = 0; at < all; at += kUnits) {
      const int64_t i = whole_block(at, kUnits, all);
      read_complex(f, i, std::min<int64_t>(kUnits, all - i), x + i);
    }
    if (job.real_roots) return join_halves(job, x);
    x[0] = C{V{}, x[0].re};
    for (int64_t k = 1; k < all; ++k) {
      const C a = x[k];
      x[k] = C{a.im, a.re};
      x[n - k] = C{-a.im, a.re};
    }
  }

  /// Returns element k of FftJob::real_roots, for k up to the length.
  COLLET_INLINE static std::pair<T, T> real_root(const FftJob<T>& job, int64_t k) {
    const int64_t n = job.length;
    return 2 * k <= n ? std::pair(job.real_roots[2 * k], job.real_roots[2 * k + 1])
                      : std::pair(-job.real_roots[2 * (n - k)], job.real_roots[2 * (n - k) + 1]);
  }

  /// Converts transforms of real rows, in x[0] to x[n], to transforms of complex rows of n elements, with real and imaginary parts
  /// swapped. The formula is that of from_real_transform.
  COLLET_INLINE static void join_halves(const FftJob<T>& job, C* x) {
    const int64_t n = job.length;
    x[0] = C{(x[0].re - x[n].re) * T(0.5), (x[0].re + x[n].re) * T(0.5)};
    for (int64_t k = 1; 2 * k <= n; ++k) {
      const C a = x[k], b = x[n - k];
      const auto [wr, wi] = real_root(job, k);
      const C e{(a.re + b.re) * T(0.5), (a.im - b.im) * T(0.5)};
      const V tr = (a.re - b.re) * T(0.5), ti = (a.im + b.im) * T(0.5);
      const C d{tr * wr + ti * wi, ti * wr - tr * wi};
      x[k] = C{e.im + d.re, e.re - d.im};
      x[n - k] = C{d.re - e.im, e.re + d.im};
    }
  }

  /// Returns element k of the transforms of real rows. See to_real_transform.
  COLLET_INLINE static C part_of_halves(const FftJob<T>& job, const C* x, int64_t k) {
    const int64_t n = job.length;
    if (k == 0) return {x[0].re + x[0].im, V{}};
    if (k == n) return {x[0].re - x[0].im, V{}};
    const C& a = x[k];
    const C& b = x[n - k];
    const auto [wr, wi] = real_root(job, k);
    const C e{(a.re + b.re) * T(0.5), (a.im - b.im) * T(0.5)};
    const V dr = (a.im + b.im) * T(0.5), di = (b.re - a.re) * T(0.5);
    return {e.re + dr * wr - di * wi, e.im + dr * wi + di * wr};
  }

  COLLET_INLINE static void store(const FftJob<T>& job, C* x) {
    const FftRows<T>& t = job.to;
    const int64_t n = job.length;
    if (t.form == FftForm::kComplex) {
      for (int64_t at = 0; at < n; at += kUnits) {
        const int64_t i = whole_block(at, kUnits, n);
        const int64_t count = std::min<int64_t>(kUnits, n - i);
        for (int64_t j = at; j < i + count; ++j) {
          if (job.inverse) std::swap(x[j].re, x[j].im);
          x[j] = C{x[j].re * job.scale, x[j].im * job.scale};
          if (job.coarse) apply_twiddle(job, j, x[j].re, x[j].im);
        }
        write_complex(t, i, count, x + i);
      }
      return;
    }
    if (t.form == FftForm::kReals) {  // the real result of an inverse transform
      for (int64_t at = 0; at < n; at += kLanes) {
        const int64_t i = whole_block(at, kLanes, n);
        const int64_t count = std::min<int64_t>(kLanes, n - i);
        V a[kLanes];
        for (int64_t j = 0; j < count; ++j) a[j] = x[i + j].im * job.scale;
        write_real(t, i, count, a);
      }
      return;
    }
    const int64_t all = (job.real_roots ? n : n / 2) + 1;
    for (int64_t at = 0; at < all; at += kUnits) {
      const int64_t i = whole_block(at, kUnits, all);
      const int64_t count = std::min<int64_t>(kUnits, all - i);
      C a[kUnits];
      for (int64_t j = 0; j < count; ++j) a[j] = job.real_roots ? part_of_halves(job, x, i + j) : x[i + j];
      if (i == 0) a[0].im = V{};
      write_complex(t, i, count, a);
    }
  }

  /// Multiplies result k of each row by its twiddle factor.
  COLLET_INLINE static void apply_twiddle(const FftJob<T>& job, int64_t k, V& re, V& im) {
    if (job.twiddles && job.to.rows == kLanes) {
      const T* p = job.twiddles + 2 * (k * job.twiddle_step + job.first_row);
      V wr;
      V wi;
      apart(read(p), read(p + kLanes), wr, wi, std::make_integer_sequence<int, kLanes>());
      if (job.inverse) wi = -wi;
      const V r = re * wr - im * wi;
      im = re * wi + im * wr;
      re = r;
      return;
    }
    T a[kLanes];
    T b[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) {
      const int64_t at = std::min(job.first_row + l, job.first_row + job.to.rows - 1) * k;
      const T* c = job.coarse + 2 * (at / job.fine_size);
      const T* f = job.fine + 2 * (at % job.fine_size);
      a[l] = c[0] * f[0] - c[1] * f[1];
      b[l] = c[0] * f[1] + c[1] * f[0];
      if (job.inverse) b[l] = -b[l];
    }
    V wr;
    V wi;
    std::memcpy(&wr, a, sizeof wr);
    std::memcpy(&wi, b, sizeof wi);
    const V r = re * wr - im * wi;
    im = re * wi + im * wr;
    re = r;
  }

  COLLET_INLINE static C* stages(const FftPlan<T>& plan, C* x, C* y) {
    for (const FftStage<T>& s : plan.stages) {
      switch (s.radix) {
        case 2:
          stage<2>(s, x, y);
          break;
        case 3:
          stage<3>(s, x, y);
          break;
        case 4:
          stage<4>(s, x, y);
          break;
        case 5:
          stage<5>(s, x, y);
          break;
        case 7:
          stage<7>(s, x, y);
          break;
        case 8:
          stage<8>(s, x, y);
          break;
        default:
          stage<0>(s, x, y);
          break;
      }
      std::swap(x, y);
    }
    return x;
  }

  template <int R>
  COLLET_INLINE static void stage(const FftStage<T>& s, const C* x, C* y) {
    constexpr int kRoom = R ? R : static_cast<int>(kMostRadix);
    const int64_t radix = R ? R : s.radix;
    const int64_t m = s.groups;
    const int64_t stride = s.stride;
    for (int64_t p = 0; p < m; ++p) {
      const T* w = s.roots.data() + 2 * p * (radix - 1);
      for (int64_t q = 0; q < stride; ++q) {
        C a[kRoom];
#pragma GCC unroll 8
        for (int64_t k = 0; k < radix; ++k) a[k] = x[q + stride * (p + m * k)];
        butterfly<R>(s, a);
        C* to = y + q + stride * radix * p;
        to[0] = a[0];
        if (m == 1) {
#pragma GCC unroll 8
          for (int64_t k = 1; k < radix; ++k) to[stride * k] = a[k];
        } else {
#pragma GCC unroll 8
          for (int64_t k = 1; k < radix; ++k) {
            multiply(a[k], w[2 * (k - 1)], w[2 * (k - 1) + 1]);
            to[stride * k] = a[k];
          }
        }
      }
    }
  }

  COLLET_INLINE static void both(C& x, C& y) {
    const C sum{x.re + y.re, x.im + y.im};
    y = C{x.re - y.re, x.im - y.im};
    x = sum;
  }
  /// Multiplies x by -i.
  COLLET_INLINE static void quarter(C& x) { x = C{x.im, -x.re}; }

  COLLET_INLINE static void four(C& a, C& b, C& c, C& d) {
    both(a, c);
    both(b, d);
    quarter(d);
    both(a, b);
    both(c, d);
    std::swap(b, c);  // a, c, b, d are results 0, 1, 2, 3
  }

  template <int R>
  COLLET_INLINE static void butterfly(const FftStage<T>& s, C* a) {
    if constexpr (R == 2) {
      both(a[0], a[1]);
    } else if constexpr (R == 4) {
      four(a[0], a[1], a[2], a[3]);
    } else if constexpr (R == 8) {
      const T h = T(0.70710678118654752440);
      four(a[0], a[2], a[4], a[6]);
      four(a[1], a[3], a[5], a[7]);
      // Results with even numbers are in 0, 2, 4, 6; those with odd numbers, in 1, 3, 5, 7, must be multiplied by
      // eighth roots of unity.
      a[3] = C{(a[3].re + a[3].im) * h, (a[3].im - a[3].re) * h};
      quarter(a[5]);
      a[7] = C{(a[7].im - a[7].re) * h, -(a[7].re + a[7].im) * h};
#pragma GCC unroll 8
      for (int k = 0; k < 8; k += 2) both(a[k], a[k + 1]);
      const C r[8] = {a[0], a[2], a[4], a[6], a[1], a[3], a[5], a[7]};
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) a[k] = r[k];
    } else {
      constexpr int kRoom = R ? R : static_cast<int>(kMostRadix);
      const int64_t radix = R ? R : s.radix;
      const int64_t half = radix / 2;
      C sum[kRoom / 2 + 1];
      C difference[kRoom / 2 + 1];
      C first = a[0];
#pragma GCC unroll 8
      for (int64_t j = 1; j <= half; ++j) {
        sum[j] = C{a[j].re + a[radix - j].re, a[j].im + a[radix - j].im};
        difference[j] = C{a[j].re - a[radix - j].re, a[j].im - a[radix - j].im};
        first.re += sum[j].re;
        first.im += sum[j].im;
      }
#pragma GCC unroll 8
      for (int64_t k = 1; k <= half; ++k) {
        const T* c = s.cosines.data() + k * radix;
        const T* d = s.sines.data() + k * radix;
        C even = a[0];
        C odd{V{}, V{}};
#pragma GCC unroll 8
        for (int64_t j = 1; j <= half; ++j) {
          even.re += sum[j].re * c[j];
          even.im += sum[j].im * c[j];
          odd.re += difference[j].re * d[j];
          odd.im += difference[j].im * d[j];
        }
        // Multiplied by -i, because the sines are those of positive angles.
        a[k] = C{even.re + odd.im, even.im - odd.re};
        a[radix - k] = C{even.re - odd.im, even.im + odd.re};
      }
      a[0] = first;
    }
  }
};

}  // namespace collet::codegen

#pragma GCC diagnostic pop
