// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// An operand reshaped to [outer, features, inner] and converted to double.
struct Batches {
  WideArray values;
  int64_t outer = 1, features = 1, inner = 1;
  Batches(const Literal& operand, int64_t feature) : values(pack(operand)) {
    const auto dims = operand.shape().dims();
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t& size = static_cast<int64_t>(d) < feature ? outer : static_cast<int64_t>(d) == feature ? features : inner;
      size *= dims[d];
    }
  }
  int64_t count() const { return outer * inner; }
  /// Calls visit(position) for each element of a feature.
  template <typename Visit>
  void each(int64_t feature, Visit&& visit) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) visit((o * features + feature) * inner + i);
  }
};

double at(const WideArray& array, int64_t i) {
  return *static_cast<const double*>(array.at(i));
}

Literal three(const Shape& shape, const WideArray& a, const WideArray& b, const WideArray& c) {
  std::vector<Literal> parts;
  parts.push_back(unpack(a, shape.element(0)));
  parts.push_back(unpack(b, shape.element(1)));
  parts.push_back(unpack(c, shape.element(2)));
  return Literal::tuple(std::move(parts));
}

Literal training(const EvalInput& in, const Batches& x, double epsilon) {
  const WideArray scale = pack(in.operand(1)), offset = pack(in.operand(2));
  WideArray y(Wide::Real, x.values.count()), means(Wide::Real, x.features), variances(Wide::Real, x.features);
  for (int64_t f = 0; f < x.features; ++f) {
    long double sum = 0, squares = 0;
    const auto n = static_cast<long double>(x.count());
    x.each(f, [&](int64_t i) { sum += at(x.values, i); });
    const long double mean = sum / n;
    x.each(f, [&](int64_t i) { squares += (at(x.values, i) - mean) * (at(x.values, i) - mean); });
    const long double variance = squares / n;
    const long double factor = 1 / std::sqrt(variance + epsilon) * at(scale, f);
    x.each(f,
           [&](int64_t i) { y.reals()[i] = static_cast<double>((at(x.values, i) - mean) * factor + at(offset, f)); });
    means.reals()[f] = static_cast<double>(mean);
    variances.reals()[f] = static_cast<double>(variance);
  }
  return three(in.instr.shape, y, means, variances);
}

Literal inference(const EvalInput& in, const Batches& x, double epsilon) {
  const WideArray scale = pack(in.operand(1)), offset = pack(in.operand(2)), means = pack(in.operand(3)),
                  variances = pack(in.operand(4));
  WideArray y(Wide::Real, x.values.count());
  for (int64_t f = 0; f < x.features; ++f) {
    const long double factor = at(scale, f) / std::sqrt(static_cast<long double>(at(variances, f)) + epsilon);
    x.each(f, [&](int64_t i) {
      y.reals()[i] =
          static_cast<double>((static_cast<long double>(at(x.values, i)) - at(means, f)) * factor + at(offset, f));
    });
  }
  return unpack(y, in.instr.shape);
}

// Operands: x, scale, mean, variance, gradient of y.
Literal gradient(const EvalInput& in, const Batches& x, double epsilon) {
  const WideArray scale = pack(in.operand(1)), means = pack(in.operand(2)), variances = pack(in.operand(3)),
                  dy = pack(in.operand(4));
  WideArray dx(Wide::Real, x.values.count()), dscale(Wide::Real, x.features), doffset(Wide::Real, x.features);
  for (int64_t f = 0; f < x.features; ++f) {
    const auto n = static_cast<long double>(x.count());
    const long double mean = at(means, f), variance = static_cast<long double>(at(variances, f)) + epsilon;
    const long double inverse = 1 / std::sqrt(variance);
    long double sum = 0, products = 0;
    x.each(f, [&](int64_t i) {
      sum += at(dy, i);
      products += at(dy, i) * (at(x.values, i) - mean);
    });
    x.each(f, [&](int64_t i) {
      const long double centred = at(x.values, i) - mean;
      dx.reals()[i] =
          static_cast<double>(at(scale, f) * inverse * (at(dy, i) - sum / n - centred * products / (variance * n)));
    });
    dscale.reals()[f] = static_cast<double>(products * inverse);
    doffset.reals()[f] = static_cast<double>(sum);
  }
  return three(in.instr.shape, dx, dscale, doffset);
}

}  // namespace

Expected<Literal> evaluate_batch_norm(const EvalInput& in) {
  const auto& attrs = in.instr.as<BatchNormAttrs>();
  for (const Literal& operand : in.operands)
    if (!is_float(operand.type())) return unimplemented("batch norm of values that are no floats");
  const Batches x(in.operand(0), attrs.feature);
  const auto epsilon = static_cast<double>(attrs.epsilon);
  switch (in.instr.op) {
    case Op::BATCH_NORM_TRAINING:
      return training(in, x, epsilon);
    case Op::BATCH_NORM_INFERENCE:
      return inference(in, x, epsilon);
    default:
      return gradient(in, x, epsilon);
  }
}

}  // namespace collet::hlo
