// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "hlo/passes/expand/expand.h"

// Rewrites convolutions whose input is dilated by large factors, as in upsampling. Results that are the dilation apart use the
// same elements of the window, and those elements only; they form a phase. All phases whose results begin at the same element
// of the input become features of one convolution without dilation, whose window has the elements of one phase. Its
// work is that of the useful multiplications alone. The phases are counted from the first of those that share the first element
// of their inputs, so that there are two groups at most: phases with one element of the window more than the others, and those.

namespace collet::hlo {
namespace {

/// Backends compute so many phases, or fewer, without copying the result.
constexpr int64_t kMostPhases = 16;

/// `count` phases of a dimension that follow each other, with `taps` elements of the window each.
struct PhaseGroup {
  int64_t count = 0;
  int64_t taps = 0;
  int64_t least_tap = 0;  ///< the least element of the window that one of the phases uses
};

class Splitter {
 public:
  Splitter(Builder& b, const Instruction& instr)
      : b_(b), attrs_(instr.as<ConvolutionAttrs>()), l_(attrs_.labels), w_(attrs_.window), shape_(instr.shape) {
    input_ = instr.operand(0);
    filter_ = instr.operand(1);
    rank_ = w_.rank();
    groups_ = std::max<int64_t>(attrs_.feature_groups, 1);
    for (size_t d = 0; d < rank_; ++d) phases_.push_back(groups_of(d));
  }

  InstrId run() {
    Choice choice(rank_);
    const InstrId all = combine(0, choice);
    // Joins dimensions q and r of the result, and cuts what is beside it. This is the only reshape behind the pads: backends
    // simplify the index of a reshape only where they know that it is inside the array, which a pad does not tell.
    Ints joined{batch()};
    for (size_t d = 0; d < rank_; ++d) joined.push_back(turns(d) * factor(d));
    joined.push_back(features());
    InstrId y = b_.reshape(all, joined);
    for (size_t d = 0; d < rank_; ++d)
      y = b_.slice_dim(y, static_cast<int64_t>(d) + 1, before(d), before(d) + outputs(d));
    Ints order{l_.output_batch};
    order.insert(order.end(), l_.output_spatial.begin(), l_.output_spatial.end());
    order.push_back(l_.output_feature);
    return b_.transpose(y, inverse_permutation(order));
  }

 private:
  using Choice = std::vector<const PhaseGroup*>;

  int64_t factor(size_t d) const { return w_.base_dilation_at(d); }
  bool is_split(size_t d) const { return factor(d) > 1; }
  int64_t outputs(size_t d) const { return shape_.dim(static_cast<int>(l_.output_spatial[d])); }
  /// Returns the number of the phase to which the first result belongs. Phase 0 uses the element factor - 1 of the window
  /// first, the next one the element before it, and so on.
  int64_t before(size_t d) const {
    return is_split(d) ? factor(d) - 1 - (w_.low_at(d) % factor(d) + factor(d)) % factor(d) : 0;
  }
  /// Returns the element of the input, or the place before or behind it, that the first results of all phases use first.
  int64_t shift(size_t d) const { return (factor(d) - 1 - before(d) - w_.low_at(d)) / factor(d); }
  /// Returns the number of results of a phase.
  int64_t turns(size_t d) const { return (before(d) + outputs(d) + factor(d) - 1) / factor(d); }
  int64_t batch() const { return shape_.dim(static_cast<int>(l_.output_batch)); }
  int64_t features() const { return shape_.dim(static_cast<int>(l_.output_feature)); }

  /// Returns the groups of the phases of a dimension, in order; one group for a dimension that is not split.
  std::vector<PhaseGroup> groups_of(size_t d) const {
    if (!is_split(d)) return {{1, w_.size[d], 0}};
    const int64_t taps = w_.size[d] / factor(d), longer = w_.size[d] % factor(d);
    std::vector<PhaseGroup> out{{factor(d) - longer, taps, longer}};
    if (longer > 0) out.push_back({longer, taps + 1, 0});
    return out;
  }

  /// Returns the results of the phases in `choice` for dimensions before `d` and of all phases of the others.
  InstrId combine(size_t d, Choice& choice) {
    if (d == rank_) return convolution(choice);
    const int64_t at = 2 + 2 * static_cast<int64_t>(d);
    std::optional<InstrId> out;
    int64_t first = 0;
    for (const PhaseGroup& g : phases_[d]) {
      const bool is_last = &g == &phases_[d].back();
      if (reaches_input(d, g) || (is_last && !out)) {
        choice[d] = &g;
        InstrId part = combine(d + 1, choice);
        if (g.count < factor(d))
          part = b_.pad_dim(part, b_.scalar(shape_.type(), 0), at, first, factor(d) - first - g.count);
        if (out) {
          const InstrId phase = b_.iota(Shape::array(Type::S32, b_.dims(part)), at);
          part = b_.select(b_.compare(phase, Direction::LT, b_.like_int(phase, first)), *out, part);
        }
        out = part;
      }
      first += g.count;
    }
    return *out;
  }

  /// True if a result of these phases uses an element of the input.
  bool reaches_input(size_t d, const PhaseGroup& g) const {
    const int64_t length = b_.dims(input_)[static_cast<size_t>(l_.input_spatial[d])];
    return g.taps > 0 && (!is_split(d) || (shift(d) < length && shift(d) + turns(d) + g.taps - 2 >= 0));
  }

  /// Returns the results of some phases, as [batch, q0, r0, q1, r1, ..., group, features of a group].
  InstrId convolution(const Choice& choice) {
    Ints dims{batch()};
    for (size_t d = 0; d < rank_; ++d) {
      dims.push_back(turns(d));
      dims.push_back(choice[d]->count);
    }
    dims.push_back(groups_);
    dims.push_back(features() / groups_);
    for (size_t d = 0; d < rank_; ++d) {
      if (!reaches_input(d, *choice[d])) return b_.fill(Shape::array(shape_.type(), dims), 0);
    }
    const InstrId y = b_.op(Op::CONVOLUTION, narrow_shape(choice), {input_, filter(choice)}, narrow_attrs(choice));
    // The features are [groups, r0, r1, ..., features of a group].
    Ints apart{batch()};
    for (size_t d = 0; d < rank_; ++d) apart.push_back(turns(d));
    apart.push_back(groups_);
    for (const PhaseGroup* g : choice) apart.push_back(g->count);
    apart.push_back(features() / groups_);
    const auto n = static_cast<int64_t>(rank_);
    Ints order{0};
    for (int64_t d = 0; d < n; ++d) {
      order.push_back(1 + d);
      order.push_back(2 + n + d);
    }
    order.push_back(1 + n);
    order.push_back(2 + 2 * n);
    return b_.transpose(b_.reshape(y, apart), order);
  }

  /// Returns the filter whose output features are those of all phases, as [spatial..., input features, output features].
  InstrId filter(const Choice& choice) {
    Ints order(l_.kernel_spatial.begin(), l_.kernel_spatial.end());
    order.push_back(l_.kernel_input_feature);
    order.push_back(l_.kernel_output_feature);
    InstrId x = b_.transpose(filter_, order);
    // A split dimension becomes two: [taps, phases]. Phases use the elements of the window in descending order.
    Ints reversed;
    int64_t at = 0;
    for (size_t d = 0; d < rank_; ++d) {
      const PhaseGroup& g = *choice[d];
      if (is_split(d)) {
        const int64_t size = g.taps * factor(d);
        const int64_t missing = std::max<int64_t>(g.least_tap + size - w_.size[d], 0);
        if (missing > 0) x = b_.pad_dim(x, b_.scalar(b_.type(x), 0), at, 0, missing);
        x = b_.slice_dim(x, at, g.least_tap, g.least_tap + size);
      }
      Ints dims = to_ints(b_.dims(x));
      dims[static_cast<size_t>(at)] = g.taps;
      dims.insert(dims.begin() + at + 1, is_split(d) ? factor(d) : 1);
      x = b_.slice_dim(b_.reshape(x, dims), at + 1, 0, g.count);
      if (is_split(d)) reversed.push_back(at + 1);
      at += 2;
    }
    x = b_.reverse(x, reversed);
    // [t0, r0, t1, r1, ..., input, output] becomes [t0, t1, ..., input, group, r0, r1, ..., output of the group].
    const auto n = static_cast<int64_t>(rank_);
    Ints dims = to_ints(b_.dims(x));
    const int64_t input = dims[static_cast<size_t>(2 * n)];
    dims.back() = groups_;
    dims.push_back(features() / groups_);
    x = b_.reshape(x, dims);
    Ints moved;
    Ints joined;
    for (int64_t d = 0; d < n; ++d) {
      moved.push_back(2 * d);
      joined.push_back(choice[static_cast<size_t>(d)]->taps);
    }
    moved.push_back(2 * n);
    moved.push_back(2 * n + 1);
    for (int64_t d = 0; d < n; ++d) moved.push_back(2 * d + 1);
    moved.push_back(2 * n + 2);
    joined.push_back(input);
    joined.push_back(all_features(choice));
    return b_.reshape(b_.transpose(x, moved), joined);
  }

  int64_t all_features(const Choice& choice) const {
    int64_t out = features();
    for (const PhaseGroup* g : choice) out *= g->count;
    return out;
  }

  Shape narrow_shape(const Choice& choice) const {
    Ints dims{batch()};
    for (size_t d = 0; d < rank_; ++d) dims.push_back(turns(d));
    dims.push_back(all_features(choice));
    return Shape::array(shape_.type(), dims);
  }

  const ConvolutionAttrs* narrow_attrs(const Choice& choice) {
    Module& m = b_.module();
    auto* out = m.make<ConvolutionAttrs>();
    const auto n = static_cast<int64_t>(rank_);
    out->labels = l_;
    out->labels.output_batch = 0;
    out->labels.output_feature = n + 1;
    out->labels.output_spatial = m.dims(counting(n, 1));
    out->labels.kernel_spatial = m.dims(counting(n));
    out->labels.kernel_input_feature = n;
    out->labels.kernel_output_feature = n + 1;
    out->feature_groups = groups_;
    out->batch_groups = 1;
    out->precision = attrs_.precision;
    Ints size, stride, low, high, dilation, reversal;
    for (size_t d = 0; d < rank_; ++d) {
      const PhaseGroup& g = *choice[d];
      const int64_t length = b_.dims(input_)[static_cast<size_t>(l_.input_spatial[d])];
      size.push_back(g.taps);
      stride.push_back(w_.stride_at(d));
      low.push_back(is_split(d) ? -shift(d) : w_.low_at(d));
      high.push_back(is_split(d) ? turns(d) + g.taps - 1 - length + shift(d) : w_.high_at(d));
      dilation.push_back(w_.window_dilation_at(d));
      reversal.push_back(w_.reversed_at(d) ? 1 : 0);
    }
    out->window.size = m.dims(size);
    out->window.stride = m.dims(stride);
    out->window.padding_low = m.dims(low);
    out->window.padding_high = m.dims(high);
    out->window.window_dilation = m.dims(dilation);
    out->window.reversal = m.dims(reversal);
    return out;
  }

  Builder& b_;
  const ConvolutionAttrs& attrs_;
  const DimLabels& l_;
  const Window& w_;
  const Shape shape_;
  InstrId input_, filter_;
  size_t rank_ = 0;
  int64_t groups_ = 1;
  std::vector<std::vector<PhaseGroup>> phases_;  ///< by dimension of the window
};

bool wanted(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.op != Op::CONVOLUTION || instr.shape.has_dynamic() || instr.shape.element_count() == 0) return false;
  for (InstrId o : instr.operands)
    if (module[o].shape.has_dynamic() || module[o].shape.element_count() == 0) return false;
  const auto& a = instr.as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  const bool plain = module[instr.operand(0)].shape.rank() == static_cast<int>(l.input_spatial.size()) + 2 &&
                     l.input_batch >= 0 && l.input_feature >= 0 && l.kernel_input_feature >= 0 &&
                     l.kernel_output_feature >= 0 && l.output_batch >= 0 && l.output_feature >= 0;
  if (!plain || a.batch_groups > 1) return false;
  int64_t phases = 1;
  for (size_t d = 0; d < a.window.rank(); ++d) {
    const int64_t factor = a.window.base_dilation_at(d);
    if (factor == 1) continue;
    if (a.window.stride_at(d) != 1 || a.window.window_dilation_at(d) != 1 || a.window.reversed_at(d)) return false;
    phases *= std::min<int64_t>(factor, kMostPhases + 1);
    phases = std::min(phases, kMostPhases + 1);
  }
  return phases > kMostPhases;
}

}  // namespace

Expected<bool> split_phases(Module& module, PassContext&) {
  return rewrite_wanted(
      module, [&](InstrId id) { return wanted(module, id); },
      [](Builder& b, const Instruction& instr) { return Splitter(b, instr).run(); });
}

}  // namespace collet::hlo
