// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Status check_bundle(Op op, const Shape& shape) {
  if (shape.is_tuple() && shape.elements().size() >= 2 && shape.element(0).is_tuple()) return ok_status();
  return broken(op, "", "an asynchronous shape is ((operands), result, ...), but this is ", shape);
}

Expected<Shape> infer_start(const InferInput& in) {
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  COLLET_TRY(check_bundle(in.op, result));
  const Shape& arguments = result.element(0);
  if (arguments.elements().size() < in.operands.size())
    return broken(in.op, "C3", "the result ", result, " must begin with the shapes of the ", in.operands.size(),
                  " operands");
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (!arguments.element(i).compatible(in.operand(i)))
      return broken(in.op, "C3", "operand ", i, " is ", in.operand(i), ", but the result says ", arguments.element(i));
  return result.without_layout();
}

// Checks the wrapped computation against the shape of the asynchronous value: ((operands), result, ...).
Status check_wrapped(const Module& module, const Instruction& instr, const Shape& bundle) {
  COLLET_TRY(check_bundle(instr.op, bundle));
  if (instr.called.empty()) return ok_status();
  COLLET_ASSIGN(const Signature wrapped, signature(module, instr.op, instr.called[0]));
  const Shape& arguments = bundle.element(0);
  bool fits = arguments.elements().size() == wrapped.parameters.size();
  for (size_t i = 0; fits && i < wrapped.parameters.size(); ++i)
    fits = arguments.element(i).compatible(*wrapped.parameters[i]);
  if (!fits)
    return broken(instr.op, "C3", "the shape ", bundle, " does not begin with the parameters of ", wrapped.name);
  if (!bundle.element(1).compatible(*wrapped.result))
    return broken(instr.op, "C4", wrapped.name, " gives ", *wrapped.result, ", but the shape says ", bundle.element(1));
  return ok_status();
}

Status check_thread(const Module& module, const Instruction& instr) {
  if (instr.called.empty() || instr.as<AsyncAttrs>().thread.empty()) return ok_status();
  const auto name = [](std::string_view thread) { return thread.empty() ? std::string_view("main") : thread; };
  const std::string_view stated = name(instr.as<AsyncAttrs>().thread);
  const std::string_view wrapped = name(module[instr.called[0]].execution_thread);
  if (stated == wrapped) return ok_status();
  return broken(instr.op, "", "async_execution_thread is ", stated, ", but ", module[instr.called[0]].name, " runs on ",
                wrapped);
}

Expected<Shape> infer_copy_start(const InferInput& in) {
  const Shape operand = in.operand(0).without_layout();
  return Shape::tuple({operand, operand, Shape::scalar(Type::U32)});
}

Expected<Shape> infer_copy_done(const InferInput& in) {
  const Shape& operand = in.operand(0);
  if (!operand.is_tuple() || operand.elements().size() < 2)
    return broken(in.op, "", "the operand must be (destination, source, u32[]), but is ", operand);
  if (!operand.element(0).compatible(operand.element(1)))
    return broken(in.op, "", "destination and source differ: ", operand.element(0), " and ", operand.element(1));
  return operand.element(0).without_layout();
}

}  // namespace

Expected<Shape> infer_asynchronous(const InferInput& in) {
  switch (in.op) {
    case Op::ASYNC_START:
      return infer_start(in);
    case Op::ASYNC_UPDATE:
      COLLET_TRY(check_bundle(in.op, in.operand(0)));
      return in.operand(0).without_layout();
    case Op::ASYNC_DONE:
      COLLET_TRY(check_bundle(in.op, in.operand(0)));
      return in.operand(0).element(1).without_layout();
    case Op::COPY_START:
      return infer_copy_start(in);
    case Op::COPY_DONE:
      return infer_copy_done(in);
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_asynchronous(const Module& module, const Instruction& instr) {
  switch (instr.op) {
    case Op::ASYNC_START:
      if (instr.called.empty()) return broken(instr.op, "", "needs a called computation");
      COLLET_TRY(check_thread(module, instr));
      return check_wrapped(module, instr, instr.shape);
    case Op::ASYNC_UPDATE:
    case Op::ASYNC_DONE:
      COLLET_TRY(check_thread(module, instr));
      return check_wrapped(module, instr, module[instr.operand(0)].shape);
    default:
      return ok_status();
  }
}

}  // namespace collet::hlo
