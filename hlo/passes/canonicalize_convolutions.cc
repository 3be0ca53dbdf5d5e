// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/expand/expand.h"

// Rewrites each convolution into the form that convolution libraries and devices accept: labels b01f_01io->b01f, a
// window with sizes, strides and window dilation only, and feature groups only. The rest becomes ops of its own:
// transposes for other labels, a pad for padding and base dilation, a reverse for window reversal.

namespace collet::hlo {
namespace {

// The order of the input's dimensions in this form: the batch, the spatial dimensions in order, then the features.
Ints input_order(const DimLabels& l) {
  Ints out{l.input_batch};
  out.insert(out.end(), l.input_spatial.begin(), l.input_spatial.end());
  out.push_back(l.input_feature);
  return out;
}
Ints kernel_order(const DimLabels& l) {
  Ints out(l.kernel_spatial.begin(), l.kernel_spatial.end());
  out.push_back(l.kernel_input_feature);
  out.push_back(l.kernel_output_feature);
  return out;
}
Ints output_order(const DimLabels& l) {
  Ints out{l.output_batch};
  out.insert(out.end(), l.output_spatial.begin(), l.output_spatial.end());
  out.push_back(l.output_feature);
  return out;
}

bool counts_up(const Ints& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool plain_window(const Window& w) {
  for (size_t i = 0; i < w.rank(); ++i)
    if (w.low_at(i) != 0 || w.high_at(i) != 0 || w.base_dilation_at(i) != 1 || w.reversed_at(i)) return false;
  return true;
}

bool is_canonical(const ConvolutionAttrs& a) {
  return counts_up(input_order(a.labels)) && counts_up(kernel_order(a.labels)) && counts_up(output_order(a.labels)) &&
         plain_window(a.window) && a.batch_groups <= 1;
}

// Turns batch groups of the input into feature groups: [G, b, ..., f] is transposed to [b, ..., G, f].
InstrId group_features(Builder& b, InstrId x, int64_t groups) {
  const Ints dims = to_ints(b.dims(x));
  const auto rank = static_cast<int64_t>(dims.size());
  Ints apart{groups, dims[0] / groups};
  apart.insert(apart.end(), dims.begin() + 1, dims.end());
  Ints order = counting(rank - 1, 1);
  order.push_back(0);
  order.push_back(rank);
  Ints joined{dims[0] / groups};
  joined.insert(joined.end(), dims.begin() + 1, dims.end() - 1);
  joined.push_back(groups * dims.back());
  return b.reshape(b.transpose(b.reshape(x, apart), order), joined);
}

InstrId padded(Builder& b, InstrId x, const Window& w) {
  const size_t rank = w.rank();
  Ints low(rank + 2), high(rank + 2), interior(rank + 2);
  bool any = false;
  for (size_t i = 0; i < rank; ++i) {
    low[i + 1] = w.low_at(i);
    high[i + 1] = w.high_at(i);
    interior[i + 1] = w.base_dilation_at(i) - 1;
    any |= low[i + 1] != 0 || high[i + 1] != 0 || interior[i + 1] != 0;
  }
  return any ? b.pad(x, b.scalar(b.type(x), 0), low, high, interior) : x;
}

DimLabels canonical_labels(Module& module, int64_t rank) {
  DimLabels l;
  l.input_batch = l.output_batch = 0;
  l.input_feature = l.output_feature = rank + 1;
  l.kernel_input_feature = rank;
  l.kernel_output_feature = rank + 1;
  l.input_spatial = l.output_spatial = module.dims(counting(rank, 1));
  l.kernel_spatial = module.dims(counting(rank));
  return l;
}

InstrId canonical(Builder& b, const Instruction& instr) {
  const auto& old = instr.as<ConvolutionAttrs>();
  const auto rank = static_cast<int64_t>(old.labels.input_spatial.size());
  InstrId x = b.transpose(instr.operand(0), input_order(old.labels));
  const int64_t batch_groups = std::max<int64_t>(old.batch_groups, 1);
  if (batch_groups > 1) x = group_features(b, x, batch_groups);
  x = padded(b, x, old.window);
  InstrId kernel = b.transpose(instr.operand(1), kernel_order(old.labels));
  Ints reversed;
  for (size_t i = 0; i < old.window.rank(); ++i)
    if (old.window.reversed_at(i)) reversed.push_back(static_cast<int64_t>(i));
  kernel = b.reverse(kernel, reversed);

  auto* attrs = b.module().make<ConvolutionAttrs>();
  attrs->labels = canonical_labels(b.module(), rank);
  attrs->feature_groups = std::max<int64_t>(old.feature_groups, 1) * batch_groups;
  attrs->batch_groups = 1;
  attrs->precision = old.precision;
  attrs->window.size = old.window.size;
  attrs->window.stride = old.window.stride;
  attrs->window.window_dilation = old.window.window_dilation;
  const Ints order = output_order(old.labels);
  Ints dims;
  for (int64_t d : order) dims.push_back(instr.shape.dim(static_cast<int>(d)));
  const InstrId y = b.op(Op::CONVOLUTION, Shape::array(instr.shape.type(), dims), {x, kernel}, attrs);
  return b.transpose(y, inverse_permutation(order));
}

bool wanted(const Module& module, PassContext& context, InstrId id) {
  const Instruction& instr = module[id];
  // A convolution with an empty result is left to simplify, which makes it a constant. Its padding may remove more
  // elements than the input has, which the pad below could not express.
  if (instr.op != Op::CONVOLUTION || instr.shape.has_dynamic() || instr.shape.element_count() == 0) return false;
  for (InstrId o : instr.operands)
    if (module[o].shape.has_dynamic()) return false;
  const auto& a = instr.as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  // The labels need not name dimensions of size one; a convolution with such unnamed dimensions is left alone.
  const bool plain = module[instr.operand(0)].shape.rank() == static_cast<int>(l.input_spatial.size()) + 2 &&
                     l.input_batch >= 0 && l.input_feature >= 0 && l.kernel_input_feature >= 0 &&
                     l.kernel_output_feature >= 0 && l.output_batch >= 0 && l.output_feature >= 0;
  if (!plain || is_canonical(a) || (a.batch_groups > 1 && a.feature_groups > 1)) return false;
  return !context.claim || (index_of(id) < context.claims_end && context.claim(module, id) == Claim::Expand);
}

}  // namespace

Expected<bool> canonicalize_convolutions(Module& module, PassContext& context) {
  return rewrite_wanted(module, [&](InstrId id) { return wanted(module, context, id); }, canonical);
}

}  // namespace collet::hlo
