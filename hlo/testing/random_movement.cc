// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing::random {

void Writer::broadcast() {
  const auto v = pick([](const Value& x) { return x.rank() < 3; });
  if (!v) return;
  Sizes dims = v->dims, mapping;
  for (size_t i = 0; i < dims.size(); ++i) mapping.push_back(static_cast<int64_t>(i));
  const int64_t at = state_.between(0, static_cast<int64_t>(dims.size()));
  dims.insert(dims.begin() + at, state_.small_or_any(3, state_.most_elements / std::max<int64_t>(v->count(), 1)));
  for (int64_t& m : mapping) m += m >= at;
  if (v->count() * 3 <= state_.most_elements)
    emit(*v->type, dims, "broadcast(" + v->name + "), dimensions=" + list(mapping), v->exact);
}

void Writer::reshape() {
  const auto v = pick();
  if (!v) return;
  Sizes dims = v->dims;
  const int64_t how = state_.below(3);
  if (how == 0 && dims.size() < 4) {
    dims.insert(dims.begin() + state_.between(0, static_cast<int64_t>(dims.size())), 1);
  } else if (how == 1 && !dims.empty()) {
    const size_t at = static_cast<size_t>(state_.below(static_cast<int64_t>(dims.size())));
    if (dims[at] % 2 == 0 && dims[at] > 0) {
      dims[at] /= 2;
      dims.insert(dims.begin() + static_cast<int64_t>(at), 2);
    }
  } else {
    dims = {v->count()};
  }
  if (dims.size() < 5) emit(*v->type, dims, "reshape(" + v->name + ")", v->exact);
}

void Writer::transpose() {
  const auto v = pick(is_ranked);
  if (!v) return;
  Sizes permutation, dims;
  for (size_t i = 0; i < v->rank(); ++i)
    permutation.insert(permutation.begin() + state_.between(0, static_cast<int64_t>(i)), static_cast<int64_t>(i));
  for (int64_t p : permutation) dims.push_back(v->dims[static_cast<size_t>(p)]);
  emit(*v->type, dims, "transpose(" + v->name + "), dimensions=" + list(permutation), v->exact);
}

void Writer::slice() {
  const auto v = pick(is_ranked);
  if (!v) return;
  std::string ranges;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t low = state_.one_in(2) ? 0 : state_.between(0, n),
                  high = state_.one_in(2) ? n : state_.between(low, n);
    const int64_t step = state_.one_in(3) ? 2 : 1;
    dims.push_back((high - low + step - 1) / step);
    ranges += (ranges.empty() ? "[" : ", [") + std::to_string(low) + ":" + std::to_string(high) + ":" +
              std::to_string(step) + "]";
  }
  emit(*v->type, dims, "slice(" + v->name + "), slice={" + ranges + "}", v->exact);
}

void Writer::pad() {
  const auto v = pick(is_ranked);
  if (!v) return;
  std::string config;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t low = state_.between(-1, 2), high = state_.between(-1, 2), inside = state_.one_in(3) ? 1 : 0;
    const int64_t size = low + n + std::max<int64_t>(n - 1, 0) * inside + high;
    if (size < 0) return;
    dims.push_back(size);
    config +=
        (config.empty() ? "" : "x") + std::to_string(low) + "_" + std::to_string(high) + "_" + std::to_string(inside);
  }
  const Value fill = constant(*v->type);
  emit(*v->type, dims, "pad(" + v->name + ", " + fill.name + "), padding=" + config, v->exact);
}

void Writer::concatenate() {
  const auto v = pick(is_ranked);
  if (!v || v->count() * 2 > state_.most_elements) return;
  const auto at = static_cast<size_t>(state_.below(static_cast<int64_t>(v->rank())));
  Sizes dims = v->dims;
  dims[at] *= 2;
  emit(*v->type, dims, "concatenate(" + v->name + ", " + mate(*v).name + "), dimensions={" + std::to_string(at) + "}",
       v->exact);
}

void Writer::reverse() {
  const auto v = pick(is_ranked);
  if (!v) return;
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (state_.one_in(2)) dims.push_back(static_cast<int64_t>(i));
  emit(*v->type, v->dims, "reverse(" + v->name + "), dimensions=" + list(dims), v->exact);
}

std::pair<Sizes, std::string> Writer::random_slice(const Value& v) {
  Sizes sizes;
  std::string starts;
  for (int64_t n : v.dims) sizes.push_back(state_.between(0, n));
  if (state_.one_in(4)) return {sizes, ", " + mate({"", &type("s32"), {static_cast<int64_t>(v.rank())}}).name};
  for (size_t i = 0; i < v.rank(); ++i) starts += ", " + index().name;
  return {sizes, starts};
}

void Writer::dynamic_slice() {
  const auto v = pick(is_filled);
  if (!v) return;
  const auto [sizes, starts] = random_slice(*v);
  emit(*v->type, sizes, "dynamic-slice(" + v->name + starts + "), dynamic_slice_sizes=" + list(sizes), v->exact);
}

void Writer::dynamic_update_slice() {
  const auto v = pick(is_filled);
  if (!v) return;
  const auto [sizes, starts] = random_slice(*v);
  const Value update = mate({"", v->type, sizes});
  emit(*v->type, v->dims, "dynamic-update-slice(" + v->name + ", " + update.name + starts + ")", v->exact);
}

namespace {

// Where the slices of a gather or scatter are: which dimensions of the operand the indices select, the size of a slice, and the
// dimensions of the array of slices.
struct Slices {
  Sizes dims;       // of the array of slices: the number of slices is at `batch`
  Sizes sizes;      // of a slice
  Sizes collapsed;  // dimensions of the operand, of size 1 in a slice, that the array of slices lacks
  Sizes map;        // the dimension of the operand for each component of an index
  Sizes windows;    // dimensions of the array of slices that are dimensions of a slice
};

Slices draw_slices(WriterState& draw, const Value& v, int64_t rows, bool usual) {
  Slices out;
  const auto rank = static_cast<int64_t>(v.rank());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t n = v.dims[static_cast<size_t>(i)];
    const bool mapped = usual ? i == 0 : draw.one_in(2);
    if (mapped) out.map.push_back(i);
    out.sizes.push_back(mapped ? usual || draw.one_in(2) ? 1 : draw.between(1, n) : n);
    if (mapped && out.sizes.back() == 1 && (usual || draw.one_in(2)))
      out.collapsed.push_back(i);
    else
      out.dims.push_back(out.sizes.back());
  }
  if (out.map.size() > 1 && draw.one_in(2)) std::swap(out.map.front(), out.map.back());
  const int64_t batch = usual ? 0 : draw.between(0, static_cast<int64_t>(out.dims.size()));
  out.dims.insert(out.dims.begin() + batch, rows);
  for (int64_t i = 0; i < static_cast<int64_t>(out.dims.size()); ++i)
    if (i != batch) out.windows.push_back(i);
  return out;
}

}  // namespace

// Returns an array of indices. Some may be out of bounds or equal.
Value Writer::many_indices(const Sizes& dims) {
  const TypeRow& s32 = type("s32");
  if (state_.one_in(2)) return mate({"", &s32, dims});
  const auto splat_of = [&](int64_t value) {
    const Value c = emit(s32, {}, "constant(" + std::to_string(value) + ")");
    return emit(s32, dims, "broadcast(" + c.name + "), dimensions={}");
  };
  const Value places = emit(s32, dims, "iota(), iota_dimension=0");
  const Value factor = splat_of(state_.between(1, 50)), size = splat_of(state_.of(state_.dimensions));
  const Value product = emit(s32, dims, "multiply(" + places.name + ", " + factor.name + ")");
  return emit(s32, dims, "remainder(" + product.name + ", " + size.name + ")");
}

void Writer::gather() {
  const auto v = pick(is_filled);
  if (!v) return;
  const int64_t rows = state_.one_in(8) ? 0 : state_.small_or_any(3, state_.most_elements / v->count());
  const Slices at = draw_slices(state_, *v, rows, state_.one_in(2));
  const Value indices = many_indices({rows, static_cast<int64_t>(at.map.size())});
  emit(*v->type, at.dims,
       "gather(" + v->name + ", " + indices.name + "), offset_dims=" + list(at.windows) +
           ", collapsed_slice_dims=" + list(at.collapsed) + ", start_index_map=" + list(at.map) +
           ", index_vector_dim=1, slice_sizes=" + list(at.sizes),
       v->exact);
}

// Combines by a function whose result does not depend on the order.
void Writer::scatter() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  const int64_t rows = state_.one_in(8) ? 0 : state_.small_or_any(3, state_.most_elements / v->count());
  const Slices at = draw_slices(state_, *v, rows, state_.one_in(2));
  const Value indices = many_indices({rows, static_cast<int64_t>(at.map.size())});
  const Value updates = mate({"", v->type, at.dims});
  const bool adds = v->type->kind != Kind::Float && state_.one_in(2);
  emit(*v->type, v->dims,
       "scatter(" + v->name + ", " + indices.name + ", " + updates.name + "), update_window_dims=" + list(at.windows) +
           ", inserted_window_dims=" + list(at.collapsed) + ", scatter_dims_to_operand_dims=" + list(at.map) +
           ", index_vector_dim=1, to_apply=" + combiner(adds ? "add" : "maximum", *v->type));
}

void Writer::iota() {
  static const std::vector<std::string> kNames = {"s32", "f32", "u8", "s64"};
  const Sizes dims = state_.sizes();
  if (dims.empty()) return;
  const TypeRow& t = type(state_.of(kNames));
  emit(t, dims, "iota(), iota_dimension=" + std::to_string(state_.below(static_cast<int64_t>(dims.size()))));
}

void Writer::array_constant() {
  const TypeRow& t = state_.any_type();
  const int64_t n = state_.between(0, 4);
  std::string values;
  for (int64_t i = 0; i < n; ++i) values += (i ? ", " : "") + number(state_, t);
  emit(t, {n}, "constant({" + values + "})");
}

}  // namespace collet::hlo::testing::random
