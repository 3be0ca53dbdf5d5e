// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <memory>

#include "sdk/codegen/routines/fft_lanes.h"
#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/routines/worker_memory.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

using Complex = std::complex<double>;

constexpr double kPi = 3.14159265358979323846;
/// Rows from this length on are transformed as matrices of two dimensions.
constexpr int64_t kLong = 4096;
/// Real rows from this length on are transformed one by one, not two to a lane.
constexpr int64_t kLongest = 16 * kLong;
/// Bytes that the rows of all lanes may have and still fit into the first-level cache. If they have more, and the
/// length is a multiple of kConflict, all rows begin in the same sets of that cache, which makes loading and storing
/// them slow.
constexpr int64_t kLongBytes = 32768;
constexpr int64_t kConflict = 256;
/// Most bytes of operand and result together for which rows are transformed one by one because of kConflict. More do
/// not fit into the second-level cache; the processor then prefetches rows that lie side by side, but not the columns
/// of a matrix.
constexpr int64_t kMostNear = 3 << 19;
/// The longest rows, in bytes, that are loaded into the caches before they are transformed.
constexpr int64_t kMostPrefetched = 131072;
constexpr int64_t kMostTwiddles = int64_t{1}
                                  << 20;  ///< most twiddle factors in one table; longer rows use two small tables
/// The length from which rows are transformed as matrices if there are fewer rows than lanes.
constexpr int64_t kAlone = 256;

/// Returns e^(-2 pi i k / n). The angle is reduced first, for accuracy.
Complex root_of_unity(int64_t k, int64_t n) {
  k %= n;
  const double turn = 2.0 * kPi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(turn), -std::sin(turn)};
}

template <typename T>
void append(std::vector<T>& out, Complex x) {
  out.push_back(static_cast<T>(x.real()));
  out.push_back(static_cast<T>(x.imag()));
}

/// Returns the factors of n, each of which becomes a pass. Empty if a prime factor is too large, and for n = 1.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> out;
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (; twos == 2 || twos == 4 || (twos > 3 && twos % 3 == 1) || (twos > 3 && twos % 3 == 2); twos -= 2)
    out.push_back(4);
  for (; twos >= 3; twos -= 3) out.push_back(8);
  if (twos == 1) out.push_back(2);
  for (int64_t p = 3; n > 1; p += 2) {
    if (p > kMostRadix) return {};
    for (; n % p == 0; n /= p) out.push_back(p);
  }
  return out;
}

template <typename T>
FftPlan<T> make_plan(int64_t n) {
  FftPlan<T> plan;
  plan.n = n;
  int64_t left = n;
  int64_t stride = 1;
  for (int64_t r : radices_of(n)) {
    FftStage<T>& s = plan.stages.emplace_back();
    s.radix = r;
    s.groups = left / r;
    s.stride = stride;
    for (int64_t p = 0; p < s.groups; ++p) {
      for (int64_t k = 1; k < r; ++k) append(s.roots, root_of_unity(p * k, left));
    }
    for (int64_t k = 0; r % 2 && k < r; ++k) {
      for (int64_t j = 0; j < r; ++j) {
        const Complex c = root_of_unity(j * k, r);
        s.cosines.push_back(static_cast<T>(c.real()));
        s.sines.push_back(static_cast<T>(-c.imag()));
      }
    }
    left = s.groups;
    stride *= r;
  }
  return plan;
}

/// Transforms an array whose length is a power of two, in f64; used to make tables.
void transform_in_place(std::vector<Complex>& x) {
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j |= bit;
    if (i < j) std::swap(x[static_cast<size_t>(i)], x[static_cast<size_t>(j)]);
  }
  for (int64_t half = 1; half < n; half *= 2) {
    for (int64_t k = 0; k < half; ++k) {
      const Complex w = root_of_unity(k, 2 * half);
      for (int64_t first = k; first < n; first += 2 * half) {
        Complex& a = x[static_cast<size_t>(first)];
        Complex& b = x[static_cast<size_t>(first + half)];
        const Complex t(b.real() * w.real() - b.imag() * w.imag(), b.real() * w.imag() + b.imag() * w.real());
        b = a - t;
        a += t;
      }
    }
  }
}

/// Returns the lesser of the two factors of n for its transform as a matrix, or 0 if there are none of similar size.
int64_t factor_of(int64_t n) {
  int64_t best = 1;
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) best = d;
  }
  return best * best < n / 64 || best < 8 ? 0 : best;
}

/// Transforms an array whose length is m times a power of two, for a small odd m; used to make tables.
void transform_of_any_length(std::vector<Complex>& x) {
  const size_t n = x.size(), length = n & -n, m = n / length;
  if (m == 1) return transform_in_place(x);
  std::vector<std::vector<Complex>> parts(m);  // every m-th element
  for (size_t i = 0; i < n; ++i) parts[i % m].push_back(x[i]);
  for (std::vector<Complex>& part : parts) transform_in_place(part);
  for (size_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (size_t r = 0; r < m; ++r)
      sum += parts[r][k % length] * root_of_unity(static_cast<int64_t>(r * k % n), static_cast<int64_t>(n));
    x[k] = sum;
  }
}

/// Returns the length of the convolution by which Bluestein's algorithm computes a transform of length `n`: at least 2 n - 1. Powers of
/// two are transformed fastest, but the next one may be twice as long.
int64_t convolution_length(int64_t n) {
  const auto least = static_cast<uint64_t>(2 * n - 1);
  uint64_t best = std::bit_ceil(least);
  for (const uint64_t m : {3, 5, 9}) {
    const uint64_t size = m * std::bit_ceil((least + m - 1) / m);
    if (size + size / 8 < best) best = size;
  }
  return static_cast<int64_t>(best);
}

/// True if it is faster to transform rows one by one, each as a matrix whose columns and then rows are in the lanes,
/// than to put a row into each lane, where lanes without rows cost as much as others. `together` is the number of rows
/// that the lanes hold, and `ratio` is the time of one row that is transformed as a matrix with all lanes in use,
/// divided by the time of one row in a lane.
bool is_faster_split(int64_t n, int64_t rows, int64_t lanes, int64_t together, double ratio) {
  const int64_t n1 = factor_of(n);
  if (n1 == 0 || radices_of(n).empty()) return false;
  const int64_t n2 = n / n1;
  const int64_t vectors = (n2 + lanes - 1) / lanes * n1 + (n1 + lanes - 1) / lanes * n2;
  const double cost = ratio * static_cast<double>(vectors * lanes) / static_cast<double>(2 * n);
  return cost * static_cast<double>(rows) < static_cast<double>((rows + together - 1) / together * together);
}

/// The functions of FftLanes for vectors of one size.
template <typename T>
struct LanesFunctions {
  void (*run)(const FftJob<T>& job, char* work);
  void (*to_real)(const T* z, const T* roots, int64_t half, T* to);
  void (*from_real)(const T* from, const T* roots, int64_t half, T* z);
};

#define COLLET_FFT_FUNCTIONS(target, bytes)                                         \
  template <typename T>                                                             \
  target void run##bytes(const FftJob<T>& job, char* work) {                        \
    FftLanes<T, bytes>::run(job, work);                                             \
  }                                                                                 \
  template <typename T>                                                             \
  target void to_real##bytes(const T* z, const T* roots, int64_t half, T* to) {     \
    FftLanes<T, bytes>::to_real_transform(z, roots, half, to);                      \
  }                                                                                 \
  template <typename T>                                                             \
  target void from_real##bytes(const T* from, const T* roots, int64_t half, T* z) { \
    FftLanes<T, bytes>::from_real_transform(from, roots, half, z);                  \
  }                                                                                 \
  template <typename T>                                                             \
  constexpr LanesFunctions<T> kLanes##bytes{run##bytes<T>, to_real##bytes<T>, from_real##bytes<T>};

COLLET_FFT_FUNCTIONS(, 16)
#if defined(__x86_64__)
COLLET_FFT_FUNCTIONS([[gnu::target("avx2,fma")]], 32)
COLLET_FFT_FUNCTIONS([[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]], 64)
#endif

/// Selects the implementation for the widest vectors of this processor.
template <typename T>
struct Lanes {
  LanesFunctions<T> functions = kLanes16<T>;
  int64_t bytes = 16;
  int64_t count() const { return bytes / static_cast<int64_t>(sizeof(T)); }

  static Lanes get() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return {kLanes64<T>, 64};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {kLanes32<T>, 32};
#endif
    return {};
  }
};

/// The rows of an array along one dimension: row r begins at (r / inner) * outer_step + r % inner.
template <typename T>
struct Line {
  FftForm form = FftForm::kComplex;
  T* data = nullptr;
  int64_t inner = 1;
  int64_t outer_step = 1;
  bool ahead = false;             ///< as of FftRows
  const T* real_roots = nullptr;  ///< of kHalves: as of FftJob
  int64_t begin(int64_t r) const { return r / inner * outer_step + r % inner; }
};

/// Calls body(row, own, shared, threads) for each row, with scratch memory that no other call uses at the same time. If
/// there is more than one row, threads take whole rows, and body gets null; otherwise it gets `threads`, which may be
/// null. `ns` is the estimated time of a row.
template <typename Body>
void for_each_row(int64_t rows, double ns, char* own, int64_t own_bytes, char* shared, int64_t shared_bytes,
                  Threads* threads, Body body) {
  if (rows == 1) return body(0, own, shared, threads);
  if (!threads) {
    for (int64_t r = 0; r < rows; ++r) body(r, own, shared, threads);
    return;
  }
  const int64_t first = (own_bytes + 63) / 64 * 64;
  const WorkerMemory memory(nullptr, static_cast<size_t>(first + shared_bytes), rows, *threads);
  for_each_part(rows, ns, *threads, [&](int64_t r, int worker) {
    if (worker == 0) return body(r, own, shared, static_cast<Threads*>(nullptr));
    body(r, memory.of(worker), memory.of(worker) + first, static_cast<Threads*>(nullptr));
  });
}

/// Transforms of rows of one length.
template <typename T>
class Transform {
 public:
  /// `complex`: whether both operands and results are rows of complex numbers. `contiguous`: whether the elements of
  /// each row are neighbours in memory.
  Transform(int64_t n, int64_t rows, bool complex, bool contiguous)
      : lanes_(Lanes<T>::get()), n_(n), rows_(rows), contiguous_(contiguous) {
    const bool small_primes = n == 1 || !radices_of(n).empty();
    if (complex && small_primes && is_long() && split()) return;
    if (small_primes) {
      plan_ = make_plan<T>(n);
      return;
    }
    const int64_t size = convolution_length(n);
    const bool near = 4 * size * rows * static_cast<int64_t>(sizeof(T)) <= kMostNear;
    const bool alone =
        2 * rows < lanes_.count() || is_faster_split(size, rows, lanes_.count(), lanes_.count(), near ? 1.25 : 1.6);
    if (complex && (n >= kLong || (n >= kAlone && alone))) {
      inner_ = std::make_unique<Transform>(size, 1, true, true);
    } else {
      plan_ = make_plan<T>(size);
    }
    std::vector<Complex> filter(static_cast<size_t>(size));
    for (int64_t k = 0; k < n; ++k) {
      const Complex c = root_of_unity(k * k % (2 * n), 2 * n);
      append(chirp_, c);
      filter[static_cast<size_t>(k)] = std::conj(c) / static_cast<double>(size);
      if (k > 0) filter[static_cast<size_t>(size - k)] = filter[static_cast<size_t>(k)];
    }
    transform_of_any_length(filter);
    for (const Complex& c : filter) append(filter_, c);
  }

  /// Returns the bytes of scratch memory that each worker needs.
  int64_t lane_bytes() const {
    if (inner_) return inner_->lane_bytes();
    const int64_t most = n1_ ? std::max(first_.n, plan_.n) : plan_.n;
    return 4 * most * lanes_.bytes;
  }
  /// Returns the bytes of scratch memory that all workers share.
  int64_t shared_bytes() const {
    if (inner_) return 2 * inner_->n_ * static_cast<int64_t>(sizeof(T)) + inner_->shared_bytes();
    return n1_ ? 2 * n_ * static_cast<int64_t>(sizeof(T)) : 0;
  }

  /// Runs the transform. `own` has lane_bytes() and `shared` has shared_bytes(). If `threads` is null, only the caller
  /// works.
  void run(const Line<const T>& from, const Line<T>& to, bool inverse, T scale, char* own, char* shared,
           Threads* threads) const {
    if (inner_) return convolve(from, to, inverse, scale, own, shared, threads);
    if (!n1_) {
      FftJob<T> job = job_of(plan_, inverse, scale);
      if (!chirp_.empty()) {
        job.chirp = chirp_.data();
        job.filter = filter_.data();
      }
      job.length = n_;
      return rows(job, rows_, from, from.inner, to, to.inner, own, threads);
    }
    const auto row = [&](int64_t r, char* lanes, char* between, Threads* helpers) {
      if (r + 1 < rows_ && contiguous_ && is_prefetched())
        prefetch(from.data + 2 * from.begin(r + 1), to.data + 2 * to.begin(r + 1));
      const bool ahead = contiguous_ && !is_prefetched();
      const Line<const T> one{FftForm::kComplex, from.data + 2 * from.begin(r), from.inner, 0, ahead};
      as_matrix(one, {FftForm::kComplex, to.data + 2 * to.begin(r), to.inner, 0, ahead}, inverse, scale, lanes,
                reinterpret_cast<T*>(between), helpers);
    };
    const auto n = static_cast<double>(n_);
    for_each_row(rows_, n * std::log2(n) / 4, own, lane_bytes(), shared, shared_bytes(), threads, row);
  }

  /// True if each row is transformed by itself, as a matrix of two dimensions.
  bool is_split() const { return n1_ > 0; }

 private:
  bool is_long() const {
    if (n_ >= kLong) return true;
    if (n_ < kAlone) return false;
    if (!contiguous_) return 2 * rows_ < lanes_.count();
    const bool near = 4 * n_ * rows_ * static_cast<int64_t>(sizeof(T)) <= kMostNear;
    return (near && n_ * lanes_.bytes >= kLongBytes && n_ % kConflict == 0) ||
           is_faster_split(n_, rows_, lanes_.count(), lanes_.count(), near ? 1.25 : 1.6);
  }

  static FftJob<T> job_of(const FftPlan<T>& plan, bool inverse, T scale) {
    FftJob<T> job;
    job.plan = &plan;
    job.length = plan.n;
    job.inverse = inverse;
    job.scale = scale;
    return job;
  }

  bool is_prefetched() const { return 2 * n_ * static_cast<int64_t>(sizeof(T)) <= kMostPrefetched; }
  /// Loads a row into the caches, and space for its result. The columns of a matrix are too far apart for the processor
  /// to foresee.
  void prefetch(const T* from, const T* to) const {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < 2 * n_; i += kLine) {
      __builtin_prefetch(from + i, 0, 2);
      __builtin_prefetch(to + i, 1, 2);
    }
  }

  /// Transforms a row as a matrix [n1, n2]: first its columns, whose results are multiplied by twiddle factors, and
  /// then its rows.
  void as_matrix(const Line<const T>& from, const Line<T>& to, bool inverse, T scale, char* own, T* between,
                 Threads* threads) const {
    FftJob<T> columns = job_of(first_, inverse, T(1));
    columns.twiddles = twiddles_.empty() ? nullptr : twiddles_.data();
    columns.twiddle_step = n2_;
    columns.coarse = coarse_.data();
    columns.fine = fine_.data();
    columns.fine_size = fine_size_;
    const int64_t step = from.inner;
    const int64_t out_step = to.inner;
    rows(columns, n2_, from, n2_ * step, {FftForm::kComplex, between, 1, 0}, n2_, own, threads, step, 1);
    rows(job_of(plan_, inverse, scale), n1_, {FftForm::kComplex, between, 1, 0}, 1, to, n1_ * out_step, own, threads,
         n2_, out_step);
  }

  /// Transforms row after row as a convolution (Bluestein's algorithm), by transforms of another length.
  void convolve(const Line<const T>& from, const Line<T>& to, bool inverse, T scale, char* own, char* shared,
                Threads* threads) const {
    const int64_t size = inner_->n_;
    T* z = reinterpret_cast<T*>(shared);
    char* rest = shared + 2 * size * static_cast<int64_t>(sizeof(T));
    const Line<T> line{FftForm::kComplex, z, 1, size};
    const Line<const T> same{FftForm::kComplex, z, 1, size};
    // The inverse is computed as the conjugate of the transform of the conjugate.
    const T sign = inverse ? T(-1) : T(1);
    for (int64_t r = 0; r < rows_; ++r) {
      const T* x = from.data + 2 * from.begin(r);
      T* y = to.data + 2 * to.begin(r);
      for (int64_t i = 0; i < n_; ++i) {
        z[2 * i] = x[2 * i * from.inner];
        z[2 * i + 1] = sign * x[2 * i * from.inner + 1];
      }
      std::fill(z + 2 * n_, z + 2 * size, T(0));
      multiply(z, chirp_, n_);
      inner_->run(same, line, false, T(1), own, rest, threads);
      multiply(z, filter_, size);
      inner_->run(same, line, true, T(1), own, rest, threads);
      multiply(z, chirp_, n_);
      for (int64_t i = 0; i < n_; ++i) {
        y[2 * i * to.inner] = scale * z[2 * i];
        y[2 * i * to.inner + 1] = sign * scale * z[2 * i + 1];
      }
    }
  }

  /// Multiplies the first n complex numbers of x by those of y.
  static void multiply(T* x, const std::vector<T>& y, int64_t n) {
    const T* f = y.data();
    for (int64_t i = 0; i < n; ++i) {
      const T re = x[2 * i];
      const T im = x[2 * i + 1];
      x[2 * i] = re * f[2 * i] - im * f[2 * i + 1];
      x[2 * i + 1] = re * f[2 * i + 1] + im * f[2 * i];
    }
  }

  /// Splits n into two factors of similar size. Returns false if there are none.
  bool split() {
    const int64_t best = factor_of(n_);
    if (best == 0) return false;
    n1_ = best;
    n2_ = n_ / best;
    first_ = make_plan<T>(n1_);
    plan_ = make_plan<T>(n2_);
    for (fine_size_ = 1; fine_size_ * fine_size_ < n_; fine_size_ *= 2) {
    }
    std::vector<Complex> fine;
    std::vector<Complex> coarse;
    for (int64_t k = 0; k < fine_size_; ++k) fine.push_back(root_of_unity(k, n_));
    for (int64_t k = 0; k * fine_size_ < n_; ++k) coarse.push_back(root_of_unity(k * fine_size_, n_));
    for (const Complex& x : fine) append(fine_, x);
    for (const Complex& x : coarse) append(coarse_, x);
    if (n_ > kMostTwiddles) return true;
    twiddles_.reserve(static_cast<size_t>(2 * n_));
    for (int64_t k = 0; k < n1_; ++k) {
      for (int64_t row = 0; row < n2_; ++row) {
        const Complex x = coarse[static_cast<size_t>(k * row / fine_size_)];
        const Complex y = fine[static_cast<size_t>(k * row % fine_size_)];
        append(twiddles_,
               Complex(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()));
      }
    }
    return true;
  }

  /// Transforms rows whose elements are `step` and `out_step` apart. They begin where the rows of `from` and `to` begin
  /// or, if `distance` is not 0, at multiples of `distance` and `out_distance`.
  void rows(const FftJob<T>& job, int64_t count, const Line<const T>& from, int64_t step, const Line<T>& to,
            int64_t out_step, char* own, Threads* threads, int64_t distance = 0, int64_t out_distance = 0) const {
    const int64_t together = lanes_.count();
    const int64_t groups = (count + together - 1) / together;
    const auto bytes = static_cast<size_t>(4 * job.plan->n * lanes_.bytes);
    const double ns = 2.0 * static_cast<double>(job.plan->n) *
                      static_cast<double>(std::bit_width(static_cast<uint64_t>(job.plan->n)));
    const auto group = [&](int64_t g, char* work) {
      int64_t begins[2][64];
      FftJob<T> one = job;
      // The last group is moved back to a full group, if the rows that it repeats have not been overwritten.
      const bool apart = static_cast<const void*>(from.data) != to.data && count >= together;
      const int64_t first = apart ? std::min(g * together, count - together) : g * together;
      const int64_t n = std::min(together, count - first);
      for (int64_t r = 0; r < n; ++r) {
        begins[0][r] = distance ? (first + r) * distance : from.begin(first + r);
        begins[1][r] = out_distance ? (first + r) * out_distance : to.begin(first + r);
      }
      const auto adjacent = [n](const int64_t* b) {
        for (int64_t r = 1; r < n; ++r) {
          if (b[r] != b[0] + r) return false;
        }
        return true;
      };
      one.from = {from.form, from.data, step, begins[0], n, adjacent(begins[0]), from.ahead};
      one.to = {to.form, to.data, out_step, begins[1], n, adjacent(begins[1]), to.ahead};
      one.first_row = first;
      one.real_roots = from.real_roots ? from.real_roots : to.real_roots;
      lanes_.functions.run(one, work);
    };
    if (!threads) {
      for (int64_t g = 0; g < groups; ++g) group(g, own);
      return;
    }
    const WorkerMemory memory(own, bytes, groups, *threads);
    for_each_part(groups, ns, *threads, [&](int64_t g, int worker) { group(g, memory.of(worker)); });
  }

  Lanes<T> lanes_;
  int64_t n_;
  int64_t rows_;
  bool contiguous_;
  FftPlan<T> plan_;
  std::vector<T> chirp_;
  std::vector<T> filter_;
  // For a length that is split into two factors: the plan of the first factor, and roots of unity.
  int64_t n1_ = 0;
  int64_t n2_ = 0;
  FftPlan<T> first_;
  int64_t fine_size_ = 1;
  std::vector<T> coarse_;
  std::vector<T> fine_;
  std::vector<T> twiddles_;
  /// For a length with a large prime factor and few rows: the transform of the convolution's length.
  std::unique_ptr<Transform> inner_;
};

template <typename T>
class Fft : public Routine {
 public:
  explicit Fft(const RoutineCall& call)
      : type_(static_cast<uint32_t>(call.numbers[0])), lengths_(call.numbers.begin() + 1, call.numbers.end()) {
    const ArrayType& in = call.operands[0];
    const ArrayType& out = call.results[0];
    empty_ = in.elements == 0 || out.elements == 0;
    if (empty_) return;
    real_ = type_ == COLLET_FFT_RFFT || type_ == COLLET_FFT_IRFFT;
    inverse_ = type_ == COLLET_FFT_IFFT || type_ == COLLET_FFT_IRFFT;
    const ArrayType& complex = type_ == COLLET_FFT_IRFFT ? in : out;
    elements_ = complex.elements;
    const size_t rank = complex.dims.size();
    int64_t inner = 1;
    for (size_t k = 0; k < lengths_.size(); ++k) {  // runs from the last dimension to the first
      const size_t d = rank - 1 - k;
      const int64_t length = lengths_[lengths_.size() - 1 - k];
      const int64_t size = complex.dims[d];
      axes_.push_back({length, size, inner, elements_ / size});
      inner *= size;
    }
    Axis& last = axes_[0];
    if (real_ && last.length % 2 == 0 && is_better_halved(last.length, last.rows)) {
      way_ = RealRows::kHalved;
    } else if (real_ && is_better_alone(last.length, last.rows)) {
      way_ = RealRows::kWhole;
    }
    for (const Axis& a : axes_) {
      const bool alone = way_ != RealRows::kInLanes && &a == &last;
      const bool half = is_halved() && &a == &last;
      transforms_.emplace_back(half ? a.length / 2 : a.length, alone ? 1 : a.rows, alone || !real_ || &a != &last,
                               a.inner == 1);
      lane_bytes_ = std::max(lane_bytes_, transforms_.back().lane_bytes());
      shared_bytes_ = std::max(shared_bytes_, transforms_.back().shared_bytes());
    }
    if (is_halved()) {
      for (int64_t k = 0; k <= last.length / 4; ++k) append(halves_, root_of_unity(k, last.length));
    }
    if (way_ == RealRows::kHalved) row_bytes_ = last.length * static_cast<int64_t>(sizeof(T));
    if (way_ == RealRows::kWhole) row_bytes_ = 2 * last.length * static_cast<int64_t>(sizeof(T));
    if (type_ == COLLET_FFT_IRFFT && axes_.size() > 1) copy_bytes_ = 2 * elements_ * static_cast<int64_t>(sizeof(T));
    for (int64_t* bytes : {&lane_bytes_, &shared_bytes_, &row_bytes_}) *bytes = (*bytes + 63) / 64 * 64;
  }

  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(lane_bytes_ + shared_bytes_ + row_bytes_ + copy_bytes_) + 64;
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (empty_) return;
    char* const shared = buffers[2] + lane_bytes_;
    char* const half = shared + shared_bytes_;
    const T* in = reinterpret_cast<const T*>(buffers[0]);
    T* out = reinterpret_cast<T*>(buffers[1]);
    const Axis& last = axes_[0];
    const T* const roots = is_halved() ? halves_.data() : nullptr;
    const auto along = [&](size_t a, const T* from, T* to) {
      const Axis& x = axes_[a];
      transforms_[a].run({FftForm::kComplex, from, x.inner, x.size * x.inner},
                         {FftForm::kComplex, to, x.inner, x.size * x.inner}, inverse_, scale(a), buffers[2], shared,
                         &threads);
    };
    const auto n = static_cast<double>(last.length);
    const auto rows_alone = [&](auto body) {
      for_each_row(last.rows, n * std::log2(n) / 4, buffers[2], lane_bytes_ + shared_bytes_, half, row_bytes_, &threads,
                   [&](int64_t r, char* own, char* z, Threads* helpers) {
                     body(r, Work{own, own + lane_bytes_, reinterpret_cast<T*>(z)}, helpers);
                   });
    };
    if (type_ == COLLET_FFT_IRFFT) {
      T* copy = reinterpret_cast<T*>(half + row_bytes_);
      for (size_t a = axes_.size() - 1; a > 0; --a) along(a, a + 1 == axes_.size() ? in : copy, copy);
      const T* from = axes_.size() > 1 ? copy : in;
      if (way_ != RealRows::kInLanes) {
        return rows_alone([&](int64_t r, const Work& work, Threads* helpers) {
          const T* const row = from + 2 * r * last.size;
          T* const to = out + r * last.length;
          way_ == RealRows::kHalved ? join(row, to, work, helpers) : join_whole(row, to, work, helpers);
        });
      }
      const Line<const T> transformed{FftForm::kHalves, from, 1, last.size, false, roots};
      const T by = is_halved() ? 2 * scale(0) : scale(0);
      transforms_[0].run(transformed, in_lanes(out, last.length), true, by, buffers[2], shared, &threads);
      return;
    }
    if (!real_) {
      along(0, in, out);
    } else if (way_ != RealRows::kInLanes) {
      rows_alone([&](int64_t r, const Work& work, Threads* helpers) {
        const T* const row = in + r * last.length;
        T* const to = out + 2 * r * last.size;
        way_ == RealRows::kHalved ? part(row, to, work, helpers) : part_whole(row, to, work, helpers);
      });
    } else {
      const Line<T> transformed{FftForm::kHalves, out, 1, last.size, false, roots};
      transforms_[0].run(in_lanes(in, last.length), transformed, false, T(1), buffers[2], shared, &threads);
    }
    for (size_t a = 1; a < axes_.size(); ++a) along(a, out, out);
  }

 private:
  /// A transformed dimension of the complex array.
  struct Axis {
    int64_t length;  ///< length of the transform
    int64_t size;    ///< size of the dimension: length / 2 + 1 if the other side is real
    int64_t inner;   ///< number of elements of the dimensions inside it
    int64_t rows;
  };
  struct Work {
    char* lanes;
    char* shared;
    T* row;  ///< a row of complex numbers, of half the length for kHalved
  };
  /// How rows of real numbers are transformed.
  enum class RealRows : uint8_t {
    kInLanes,  ///< a row in each lane: as a complex row of half the length or, if that is odd, with imaginary parts of zero
    kHalved,  ///< one row after the other, as a complex row of half the length
    kWhole,   ///< one row after the other, as a complex row whose imaginary parts are zero
  };

  /// True if pairs of neighbours are the elements of complex rows.
  bool is_halved() const { return real_ && way_ != RealRows::kWhole && axes_[0].length % 2 == 0; }

  /// Returns where the real rows are that are transformed in lanes.
  template <typename Number>
  Line<Number> in_lanes(Number* data, int64_t length) const {
    return is_halved() ? Line<Number>{FftForm::kComplex, data, 1, length / 2}
                       : Line<Number>{FftForm::kReals, data, 1, length};
  }

  /// True if it is faster to transform real rows one after the other, as complex rows of half the length, than to put one into each
  /// lane: lanes without rows cost as much as others, and many long rows do not fit into the caches.
  static bool is_better_halved(int64_t length, int64_t rows) {
    const Lanes<T> lanes = Lanes<T>::get();
    if (length >= kLongest || (rows == 1 && length >= 32)) return true;
    if (length < 2 * kAlone) return false;
    const int64_t together = lanes.count();
    if (factor_of(length / 2) == 0 || radices_of(length).empty())
      return 2 * rows <= (rows + together - 1) / together * together;
    const bool near = 2 * length * rows * static_cast<int64_t>(sizeof(T)) <= kMostNear;
    const bool conflict = near && length * lanes.bytes >= 2 * kLongBytes && length % (2 * kConflict) == 0;
    return conflict || length >= 4 * kLong ||
           is_faster_split(length / 2, rows, lanes.count(), together, near ? 1.5 : 1.8);
  }

  /// True if rows of a length that cannot be halved should be transformed one after the other, as complex rows: those are
  /// computed by parts that fit into the caches, where lanes of whole rows would take many times the memory of the row.
  static bool is_better_alone(int64_t length, int64_t rows) {
    if (length >= kLongest) return true;
    if (length < kAlone) return false;
    const int64_t lanes = Lanes<T>::get().count();
    const int64_t transformed = radices_of(length).empty() ? convolution_length(length) : length;
    const bool near = 4 * transformed * rows * static_cast<int64_t>(sizeof(T)) <= kMostNear;
    return 2 * rows < lanes || is_faster_split(transformed, rows, lanes, lanes, near ? 1.25 : 1.6);
  }

  T scale(size_t a) const { return inverse_ ? static_cast<T>(1.0 / static_cast<double>(axes_[a].length)) : T(1); }

  /// Transforms a real row as a complex row of half the length, and derives the row's transform from it.
  void part(const T* from, T* to, const Work& work, Threads* threads) const {
    const int64_t half = axes_[0].length / 2;
    transforms_[0].run({FftForm::kComplex, from, 1, half}, {FftForm::kComplex, work.row, 1, half}, false, T(1),
                       work.lanes, work.shared, threads);
    lanes_.functions.to_real(work.row, halves_.data(), half, to);
  }

  /// The inverse of part().
  void join(const T* from, T* to, const Work& work, Threads* threads) const {
    const int64_t half = axes_[0].length / 2;
    lanes_.functions.from_real(from, halves_.data(), half, work.row);
    const T factor = static_cast<T>(1.0 / static_cast<double>(half));
    transforms_[0].run({FftForm::kComplex, work.row, 1, half}, {FftForm::kComplex, to, 1, half}, true, factor,
                       work.lanes, work.shared, threads);
  }

  /// Transforms a real row as a complex row.
  void part_whole(const T* from, T* to, const Work& work, Threads* threads) const {
    const Axis& axis = axes_[0];
    for (int64_t i = 0; i < axis.length; ++i) {
      work.row[2 * i] = from[i];
      work.row[2 * i + 1] = 0;
    }
    transforms_[0].run({FftForm::kComplex, work.row, 1, axis.length}, {FftForm::kComplex, work.row, 1, axis.length},
                       false, T(1), work.lanes, work.shared, threads);
    std::copy_n(work.row, 2 * axis.size, to);
  }

  /// The inverse of part_whole(). The imaginary part of the first element is taken for zero.
  void join_whole(const T* from, T* to, const Work& work, Threads* threads) const {
    const Axis& axis = axes_[0];
    T* const row = work.row;
    std::copy_n(from, 2 * axis.size, row);
    row[1] = 0;
    for (int64_t i = axis.size; i < axis.length; ++i) {
      row[2 * i] = from[2 * (axis.length - i)];
      row[2 * i + 1] = -from[2 * (axis.length - i) + 1];
    }
    if (axis.length % 2 == 0) row[axis.length + 1] = 0;  // so is that of the middle one
    transforms_[0].run({FftForm::kComplex, row, 1, axis.length}, {FftForm::kComplex, row, 1, axis.length}, true,
                       scale(0), work.lanes, work.shared, threads);
    for (int64_t i = 0; i < axis.length; ++i) to[i] = row[2 * i];
  }

  Lanes<T> lanes_ = Lanes<T>::get();
  uint32_t type_ = 0;
  Dims lengths_;
  bool empty_ = false;
  bool real_ = false;
  bool inverse_ = false;
  RealRows way_ = RealRows::kInLanes;
  int64_t elements_ = 0;
  std::vector<Axis> axes_;  ///< from the last dimension to the first
  std::vector<Transform<T>> transforms_;
  std::vector<T> halves_;
  int64_t lane_bytes_ = 0;
  int64_t shared_bytes_ = 0;
  int64_t row_bytes_ = 0;
  int64_t copy_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Routine> make_fft(const RoutineCall& call) {
  const uint32_t type = call.operands[0].element;
  if (type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128) return std::make_unique<Fft<double>>(call);
  return std::make_unique<Fft<float>>(call);
}

}  // namespace collet::codegen
