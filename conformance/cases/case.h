// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/oracle/bounds.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"

/// \file
/// Conformance cases: small programs around one op each, with inputs drawn from classes of values. A case's name is a
/// path, `op/type/shape/values`, or `pattern/type/shape/values`, and its inputs depend on the name and the run's seed alone, so that any case is the same
/// whether it runs by itself or among all.

namespace collet::conformance {

using hlo::Op;
using hlo::Shape;
using hlo::Type;

/// Classes of values.
enum class Values : uint8_t {
  Unit,      ///< evenly drawn from [low, high); integers from [low, high]
  Edges,     ///< zeros of both signs, ones, infinities, NaN, denormals, extremes; operands crossed with each other
  Large,     ///< magnitudes over the whole range of the type
  Ties,      ///< few distinct values, halves among them: equal keys, rounding ties
  Distinct,  ///< no value twice, shuffled
  All,  ///< every bit pattern of a type of at most 16 bits, or every pair of those of at most 8; of wider floats all signs and
  ///< exponents, with mantissas drawn
  Critical,  ///< where functions overflow, saturate and round, ties of narrower types, with the neighbours of each
  Fixed      ///< the numbers given
};
std::string_view values_name(Values values);

/// The kind of values that one parameter gets.
struct InputSpec {
  Values values = Values::Unit;
  double low = -1, high = 1;
  std::vector<double> fixed = {};  ///< for Fixed, repeated as often as needed
  bool definite = false;           ///< made symmetric positive definite in its last two dimensions, after drawing
};

struct Case {
  std::string name = {};
  Op op = Op::INVALID;  ///< the op it is about
  Type type = Type::Invalid;
  std::string text = {};  ///< HLO text
  std::vector<InputSpec> inputs = {};
  Bound bound = {};
  std::string pattern = {};  ///< of docs/patterns.md, where the SDK finds one in it; the name then begins with it
};

/// Collects the cases of the family files.
class CaseList {
 public:
  /// `full`: every shape for every type, not for the usual ones alone. `names_only`: programs and inputs may be left out.
  explicit CaseList(bool full, bool names_only = false) : full_(full), names_only_(names_only) {}
  void add(Case one) { cases_.push_back(std::move(one)); }
  bool full() const { return full_; }
  bool names_only() const { return names_only_; }
  std::vector<Case>& cases() { return cases_; }

 private:
  bool full_, names_only_;
  std::vector<Case> cases_;
};

/// All cases, in the order of families.def.
std::vector<Case> all_cases(bool full);

/// Generated cases of one op and element type, beyond those above: the grid of shapes, values and attributes. They are the bulk of the
/// full set, and made block by block.
struct GridBlock {
  Op op = Op::INVALID;
  Type type = Type::Invalid;
  bool operator==(const GridBlock&) const = default;
};
const std::vector<GridBlock>& grid_blocks();
std::vector<Case> grid_cases(const GridBlock& block, bool names_only);
/// The grid's case of this name; one of INVALID where there is none. Keeps the block for the next question.
const Case& find_grid_case(std::string_view name);

/// Why an op has no case of its own; empty where it should have one.
std::string_view why_no_case(Op op);

#define COLLET_CASE_FAMILY(name) void add_##name##_cases(CaseList& list);
#include "conformance/cases/families.def"

/// Adds the cases of gather and scatter, which are part of the family `indexing`.
void add_indexing_pairs(CaseList& list);

void add_elementwise_grid(CaseList& list, Op op, Type type);
void add_convert_grid(CaseList& list, Type from);
void add_movement_grid(CaseList& list, Op op, Type type);
void add_reduce_grid(CaseList& list, Type type);
void add_dot_grid(CaseList& list, Type type);

/// The seed of a case.
uint64_t case_seed(std::string_view name, uint64_t run_seed);
/// Fills parameter `number`, of `count` that are crossed with each other. `flushes`: no denormals.
hlo::Literal make_input(const InputSpec& spec, const Shape& shape, size_t number, size_t count, uint64_t seed,
                        bool flushes);
/// Returns the number of critical values of `type`. An input of so many elements holds each once.
int64_t critical_count(Type type);
/// Returns the number of elements that an exhaustive case with `operands` operands of `type` has; 0 if there is none.
int64_t all_count(Type type, size_t operands);
/// Returns the number of edge values of `type` or, for two operands, of pairs of them.
int64_t edge_count(Type type, size_t operands);

/// Builds HLO text: computations first, then parameters and lines of the entry.
class Text {
 public:
  /// A computation that ops may call; `body` is its lines.
  Text& computation(std::string_view name, std::string_view body);
  /// A scalar computation of two parameters, named after op and type: its name.
  std::string combiner(std::string_view op, Type type);
  /// A parameter of the entry: its name, p0, p1, ...
  std::string parameter(const Shape& shape);
  /// An instruction: its name.
  std::string line(const Shape& shape, std::string_view expression);
  /// The root; the whole text.
  std::string root(const Shape& shape, std::string_view expression);

 private:
  std::string computations_, body_;
  std::vector<std::string> combiners_;
  int parameters_ = 0, lines_ = 0;
};

/// "{1,2}".
std::string braces(std::span<const int64_t> values);
inline std::string braces(std::initializer_list<int64_t> values) {
  return braces(std::span<const int64_t>(values.begin(), values.size()));
}
/// "3x0x2", "scalar".
std::string dims_name(std::span<const int64_t> dims);
std::string_view type_name(Type type);
/// Returns the bound by which a sum of floats of `type` is judged; integers and pred are exact.
Bound sum_bound(Type type, double terms, bool wide = true);
/// Returns the bound by which a function with `ulp` of ops.def is judged.
Bound function_bound(Op op, Type type);

}  // namespace collet::conformance
