// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/plain_answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/cases/exact_answer.h"
#include "conformance/cases/indices.h"

namespace collet::conformance {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Module;
using hlo::Op;
using hlo::Type;

using Operands = std::vector<const Literal*>;

// The one op of a computation of two scalars, where it takes them in order; INVALID for any other. `second`: it gives the second one.
Op body_of(const Module& module, hlo::CompId id, bool& second) {
  const hlo::Computation& body = module[id];
  const Instruction& root = module[body.root];
  second = root.op == Op::PARAMETER && body.parameters.size() == 2 && body.root == body.parameters[1];
  const bool plain = body.parameters.size() == 2 && root.operands.size() == 2 &&
                     root.operand(0) == body.parameters[0] && root.operand(1) == body.parameters[1];
  return plain ? root.op : Op::INVALID;
}

// Integers, and extremes of floats: whatever the order, the result is one.
PlainFunction combiner_of(const Module& module, const Instruction& instr, Type type) {
  bool second = false;
  const Op op = body_of(module, instr.called[0], second);
  const bool depends =
      op == Op::SUBTRACT || op == Op::DIVIDE || op == Op::REMAINDER || (op == Op::ADD && hlo::is_float(type));
  return depends ? nullptr : plain_function(op, type);
}

std::optional<Literal> reduced(const Module& module, const Instruction& instr, const Literal& from,
                               const Literal& start) {
  const auto& over = instr.as<hlo::DimensionsAttrs>().dimensions;
  const PlainFunction combine = combiner_of(module, instr, from.type());
  if (combine == nullptr || over.empty() || !instr.shape.is_array()) return std::nullopt;
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, start, 0);
  const Indices sizes = sizes_of(from.shape()), strides = strides_of(instr.shape);
  Indices index(sizes.size());
  for (int64_t i = 0; i < from.element_count(); ++i, advance(index, sizes)) {
    int64_t to = 0;
    size_t kept = 0;
    for (size_t d = 0; d < index.size(); ++d)
      if (!is_in(over, static_cast<int64_t>(d))) to += index[d] * strides[kept++];
    combine(out, to, out, to, from, i);
  }
  return out;
}

std::optional<Literal> reduced_windows(const Module& module, const Instruction& instr, const Literal& from,
                                       const Literal& start) {
  const PlainFunction combine = combiner_of(module, instr, from.type());
  if (combine == nullptr || !instr.shape.is_array()) return std::nullopt;
  const hlo::Window& window = instr.as<hlo::WindowAttrs>().window;
  const Indices sizes = sizes_of(instr.shape), strides = strides_of(from.shape()),
                taps(window.size.begin(), window.size.end());
  Literal out = Literal::zeros(instr.shape);
  Indices place(sizes.size());
  for (int64_t i = 0; i < out.element_count(); ++i, advance(place, sizes)) {
    copy_element(out, i, start, 0);
    Indices tap(taps.size());
    for (bool more = !is_empty(taps); more; more = advance(tap, taps)) {
      int64_t at_place = 0;
      for (size_t d = 0; d < taps.size() && at_place >= 0; ++d) {
        const int64_t element = element_seen(window, d, place[d], tap[d], from.shape().dim(static_cast<int>(d)));
        at_place = element < 0 ? -1 : at_place + element * strides[d];
      }
      if (at_place >= 0) combine(out, i, out, i, from, at_place);
    }
  }
  return out;
}

// The first element of each window that none behind it exceeds gets the source's element, by a select of GE and a sum. Of integers.
std::optional<Literal> selected_and_scattered(const Module& module, const Instruction& instr,
                                              const Operands& operands) {
  const Instruction& select = module[module[instr.called[0]].root];
  bool second = false;
  const bool adds = body_of(module, instr.called[1], second) == Op::ADD;
  const Literal &from = *operands[0], &source = *operands[1], &start = *operands[2];
  if (select.op != Op::COMPARE || select.as<hlo::CompareAttrs>().direction != hlo::Direction::GE || !adds ||
      !hlo::is_signed(from.type()))
    return std::nullopt;
  const hlo::Window& window = instr.as<hlo::WindowAttrs>().window;
  const Indices places = sizes_of(source.shape()), strides = strides_of(from.shape()),
                taps(window.size.begin(), window.size.end());
  const PlainFunction add = plain_function(Op::ADD, from.type());
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, start, 0);
  Indices place(places.size());
  for (int64_t i = 0; i < source.element_count(); ++i, advance(place, places)) {
    int64_t best = -1;
    Indices tap(taps.size());
    for (bool more = !is_empty(taps); more; more = advance(tap, taps)) {
      int64_t element = 0;
      for (size_t d = 0; d < taps.size() && element >= 0; ++d) {
        const int64_t seen = element_seen(window, d, place[d], tap[d], from.shape().dim(static_cast<int>(d)));
        element = seen < 0 ? -1 : element + seen * strides[d];
      }
      if (element >= 0 && (best < 0 || from.as_int(element) > from.as_int(best))) best = element;
    }
    if (best >= 0) add(out, best, out, best, source, i);
  }
  return out;
}

Literal counted(const Instruction& instr) {
  const auto dimension = static_cast<size_t>(instr.as<hlo::IotaAttrs>().dimension);
  Literal out = Literal::zeros(instr.shape);
  const Indices sizes = sizes_of(instr.shape);
  Indices index(sizes.size());
  const bool is_integer = hlo::is_integer(instr.shape.type());
  for (int64_t i = 0; i < out.element_count(); ++i, advance(index, sizes)) {
    if (is_integer) {
      out.set_int(i, index[dimension]);
    } else {
      out.set_double(i, static_cast<double>(index[dimension]));
    }
  }
  return out;
}

// Computes top-k. Of equal elements the first comes first. Floats with NaN, or zeros of both signs, have a total order that
// is not implemented here.
std::optional<std::vector<Literal>> largest(const Instruction& instr, const Literal& from) {
  const auto& attrs = instr.as<hlo::TopKAttrs>();
  if (hlo::is_complex(from.type())) return std::nullopt;
  const bool is_float = hlo::is_float(from.type()), is_unsigned = hlo::is_unsigned(from.type());
  for (int64_t i = 0; i < from.element_count(); ++i)
    if (is_float && (std::isnan(from.as_double(i)) || from.as_double(i) == 0)) return std::nullopt;
  const auto is_before = [&](int64_t i, int64_t j) {
    if (attrs.smallest) std::swap(i, j);
    if (is_float) return from.as_double(i) > from.as_double(j);
    const int64_t a = from.as_int(i), b = from.as_int(j);
    return is_unsigned ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b;
  };
  std::vector<Literal> out = {Literal::zeros(instr.shape.element(0)), Literal::zeros(instr.shape.element(1))};
  const int64_t size = from.shape().dim(from.shape().rank() - 1), rows = size == 0 ? 0 : from.element_count() / size;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), row * size);
    std::stable_sort(order.begin(), order.end(), is_before);
    for (int64_t k = 0; k < attrs.k; ++k) {
      const int64_t index = order[static_cast<size_t>(k)];
      copy_element(out[0], row * attrs.k + k, from, index);
      out[1].set_int(row * attrs.k + k, index - row * size);
    }
  }
  return out;
}

// Computes a sort whose comparator compares elements of the first operand. The order of keys with NaN, or zeros of both
// signs, may be undetermined.
std::optional<std::vector<Literal>> sorted(const Module& module, const Instruction& instr, const Operands& operands) {
  const hlo::Computation& body = module[instr.called[0]];
  const Instruction& root = module[body.root];
  if (root.op != Op::COMPARE || root.operand(0) != body.parameters[0] || root.operand(1) != body.parameters[1])
    return std::nullopt;
  const auto& compare = root.as<hlo::CompareAttrs>();
  const bool descending = compare.direction == hlo::Direction::GT;
  if (!descending && compare.direction != hlo::Direction::LT) return std::nullopt;
  const Literal& keys = *operands[0];
  if (hlo::is_complex(keys.type())) return std::nullopt;
  const bool is_float = hlo::is_float(keys.type()), is_unsigned = !hlo::is_signed(keys.type());
  for (int64_t i = 0; is_float && i < keys.element_count(); ++i)
    if (std::isnan(keys.as_double(i)) || (keys.as_double(i) == 0 && std::signbit(keys.as_double(i))))
      return std::nullopt;
  const auto is_before = [&](int64_t i, int64_t j) {
    if (descending) std::swap(i, j);
    if (is_float) return keys.as_double(i) < keys.as_double(j);
    const int64_t a = keys.as_int(i), b = keys.as_int(j);
    return is_unsigned ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  };
  const auto dimension = static_cast<size_t>(instr.as<hlo::SortAttrs>().dimension);
  const Indices sizes = sizes_of(keys.shape());
  const int64_t size = sizes[dimension], step = strides_of(keys.shape())[dimension];
  std::vector<Literal> out;
  for (const Literal* operand : operands) out.push_back(Literal::zeros(operand->shape()));
  Indices index(sizes.size());
  for (int64_t i = 0; i < keys.element_count(); ++i, advance(index, sizes)) {
    if (index[dimension] != 0) continue;
    std::vector<int64_t> order(static_cast<size_t>(size));
    for (int64_t k = 0; k < size; ++k) order[static_cast<size_t>(k)] = i + k * step;
    std::stable_sort(order.begin(), order.end(), is_before);
    for (size_t o = 0; o < out.size(); ++o)
      for (int64_t k = 0; k < size; ++k)
        copy_element(out[o], i + k * step, *operands[o], order[static_cast<size_t>(k)]);
  }
  return out;
}

std::optional<Literal> scattered(const Module& module, const Instruction& instr, const Operands& operands) {
  if (operands.size() != 3 || !instr.shape.is_array()) return std::nullopt;
  bool second = false;
  body_of(module, instr.called[0], second);
  const PlainFunction combine = combiner_of(module, instr, instr.shape.type());
  if (combine == nullptr && !second) return std::nullopt;
  return plain_scatter(instr, operands, second ? nullptr : combine);
}

using Results = std::optional<std::vector<Literal>>;

// The results of an op, from those of its operands.
Results results_of(const Module& module, const Instruction& instr, const Operands& operands) {
  std::optional<Literal> one;
  switch (instr.op) {
    case Op::SORT:
      return sorted(module, instr, operands);
    case Op::REDUCE:
      if (operands.size() == 2) one = reduced(module, instr, *operands[0], *operands[1]);
      break;
    case Op::REDUCE_WINDOW:
      if (operands.size() == 2) one = reduced_windows(module, instr, *operands[0], *operands[1]);
      break;
    case Op::DOT:
    case Op::CONVOLUTION:
      one = integer_products(instr, *operands[0], *operands[1]);
      break;
    case Op::SCATTER:
      one = scattered(module, instr, operands);
      break;
    case Op::SELECT_AND_SCATTER:
      one = selected_and_scattered(module, instr, operands);
      break;
    case Op::IOTA:
      one = counted(instr);
      break;
    case Op::CONSTANT:
      one = module.literal(instr);
      break;
    case Op::TOPK:
      return largest(instr, *operands[0]);
    default:
      if (operands.empty()) return std::nullopt;
      if (auto results = plain_algebra(instr, operands)) return results;
      one = plain_move(instr, operands);
      if (!one) one = plain_elements(instr, operands);
  }
  if (!one) return std::nullopt;
  std::vector<Literal> out;
  out.push_back(*std::move(one));
  return out;
}

// The results of an instruction of the entry: a small tree of ops, of which those below the root have one result each.
Results results_at(const Module& module, hlo::InstrId id, std::span<const Literal> inputs) {
  const Instruction& instr = module[id];
  if (instr.op == Op::PARAMETER) {
    const Literal& input = inputs[static_cast<size_t>(instr.as<hlo::ParameterAttrs>().number)];
    return input.shape().is_array() ? Results(std::vector<Literal>{input}) : std::nullopt;
  }
  std::vector<Literal> values;
  for (const hlo::InstrId operand : instr.operands) {
    Results results = results_at(module, operand, inputs);
    if (!results || results->size() != 1 || !module[operand].shape.is_array()) return std::nullopt;
    values.push_back(std::move((*results)[0]));
  }
  if (instr.op == Op::TUPLE) return values;
  Operands operands;
  for (const Literal& value : values) operands.push_back(&value);
  return results_of(module, instr, operands);
}

}  // namespace

std::optional<std::vector<Literal>> plain_answer(const Module& module, std::span<const Literal> inputs) {
  // A tree that shares nothing is not walked more often than it has instructions.
  constexpr size_t kMostInstructions = 12;
  const hlo::Computation& entry = module.entry_computation();
  if (entry.order.size() > kMostInstructions || module[entry.root].op == Op::PARAMETER) return std::nullopt;
  return results_at(module, entry.root, inputs);
}

}  // namespace collet::conformance
