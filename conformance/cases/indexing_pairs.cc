// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"
#include "hlo/ops/constraint.h"

/// \file
/// Adds gathers and scatters that cover all pairs of attribute choices: which dimensions are indexed and in which
/// order, which are collapsed, the positions of index vectors and window dimensions, and batching dimensions.

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Pair {
  Dims operand, indices, windows;  // `windows`: the result of the gather or the updates of the scatter
  Dims offset, collapsed, map, operand_batching, indices_batching, slices;
  int64_t vector_dim = 0;
  Type type = Type::F32, index = Type::S32;
  const char* body = "add";
  double most = 3;  // indices are drawn from -1 to `most`
};

// The operand has the sizes 4, 5, 6 ..., and possibly a batching dimension of size 3 before or after them.
Pair choose(Factors& factors) {
  Pair pair;
  const auto rank = factors.next<size_t>({2, 1, 3, 4});
  const auto batching = factors.next<std::string_view>({"none", "front", "back"});
  for (size_t d = 0; d < rank; ++d) pair.operand.push_back(4 + static_cast<int64_t>(d));
  const int64_t batch_at = batching == "front" ? 0 : static_cast<int64_t>(rank);
  if (batching != "none") {
    pair.operand.insert(pair.operand.begin() + batch_at, 3);
    pair.operand_batching = {batch_at};
  }
  const int64_t first = batching == "front" ? 1 : 0;

  const auto indexed = std::min(factors.next<size_t>({1, 2, 3}), rank);
  const bool from_behind = factors.next({false, true}), descending = factors.next({false, true});
  for (size_t k = 0; k < indexed; ++k)
    pair.map.push_back(first + static_cast<int64_t>(from_behind ? rank - indexed + k : k));
  // Chooses the collapsed dimensions: none, one of the indexed ones, all indexed ones, or one that no index selects.
  const auto collapses = factors.next<std::string_view>({"all", "none", "first", "last", "other"});
  if (collapses == "all") pair.collapsed = pair.map;
  if (collapses == "first") pair.collapsed = {pair.map.front()};
  if (collapses == "last") pair.collapsed = {pair.map.back()};
  for (size_t d = 0; collapses == "other" && d < rank; ++d) {
    const int64_t other = first + static_cast<int64_t>(d);
    if (pair.collapsed.empty() && !hlo::contains(pair.map, other)) pair.collapsed = {other};
  }
  if (descending) std::reverse(pair.map.begin(), pair.map.end());
  const auto extent = factors.next<std::string_view>({"part", "one", "whole"});
  for (size_t d = 0; d < pair.operand.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    const bool single =
        hlo::contains(pair.collapsed, at) || hlo::contains(pair.operand_batching, at) || extent == "one";
    pair.slices.push_back(single ? 1 : extent == "whole" ? pair.operand[d] : pair.operand[d] - 2);
  }

  // The dimensions of the indices: batch dimensions, including the one that corresponds to the operand's batching
  // dimension, and the index vector at some position.
  const auto batches = factors.next<size_t>({1, 0, 2});
  const auto vectors = factors.next<std::string_view>({"last", "first", "middle", "implied"});
  Dims batch = {2, 5};
  batch.resize(batches);
  if (batching != "none") batch.push_back(3);
  const bool implied = vectors == "implied" && indexed == 1;
  const size_t place = vectors == "first" ? 0 : vectors == "middle" ? batch.size() / 2 : batch.size();
  pair.vector_dim = static_cast<int64_t>(place);
  pair.indices = batch;
  if (!implied) pair.indices.insert(pair.indices.begin() + pair.vector_dim, static_cast<int64_t>(indexed));
  if (batching != "none") {
    const auto last = static_cast<int64_t>(batch.size()) - 1;
    pair.indices_batching = {!implied && last >= pair.vector_dim ? last + 1 : last};
  }

  // The window dimensions are before the batch dimensions, after them, or in between.
  Dims window;
  for (size_t d = 0; d < pair.operand.size(); ++d)
    if (const auto at = static_cast<int64_t>(d);
        !hlo::contains(pair.collapsed, at) && !hlo::contains(pair.operand_batching, at))
      window.push_back(pair.slices[d]);
  const auto where = factors.next<std::string_view>({"behind", "front", "between"});
  const size_t all = batch.size() + window.size();
  size_t w = 0, b = 0;
  for (size_t d = 0; d < all; ++d) {
    const bool turn = where == "front" ? w < window.size() : where == "behind" ? b == batch.size() : d % 2 == 1;
    const bool is_window = (turn && w < window.size()) || b == batch.size();
    if (is_window) pair.offset.push_back(static_cast<int64_t>(d));
    pair.windows.push_back(is_window ? window[w++] : batch[b++]);
  }

  pair.type = factors.next({Type::F32, Type::S32, Type::BF16, Type::U8, Type::F64});
  pair.index = factors.next({Type::S32, Type::S64, Type::U32, Type::S8, Type::U16});
  pair.body = factors.next({"add", "maximum", "minimum"});
  pair.most = factors.next({3.0, 7.0});
  return pair;
}

InputSpec indices_of(const Pair& pair) {
  return {.low = hlo::is_unsigned(pair.index) ? 0.0 : -1.0, .high = pair.most};
}

void add_gather(CaseList& list, const Pair& pair, size_t number) {
  Text text;
  const std::string x = text.parameter(Shape::array(pair.type, pair.operand)),
                    i = text.parameter(Shape::array(pair.index, pair.indices));
  std::string attributes =
      fmt::format("offset_dims={}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim={}, slice_sizes={}",
                  braces(pair.offset), braces(pair.collapsed), braces(pair.map), pair.vector_dim, braces(pair.slices));
  if (!pair.operand_batching.empty())
    attributes += fmt::format(", operand_batching_dims={}, start_indices_batching_dims={}",
                              braces(pair.operand_batching), braces(pair.indices_batching));
  list.add({fmt::format("gather/{}/pair{}_{}_{}/large", type_name(pair.type), number, dims_name(pair.operand),
                        type_name(pair.index)),
            Op::GATHER,
            pair.type,
            text.root(Shape::array(pair.type, pair.windows), fmt::format("gather({}, {}), {}", x, i, attributes)),
            {{.values = Values::Large}, indices_of(pair)},
            {.kind = Bound::Kind::Bits}});
}

void add_scatter(CaseList& list, const Pair& pair, size_t number) {
  Text text;
  const std::string combine = text.combiner(pair.body, pair.type);
  const Shape operand = Shape::array(pair.type, pair.operand);
  const std::string x = text.parameter(operand), i = text.parameter(Shape::array(pair.index, pair.indices)),
                    updates = text.parameter(Shape::array(pair.type, pair.windows));
  std::string attributes = fmt::format(
      "update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim={}",
      braces(pair.offset), braces(pair.collapsed), braces(pair.map), pair.vector_dim);
  if (!pair.operand_batching.empty())
    attributes += fmt::format(", input_batching_dims={}, scatter_indices_batching_dims={}",
                              braces(pair.operand_batching), braces(pair.indices_batching));
  double terms = 2;
  for (const int64_t size : pair.indices) terms *= static_cast<double>(size);
  const double most = hlo::is_integer(pair.type) ? 9 : 1;
  const bool sums = std::string_view(pair.body) == "add";
  list.add({fmt::format("scatter/{}/pair{}_{}_{}_{}/unit", type_name(pair.type), number, pair.body,
                        dims_name(pair.operand), type_name(pair.index)),
            Op::SCATTER,
            pair.type,
            text.root(operand, fmt::format("scatter({}, {}, {}), {}, to_apply={}", x, i, updates, attributes, combine)),
            {{.low = -most, .high = most}, indices_of(pair), {.low = -most, .high = most}},
            sums ? sum_bound(pair.type, terms, false) : Bound{}});
}

}  // namespace

void add_indexing_pairs(CaseList& list) {
  for_pairs(choose, [&](const Pair& pair, size_t number) {
    add_gather(list, pair, number);
    add_scatter(list, pair, number);
  });
}

}  // namespace collet::conformance
