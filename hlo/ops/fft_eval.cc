// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

constexpr int64_t kLargestRadix = 64;  // larger prime factors use Bluestein's algorithm

/// The transform of one length and direction; R is double for results of 32 bits, long double for those of 64.
template <typename R>
class Plan {
 public:
  using C = std::complex<R>;
  Plan(int64_t n, bool inverse) : n_(n), inverse_(inverse) {
    for (int64_t rest = n, p = 2; rest > 1;) {
      if (rest % p == 0) {
        factors_.push_back(p);
        rest /= p;
      } else if (p * p > rest) {
        p = rest;
      } else {
        ++p;
      }
    }
    twiddles_.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) twiddles_[static_cast<size_t>(k)] = root(k, n);
    if (!factors_.empty() && factors_.back() > kLargestRadix) prepare_convolution();
  }

  void run(std::vector<C>& x) {
    if (n_ <= 1) return;
    if (convolution_)
      convolve(x);
    else
      x = transform(x, 0, 1, n_, 0);
  }

 private:
  // Returns exp(-+2 pi i k / n), computed from an angle of at most an eighth of a turn to reduce errors.
  C root(int64_t k, int64_t n) const {
    const int64_t eighth = 8 * k / n;  // octant
    constexpr long double tau = 2 * std::numbers::pi_v<long double>;
    const auto angle = [&](int64_t numerator, int64_t denominator) {
      return tau * static_cast<long double>(numerator) / static_cast<long double>(denominator);
    };
    long double c, s;
    if (eighth % 8 == 0 || eighth % 8 == 7) {
      const long double a = angle(eighth % 8 == 0 ? k : k - n, n);
      c = std::cos(a), s = std::sin(a);
    } else if (eighth <= 2) {  // angles around a quarter turn
      const long double a = angle(4 * k - n, 4 * n);
      c = -std::sin(a), s = std::cos(a);
    } else if (eighth <= 4) {  // angles around a half turn
      const long double a = angle(2 * k - n, 2 * n);
      c = -std::cos(a), s = -std::sin(a);
    } else {
      const long double a = angle(4 * k - 3 * n, 4 * n);
      c = std::sin(a), s = -std::cos(a);
    }
    return {static_cast<R>(c), static_cast<R>(inverse_ ? s : -s)};
  }

  // Transforms the `n` elements start, start + step, ... of x recursively, one factor of n per level.
  std::vector<C> transform(const std::vector<C>& x, int64_t start, int64_t step, int64_t n, size_t level) const {
    if (n == 1) return {x[static_cast<size_t>(start)]};
    const int64_t p = factors_[level], m = n / p;
    std::vector<std::vector<C>> parts;
    for (int64_t j = 0; j < p; ++j) parts.push_back(transform(x, start + j * step, step * p, m, level + 1));
    std::vector<C> out(static_cast<size_t>(n));
    std::vector<C> turned(static_cast<size_t>(p));
    const int64_t stride = n_ / n;  // stride of the twiddle factors for length n in the table for length n_
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t j = 0; j < p; ++j)
        turned[static_cast<size_t>(j)] = multiply(parts[static_cast<size_t>(j)][static_cast<size_t>(k)],
                                                  twiddles_[static_cast<size_t>(j * k * stride)]);
      for (int64_t q = 0; q < p; ++q) {
        C sum = turned[0];
        for (int64_t j = 1; j < p; ++j)
          sum += multiply(turned[static_cast<size_t>(j)], twiddles_[static_cast<size_t>(j * q % p * (n_ / p))]);
        out[static_cast<size_t>(q * m + k)] = sum;
      }
    }
    return out;
  }

  static C multiply(C a, C b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

  // Bluestein's algorithm: the transform as a convolution with a chirp signal, computed with a length that is a power
  // of two.
  void prepare_convolution() {
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    convolution_ = std::make_unique<Plan>(size, false);
    back_ = std::make_unique<Plan>(size, true);
    chirp_.resize(static_cast<size_t>(n_));
    filter_.assign(static_cast<size_t>(size), C(0));
    for (int64_t k = 0; k < n_; ++k) {
      // exp(-+ pi i k^2 / n); k^2 taken modulo 2n.
      const auto square =
          static_cast<int64_t>(static_cast<uint64_t>(k) * static_cast<uint64_t>(k) % static_cast<uint64_t>(2 * n_));
      chirp_[static_cast<size_t>(k)] = root(square, 2 * n_);
      const C mirrored = std::conj(chirp_[static_cast<size_t>(k)]);
      filter_[static_cast<size_t>(k)] = mirrored;
      if (k) filter_[static_cast<size_t>(size - k)] = mirrored;
    }
    convolution_->run(filter_);
  }

  void convolve(std::vector<C>& x) {
    std::vector<C> a(filter_.size(), C(0));
    for (size_t k = 0; k < x.size(); ++k) a[k] = multiply(x[k], chirp_[k]);
    convolution_->run(a);
    for (size_t k = 0; k < a.size(); ++k) a[k] = multiply(a[k], filter_[k]);
    back_->run(a);
    const R scale = R(1) / static_cast<R>(filter_.size());
    for (size_t k = 0; k < x.size(); ++k) x[k] = multiply(a[k], chirp_[k]) * scale;
  }

  int64_t n_;
  bool inverse_;
  std::vector<int64_t> factors_;  // prime factors, ascending
  std::vector<C> twiddles_, chirp_, filter_;
  std::unique_ptr<Plan> convolution_, back_;
};

/// A block of complex numbers that is transformed dimension by dimension.
template <typename R>
class Transform {
 public:
  using C = std::complex<R>;
  explicit Transform(const EvalInput& in) : in_(in), attrs_(in.instr.as<FftAttrs>()) {}

  Expected<Literal> run() {
    const Literal& operand = in_.operand(0);
    const Shape& shape = in_.instr.shape;
    const auto rank = static_cast<size_t>(shape.rank()), count = attrs_.length.size();
    if (count == 0 || count > rank) return invalid_argument("fft_length must name the last dimensions");
    Literal out = Literal::zeros(shape);
    if (out.element_count() == 0 || operand.element_count() == 0) return out;
    sizes_.assign(operand.shape().dims().end() - static_cast<long>(count), operand.shape().dims().end());
    const Ints to(shape.dims().end() - static_cast<long>(count), shape.dims().end());
    const int64_t in_block = product(sizes_), out_block = product(to);
    const WideArray values = widen_to(pack(operand), Wide::Complex, operand.type());
    WideArray results(Wide::Complex, out.element_count());
    const bool inverse = attrs_.type == FftType::IFFT || attrs_.type == FftType::IRFFT;
    for (size_t d = 0; d < count; ++d) plans_.push_back(std::make_unique<Plan<R>>(attrs_.length[d], inverse));
    for (int64_t block = 0; block < operand.element_count() / in_block; ++block) {
      if (in_.context.cancelled()) return Status(Code::Cancelled, "cancelled in an fft");
      sizes_.assign(operand.shape().dims().end() - static_cast<long>(count), operand.shape().dims().end());
      load(values, block * in_block, in_block);
      transform(count);
      for (int64_t i = 0; i < out_block; ++i) {
        const C x = data_[static_cast<size_t>(i)];
        results.complexes()[block * out_block + i] = Cx(static_cast<double>(x.real()), static_cast<double>(x.imag()));
      }
    }
    if (is_complex(shape.type())) return unpack(results, shape);
    WideArray reals(Wide::Real, results.count());
    for (int64_t i = 0; i < results.count(); ++i) reals.reals()[i] = results.complexes()[i].real();
    return unpack(reals, shape);
  }

 private:
  void load(const WideArray& values, int64_t first, int64_t n) {
    data_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const Cx x = *static_cast<const Cx*>(values.at(first + i));
      data_[static_cast<size_t>(i)] = C(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    }
  }

  void transform(size_t count) {
    const size_t last = count - 1;
    if (attrs_.type != FftType::IRFFT) along(last, attrs_.type == FftType::RFFT ? attrs_.length[last] / 2 + 1 : 0);
    for (size_t d = 0; d < last; ++d) along(d, 0);
    if (attrs_.type == FftType::IRFFT) complete_last(last);
    if (attrs_.type == FftType::IFFT || attrs_.type == FftType::IRFFT) {
      const R n = static_cast<R>(product(attrs_.length));
      for (C& x : data_) x /= n;
    }
  }

  // Transforms all vectors along dimension d and keeps their first `keep` elements (0: all).
  void along(size_t d, int64_t keep) {
    const int64_t n = sizes_[d];
    const int64_t kept = keep ? keep : n;
    Ints to = sizes_;
    to[d] = kept;
    std::vector<C> out(static_cast<size_t>(product(to)));
    int64_t inner = 1;
    for (size_t i = d + 1; i < sizes_.size(); ++i) inner *= sizes_[i];
    const int64_t outer = static_cast<int64_t>(data_.size()) / (n * inner);
    std::vector<C> line(static_cast<size_t>(n));
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t k = 0; k < n; ++k)
          line[static_cast<size_t>(k)] = data_[static_cast<size_t>((o * n + k) * inner + i)];
        plans_[d]->run(line);
        for (int64_t k = 0; k < kept; ++k)
          out[static_cast<size_t>((o * kept + k) * inner + i)] = line[static_cast<size_t>(k)];
      }
    data_ = std::move(out);
    sizes_ = to;
  }

  // Completes real input spectra along the last dimension: the other half is the conjugate of this one; the first and
  // middle elements are real.
  void complete_last(size_t last) {
    const int64_t half = sizes_[last], n = attrs_.length[last];
    const int64_t lines = static_cast<int64_t>(data_.size()) / half;
    std::vector<C> out(static_cast<size_t>(lines * n));
    std::vector<C> line(static_cast<size_t>(n));
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t k = 0; k < n; ++k) {
        const int64_t mirrored = n - k;
        C x = k < half ? data_[static_cast<size_t>(l * half + k)]
                       : std::conj(data_[static_cast<size_t>(l * half + mirrored)]);
        if (k == 0 || 2 * k == n) x = C(x.real(), 0);
        line[static_cast<size_t>(k)] = x;
      }
      plans_[last]->run(line);
      std::copy(line.begin(), line.end(), out.begin() + l * n);
    }
    data_ = std::move(out);
    sizes_[last] = n;
  }

  const EvalInput& in_;
  const FftAttrs& attrs_;
  Ints sizes_;
  std::vector<C> data_;
  std::vector<std::unique_ptr<Plan<R>>> plans_;
};

Status check_lengths(const EvalInput& in) {
  const auto& attrs = in.instr.as<FftAttrs>();
  const auto dims = in.operand(0).shape().dims();
  const size_t count = attrs.length.size();
  if (count == 0 || count > dims.size()) return invalid_argument("fft_length must name the last dimensions");
  for (size_t d = 0; d < count; ++d) {
    const int64_t n = attrs.length[d], size = dims[dims.size() - count + d];
    const bool half = attrs.type == FftType::IRFFT && d + 1 == count;
    if (n < 0 || size != (half && n > 0 ? n / 2 + 1 : n))
      return invalid_argument("fft_length does not fit its operand");
  }
  return ok_status();
}

}  // namespace

Expected<Literal> evaluate_fft(const EvalInput& in) {
  COLLET_TRY(check_size(in.instr.shape));
  COLLET_TRY(check_lengths(in));
  const Type type = in.instr.shape.type();
  const bool wide = type == Type::F64 || type == Type::C128;
  if (in.context.other_choices()) return wide ? Transform<double>(in).run() : Transform<float>(in).run();
  return wide ? Transform<long double>(in).run() : Transform<double>(in).run();
}

}  // namespace collet::hlo
