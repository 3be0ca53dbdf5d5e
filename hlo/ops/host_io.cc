// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Status expect_token(const InferInput& in, size_t i) {
  if (in.operand(i).is_token()) return ok_status();
  return broken(in.op, "", "operand ", i, " must be a token, but is ", in.operand(i));
}

Expected<Shape> infer_infeed(const InferInput& in) {
  COLLET_TRY(expect_token(in, 0));
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_tuple() || result.elements().size() != 2 || !result.element(1).is_token())
    return broken(in.op, "C3", "the result must be (data, token[]), but is ", result);
  return result.without_layout();
}

Expected<Shape> infer_outfeed(const InferInput& in) {
  COLLET_TRY(expect_token(in, 1));
  const Shape* stated = in.as<OutfeedAttrs>().shape;
  if (stated && !stated->compatible(in.operand(0)))
    return broken(in.op, "", "outfeed_shape is ", *stated, ", but the operand is ", in.operand(0));
  return Shape::token();
}

Expected<Shape> infer_send(const InferInput& in) {
  COLLET_TRY(expect_token(in, 1));
  return Shape::tuple({in.operand(0).without_layout(), Shape::scalar(Type::U32), Shape::token()});
}

Expected<Shape> infer_recv(const InferInput& in) {
  COLLET_TRY(expect_token(in, 0));
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_tuple() || result.elements().size() != 3)
    return broken(in.op, "", "the result must be (data, u32[], token[]), but is ", result);
  return Shape::tuple({result.element(0).without_layout(), Shape::scalar(Type::U32), Shape::token()});
}

Expected<Shape> infer_recv_done(const InferInput& in) {
  const Shape& operand = in.operand(0);
  if (!operand.is_tuple() || operand.elements().empty())
    return broken(in.op, "", "the operand must be (data, u32[], token[]), but is ", operand);
  return Shape::tuple({operand.element(0).without_layout(), Shape::token()});
}

}  // namespace

Expected<Shape> infer_host_io(const InferInput& in) {
  switch (in.op) {
    case Op::INFEED:
      return infer_infeed(in);
    case Op::OUTFEED:
      return infer_outfeed(in);
    case Op::SEND:
      return infer_send(in);
    case Op::RECV:
      return infer_recv(in);
    case Op::RECV_DONE:
      return infer_recv_done(in);
    case Op::SEND_DONE:
      return Shape::token();
    default:
      return unimplemented(concat("no shape inference for ", op_info(in.op).text));
  }
}

Status verify_host_io(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
