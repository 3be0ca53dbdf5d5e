// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/body.h"

#include <algorithm>
#include <unordered_map>

namespace collet::hlo::eval {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSteps = 4096;

bool is_compilable(const Shape& shape) {
  return shape.is_array() && shape.element_count() == 1 && codec(shape.type()).load;
}

}  // namespace

Op single_op(const Module& module, CompId computation) {
  const Computation& c = module[computation];
  if (c.parameters.size() != 2 || c.order.size() != 3 || c.root == InstrId::None) return Op::INVALID;
  const Instruction& root = module[c.root];
  if (root.operands.size() != 2 || !op_info(root.op).has(COLLET_OP_BINARY) || root.op == Op::COMPARE)
    return Op::INVALID;
  const Type type = root.shape.type();
  for (InstrId p : c.parameters)
    if (p == InstrId::None || module[p].shape.type() != type || !module[p].shape.is_scalar()) return Op::INVALID;
  const bool in_order = root.operand(0) == c.parameters[0] && root.operand(1) == c.parameters[1];
  const bool swapped = root.operand(0) == c.parameters[1] && root.operand(1) == c.parameters[0];
  if (in_order || (swapped && op_info(root.op).has(COLLET_OP_COMMUTES))) return root.op;
  return Op::INVALID;
}

Body::Body(const Module& module, CompId computation, EvalContext& context, int64_t lanes)
    : module_(module), computation_(computation), context_(context), lanes_(std::min(lanes, kLanes)) {
  const Computation& c = module[computation];
  std::vector<std::vector<void*>> arguments;
  bool ok = true;
  for (InstrId p : c.parameters) {
    const Shape& shape = module[p].shape;
    ok &= is_compilable(shape);
    parameter_types_.push_back(shape.type());
    registers_.push_back(new_register(shape.type()));
    arguments.push_back({registers_.back()});
  }
  const Shape& root = module[c.root].shape;
  result_is_tuple_ = root.is_tuple();
  if (result_is_tuple_)
    for (const Shape& element : root.elements()) result_types_.push_back(element.type());
  else
    result_types_.push_back(root.type());
  compiled_ = ok && compile(computation, arguments, results_, 0);
  if (compiled_) {
    for (const void* result : results_)
      results_are_arguments_ |= std::find(registers_.begin(), registers_.end(), result) != registers_.end();
    return;
  }
  steps_.clear();
  results_.clear();
  for (Type type : result_types_) results_.push_back(new_register(type));
}

void* Body::new_register(Type) {
  memory_.push_back(std::make_unique<uint64_t[]>(static_cast<size_t>(lanes_) * 2));
  return memory_.back().get();
}

bool Body::compile(CompId computation, std::span<const std::vector<void*>> arguments, std::vector<void*>& results,
                   int depth) {
  if (depth > kMaxDepth) return false;
  const Computation& c = module_[computation];
  std::unordered_map<uint32_t, std::vector<void*>> values;
  for (size_t i = 0; i < c.parameters.size(); ++i) values[index_of(c.parameters[i])] = arguments[i];
  for (InstrId id : c.order) {
    const Instruction& instr = module_[id];
    if (instr.op == Op::PARAMETER) continue;
    std::vector<std::vector<void*>> operands;
    for (InstrId o : instr.operands) operands.push_back(values[index_of(o)]);
    std::vector<void*> out;
    if (!compile_instruction(instr, std::move(operands), out, depth) || steps_.size() > kMaxSteps) return false;
    values[index_of(id)] = std::move(out);
  }
  results = values[index_of(c.root)];
  return true;
}

bool Body::compile_instruction(const Instruction& instr, std::vector<std::vector<void*>> operands,
                               std::vector<void*>& out, int depth) {
  switch (instr.op) {
    case Op::TUPLE:
      for (const auto& operand : operands) {
        if (operand.size() != 1) return false;
        out.push_back(operand[0]);
      }
      for (const Shape& element : instr.shape.elements())
        if (!is_compilable(element)) return false;
      return true;
    case Op::GET_TUPLE_ELEMENT:
      out = {operands[0].at(static_cast<size_t>(instr.as<TupleIndexAttrs>().index))};
      return true;
    case Op::CALL:
    case Op::FUSION:
      return compile(instr.called[0], operands, out, depth + 1);
    case Op::MAP:
      return is_compilable(instr.shape) && compile(instr.called[0], operands, out, depth + 1);
    default:
      break;
  }
  if (!is_compilable(instr.shape)) return false;
  for (InstrId o : instr.operands)
    if (!is_compilable(module_[o].shape)) return false;
  switch (instr.op) {
    case Op::CONSTANT: {
      out = {new_register(instr.shape.type())};
      codec(instr.shape.type()).load(module_.literal(instr).bytes(), 0, out[0], lanes_);
      return true;
    }
    case Op::COPY:
    case Op::BITCAST:
    case Op::RESHAPE:
    case Op::BROADCAST:
    case Op::TRANSPOSE:
    case Op::OPT_BARRIER:
      if (module_[instr.operand(0)].shape.type() != instr.shape.type()) return false;
      out = operands[0];
      return true;
    default:
      return add_step(instr, operands, out);
  }
}

bool Body::add_step(const Instruction& instr, std::span<const std::vector<void*>> operands, std::vector<void*>& out) {
  Step step;
  if (operands.empty() || operands.size() > 3) return false;
  for (size_t i = 0; i < operands.size(); ++i) step.in[i] = operands[i].at(0);
  step.from = module_[instr.operand(instr.op == Op::SELECT ? 1 : 0)].shape.type();
  step.to = instr.shape.type();
  step.bits = type_info(step.from).bits;
  switch (instr.op) {
    case Op::CONVERT:
      step.what = Step::What::Convert;
      break;
    case Op::BITCAST_CONVERT:
      if (type_info(step.from).bits != type_info(step.to).bits) return false;
      step.what = Step::What::Reinterpret;
      break;
    case Op::REDUCE_PRECISION:
      step.what = Step::What::Round;
      step.precision = &instr.as<ReducePrecisionAttrs>();
      break;
    case Op::COMPARE:
      step.kernel = find_compare(instr.as<CompareAttrs>().direction, instr.as<CompareAttrs>().type, step.from);
      if (!step.kernel) return false;
      break;
    default:
      if (!is_elementwise(instr.op)) return false;
      step.kernel = find_kernel(instr.op, step.from);
      if (!step.kernel) return false;
  }
  step.out = new_register(step.to);
  out = {step.out};
  steps_.push_back(step);
  return true;
}

Status Body::run(int64_t n) {
  if (!compiled_) return run_by_call(n);
  for (const Step& step : steps_) {
    switch (step.what) {
      case Step::What::Apply:
        step.kernel({step.out, {step.in[0], step.in[1], step.in[2]}, n, step.bits});
        break;
      case Step::What::Convert:
        convert_lanes(step.from, step.to, step.in[0], step.out, n);
        break;
      case Step::What::Round:
        reduce_precision_lanes(step.from, *step.precision, step.in[0], step.out, n);
        break;
      case Step::What::Reinterpret: {
        LaneBuffer bits;
        auto* bytes = static_cast<uint8_t*>(bits.data());
        codec(step.from).store(step.in[0], bytes, 1, n);
        codec(step.to).load(bytes, 1, step.out, n);
        continue;
      }
    }
    codec(step.to).round(step.out, n);
  }
  return ok_status();
}

Status Body::run_by_call(int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Literal> arguments;
    for (size_t p = 0; p < parameter_types_.size(); ++p) {
      const Type type = parameter_types_[p];
      Literal value = Literal::zeros(module_[module_[computation_].parameters[p]].shape);
      if (codec(type).store && value.element_count() == 1)
        codec(type).store(static_cast<char*>(registers_[p]) + static_cast<size_t>(i) * lane_bytes(wide_of(type)),
                          value.mutable_bytes(), 1, 1);
      arguments.push_back(std::move(value));
    }
    COLLET_ASSIGN(Literal result, context_.call(computation_, arguments));
    for (size_t r = 0; r < result_types_.size(); ++r) {
      const Literal& value = result_is_tuple_ ? result.element(r) : result;
      if (!is_compilable(value.shape())) return unimplemented("a reducer of values that are no scalars");
      codec(value.type())
          .load(value.bytes(), 0,
                static_cast<char*>(results_[r]) + static_cast<size_t>(i) * lane_bytes(wide_of(value.type())), 1);
    }
  }
  return ok_status();
}

void Body::feed_back(int64_t n) {
  const auto bytes = [&](size_t i) { return static_cast<size_t>(n) * lane_bytes(wide_of(result_types_[i])); };
  // For example (b, a) from (a, b): the values are copied first, so that none is overwritten before it is read.
  if (results_are_arguments_) {
    std::vector<LaneBuffer> copies(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) std::memcpy(copies[i].data(), results_[i], bytes(i));
    for (size_t i = 0; i < results_.size(); ++i) std::memcpy(registers_[i], copies[i].data(), bytes(i));
    return;
  }
  for (size_t i = 0; i < results_.size(); ++i) std::memcpy(registers_[i], results_[i], bytes(i));
}

}  // namespace collet::hlo::eval
