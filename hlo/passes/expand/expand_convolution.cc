// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/expand/expand.h"

// Expands a convolution into one matrix product per tap of the kernel: a strided slice of the padded input times that
// tap; the products are added up. Each product has the size of the result. Groups become a batch
// dimension of the products.

namespace collet::hlo {
namespace {

constexpr int64_t kMostUnrolled = 64;

class Taps {
 public:
  explicit Taps(const ExpandInput& in)
      : in_(in), b_(in.b), a_(in.as<ConvolutionAttrs>()), rank_(a_.labels.input_spatial.size()) {}

  InstrId run() {
    wide_ = is_float(in_.type()) ? wide_float(in_.type()) : in_.type();
    canonical_input();
    canonical_kernel();
    int64_t taps = 1;
    for (int64_t s : kernel_sizes_) taps *= s;
    Ints out{groups_};
    out.push_back(batch_);
    out.insert(out.end(), places_.begin(), places_.end());
    out.push_back(features_out_);
    out_dims_ = out;
    const InstrId sum = taps <= kMostUnrolled ? unrolled(taps) : looped(taps);
    return result(sum);
  }

 private:
  // Brings the input into the form [group, batch, spatial..., features of the group], padded and dilated.
  void canonical_input() {
    const DimLabels& l = a_.labels;
    const Shape& shape = in_.operand_shape(0);
    const int64_t feature_groups = std::max<int64_t>(1, a_.feature_groups);
    const int64_t batch_groups = std::max<int64_t>(1, a_.batch_groups);
    groups_ = feature_groups * batch_groups;
    const int64_t n = shape.dim(static_cast<int>(l.input_batch)), f = shape.dim(static_cast<int>(l.input_feature));
    batch_ = n / batch_groups;
    features_in_ = f / feature_groups;
    Ints order{l.input_batch};
    for (int64_t d : l.input_spatial) order.push_back(d);
    order.push_back(l.input_feature);
    InstrId x = b_.transpose(b_.convert(in_.operand(0), wide_), order);
    const Window& w = a_.window;
    Ints low{0}, high{0}, interior{0};
    for (size_t i = 0; i < rank_; ++i) {
      low.push_back(w.low_at(i));
      high.push_back(w.high_at(i));
      interior.push_back(w.base_dilation_at(i) - 1);
    }
    for (Ints* v : {&low, &high, &interior}) v->push_back(0);
    x = b_.pad(x, b_.scalar(wide_, 0), low, high, interior);
    const Ints padded = to_ints(b_.dims(x));
    Ints split{batch_groups, batch_}, turned{0};
    split.insert(split.end(), padded.begin() + 1, padded.end() - 1);
    split.push_back(feature_groups);
    split.push_back(features_in_);
    // At most one of feature_group_count and batch_group_count is larger than one.
    const auto group_at = static_cast<int64_t>(rank_) + 2;
    turned = {0, group_at, 1};
    for (size_t i = 0; i < rank_; ++i) turned.push_back(static_cast<int64_t>(i) + 2);
    turned.push_back(group_at + 1);
    x = b_.transpose(b_.reshape(x, split), turned);
    Ints dims{groups_, batch_};
    dims.insert(dims.end(), padded.begin() + 1, padded.end() - 1);
    dims.push_back(features_in_);
    input_ = b_.reshape(x, dims);
  }

  // Brings the kernel into the form [tap, group, input feature, output feature], where the spatial dimensions are merged to taps.
  void canonical_kernel() {
    const DimLabels& l = a_.labels;
    const Shape& shape = in_.operand_shape(1);
    const Window& w = a_.window;
    features_out_ = shape.dim(static_cast<int>(l.kernel_output_feature)) / groups_;
    Ints order, reversed;
    for (size_t i = 0; i < rank_; ++i) {
      const int64_t d = l.kernel_spatial[i];
      order.push_back(d);
      kernel_sizes_.push_back(shape.dim(static_cast<int>(d)));
      if (w.reversed_at(i)) reversed.push_back(static_cast<int64_t>(i));
      places_.push_back(in_.shape().dim(static_cast<int>(l.output_spatial[i])));
    }
    order.push_back(l.kernel_input_feature);
    order.push_back(l.kernel_output_feature);
    InstrId k = b_.reverse(b_.transpose(b_.convert(in_.operand(1), wide_), order), reversed);
    Ints dims = kernel_sizes_;
    dims.push_back(features_in_);
    dims.push_back(groups_);
    dims.push_back(features_out_);
    k = b_.reshape(k, dims);
    Ints turned = counting(static_cast<int64_t>(rank_));
    const auto base = static_cast<int64_t>(rank_);
    turned.insert(turned.end(), {base + 1, base, base + 2});
    k = b_.transpose(k, turned);
    int64_t taps = 1;
    for (int64_t s : kernel_sizes_) taps *= s;
    kernel_ = b_.reshape(k, {taps, groups_, features_in_, features_out_});
  }

  Ints strides() const {
    Ints out{1, 1};
    for (size_t i = 0; i < rank_; ++i) out.push_back(a_.window.stride_at(i));
    out.push_back(1);
    return out;
  }
  // Number of input positions between the first and the last one that one tap reads, both included.
  int64_t extent(size_t i) const { return (places_[i] - 1) * a_.window.stride_at(i) + 1; }

  InstrId term(Builder& b, InstrId slice, InstrId tap) const {
    if (features_in_ == 1) {  // depthwise: one input feature per group, so there is no sum over features
      const Ints last{0, static_cast<int64_t>(rank_) + 2};
      const InstrId spread = b.broadcast(b.reshape(tap, {groups_, features_out_}), out_dims_, last);
      Ints all = counting(static_cast<int64_t>(rank_) + 2);
      Ints without_feature = out_dims_;
      without_feature.pop_back();
      return b.mul(b.broadcast(b.reshape(slice, without_feature), out_dims_, all), spread);
    }
    DotAttrs attrs;
    attrs.lhs_batch = attrs.rhs_batch = b.module().dims({0});
    attrs.lhs_contracting = b.module().dims({static_cast<int64_t>(rank_) + 2});
    attrs.rhs_contracting = b.module().dims({1});
    attrs.precision = a_.precision;
    return b.dot(slice, tap, attrs, wide_);
  }

  InstrId unrolled(int64_t taps) {
    InstrId sum = InstrId::None;
    for (int64_t t = 0; t < taps; ++t) {
      Ints start{0, 0}, limit{groups_, batch_};
      Ints at(rank_);
      int64_t rest = t;
      for (size_t i = rank_; i-- > 0;) {
        at[i] = rest % kernel_sizes_[i] * a_.window.window_dilation_at(i);
        rest /= kernel_sizes_[i];
      }
      for (size_t i = 0; i < rank_; ++i) {
        start.push_back(at[i]);
        limit.push_back(at[i] + extent(i));
      }
      start.push_back(0);
      limit.push_back(features_in_);
      const InstrId tap = b_.reshape(b_.slice_dim(kernel_, 0, t, t + 1), {groups_, features_in_, features_out_});
      const InstrId part = term(b_, b_.slice(input_, start, limit, strides()), tap);
      sum = t == 0 ? part : b_.add(sum, part);
    }
    return sum;
  }

  // For many taps, a loop over the taps keeps the program small.
  InstrId looped(int64_t taps) {
    const InstrId state[] = {input_, kernel_, b_.fill(Shape::array(wide_, out_dims_), 0)};
    return b_.counted_loop(taps, state, [&](Builder& b, InstrId t, std::span<const InstrId> s) {
      const InstrId zero = b.scalar_int(Type::S32, 0);
      std::vector<InstrId> starts(rank_ + 3, zero);
      Ints sizes{groups_, batch_};
      InstrId rest = t;
      for (size_t i = rank_; i-- > 0;) {
        const InstrId size = b.scalar_int(Type::S32, kernel_sizes_[i]), next = b.div(rest, size);
        const InstrId at = b.sub(rest, b.mul(next, size));
        starts[i + 2] = b.mul(at, b.scalar_int(Type::S32, a_.window.window_dilation_at(i)));
        rest = next;
      }
      for (size_t i = 0; i < rank_; ++i) sizes.push_back(extent(i));
      sizes.push_back(features_in_);
      const InstrId whole = b.dynamic_slice(s[0], starts, sizes);
      const InstrId slice = b.slice(whole, Ints(rank_ + 3, 0), sizes, strides());
      const InstrId from[] = {t, zero, zero, zero};
      const InstrId tap = b.reshape(b.dynamic_slice(s[1], from, Ints{1, groups_, features_in_, features_out_}),
                                    {groups_, features_in_, features_out_});
      return std::vector<InstrId>{s[0], s[1], b.add(s[2], term(b, slice, tap))};
    })[2];
  }

  // Transposes [group, batch, spatial..., feature] to the order that the output labels state.
  InstrId result(InstrId sum) {
    Ints turned{1};
    for (size_t i = 0; i < rank_; ++i) turned.push_back(static_cast<int64_t>(i) + 2);
    turned.push_back(0);
    turned.push_back(static_cast<int64_t>(rank_) + 2);
    Ints dims{batch_};
    dims.insert(dims.end(), places_.begin(), places_.end());
    dims.push_back(groups_ * features_out_);
    const InstrId flat = b_.reshape(b_.transpose(sum, turned), dims);
    const DimLabels& l = a_.labels;
    Ints order(rank_ + 2);
    order[static_cast<size_t>(l.output_batch)] = 0;
    order[static_cast<size_t>(l.output_feature)] = static_cast<int64_t>(rank_) + 1;
    for (size_t i = 0; i < rank_; ++i) order[static_cast<size_t>(l.output_spatial[i])] = static_cast<int64_t>(i) + 1;
    return b_.convert(b_.transpose(flat, order), in_.type());
  }

  const ExpandInput& in_;
  Builder& b_;
  const ConvolutionAttrs& a_;
  size_t rank_;
  Type wide_ = Type::F32;
  InstrId input_ = InstrId::None, kernel_ = InstrId::None;
  int64_t groups_ = 1, batch_ = 1, features_in_ = 1, features_out_ = 1;
  Ints kernel_sizes_, places_, out_dims_;
};

InstrId convolution(const ExpandInput& in) {
  const DimLabels& l = in.as<ConvolutionAttrs>().labels;
  const size_t rank = l.input_spatial.size();
  const bool plain = in.operand_shape(0).rank() == static_cast<int>(rank) + 2 && l.input_batch >= 0 &&
                     l.input_feature >= 0 && l.kernel_input_feature >= 0 && l.kernel_output_feature >= 0;
  if (!plain || in.operand_shape(0).has_dynamic() || in.shape().element_count() == 0) return InstrId::None;
  if (in.operand_shape(0).element_count() == 0 || in.operand_shape(1).element_count() == 0)
    return in.b.fill(in.shape(), 0);
  if (in.type() == Type::PRED) {
    // A result of type pred is true if any product is true: the products are counted in s32, and the count is compared
    // with 0.
    Builder& b = in.b;
    const InstrId counts =
        b.op(Op::CONVOLUTION, in.shape().with_type(Type::S32),
             {b.convert(in.operand(0), Type::S32), b.convert(in.operand(1), Type::S32)}, in.instr.attrs);
    return b.compare(counts, Direction::NE, b.like_int(counts, 0));
  }
  return Taps(in).run();
}

constexpr Expansion kTable[] = {{Op::CONVOLUTION, &convolution}};

}  // namespace

Expected<bool> expand_convolution(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
