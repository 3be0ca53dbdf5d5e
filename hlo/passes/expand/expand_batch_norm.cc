// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/expand.h"

namespace collet::hlo {
namespace {

/// Helpers for the three batch-norm ops: the feature dimension, and broadcasts of per-feature values over the data.
struct Norm {
  const ExpandInput& in;
  Builder& b;
  int64_t feature;
  Type wide;
  Ints dims, others;
  double count = 1;

  explicit Norm(const ExpandInput& input)
      : in(input), b(in.b), feature(in.as<BatchNormAttrs>().feature), wide(wide_float(in.operand_shape(0).type())) {
    dims = to_ints(in.operand_shape(0).dims());
    for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
      if (d != feature) {
        others.push_back(d);
        count *= static_cast<double>(dims[static_cast<size_t>(d)]);
      }
  }
  InstrId operand(size_t i) const { return b.convert(in.operand(i), wide); }
  InstrId spread(InstrId per_feature) const { return b.broadcast(per_feature, dims, Ints{feature}); }
  InstrId sum(InstrId x) const { return b.reduce(x, others, Op::ADD); }
  InstrId mean(InstrId x) const {
    const InstrId total = sum(x);
    return b.div(total, b.like(total, count));
  }
  // 1 / sqrt(variance + epsilon)
  InstrId scale_of(InstrId variance) const {
    return b.unary(Op::RSQRT, b.add(variance, b.like(variance, in.as<BatchNormAttrs>().epsilon)));
  }
  InstrId normalized(InstrId centered, InstrId variance, InstrId scale, InstrId offset) const {
    const InstrId unit = b.mul(centered, spread(scale_of(variance)));
    return b.add(b.mul(unit, spread(scale)), spread(offset));
  }
  InstrId narrow(InstrId x, size_t like) const { return b.convert(x, in.operand_shape(like).type()); }
};

InstrId inference(const ExpandInput& in) {
  const Norm n(in);
  const InstrId centered = n.b.sub(n.operand(0), n.spread(n.operand(3)));
  return n.narrow(n.normalized(centered, n.operand(4), n.operand(1), n.operand(2)), 0);
}

InstrId training(const ExpandInput& in) {
  const Norm n(in);
  // The variance is computed from centered values: E[x^2] - E[x]^2 could cancel and even become negative.
  const InstrId x = n.operand(0), mean = n.mean(x), centered = n.b.sub(x, n.spread(mean));
  const InstrId variance = n.mean(n.b.mul(centered, centered));
  const InstrId y = n.normalized(centered, variance, n.operand(1), n.operand(2));
  const InstrId results[] = {n.narrow(y, 0), n.narrow(mean, 1), n.narrow(variance, 1)};
  return n.b.tuple(results);
}

// With c = x - mean, i = 1/sqrt(variance + epsilon), g the gradient of y:
// d scale = sum(g c i); d offset = sum(g); d x = scale i (g - mean(g) - c i^2 mean(g c)).
InstrId gradient(const ExpandInput& in) {
  const Norm n(in);
  Builder& b = n.b;
  const InstrId x = n.operand(0), scale = n.operand(1), mean = n.operand(2), variance = n.operand(3);
  const InstrId g = n.operand(4), centered = b.sub(x, n.spread(mean)), inverse = n.scale_of(variance);
  const InstrId sum_g = n.sum(g), sum_gc = n.sum(b.mul(g, centered));
  const InstrId mean_g = b.div(sum_g, b.like(sum_g, n.count)), mean_gc = b.div(sum_gc, b.like(sum_gc, n.count));
  const InstrId slope = b.mul(b.mul(inverse, inverse), mean_gc);
  const InstrId inside = b.sub(b.sub(g, n.spread(mean_g)), b.mul(centered, n.spread(slope)));
  const InstrId results[] = {n.narrow(b.mul(inside, n.spread(b.mul(scale, inverse))), 0),
                             n.narrow(b.mul(sum_gc, inverse), 1), n.narrow(sum_g, 1)};
  return b.tuple(results);
}

constexpr Expansion kTable[] = {
    {Op::BATCH_NORM_INFERENCE, &inference}, {Op::BATCH_NORM_TRAINING, &training}, {Op::BATCH_NORM_GRAD, &gradient}};

}  // namespace

Expected<bool> expand_batch_norm(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
