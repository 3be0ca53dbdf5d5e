// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/regions.h"

#include <unordered_map>

namespace collet::hlo {
namespace {

bool is_scalar_move(Op op) {
  return op == Op::RESHAPE || op == Op::BROADCAST || op == Op::TRANSPOSE || op == Op::COPY || op == Op::BITCAST;
}

std::optional<std::vector<InstrId>> try_inline(Builder& b, CompId computation, std::span<const InstrId> arguments) {
  Module& module = b.module();
  if (arguments.empty() || !b.status().ok()) return std::nullopt;
  const std::vector<int64_t> dims(b.dims(arguments[0]).begin(), b.dims(arguments[0]).end());
  std::unordered_map<uint32_t, std::vector<InstrId>> values;
  for (InstrId id : module[computation].order) {
    const Instruction& instr = module[id];
    std::vector<InstrId>& out = values[index_of(id)];
    const auto value = [&](size_t i) { return values.at(index_of(instr.operand(i))); };
    if (instr.op == Op::PARAMETER) {
      const auto number = static_cast<size_t>(instr.as<ParameterAttrs>().number);
      if (number >= arguments.size() || instr.shape.rank() != 0) return std::nullopt;
      out = {arguments[number]};
    } else if (instr.op == Op::CONSTANT && instr.shape.is_array() && instr.shape.element_count() == 1) {
      const Literal scalar = module.literal(instr).reshaped(Shape::scalar(instr.shape.type()));
      out = {b.broadcast(b.constant(scalar), dims, {})};
      if (dims.empty()) out = {b.constant(scalar)};
    } else if (instr.op == Op::TUPLE) {
      for (size_t i = 0; i < instr.operands.size(); ++i) {
        const auto part = value(i);
        out.insert(out.end(), part.begin(), part.end());
      }
    } else if (instr.op == Op::GET_TUPLE_ELEMENT) {
      const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
      const auto all = value(0);
      if (index >= all.size()) return std::nullopt;
      out = {all[index]};
    } else if (instr.op == Op::CALL || instr.op == Op::MAP) {
      std::vector<InstrId> inner;
      for (size_t i = 0; i < instr.operands.size(); ++i) inner.push_back(value(i).at(0));
      auto result = try_inline(b, instr.called[0], inner);
      if (!result) return std::nullopt;
      out = std::move(*result);
    } else if (instr.shape.is_array() && instr.shape.element_count() == 1 && is_scalar_move(instr.op)) {
      out = value(0);
    } else if (instr.shape.rank() == 0 && (is_elementwise(instr.op) || instr.op == Op::BITCAST_CONVERT)) {
      std::vector<InstrId> operands;
      for (size_t i = 0; i < instr.operands.size(); ++i) operands.push_back(value(i).at(0));
      out = {b.op(instr.op, Shape::array(instr.shape.type(), dims), operands, instr.attrs)};
    } else {
      return std::nullopt;
    }
  }
  return values.at(index_of(module[computation].root));
}

}  // namespace

std::optional<std::vector<InstrId>> inline_elementwise(Builder& b, CompId computation,
                                                       std::span<const InstrId> arguments) {
  auto& order = b.module()[b.computation()].order;
  const size_t before = order.size();
  auto out = try_inline(b, computation, arguments);
  if (!out) order.resize(before);  // removes the instructions of the failed attempt
  return out;
}

std::optional<std::vector<InstrId>> inline_combination(Builder& b, CompId body, std::span<const InstrId> left,
                                                       std::span<const InstrId> right, bool masked) {
  const size_t count = left.size() - (masked ? 1 : 0);
  std::vector<InstrId> arguments(left.begin(), left.begin() + static_cast<ptrdiff_t>(count));
  arguments.insert(arguments.end(), right.begin(), right.begin() + static_cast<ptrdiff_t>(count));
  auto out = inline_elementwise(b, body, arguments);
  if (!out || !masked) return out;
  for (size_t i = 0; i < count; ++i)
    (*out)[i] = b.select(left.back(), b.select(right.back(), (*out)[i], left[i]), right[i]);
  out->push_back(b.or_(left.back(), right.back()));
  return out;
}

}  // namespace collet::hlo
