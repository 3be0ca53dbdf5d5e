// SPDX-License-Identifier: Apache-2.0
#include <collet/attributes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>

#include "sdk/codegen/launch/routine.h"

namespace collet::codegen {
namespace {

using Complex = std::complex<double>;

constexpr double kPi = 3.14159265358979323846;

Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

/// e^(-2 pi i k / n), with the angle kept small.
Complex root_of_unity(int64_t k, int64_t n) {
  k %= n;
  const double turn = 2.0 * kPi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(turn), -std::sin(turn)};
}

/// Transforms of one length: of powers of two in place, of others as a convolution of such a length (Bluestein).
class Transform {
 public:
  explicit Transform(int64_t n) : n_(n), size_(n) {
    if (n > 1 && !std::has_single_bit(static_cast<uint64_t>(n))) {
      size_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
      chirp_.resize(static_cast<size_t>(n));
      for (int64_t k = 0; k < n; ++k) chirp_[static_cast<size_t>(k)] = root_of_unity(k * k % (2 * n), 2 * n);
    }
    roots_.resize(static_cast<size_t>(std::max<int64_t>(size_ / 2, 1)));
    for (size_t k = 0; k < roots_.size(); ++k) roots_[k] = root_of_unity(static_cast<int64_t>(k), size_);
    if (!chirp_.empty()) {
      filter_.assign(static_cast<size_t>(size_), 0);
      for (int64_t k = 0; k < n; ++k) {
        const Complex c = std::conj(chirp_[static_cast<size_t>(k)]);
        filter_[static_cast<size_t>(k)] = c;
        if (k > 0) filter_[static_cast<size_t>(size_ - k)] = c;
      }
      power_of_two(filter_.data());
    }
  }

  int64_t length() const { return n_; }
  int64_t room() const { return chirp_.empty() ? 0 : size_; }

  void run(Complex* x, Complex* room, bool inverse) const {
    if (n_ <= 1) return;
    if (inverse) {
      for (int64_t i = 0; i < n_; ++i) x[i] = std::conj(x[i]);
    }
    if (chirp_.empty()) {
      power_of_two(x);
    } else {
      bluestein(x, room);
    }
    if (inverse) {
      for (int64_t i = 0; i < n_; ++i) x[i] = std::conj(x[i]) / static_cast<double>(n_);
    }
  }

 private:
  void power_of_two(Complex* x) const {
    for (int64_t i = 1, j = 0; i < size_; ++i) {
      int64_t bit = size_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j |= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (int64_t half = 1; half < size_; half *= 2) {
      const int64_t step = size_ / (2 * half);
      for (int64_t first = 0; first < size_; first += 2 * half) {
        for (int64_t k = 0; k < half; ++k) {
          const Complex t = product(x[first + k + half], roots_[static_cast<size_t>(k * step)]);
          x[first + k + half] = x[first + k] - t;
          x[first + k] += t;
        }
      }
    }
  }

  void bluestein(Complex* x, Complex* room) const {
    for (int64_t k = 0; k < size_; ++k) room[k] = k < n_ ? product(x[k], chirp_[static_cast<size_t>(k)]) : 0;
    power_of_two(room);
    for (int64_t k = 0; k < size_; ++k) room[k] = std::conj(product(room[k], filter_[static_cast<size_t>(k)]));
    power_of_two(room);
    const double scale = 1.0 / static_cast<double>(size_);
    for (int64_t k = 0; k < n_; ++k) x[k] = product(std::conj(room[k]) * scale, chirp_[static_cast<size_t>(k)]);
  }

  int64_t n_;
  int64_t size_;
  std::vector<Complex> roots_;
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
};

double read_real(const char* p, int64_t i, bool wide) {
  return wide ? reinterpret_cast<const double*>(p)[i] : static_cast<double>(reinterpret_cast<const float*>(p)[i]);
}

void write_real(char* p, int64_t i, double x, bool wide) {
  if (wide) {
    reinterpret_cast<double*>(p)[i] = x;
  } else {
    reinterpret_cast<float*>(p)[i] = static_cast<float>(x);
  }
}

class Fft : public Routine {
 public:
  explicit Fft(const RoutineCall& call)
      : type_(static_cast<uint32_t>(call.numbers[0])), lengths_(call.numbers.begin() + 1, call.numbers.end()) {
    const ArrayType& in = call.operands[0];
    const ArrayType& out = call.results[0];
    wide_ = in.element == COLLET_TYPE_F64 || in.element == COLLET_TYPE_C128;
    const size_t rank = lengths_.size();
    for (size_t d = 0; d + rank < in.dims.size(); ++d) batch_ *= in.dims[d];
    for (size_t d = in.dims.size() - rank; d < in.dims.size(); ++d) in_.push_back(in.dims[d]);
    for (size_t d = out.dims.size() - rank; d < out.dims.size(); ++d) out_.push_back(out.dims[d]);
    if (in.elements == 0 || out.elements == 0) batch_ = 0;
    for (int64_t n : lengths_) {
      transforms_.emplace_back(n);
      room_ = std::max({room_, transforms_.back().room(), n});
      volume_ *= n;
    }
  }

  uint64_t scratch_bytes() const override { return static_cast<uint64_t>(volume_ + 2 * room_) * sizeof(Complex) + 64; }

  void run(char* const* buffers, Threads&) const override {
    auto* work = reinterpret_cast<Complex*>(buffers[2]);
    Complex* line = work + volume_;
    int64_t in_size = 1;
    int64_t out_size = 1;
    for (int64_t d : in_) in_size *= d;
    for (int64_t d : out_) out_size *= d;
    const bool real_in = type_ == COLLET_FFT_RFFT;
    const bool real_out = type_ == COLLET_FFT_IRFFT;
    const int64_t in_bytes = (wide_ ? 8 : 4) * (real_in ? 1 : 2);
    const int64_t out_bytes = (wide_ ? 8 : 4) * (real_out ? 1 : 2);
    for (int64_t b = 0; b < batch_; ++b) {
      load(buffers[0] + b * in_size * in_bytes, work, real_in);
      transform(work, line);
      store(buffers[1] + b * out_size * out_bytes, work, real_out);
    }
  }

 private:
  /// Visits rows of `dims`, of which the last is `from_last` long there and `lengths_.back()` in the work array.
  void load(const char* p, Complex* work, bool real) const {
    const int64_t last = in_.back();
    const int64_t full = lengths_.back();
    for (int64_t row = 0; row < volume_ / full; ++row) {
      for (int64_t i = 0; i < full; ++i) {
        Complex x = 0;
        if (i < last) {
          const int64_t at = row * last + i;
          x = real ? Complex(read_real(p, at, wide_))
                   : Complex(read_real(p, 2 * at, wide_), read_real(p, 2 * at + 1, wide_));
        }
        work[row * full + i] = x;
      }
    }
  }

  void store(char* p, const Complex* work, bool real) const {
    const int64_t last = out_.back();
    const int64_t full = lengths_.back();
    for (int64_t row = 0; row < volume_ / full; ++row) {
      for (int64_t i = 0; i < last; ++i) {
        const Complex x = work[row * full + i];
        const int64_t at = row * last + i;
        if (real) {
          write_real(p, at, x.real(), wide_);
        } else {
          write_real(p, 2 * at, x.real(), wide_);
          write_real(p, 2 * at + 1, x.imag(), wide_);
        }
      }
    }
  }

  void transform(Complex* work, Complex* line) const {
    const bool inverse = type_ == COLLET_FFT_IFFT || type_ == COLLET_FFT_IRFFT;
    const size_t rank = lengths_.size();
    // The last dimension goes first on the way there and last on the way back, where its second half is then filled in.
    for (size_t k = 0; k < rank; ++k) {
      const size_t d = type_ == COLLET_FFT_IRFFT ? k : rank - 1 - k;
      if (type_ == COLLET_FFT_IRFFT && d + 1 == rank) mirror(work);
      along(work, line, d, inverse);
    }
  }

  void mirror(Complex* work) const {
    const int64_t n = lengths_.back();
    for (int64_t row = 0; row < volume_ / n; ++row) {
      Complex* x = work + row * n;
      x[0] = x[0].real();
      if (n % 2 == 0) x[n / 2] = x[n / 2].real();
      for (int64_t i = n / 2 + 1; i < n; ++i) x[i] = std::conj(x[n - i]);
    }
  }

  void along(Complex* work, Complex* line, size_t dim, bool inverse) const {
    int64_t inner = 1;
    for (size_t d = dim + 1; d < lengths_.size(); ++d) inner *= lengths_[d];
    const int64_t n = lengths_[dim];
    const Transform& t = transforms_[dim];
    for (int64_t o = 0; o < volume_ / (n * inner); ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        Complex* x = work + o * n * inner + i;
        if (inner == 1) {
          t.run(x, line, inverse);
          continue;
        }
        for (int64_t j = 0; j < n; ++j) line[j] = x[j * inner];
        t.run(line, line + room_, inverse);
        for (int64_t j = 0; j < n; ++j) x[j * inner] = line[j];
      }
    }
  }

  uint32_t type_ = 0;
  bool wide_ = false;
  Dims lengths_;
  Dims in_;
  Dims out_;
  int64_t batch_ = 1;
  int64_t volume_ = 1;
  int64_t room_ = 0;
  std::vector<Transform> transforms_;
};

}  // namespace

std::unique_ptr<Routine> make_fft(const RoutineCall& call) {
  return std::make_unique<Fft>(call);
}

}  // namespace collet::codegen
