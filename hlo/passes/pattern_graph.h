// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>
#include <collet/tables.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "hlo/ops/rules.h"
#include "hlo/passes/rewriter.h"

/// \file
/// What the matchers of find_patterns share: the graph of a computation with its queries, and the result of a match.

namespace collet::hlo {

/// The most ops in the module of a pattern that a device declares.
constexpr size_t kLargestPattern = 1024;

/// A group that is offered to devices as a call: its root, which the matcher was asked about, and this.
struct Match {
  std::string_view name;          ///< of the pattern
  std::vector<InstrId> operands;  ///< of the call; what lies between them and the results is the group
  std::string attributes;         ///< a dictionary as StableHLO writes it; empty: none
  /// The results of the call, of which the root is the first; empty: the root alone.
  std::vector<InstrId> results = {};
  uint32_t features = 0;  ///< COLLET_FEATURE_* that a device needs to compute the group from its attributes
};

/// A view of a computation with the queries that matchers need.
class Graph {
 public:
  Graph(const Module& module, CompId computation)
      : m_(module), users_(module, computation), uses_(module.instruction_limit()) {
    for (InstrId id : module[computation].order)
      for (InstrId o : module[id].operands) ++uses_[index_of(o)];
    ++uses_[index_of(module[computation].root)];
  }

  const Module& module() const { return m_; }
  const Instruction& operator[](InstrId id) const { return m_[id]; }
  bool is(InstrId id, Op op) const { return m_[id].op == op; }
  uint32_t uses(InstrId id) const { return uses_[index_of(id)]; }
  /// Returns the users; a user occurs once per operand that is `id`.
  std::span<const InstrId> users(InstrId id) const { return users_.users(id); }
  const Shape& shape(InstrId id) const { return m_[id].shape; }

  /// Returns the value of all elements of a constant, if they are equal.
  std::optional<double> splat(InstrId id) const {
    const Literal* value = splat_value(m_, id);
    if (!value || !is_float(value->shape().type())) return std::nullopt;
    return value->as_double(0);
  }

  /// If `id` is a broadcast of an array with all dimensions of the result but `dim`, in order, returns that array.
  /// Dimensions of size 1 may have been dropped before the broadcast.
  std::optional<InstrId> broadcast_along(InstrId id, int64_t dim) const {
    if (!is(id, Op::BROADCAST)) return std::nullopt;
    std::vector<int64_t> kept, kept_dims;
    for (int64_t d = 0; d < shape(id).rank(); ++d) {
      if (d == dim) continue;
      kept.push_back(d);
      kept_dims.push_back(shape(id).dim(static_cast<int>(d)));
    }
    const InstrId from = m_[id].operand(0);
    const Dims mapping = m_[id].as<BroadcastAttrs>().dimensions;
    if (std::equal(mapping.begin(), mapping.end(), kept.begin(), kept.end())) return from;
    // The operand may be a reshape that drops dimensions of size 1; then the array before it is used.
    if (!is(from, Op::RESHAPE)) return std::nullopt;
    const InstrId whole = m_[from].operand(0);
    if (!std::equal(shape(whole).dims().begin(), shape(whole).dims().end(), kept_dims.begin(), kept_dims.end()))
      return std::nullopt;
    std::erase_if(kept, [&](int64_t d) { return shape(id).dim(static_cast<int>(d)) == 1; });
    return std::equal(mapping.begin(), mapping.end(), kept.begin(), kept.end()) ? std::optional(whole) : std::nullopt;
  }

  /// If `id` is a vector along dimension `dim`, broadcast along all other dimensions, returns that vector. The vector's
  /// array may have further dimensions of size 1.
  std::optional<InstrId> broadcast_of_vector(InstrId id, int64_t dim) const {
    const InstrId from = m_[id].operands.empty() ? InstrId::None : m_[id].operand(0);
    if (is(id, Op::RESHAPE)) {
      const bool is_row = shape(from).rank() == 1 && shape(id).element_count() == shape(id).dim(static_cast<int>(dim));
      return is_row ? std::optional(from) : std::nullopt;
    }
    if (!is(id, Op::BROADCAST)) return std::nullopt;
    const Dims mapping = m_[id].as<BroadcastAttrs>().dimensions;
    if (mapping.size() != 1 || mapping[0] != dim) return std::nullopt;
    return from;
  }

  /// If `id` is a reduction over the last dimension of one array by `combine` (COLLET_COMBINE_*) whose initial value is
  /// the identity, returns the array.
  std::optional<InstrId> row_reduction(InstrId id, uint32_t combine) const {
    if (!is(id, Op::REDUCE) || m_[id].operands.size() != 2) return std::nullopt;
    if (combine_kind(m_, m_[id].called[0]) != combine) return std::nullopt;
    const InstrId x = m_[id].operand(0);
    const Dims dims = m_[id].as<DimensionsAttrs>().dimensions;
    if (dims.size() != 1 || dims[0] != shape(x).rank() - 1) return std::nullopt;
    const std::optional<double> init = splat(m_[id].operand(1));
    if (!init) return std::nullopt;
    const bool identity = combine == COLLET_COMBINE_ADD ? *init == 0 : std::isinf(*init) && *init < 0;
    return identity ? std::optional(x) : std::nullopt;
  }

  /// Returns the operand of a conversion to a float type with more bits; or `id` itself.
  InstrId before_widening(InstrId id) const { return before_conversion(id, true); }
  /// Returns the operand of a conversion to a float type with fewer bits; or `id` itself.
  InstrId before_narrowing(InstrId id) const { return before_conversion(id, false); }

  /// Matches an op on two operands in either order: for each operand that `first` matches, calls `then(match, other
  /// operand)`, until that returns true.
  template <typename First>
  bool either(InstrId id, Op op, const First& matches) const {
    if (!is(id, op)) return false;
    const InstrId a = m_[id].operand(0), b = m_[id].operand(1);
    return matches(a, b) || matches(b, a);
  }

 private:
  InstrId before_conversion(InstrId id, bool to_more_bits) const {
    if (!is(id, Op::CONVERT)) return id;
    const InstrId from = m_[id].operand(0);
    const Type narrow = shape(to_more_bits ? from : id).type(), wide = shape(to_more_bits ? id : from).type();
    const bool fits = is_float(narrow) && is_float(wide) && type_info(narrow).bits < type_info(wide).bits;
    return fits ? from : id;
  }

  const Module& m_;
  UserMap users_;
  std::vector<uint32_t> uses_;
};

/// A pattern that find_patterns does not know itself: one that a device declares.
class PatternMatcher {
 public:
  virtual ~PatternMatcher() = default;
  /// Returns the name under which groups are offered.
  virtual std::string_view name() const = 0;
  /// Returns the text that defines the pattern.
  virtual std::string_view text() const = 0;
  /// Looks for a group whose first result is `root`. Any thread.
  virtual std::optional<Match> match(const Graph& graph, InstrId root) const = 0;
};

/// Returns the shortest text that reads back as `value`; as an f32 where that has the same value, because most constants
/// were f32 or narrower.
inline std::string number(double value) {
  char text[40];
  const auto narrow = static_cast<float>(value);
  const auto end = static_cast<double>(narrow) == value ? std::to_chars(text, text + sizeof text, narrow)
                                                        : std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

/// Looks for a pattern with this root.
using Matcher = std::optional<Match> (*)(const Graph&, InstrId);

// The patterns of quantized models, in find_quantized.cc.
std::optional<Match> match_quantize(const Graph& g, InstrId root);
std::optional<Match> match_requantize(const Graph& g, InstrId root);
std::optional<Match> match_integer_dot(const Graph& g, InstrId root);
std::optional<Match> match_integer_convolution(const Graph& g, InstrId root);
std::optional<Match> match_integer_add(const Graph& g, InstrId root);
std::optional<Match> match_scaled_dot(const Graph& g, InstrId root);
std::optional<Match> match_scaled_convolution(const Graph& g, InstrId root);
std::optional<Match> match_dequantized_dot(const Graph& g, InstrId root);
/// Turns a match of attention into one of quantized_attention, if keys and values are dequantized.
std::optional<Match> with_quantized_cache(const Graph& g, Match attention);

}  // namespace collet::hlo
