// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "hlo/ops/constraint.h"
#include "hlo/ops/transfers.h"

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

std::vector<std::pair<int64_t, int64_t>> transfer_pairs(const Instruction& instr) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (!instr.extras) return pairs;
  for (const FrontendAttribute& attribute : instr.extras->frontend_attributes) {
    if (attribute.name != "_xla_send_recv_source_target_pairs") continue;
    std::vector<int64_t> numbers;
    bool inside = false;
    for (char c : attribute.value) {
      const bool digit = std::isdigit(static_cast<unsigned char>(c));
      if (digit && !inside) numbers.push_back(0);
      if (digit && numbers.back() < (int64_t{1} << 40)) numbers.back() = numbers.back() * 10 + (c - '0');
      inside = digit;
    }
    for (size_t i = 0; i + 1 < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  }
  return pairs;
}

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
