// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/plain_interpreter.h"

#include <cstdint>

namespace collet::conformance {
namespace {

using hlo::Instruction;
using hlo::Op;
using hlo::Type;

// More iterations than any case has. A loop with a wrong condition ends after these.
constexpr int64_t kMostTrips = 1000000;

bool is_known_scalar(const Known& known) {
  return !known.is_tuple && known.is_exact() && known.value.element_count() == 1;
}

}  // namespace

std::optional<Known> PlainInterpreter::run(hlo::CompId id, std::vector<Known> arguments) const {
  const hlo::Computation& computation = module_[id];
  std::vector<Known> values;
  if (!frames_.empty()) {
    values = std::move(frames_.back());
    frames_.pop_back();
  }
  values.resize(module_.instruction_limit());
  std::vector<const Known*> operands;
  for (const hlo::InstrId at : computation.order) {
    const Instruction& instr = module_[at];
    Known& value = values[hlo::index_of(at)];
    if (instr.op == Op::PARAMETER) {
      value = arguments[static_cast<size_t>(instr.as<hlo::ParameterAttrs>().number)];
      continue;
    }
    operands.clear();
    for (const hlo::InstrId operand : instr.operands) operands.push_back(&values[hlo::index_of(operand)]);
    std::optional<Known> result = step(instr, operands);
    if (!result) return std::nullopt;
    value = *std::move(result);
  }
  Known root = values[hlo::index_of(computation.root)];
  for (const hlo::InstrId at : computation.order) values[hlo::index_of(at)] = {};
  frames_.push_back(std::move(values));
  return root;
}

std::optional<Known> PlainInterpreter::step(const Instruction& instr, std::span<const Known* const> operands) const {
  switch (instr.op) {
    case Op::TUPLE: {
      Known all{.is_tuple = true};
      for (const Known* operand : operands) all.parts.push_back(*operand);
      return all;
    }
    case Op::GET_TUPLE_ELEMENT: {
      const auto index = static_cast<size_t>(instr.as<hlo::TupleIndexAttrs>().index);
      if (index >= operands[0]->parts.size()) return std::nullopt;
      return operands[0]->parts[index];
    }
    case Op::COPY:
    case Op::OPT_BARRIER:
      return *operands[0];
    case Op::WHILE:
      return loop(instr, *operands[0]);
    case Op::CONDITIONAL:
      return branch(instr, operands);
    case Op::CALL:
    case Op::FUSION: {
      std::vector<Known> arguments;
      for (const Known* operand : operands) arguments.push_back(*operand);
      return run(instr.called[0], std::move(arguments));
    }
    default:
      break;
  }
  std::optional<std::vector<Known>> results = function_(*this, instr, operands);
  if (!results) return std::nullopt;
  if (instr.shape.is_tuple()) return Known{.parts = *std::move(results), .is_tuple = true};
  return results->size() == 1 ? std::optional(std::move((*results)[0])) : std::nullopt;
}

std::optional<Known> PlainInterpreter::loop(const Instruction& instr, Known state) const {
  for (int64_t trip = 0; trip < kMostTrips; ++trip) {
    const std::optional<Known> again = run(instr.called[0], {state});
    if (!again || !is_known_scalar(*again)) return std::nullopt;
    if (again->value.bytes()[0] == 0) return state;
    std::optional<Known> next = run(instr.called[1], {std::move(state)});
    if (!next) return std::nullopt;
    state = *std::move(next);
  }
  return std::nullopt;
}

// Runs one branch: true selects the first branch, false the second. An index out of range selects the last branch.
std::optional<Known> PlainInterpreter::branch(const Instruction& instr, std::span<const Known* const> operands) const {
  const Known& selector = *operands[0];
  const size_t count = instr.called.size();
  if (!is_known_scalar(selector) || count == 0 || operands.size() != count + 1) return std::nullopt;
  size_t taken = count - 1;
  if (selector.value.type() == Type::PRED) {
    taken = selector.value.bytes()[0] != 0 ? 0 : 1;
  } else if (const int64_t index = selector.value.as_int(0); index >= 0 && index < static_cast<int64_t>(count)) {
    taken = static_cast<size_t>(index);
  }
  return run(instr.called[taken], {*operands[taken + 1]});
}

}  // namespace collet::conformance
