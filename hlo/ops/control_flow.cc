// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// Checks that the arguments fit the parameters of the called computation.
Status check_arguments(const InferInput& in, const Signature& callee, std::string_view label) {
  if (callee.parameters.size() != in.operands.size())
    return broken(in.op, label, callee.name, " takes ", callee.parameters.size(), " parameters, but there are ",
                  in.operands.size(), " operands");
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (!callee.parameters[i]->compatible(in.operand(i)))
      return broken(in.op, label, "parameter ", i, " of ", callee.name, " is ", *callee.parameters[i],
                    ", but the operand is ", in.operand(i));
  return ok_status();
}

Expected<Shape> infer_call(const InferInput& in) {
  COLLET_ASSIGN(const Signature callee, signature(in.module, in.op, in.called[0]));
  COLLET_TRY(check_arguments(in, callee, in.as<CallAttrs>().is_composite ? "C3" : ""));
  return callee.result->without_layout();
}

Expected<Shape> infer_fusion(const InferInput& in) {
  COLLET_ASSIGN(const Signature callee, signature(in.module, in.op, in.called[0]));
  if (callee.parameters.size() > in.operands.size())
    return broken(in.op, "", callee.name, " takes ", callee.parameters.size(), " parameters, but there are only ",
                  in.operands.size(), " operands");
  for (size_t i = 0; i < callee.parameters.size(); ++i)
    if (!callee.parameters[i]->compatible(in.operand(i)))
      return broken(in.op, "", "parameter ", i, " of ", callee.name, " is ", *callee.parameters[i],
                    ", but the operand is ", in.operand(i));
  return callee.result->without_layout();
}

Expected<Shape> infer_while(const InferInput& in) {
  const Shape& state = in.operand(0);
  COLLET_ASSIGN(const Signature condition, signature(in.module, in.op, in.called[0]));
  COLLET_ASSIGN(const Signature body, signature(in.module, in.op, in.called[1]));
  if (condition.parameters.size() != 1)
    return broken(in.op, "C1", "condition ", condition.name, " must take 1 parameter, but takes ",
                  condition.parameters.size());
  if (body.parameters.size() != 1)
    return broken(in.op, "C2", "body ", body.name, " must take 1 parameter, but takes ", body.parameters.size());
  if (!is_scalar_of(*condition.result, Type::PRED))
    return broken(in.op, "C1", "condition ", condition.name, " must give pred[], but gives ", *condition.result);
  if (!condition.parameters[0]->compatible(state))
    return broken(in.op, "C1", "condition ", condition.name, " takes ", *condition.parameters[0], ", but the state is ",
                  state);
  if (!body.parameters[0]->compatible(state))
    return broken(in.op, "C2", "body ", body.name, " takes ", *body.parameters[0], ", but the state is ", state);
  if (!body.result->compatible(state))
    return broken(in.op, "C2", "body ", body.name, " gives ", *body.result, ", but the state is ", state);
  return state.without_layout();
}

// Joins the shapes of two branches: a dimension that is dynamic in one is dynamic in the result.
Shape join_branches(const Shape& a, const Shape& b) {
  if (a.is_tuple()) {
    std::vector<Shape> elements;
    for (size_t i = 0; i < a.elements().size(); ++i) elements.push_back(join_branches(a.element(i), b.element(i)));
    return Shape::tuple(std::move(elements));
  }
  if (!a.is_array() || (!a.has_dynamic() && !b.has_dynamic())) return a.without_layout();
  DimList dims;
  for (int i = 0; i < a.rank(); ++i) {
    const bool unknown = a.dim(i) == kUnbounded || b.dim(i) == kUnbounded;
    dims.push(unknown ? kUnbounded : a.dim(i), a.is_dynamic(i) || b.is_dynamic(i));
  }
  return dims.shape(a.type());
}

Expected<Shape> infer_conditional(const InferInput& in) {
  const Shape& choice = in.operand(0);
  const size_t branches = in.called.size();
  if (!is_scalar_of(choice, Type::PRED) && !is_scalar_of(choice, Type::S32))
    return broken(in.op, "", "the branch index must be pred[] or s32[], but is ", choice);
  if (choice.type() == Type::PRED && branches != 2)
    return broken(in.op, "", "pred[] chooses between 2 branches, but there are ", branches);
  if (in.operands.size() != branches + 1)
    return broken(in.op, "", "each of the ", branches, " branches needs one operand, but there are ",
                  in.operands.size() - 1);
  Shape result;
  for (size_t i = 0; i < branches; ++i) {
    COLLET_ASSIGN(const Signature branch, signature(in.module, in.op, in.called[i]));
    if (branch.parameters.size() != 1)
      return broken(in.op, "C2", "branch ", branch.name, " must take 1 parameter, but takes ",
                    branch.parameters.size());
    if (!branch.parameters[0]->compatible(in.operand(i + 1)))
      return broken(in.op, "C2", "branch ", branch.name, " takes ", *branch.parameters[0], ", but operand ", i + 1,
                    " is ", in.operand(i + 1));
    if (i && !branch.result->compatible(result))
      return broken(in.op, "C3", "branch ", branch.name, " gives ", *branch.result, ", but the first one gives ",
                    result);
    result = i ? join_branches(result, *branch.result) : branch.result->without_layout();
  }
  return result;
}

std::string_view frontend_attribute(const Instruction& instr, std::string_view name, bool& found) {
  found = false;
  if (!instr.extras) return {};
  for (const FrontendAttribute& a : instr.extras->frontend_attributes)
    if (a.name == name) {
      found = true;
      return a.value;
    }
  return {};
}

Status verify_composite(const Instruction& instr) {
  const auto& a = instr.as<CallAttrs>();
  if (!a.is_composite) return ok_status();
  bool found = false;
  std::string_view name = frontend_attribute(instr, "composite.name", found);
  if (!found) name = a.name;
  if (name.empty()) return broken(instr.op, "C1", "a composite needs the frontend attribute composite.name");
  const std::string_view attributes = frontend_attribute(instr, "composite.attributes", found);
  if (found && attributes.empty()) return broken(instr.op, "", "composite.attributes must not be empty");
  const std::string_view text = frontend_attribute(instr, "composite.version", found);
  int64_t version = a.version;
  if (found) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (error != std::errc() || end != text.data() + text.size()) version = -1;
  }
  if (version < 0) return broken(instr.op, "", "composite.version must be a number from 0");
  return ok_status();
}

}  // namespace

Expected<Shape> infer_control_flow(const InferInput& in) {
  switch (in.op) {
    case Op::CALL:
      return infer_call(in);
    case Op::CONDITIONAL:
      return infer_conditional(in);
    case Op::FUSION:
      return infer_fusion(in);
    case Op::WHILE:
      return infer_while(in);
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_control_flow(const Module& module, const Instruction& instr) {
  if (instr.op == Op::CALL) return verify_composite(instr);
  if (instr.op == Op::FUSION) return check_aliasing(module, instr, instr.as<FusionAttrs>().aliasing);
  return ok_status();
}

}  // namespace collet::hlo
