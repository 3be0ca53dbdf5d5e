// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <memory>

#include "sdk/codegen/launch/fft_lanes.h"
#include "sdk/codegen/launch/routine.h"
#include "sdk/codegen/launch/worker_memory.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace collet::codegen {
namespace {

using Complex = std::complex<double>;

constexpr double kPi = 3.14159265358979323846;
/// Rows from this length on are transformed as matrices of two dimensions.
constexpr int64_t kLong = 4096;
/// Real rows from this length on are transformed one by one, not two to a lane.
constexpr int64_t kLongest = 16 * kLong;
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

template <typename T>
using LanesFunction = void (*)(const FftJob<T>& job, char* work);

template <typename T>
void lanes16(const FftJob<T>& job, char* work) {
  FftLanes<T, 16>::run(job, work);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] void lanes32(const FftJob<T>& job, char* work) {
  FftLanes<T, 32>::run(job, work);
}
template <typename T>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")]] void lanes64(
    const FftJob<T>& job, char* work) {
  FftLanes<T, 64>::run(job, work);
}
#endif

/// Selects the implementation for the widest vectors of this processor.
template <typename T>
struct Lanes {
  LanesFunction<T> function = lanes16<T>;
  int64_t bytes = 16;
  int64_t count() const { return bytes / static_cast<int64_t>(sizeof(T)); }

  static Lanes get() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return {lanes64<T>, 64};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {lanes32<T>, 32};
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
  int64_t begin(int64_t r) const { return r / inner * outer_step + r % inner; }
};

/// Transforms of rows of one length.
template <typename T>
class Transform {
 public:
  /// `complex`: whether both operands and results are rows of complex numbers.
  Transform(int64_t n, int64_t rows, bool complex) : lanes_(Lanes<T>::get()), n_(n), rows_(rows) {
    const bool small_primes = n == 1 || !radices_of(n).empty();
    if (complex && small_primes && (n >= kLong || (n >= kAlone && 2 * rows < lanes_.count())) && split()) return;
    if (small_primes) {
      plan_ = make_plan<T>(n);
      return;
    }
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
    if (complex && (n >= kLong || (n >= kAlone && 2 * rows < lanes_.count()))) {
      inner_ = std::make_unique<Transform>(size, 1, true);
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
    transform_in_place(filter);
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

  /// Runs the transform. `own` has lane_bytes() and `shared` has shared_bytes().
  void run(const Line<const T>& from, const Line<T>& to, bool inverse, T scale, char* own, char* shared,
           Threads& threads) const {
    if (inner_) return convolve(from, to, inverse, scale, own, shared, threads);
    FftJob<T> job;
    job.inverse = inverse;
    job.scale = scale;
    job.length = n_;
    if (!n1_) {
      job.plan = &plan_;
      if (!chirp_.empty()) {
        job.chirp = chirp_.data();
        job.filter = filter_.data();
      }
      rows(job, rows_, from, from.inner, to, to.inner, own, threads);
      return;
    }
    T* between = reinterpret_cast<T*>(shared);
    for (int64_t r = 0; r < rows_; ++r) {
      // Transforms the columns of a matrix [n1, n2], multiplies by twiddle factors, then transforms the rows.
      FftJob<T> columns;
      columns.plan = &first_;
      columns.length = n1_;
      columns.inverse = inverse;
      columns.twiddles = twiddles_.empty() ? nullptr : twiddles_.data();
      columns.twiddle_step = n2_;
      columns.coarse = coarse_.data();
      columns.fine = fine_.data();
      columns.fine_size = fine_size_;
      const int64_t step = from.inner;
      const int64_t out_step = to.inner;
      rows(columns, n2_, {FftForm::kComplex, from.data + 2 * from.begin(r), step, 0}, n2_ * step,
           {FftForm::kComplex, between, 1, 0}, n2_, own, threads, step, 1);
      job.plan = &plan_;
      job.length = n2_;
      rows(job, n1_, {FftForm::kComplex, between, 1, 0}, 1, {FftForm::kComplex, to.data + 2 * to.begin(r), 1, 0},
           n1_ * out_step, own, threads, n2_, out_step);
    }
  }

 private:
  /// Transforms row after row as a convolution (Bluestein's algorithm), by transforms of another length.
  void convolve(const Line<const T>& from, const Line<T>& to, bool inverse, T scale, char* own, char* shared,
                Threads& threads) const {
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
    int64_t best = 1;
    for (int64_t d = 2; d * d <= n_; ++d) {
      if (n_ % d == 0) best = d;
    }
    if (best * best < n_ / 64 || best < 8) return false;
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
            int64_t out_step, char* own, Threads& threads, int64_t distance = 0, int64_t out_distance = 0) const {
    const bool pairs = from.form != FftForm::kComplex || to.form != FftForm::kComplex;
    const int64_t together = lanes_.count() * (pairs ? 2 : 1);
    const int64_t groups = (count + together - 1) / together;
    const auto bytes = static_cast<size_t>(4 * job.plan->n * lanes_.bytes);
    const WorkerMemory memory(own, bytes, groups, threads);
    const double ns = 2.0 * static_cast<double>(job.plan->n) *
                      static_cast<double>(std::bit_width(static_cast<uint64_t>(job.plan->n)));
    for_each_part(groups, ns, threads, [&](int64_t g, int worker) {
      int64_t begins[2][2 * 64];
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
      one.from = {from.form, from.data, step, begins[0], n, adjacent(begins[0])};
      one.to = {to.form, to.data, out_step, begins[1], n, adjacent(begins[1])};
      one.first_row = first;
      lanes_.function(one, memory.of(worker));
    });
  }

  Lanes<T> lanes_;
  int64_t n_;
  int64_t rows_;
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
    halved_ = real_ && last.length % 2 == 0 && is_better_halved(last.length, last.rows);
    for (const Axis& a : axes_) {
      const bool half = halved_ && &a == &last;
      transforms_.emplace_back(half ? a.length / 2 : a.length, half ? 1 : a.rows, half || !real_ || &a != &last);
      lane_bytes_ = std::max(lane_bytes_, transforms_.back().lane_bytes());
      shared_bytes_ = std::max(shared_bytes_, transforms_.back().shared_bytes());
    }
    if (halved_) {
      for (int64_t k = 0; k <= last.length / 4; ++k) append(halves_, root_of_unity(k, last.length));
      half_bytes_ = last.length * static_cast<int64_t>(sizeof(T));
    }
    if (type_ == COLLET_FFT_IRFFT && axes_.size() > 1) copy_bytes_ = 2 * elements_ * static_cast<int64_t>(sizeof(T));
    for (int64_t* bytes : {&lane_bytes_, &shared_bytes_, &half_bytes_}) *bytes = (*bytes + 63) / 64 * 64;
  }

  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(lane_bytes_ + shared_bytes_ + half_bytes_ + copy_bytes_) + 64;
  }

  void run(char* const* buffers, Threads& threads) const override {
    if (empty_) return;
    const Work work{buffers[2], buffers[2] + lane_bytes_,
                    reinterpret_cast<T*>(buffers[2] + lane_bytes_ + shared_bytes_)};
    const T* in = reinterpret_cast<const T*>(buffers[0]);
    T* out = reinterpret_cast<T*>(buffers[1]);
    if (type_ == COLLET_FFT_IRFFT) {
      T* copy = reinterpret_cast<T*>(buffers[2] + lane_bytes_ + shared_bytes_ + half_bytes_);
      for (size_t a = axes_.size() - 1; a > 0; --a) {
        along(a, a + 1 == axes_.size() ? in : copy, copy, work, threads);
      }
      const T* half = axes_.size() > 1 ? copy : in;
      const Axis& last = axes_[0];
      if (halved_) {
        for (int64_t r = 0; r < last.rows; ++r) join(half + 2 * r * last.size, out + r * last.length, work, threads);
        return;
      }
      transforms_[0].run({FftForm::kHalves, half, 1, last.size}, {FftForm::kReals, out, 1, last.length}, true, scale(0),
                         work.lanes, work.shared, threads);
      return;
    }
    const Axis& last = axes_[0];
    if (!real_) {
      along(0, in, out, work, threads);
    } else if (halved_) {
      for (int64_t r = 0; r < last.rows; ++r) part(in + r * last.length, out + 2 * r * last.size, work, threads);
    } else {
      transforms_[0].run({FftForm::kReals, in, 1, last.length}, {FftForm::kHalves, out, 1, last.size}, false, T(1),
                         work.lanes, work.shared, threads);
    }
    for (size_t a = 1; a < axes_.size(); ++a) along(a, out, out, work, threads);
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
    T* half;
  };

  /// True if it is faster to transform each real row as a complex row of half the length than to put two rows into each
  /// lane. That takes twice the work for each row, but lanes without rows cost as much as others, and many long rows do
  /// not fit into the caches.
  static bool is_better_halved(int64_t length, int64_t rows) {
    const int64_t together = 2 * Lanes<T>::get().count();
    const int64_t with_idle = (rows + together - 1) / together * together;
    return length >= kLongest || (rows == 1 && length >= 32) || (length >= 2 * kAlone && 2 * rows <= with_idle);
  }

  T scale(size_t a) const { return inverse_ ? static_cast<T>(1.0 / static_cast<double>(axes_[a].length)) : T(1); }

  void along(size_t a, const T* from, T* to, const Work& work, Threads& threads) const {
    const Axis& x = axes_[a];
    transforms_[a].run({FftForm::kComplex, from, x.inner, x.size * x.inner},
                       {FftForm::kComplex, to, x.inner, x.size * x.inner}, inverse_, scale(a), work.lanes, work.shared,
                       threads);
  }

  /// Transforms a real row as a complex row of half the length, and derives the row's transform from it.
  void part(const T* from, T* to, const Work& work, Threads& threads) const {
    const int64_t half = axes_[0].length / 2;
    T* z = work.half;
    transforms_[0].run({FftForm::kComplex, from, 1, half}, {FftForm::kComplex, z, 1, half}, false, T(1), work.lanes,
                       work.shared, threads);
    to[0] = z[0] + z[1];
    to[1] = 0;
    to[2 * half] = z[0] - z[1];
    to[2 * half + 1] = 0;
    for (int64_t k = 1; 2 * k <= half; ++k) {
      const int64_t m = half - k;
      const T er = (z[2 * k] + z[2 * m]) / 2, ei = (z[2 * k + 1] - z[2 * m + 1]) / 2;
      const T dr = (z[2 * k + 1] + z[2 * m + 1]) / 2, di = (z[2 * m] - z[2 * k]) / 2;
      const T wr = halves_[static_cast<size_t>(2 * k)], wi = halves_[static_cast<size_t>(2 * k + 1)];
      const T tr = dr * wr - di * wi, ti = dr * wi + di * wr;
      to[2 * k] = er + tr;
      to[2 * k + 1] = ei + ti;
      to[2 * m] = er - tr;
      to[2 * m + 1] = ti - ei;
    }
  }

  /// The inverse of part().
  void join(const T* from, T* to, const Work& work, Threads& threads) const {
    const int64_t half = axes_[0].length / 2;
    T* z = work.half;
    z[0] = (from[0] + from[2 * half]) / 2;
    z[1] = (from[0] - from[2 * half]) / 2;
    for (int64_t k = 1; 2 * k <= half; ++k) {
      const int64_t m = half - k;
      const T er = (from[2 * k] + from[2 * m]) / 2, ei = (from[2 * k + 1] - from[2 * m + 1]) / 2;
      const T tr = (from[2 * k] - from[2 * m]) / 2, ti = (from[2 * k + 1] + from[2 * m + 1]) / 2;
      const T wr = halves_[static_cast<size_t>(2 * k)], wi = -halves_[static_cast<size_t>(2 * k + 1)];
      const T dr = tr * wr - ti * wi, di = tr * wi + ti * wr;
      z[2 * k] = er - di;
      z[2 * k + 1] = ei + dr;
      z[2 * m] = er + di;
      z[2 * m + 1] = dr - ei;
    }
    const T factor = static_cast<T>(1.0 / static_cast<double>(half));
    transforms_[0].run({FftForm::kComplex, z, 1, half}, {FftForm::kComplex, to, 1, half}, true, factor, work.lanes,
                       work.shared, threads);
  }

  uint32_t type_ = 0;
  Dims lengths_;
  bool empty_ = false;
  bool real_ = false;
  bool inverse_ = false;
  bool halved_ = false;  ///< each real row is transformed as a complex one of half the length
  int64_t elements_ = 0;
  std::vector<Axis> axes_;  ///< from the last dimension to the first
  std::vector<Transform<T>> transforms_;
  std::vector<T> halves_;
  int64_t lane_bytes_ = 0;
  int64_t shared_bytes_ = 0;
  int64_t half_bytes_ = 0;
  int64_t copy_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Routine> make_fft(const RoutineCall& call) {
  const uint32_t type = call.operands[0].element;
  if (type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128) return std::make_unique<Fft<double>>(call);
  return std::make_unique<Fft<float>>(call);
}

}  // namespace collet::codegen
