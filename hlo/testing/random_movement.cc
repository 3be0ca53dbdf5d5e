// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing::random {

void Writer::broadcast() {
  const auto v = pick([](const Value& x) { return x.rank() < 3; });
  if (!v) return;
  Sizes dims = v->dims, mapping;
  for (size_t i = 0; i < dims.size(); ++i) mapping.push_back(static_cast<int64_t>(i));
  const int64_t at = state_.between(0, static_cast<int64_t>(dims.size()));
  dims.insert(dims.begin() + at, state_.between(1, 3));
  for (int64_t& m : mapping) m += m >= at;
  if (v->count() * 3 <= kMostElements)
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
  if (!v || v->count() * 2 > kMostElements) return;
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

// Gathers rows by their numbers.
void Writer::gather() {
  const auto v = pick(is_filled);
  if (!v) return;
  const Value rows = mate({"", &type("s32"), {state_.between(0, 3), 1}});
  Sizes dims = {rows.dims[0]}, sizes = {1}, offsets;
  for (size_t i = 1; i < v->rank(); ++i) {
    dims.push_back(v->dims[i]);
    sizes.push_back(v->dims[i]);
    offsets.push_back(static_cast<int64_t>(i));
  }
  emit(*v->type, dims,
       "gather(" + v->name + ", " + rows.name + "), offset_dims=" + list(offsets) +
           ", collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes=" + list(sizes),
       v->exact);
}

void Writer::scatter() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  const Value rows = mate({"", &type("s32"), {state_.between(0, 3), 1}});
  Sizes dims = {rows.dims[0]}, windows;
  for (size_t i = 1; i < v->rank(); ++i) {
    dims.push_back(v->dims[i]);
    windows.push_back(static_cast<int64_t>(i));
  }
  const Value updates = mate({"", v->type, dims});
  emit(*v->type, v->dims,
       "scatter(" + v->name + ", " + rows.name + ", " + updates.name + "), update_window_dims=" + list(windows) +
           ", inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=" +
           combiner("maximum", *v->type));
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
