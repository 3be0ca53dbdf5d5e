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

Convolution convolution_of(const Graph& graph, const Node& node) {
  const auto a = attributes<collet_convolution_attrs>(graph, node);
  const auto place = [](int64_t d) { return static_cast<size_t>(d); };
  const auto places = [&](collet_range range) {
    std::vector<size_t> out;
    for (int64_t d : integers(graph, range)) out.push_back(place(d));
    return out;
  };
  Convolution c;
  c.input = node.operands[0];
  c.filter = node.operands[1];
  c.result = node.results[0];
  c.input_dims = graph.type(c.input).dims;
  c.filter_dims = graph.type(c.filter).dims;
  c.result_dims = graph.type(c.result).dims;
  c.input_batch = place(a.labels.input_batch);
  c.input_feature = place(a.labels.input_feature);
  c.kernel_input_feature = place(a.labels.kernel_input_feature);
  c.kernel_output_feature = place(a.labels.kernel_output_feature);
  c.output_batch = place(a.labels.output_batch);
  c.output_feature = place(a.labels.output_feature);
  c.input_spatial = places(a.labels.input_spatial);
  c.kernel_spatial = places(a.labels.kernel_spatial);
  c.output_spatial = places(a.labels.output_spatial);
  c.feature_groups = std::max<int64_t>(a.feature_groups, 1);
  c.batch_groups = std::max<int64_t>(a.batch_groups, 1);
  c.window = window_of(graph, a.window);
  return c;
}

ConvolutionPlaces convolution_places(KernelBuilder& builder, const Convolution& c, const Position& at,
                                     const Position& taps) {
  const Window& w = c.window;
  const size_t rank = w.size.size();
  const Index& batch = at[c.output_batch];
  const Index& feature = at[c.output_feature];
  const Index& in_feature = taps[rank];
  ConvolutionPlaces places;
  Position& from = places.input;
  Position& filter_at = places.filter;
  from.at.resize(c.input_dims.size());
  filter_at.at.resize(c.filter_dims.size());
  for (size_t d = 0; d < rank; ++d) {
    const Index& out = at[c.output_spatial[d]];
    from[c.input_spatial[d]] =
        window_index(builder, w, d, out, taps[d], c.input_dims[c.input_spatial[d]], places.exists);
    Index tap = taps[d];
    if (!w.reversal.empty() && w.reversal[d]) {
      Index last;
      last.constant = w.size[d] - 1;
      tap = add_scaled(last, taps[d], -1);
    }
    filter_at[c.kernel_spatial[d]] = tap;
  }
  Index group;
  Index rest;
  Index input_feature = in_feature;
  Index input_batch = batch;
  if (c.feature_groups > 1) {
    builder.divide(feature, c.filters(), group, rest);
    input_feature = add_scaled(in_feature, group, c.features());
  }
  if (c.batch_groups > 1) {
    builder.divide(feature, c.filters(), group, rest);
    input_batch = add_scaled(batch, group, c.input_dims[c.input_batch] / c.batch_groups);
  }
  from[c.input_batch] = input_batch;
  from[c.input_feature] = input_feature;
  filter_at[c.kernel_input_feature] = in_feature;
  filter_at[c.kernel_output_feature] = feature;
  return places;
}

}  // namespace collet::codegen
