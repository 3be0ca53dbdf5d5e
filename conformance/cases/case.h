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
#include "hlo/ir/module.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/shape.h"

/// \file
/// Conformance cases: small programs, each around one op, with inputs drawn from classes of values. The name of a case
/// is a path, `op/type/shape/values` or `pattern/type/shape/values`. Its inputs depend only on the name and the run's
/// seed, so a case is the same whether it runs alone or with others.

namespace collet::conformance {

using hlo::Op;
using hlo::Shape;
using hlo::Type;

/// Classes of values.
enum class Values : uint8_t {
  Unit,      ///< drawn uniformly from [low, high); integers from [low, high]
  Edges,     ///< zeros of both signs, ones, infinities, NaN, denormals, extremes; operands crossed with each other
  Large,     ///< magnitudes over the whole range of the type
  Ties,      ///< few distinct values, including halves: equal keys, and ties of rounding
  Distinct,  ///< no value twice, shuffled
  /// Every bit pattern of a type of at most 16 bits, or every pair of patterns for at most 8 bits; for wider floats all
  /// signs and exponents with random mantissas.
  All,
  /// Arguments where functions overflow, saturate or are rounded, and ties of narrower types, with their neighbours.
  Critical,
  Fixed,   ///< the given numbers
  Special  ///< as Unit, with the given numbers at a few random places: NaN and infinities
};
std::string_view values_name(Values values);

/// The class of values of one parameter.
struct InputSpec {
  Values values = Values::Unit;
  double low = -1, high = 1;
  std::vector<double> fixed =
      {};  ///< for Fixed: the numbers, repeated as needed; for Special: those that stand among others
  /// After drawing, matrices in the last two dimensions are made symmetric positive definite.
  bool definite = false;
};

struct Case {
  std::string name = {};
  Op op = Op::INVALID;  ///< the op that the case tests
  Type type = Type::Invalid;
  std::string text = {};  ///< HLO text
  std::vector<InputSpec> inputs = {};
  Bound bound = {};
  /// The pattern of docs/patterns.md that the SDK finds in it, if any; the name then begins with it.
  std::string pattern = {};
  /// True if exact arithmetic would take too long: the evaluator computes the expected results, and floats also in f64.
  bool large = false;
  /// Not empty for a case that runs a whole program (runner/program_case.h): the path of its file. `text` is then empty.
  std::string program = {};
};

/// Collects the cases of the family files.
class CaseList {
 public:
  /// `full`: every shape is used for every type, not only for the most common types. `names_only`: programs and inputs
  /// may be omitted.
  explicit CaseList(bool full, bool names_only = false) : full_(full), names_only_(names_only) {}
  void add(Case one) { cases_.push_back(std::move(one)); }
  bool full() const { return full_; }
  bool names_only() const { return names_only_; }
  std::vector<Case>& cases() { return cases_; }

 private:
  bool full_, names_only_;
  std::vector<Case> cases_;
};

/// Marks the cases from number `first` on as those of arrays that a device has to cut: `op/type/tiled.shape/values`. Of those that differ
/// by their values only, the default set keeps one.
void mark_tiled(CaseList& list, size_t first);
/// True for the name of such a case.
bool is_tiled(std::string_view name);

/// Returns all cases, in the order of families.def.
std::vector<Case> all_cases(bool full);

/// Generated cases of one op and element type, in addition to all_cases: a grid of shapes, values and attributes. Most
/// cases of the full set are in the grid; they are generated block by block.
struct GridBlock {
  Op op = Op::INVALID;
  Type type = Type::Invalid;
  bool operator==(const GridBlock&) const = default;
};
const std::vector<GridBlock>& grid_blocks();
std::vector<Case> grid_cases(const GridBlock& block, bool names_only);
/// Returns the grid's case of this name; a case of INVALID if there is none. Keeps the block in memory for the next
/// call.
const Case& find_grid_case(std::string_view name);

/// Returns the reason why an op has no case of its own; empty if it should have one.
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

/// Returns the seed of a case.
uint64_t case_seed(std::string_view name, uint64_t run_seed);
/// Returns the values of parameter `number` out of `count` whose special values are combined with each other.
/// `flushes`: no denormals.
hlo::Literal make_input(const InputSpec& spec, const Shape& shape, size_t number, size_t count, uint64_t seed,
                        bool flushes);
/// Returns the number of critical values of `type`. An input with that many elements contains each once.
int64_t critical_count(Type type);
/// Returns the number of elements that an exhaustive case with `operands` operands of `type` has; 0 if there is none.
int64_t all_count(Type type, size_t operands);
/// Returns the number of edge values of `type` or, for two operands, of pairs of them.
int64_t edge_count(Type type, size_t operands);

/// Returns inputs for which an elementwise op is defined and not constant.
InputSpec operand_domain(Op op, size_t operand, Type type);

/// Builds HLO text: computations first, then parameters and lines of the entry.
class Text {
 public:
  /// Adds a computation that ops may call; `body` is its lines.
  Text& computation(std::string_view name, std::string_view body);
  /// Adds a scalar computation of two parameters, named after op and type; returns its name.
  std::string combiner(std::string_view op, Type type);
  /// Adds a parameter of the entry; returns its name: p0, p1, ...
  std::string parameter(const Shape& shape);
  /// Adds an instruction; returns its name.
  std::string line(const Shape& shape, std::string_view expression);
  /// Adds the root and returns the whole text.
  std::string root(const Shape& shape, std::string_view expression);

 private:
  std::string computations_, body_;
  std::vector<std::string> combiners_;
  int parameters_ = 0, lines_ = 0;
};

/// Returns a list such as "{1,2}".
std::string braces(std::span<const int64_t> values);
inline std::string braces(std::initializer_list<int64_t> values) {
  return braces(std::span<const int64_t>(values.begin(), values.size()));
}
/// Returns dimensions as in names of cases: "3x0x2", or "scalar".
std::string dims_name(std::span<const int64_t> dims);
std::string_view type_name(Type type);
/// Returns the error bound of a sum of floats of `type`; integers and pred are exact.
Bound sum_bound(Type type, double terms, bool wide = true);

/// The errors that an algorithm of matrix products makes on purpose.
struct ProductError {
  double operands = 0;   ///< relative error of a product, by the rounding of its two operands
  double additions = 0;  ///< unit roundoff of the additions; 0: that of the type of the sum
  int operations = 1;    ///< products of parts that are added for one product
};
ProductError product_error(hlo::Algorithm algorithm);
/// Returns the algorithm of a dot, scaled-dot or ragged-dot; UNSET for other ops.
hlo::Algorithm algorithm_of(const hlo::Instruction& instr);
/// Returns the error bound of a matrix product of `terms` products.
Bound product_bound(Type type, double terms, hlo::Algorithm algorithm);

/// Terms to whose bound long sums and deep products are held, however many terms they have: those that are computed in blocks, or with their
/// rounding errors, meet it; those of one term after another do not.
inline constexpr double kBlockedTerms = 128;
/// True for the body of a reduction whose result depends on how often the initial value takes part. A device may combine it with the elements
/// any number of times (docs/ops.md), so such reductions begin with the neutral element where there are elements.
inline bool counts_initial_values(std::string_view body) {
  return body == "add" || body == "multiply" || body == "xor";
}
/// Returns the error bound of a function, from the column `ulp` of ops.def.
Bound function_bound(Op op, Type type);

}  // namespace collet::conformance
