// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/special_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "conformance/cases/op_case.h"
#include "conformance/cases/plain_answer.h"
#include "hlo/base/float_format.h"
#include "hlo/eval/evaluator.h"

namespace collet::conformance {
namespace {

using hlo::CompId;
using hlo::InstrId;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

bool is_group(const Instruction& instr) {
  return instr.op == Op::FUSION || instr.op == Op::CALL || instr.op == Op::MAP;
}

// True if a reduction gives the same specials in every order of its terms.
bool is_any_order(Op combiner) {
  return combiner == Op::ADD || combiner == Op::MULTIPLY || combiner == Op::MAXIMUM || combiner == Op::MINIMUM;
}

// True if a comparator puts NaN and infinities into an order with other numbers: of each two that differ one is first, and the order
// of three is consistent. Otherwise a sort's result depends on which elements it compares.
bool orders_specials(const Module& module, CompId comparator) {
  const std::vector<InstrId>& parameters = module[comparator].parameters;
  if (parameters.size() != 2 || !hlo::is_float(module[parameters[0]].shape.type())) return false;
  const double values[] = {kNan, kInfinity, -kInfinity, 1, -1};
  constexpr size_t kCount = std::size(values);
  const hlo::Evaluator evaluator(module);
  bool before[kCount][kCount];
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t j = 0; j < kCount; ++j) {
      std::vector<Literal> pair;
      for (const size_t k : {i, j}) {
        pair.push_back(Literal::zeros(module[parameters[0]].shape));
        pair.back().set_double(0, values[k]);
      }
      const auto is_before = evaluator.run_computation(comparator, std::move(pair));
      if (!is_before.ok()) return false;
      before[i][j] = is_before->as_int(0) != 0;
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t j = 0; j < kCount; ++j) {
      if (before[i][j] == before[j][i] && i != j) return false;
      if (i == j && before[i][j]) return false;
      for (size_t k = 0; k < kCount; ++k)
        if (before[i][j] && before[j][k] && !before[i][k]) return false;
    }
  }
  return true;
}

// True if every right device gives the same NaNs and infinities, up to the bits of a NaN, where such values are among the operands.
bool is_determined(const Module& module, const Instruction& instr) {
  const Type type = instr.shape.is_array() ? instr.shape.type() : Type::Invalid;
  if (type == Type::Invalid || hlo::is_complex(type)) return false;
  if (hlo::is_elementwise(instr.op)) return instr.op != Op::STOCHASTIC_CONVERT;
  if (is_move(instr.op)) return true;
  switch (instr.op) {
    case Op::PARAMETER:
    case Op::CONSTANT:
    case Op::IOTA:
    case Op::COPY:
    case Op::BITCAST:
    case Op::CONVERT:
    case Op::REDUCE_PRECISION:
    case Op::BITCAST_CONVERT:
    case Op::CONVOLUTION:
      return true;
    case Op::DOT:  // an algorithm may split operands into parts, of which those of an infinity are none
      return instr.as<hlo::DotAttrs>().algorithm == hlo::Algorithm::UNSET;
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
    case Op::SCATTER:
      return is_any_order(combiner_of(module, instr.called[0]));
    case Op::SORT:
      return instr.operands.size() == 1 && orders_specials(module, instr.called[0]);
    default:
      return false;
  }
}

// The same of a group. Without a multiplication by what exponentials or selections made 0: a device may leave out such products.
bool is_group_determined(const Module& module, const Instruction& group) {
  bool product = false, exponential = false;
  for (const InstrId id : module[group.called[0]].order) {
    const Instruction& instr = module[id];
    if (is_group(instr) ? !is_group_determined(module, instr) : !is_determined(module, instr)) return false;
    // Padding is multiplied or not; which parameter is a kernel is not followed.
    if (instr.op == Op::CONVOLUTION) return false;
    product |= instr.op == Op::DOT;
    exponential |= instr.op == Op::EXPONENTIAL;
  }
  return !(product && exponential);
}

// True for a pattern that has values other than floats between its ops: for NaN another formula may give other integers.
bool has_integers(const Module& module, CompId body) {
  return std::any_of(module[body].order.begin(), module[body].order.end(), [&](InstrId id) {
    const Instruction& instr = module[id];
    return (instr.shape.is_array() && hlo::is_integer(instr.shape.type())) ||
           (is_group(instr) && has_integers(module, instr.called[0]));
  });
}

// Returns what a float type has of NaN and infinities.
std::vector<double> specials_of(Type type) {
  switch (float_format(static_cast<uint32_t>(type)).specials) {
    case FloatSpecials::IEEE:
      return {kNan, kInfinity, -kInfinity};
    case FloatSpecials::FINITE:
      return {};
    default:
      return {kNan};
  }
}

// True if the suite's edge values fit to an op alone: they are defined for all elementwise ops and for what moves elements.
bool takes_edges(const Module& module, const Instruction& instr) {
  if (!hlo::is_elementwise(instr.op) && !is_move(instr.op)) return false;
  return std::none_of(instr.operands.begin(), instr.operands.end(),
                      [&](InstrId id) { return module[id].op == Op::CONSTANT; });
}

}  // namespace

std::vector<Case> special_cases(const Module& module, const Instruction& instr, const Case& unit,
                                const std::vector<Type>& types, std::string_view stem) {
  if (is_group(instr)) {
    if (!is_group_determined(module, instr)) return {};
    if (!unit.pattern.empty() && has_integers(module, instr.called[0])) return {};
  } else if (!is_determined(module, instr)) {
    return {};
  }
  const bool edges = takes_edges(module, instr);
  Case one = unit;
  bool any = false;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    InputSpec& input = one.inputs[i];
    const bool is_drawn = input.values == Values::Unit || input.values == Values::Large;
    if (!is_drawn || input.definite || !hlo::is_float(types[i])) continue;
    if (instr.op == Op::CONVOLUTION && i > 0) continue;  // padding may be multiplied by the kernel
    if (edges) {
      input = {.values = Values::Edges};
      any = true;
      continue;
    }
    std::vector<double> specials = specials_of(types[i]);
    if (specials.empty()) continue;
    input.values = Values::Special;
    input.fixed = std::move(specials);
    any = true;
  }
  if (!any) return {};
  one.name = fmt::format("{}/{}", stem, edges ? "edges" : "special");
  return {std::move(one)};
}

}  // namespace collet::conformance
