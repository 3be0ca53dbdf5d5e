// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/window.h"

#include <algorithm>

namespace collet::codegen {
namespace {

__extension__ using Int128 = __int128;

/// Returns x / y for positive y, rounded up or down.
Int128 quotient_up(Int128 x, Int128 y) {
  return x >= 0 ? (x + y - 1) / y : -(-x / y);
}
Int128 quotient_down(Int128 x, Int128 y) {
  return -quotient_up(-x, y);
}

}  // namespace

Window window_of(const Graph& graph, const collet_window& w) {
  return {integers(graph, w.size),         integers(graph, w.stride),        integers(graph, w.padding_low),
          integers(graph, w.padding_high), integers(graph, w.base_dilation), integers(graph, w.window_dilation),
          integers(graph, w.reversal)};
}

Index window_index(KernelBuilder& builder, const Window& w, size_t d, const Index& out, const Index& in, int64_t extent,
                   ExprId& inside) {
  Index at;
  at.constant = -w.low[d];
  at = add_scaled(at, out, w.stride[d]);
  at = add_scaled(at, in, w.dilation[d]);
  if (w.base_dilation[d] != 1) {
    Index q;
    Index rest;
    builder.divide(at, w.base_dilation[d], q, rest);
    inside = builder.both(inside, builder.in_range(rest, 1));
    at = q;
  }
  inside = builder.both(inside, builder.in_range(at, extent));
  return at;
}

Reach reach_of(const Window& w, size_t d, int64_t extent, int64_t outputs) {
  if (extent == 0 || outputs == 0) return {};
  const Int128 low = w.low[d];
  const Int128 last_start = Int128{outputs - 1} * w.stride[d];
  const Int128 last_element = Int128{extent - 1} * w.base_dilation[d];
  const Int128 first = std::max<Int128>(quotient_up(low - last_start, w.dilation[d]), 0);
  const Int128 last = std::min<Int128>(quotient_down(last_element + low, w.dilation[d]), w.size[d] - 1);
  if (last < first) return {};
  return {static_cast<int64_t>(first), static_cast<int64_t>(last - first + 1)};
}

Taps taps_of(const Window& w, size_t d, int64_t extent, int64_t outputs) {
  const Reach reach = reach_of(w, d, extent, outputs);
  if (reach.count > extent) return {extent, 0, true};
  return {reach.count, reach.first, false};
}

Index tap_index(KernelBuilder& builder, const Window& w, size_t d, const Taps& taps, const Index& out,
                const Index& iteration, int64_t extent, ExprId& inside) {
  if (!taps.by_element) {
    Index in = iteration;
    in.constant += taps.first;
    return window_index(builder, w, d, out, in, extent, inside);
  }
  Index position;  // position of the element in the window, times the window's dilation
  position.constant = w.low[d];
  position = add_scaled(position, iteration, w.base_dilation[d]);
  position = add_scaled(position, out, -w.stride[d]);
  if (w.dilation[d] != 1) {
    Index q;
    Index rest;
    builder.divide(position, w.dilation[d], q, rest);
    inside = builder.both(inside, builder.in_range(rest, 1));
    position = q;
  }
  inside = builder.both(inside, builder.in_range(position, w.size[d]));
  return iteration;
}

ConvolutionPlaces convolution_places(KernelBuilder& builder, const Graph& graph, const Node& node, const Window& w,
                                     const Dims& dims, const Position& at, const Position& taps) {
  const auto a = attributes<collet_convolution_attrs>(graph, node);
  const Dims input_spatial = integers(graph, a.labels.input_spatial);
  const Dims kernel_spatial = integers(graph, a.labels.kernel_spatial);
  const Dims output_spatial = integers(graph, a.labels.output_spatial);
  const Dims& filter = graph.type(node.operands[1]).dims;
  const size_t rank = w.size.size();
  auto of = [](auto& list, int64_t d) -> auto& { return list[static_cast<size_t>(d)]; };
  const Index& batch = of(at, a.labels.output_batch);
  const Index& feature = of(at, a.labels.output_feature);
  const Index& in_feature = taps[rank];
  ConvolutionPlaces places;
  Position& from = places.input;
  Position& filter_at = places.filter;
  from.at.resize(dims.size());
  filter_at.at.resize(filter.size());
  for (size_t d = 0; d < rank; ++d) {
    const Index& out = of(at, output_spatial[d]);
    of(from, input_spatial[d]) = window_index(builder, w, d, out, taps[d], of(dims, input_spatial[d]), places.exists);
    Index tap = taps[d];
    if (!w.reversal.empty() && w.reversal[d]) {
      Index last;
      last.constant = w.size[d] - 1;
      tap = add_scaled(last, taps[d], -1);
    }
    of(filter_at, kernel_spatial[d]) = tap;
  }
  const int64_t out_features = of(graph.type(node.results[0]).dims, a.labels.output_feature);
  Index group;
  Index rest;
  Index input_feature = in_feature;
  Index input_batch = batch;
  if (a.feature_groups > 1) {
    builder.divide(feature, out_features / a.feature_groups, group, rest);
    input_feature = add_scaled(in_feature, group, of(filter, a.labels.kernel_input_feature));
  }
  if (a.batch_groups > 1) {
    builder.divide(feature, out_features / a.batch_groups, group, rest);
    input_batch = add_scaled(batch, group, of(dims, a.labels.input_batch) / a.batch_groups);
  }
  of(from, a.labels.input_batch) = input_batch;
  of(from, a.labels.input_feature) = input_feature;
  of(filter_at, a.labels.kernel_input_feature) = in_feature;
  of(filter_at, a.labels.kernel_output_feature) = feature;
  return places;
}

}  // namespace collet::codegen
