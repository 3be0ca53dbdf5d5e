// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>

#include "hlo/passes/expand/expand.h"

// Expands FFTs by the algorithm of Cooley and Tukey with factors of up to 32; each stage is a matrix product with a
// small DFT matrix. Bluestein's algorithm is used for larger prime factors.

namespace collet::hlo {
namespace {

constexpr int64_t kLargestStage = 32, kLargestPrime = 128, kLargestLength = int64_t{1} << 24;

class Transform {
 public:
  Transform(Builder& b, Type type) : b_(b), type_(type) {}

  // Transforms the last dimension of x, which is [rows, n], without scaling. A sign of -1 is the forward transform.
  InstrId run(InstrId x, int sign) {
    const int64_t rows = b_.shape(x).dim(0), n = b_.shape(x).dim(1);
    if (n == 1) return x;
    const int64_t factor = stage_of(n);
    if (factor == n) return n <= kLargestPrime ? direct(x, sign) : bluestein(x, sign);
    const int64_t rest = n / factor;
    // Decimation of x[i1 rest + i2]: transforms over i1, multiplies by the twiddle factors, then transforms over i2.
    // The index of the result is k1 + factor k2.
    InstrId y = b_.transpose(b_.reshape(x, {rows, factor, rest}), Ints{0, 2, 1});
    y = b_.reshape(run(b_.reshape(y, {rows * rest, factor}), sign), {rows, rest, factor});
    const InstrId twiddles =
        table({rest, factor}, [&](int64_t i) { return root(sign, (i / factor) * (i % factor) % n, n); });
    y = b_.mul(y, b_.broadcast(twiddles, Ints{rows, rest, factor}, Ints{1, 2}));
    y = b_.reshape(b_.transpose(y, Ints{0, 2, 1}), {rows * factor, rest});
    y = b_.reshape(run(y, sign), {rows, factor, rest});
    return b_.reshape(b_.transpose(y, Ints{0, 2, 1}), {rows, n});
  }

 private:
  static std::complex<double> root(int sign, int64_t k, int64_t n) {
    const double angle = sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    return std::polar(1.0, angle);
  }

  // Returns the largest factor of n up to the limit; if n has none, its least prime factor, which is then transformed
  // by Bluestein's algorithm.
  static int64_t stage_of(int64_t n) {
    for (int64_t f = std::min(kLargestStage, n); f > 1; --f)
      if (n % f == 0) return f;
    for (int64_t f = kLargestStage + 1; f * f <= n; ++f)
      if (n % f == 0) return f;
    return n;
  }

  InstrId table(std::initializer_list<int64_t> dims, const std::function<std::complex<double>(int64_t)>& value) {
    Literal out = Literal::zeros(Shape::array(type_, dims));
    for (int64_t i = 0; i < out.element_count(); ++i) out.set_double(i, value(i).real(), value(i).imag());
    return b_.constant(std::move(out));
  }

  InstrId direct(InstrId x, int sign) {
    const int64_t n = b_.shape(x).dim(1);
    const InstrId matrix = table({n, n}, [&](int64_t i) { return root(sign, (i / n) * (i % n) % n, n); });
    DotAttrs attrs;
    attrs.lhs_contracting = b_.module().dims({1});
    attrs.rhs_contracting = b_.module().dims({0});
    attrs.precision =
        b_.module().dims({static_cast<int64_t>(Precision::HIGHEST), static_cast<int64_t>(Precision::HIGHEST)});
    return b_.dot(x, matrix, attrs, type_);
  }

  // Bluestein's algorithm writes a transform as a convolution, because ik = (i^2 + k^2 - (k - i)^2) / 2. The
  // convolution is computed by transforms whose length is a power of two.
  InstrId bluestein(InstrId x, int sign) {
    const int64_t rows = b_.shape(x).dim(0), n = b_.shape(x).dim(1);
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    const auto chirp = [&](int64_t i) { return root(sign, i * i % (2 * n), 2 * n); };
    const InstrId wave = table({n}, chirp);
    const InstrId kernel = table({1, m}, [&](int64_t i) {
      if (i < n) return std::conj(chirp(i));
      return i > m - n ? std::conj(chirp(m - i)) : std::complex<double>();
    });
    const InstrId spread = b_.broadcast(wave, Ints{rows, n}, Ints{1});
    InstrId y = b_.pad_dim(b_.mul(x, spread), b_.scalar(type_, 0), 1, 0, m - n);
    const InstrId k = b_.broadcast(b_.reshape(run(kernel, -1), {m}), Ints{rows, m}, Ints{1});
    y = run(b_.mul(run(y, -1), k), 1);
    y = b_.mul(b_.slice_dim(y, 1, 0, n), spread);
    return b_.mul(y, b_.like(y, 1 / static_cast<double>(m)));
  }

  Builder& b_;
  Type type_;
};

InstrId fft(const ExpandInput& in) {
  Builder& b = in.b;
  const auto& attrs = in.as<FftAttrs>();
  const Shape& shape = in.operand_shape(0);
  if (shape.has_dynamic() || shape.element_count() == 0 || in.shape().element_count() == 0) return InstrId::None;
  for (int64_t n : attrs.length)
    if (n > kLargestLength) return InstrId::None;
  const Type type = in.type() == Type::F64 || in.type() == Type::C128 ? Type::C128 : Type::C64;
  const auto axes = static_cast<int>(attrs.length.size());
  Transform transform(b, type);
  // Transforms one dimension: it is transposed to the end, and all others are merged into rows.
  const auto along = [&](InstrId x, int dim, int sign) {
    Ints order = counting(b.rank(x));
    std::swap(order[static_cast<size_t>(dim)], order.back());
    const InstrId turned = b.transpose(x, order);
    const Ints dims = to_ints(b.dims(turned));
    const int64_t n = dims.back();
    const InstrId flat = b.reshape(turned, {b.shape(x).element_count() / n, n});
    return b.transpose(b.reshape(transform.run(flat, sign), dims), order);
  };
  const int last = shape.rank() - 1;
  InstrId x = b.convert(in.operand(0), attrs.type == FftType::RFFT ? real_type(type) : type);
  const bool forward = attrs.type == FftType::FFT || attrs.type == FftType::RFFT;
  const int sign = forward ? -1 : 1;
  if (attrs.type == FftType::RFFT) {
    x = along(b.convert(x, type), last, sign);
    x = b.slice_dim(x, last, 0, attrs.length.back() / 2 + 1);
  }
  const int others = attrs.type == FftType::RFFT || attrs.type == FftType::IRFFT ? 1 : 0;
  for (int k = others; k < axes; ++k) x = along(x, last - k, sign);
  double scale = 1;
  if (!forward)
    for (int64_t n : attrs.length) scale /= static_cast<double>(n);
  if (attrs.type == FftType::IRFFT) {
    // The upper half of the spectrum is the conjugate of the lower half in reverse order. The imaginary parts of the
    // first and the middle element are ignored.
    const int64_t n = attrs.length.back(), half = n / 2 + 1, mirrored = n - half;
    InstrId re = b.unary(Op::REAL, x), im = b.unary(Op::IMAG, x);
    const InstrId place = b.iota(b.shape(im).with_type(Type::S32), last);
    InstrId real_place = b.compare(place, Direction::EQ, b.like_int(place, 0));
    if (n % 2 == 0) real_place = b.or_(real_place, b.compare(place, Direction::EQ, b.like_int(place, n / 2)));
    im = b.select(real_place, b.like(im, 0), im);
    if (mirrored > 0) {
      const auto mirror = [&](InstrId part) { return b.reverse(b.slice_dim(part, last, 1, 1 + mirrored), Ints{last}); };
      const InstrId res[] = {re, mirror(re)}, ims[] = {im, b.neg(mirror(im))};
      re = b.concatenate(res, last);
      im = b.concatenate(ims, last);
    }
    x = b.unary(Op::REAL, along(b.binary(Op::COMPLEX, re, im), last, sign));
  }
  if (scale != 1) x = b.mul(x, b.like(x, scale));
  return b.convert(x, in.type());
}

constexpr Expansion kTable[] = {{Op::FFT, &fft}};

}  // namespace

Expected<bool> expand_fft(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
