// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/families.h"
#include "hlo/ops/transfers.h"

namespace collet::hlo {
namespace {

int64_t self(const EvalContext& context) {
  return context.replica() * context.partition_count() + context.partition();
}

Status deliver(const EvalInput& in) {
  const auto& attrs = in.instr.as<ChannelAttrs>();
  if (attrs.host_transfer) return in.context.outfeed(in.operand(0));
  const auto pairs = transfer_pairs(in.instr);
  const int64_t me = self(in.context);
  if (pairs.empty()) return in.context.send(attrs.channel, me, in.operand(0));
  const int64_t count = in.context.replica_count() * in.context.partition_count();
  for (const auto& [source, target] : pairs)
    if (source == me && target < count) COLLET_TRY(in.context.send(attrs.channel, target, in.operand(0)));
  return ok_status();
}

/// Returns the recv of a recv-done. If the two are connected through tuples only, returns the recv-done, whose own
/// attributes must then state the channel.
const Instruction& receiver(const EvalInput& in) {
  const Instruction& operand = in.module[in.instr.operand(0)];
  return operand.op == Op::RECV ? operand : in.instr;
}

Expected<Literal> collect(const EvalInput& in) {
  const auto& attrs = in.instr.as<ChannelAttrs>();
  const Shape& shape = in.instr.shape.element(0);
  const Instruction& recv = receiver(in);
  const bool from_host = attrs.host_transfer || recv.as<ChannelAttrs>().host_transfer;
  if (from_host) return in.context.infeed(shape);
  const int64_t channel = attrs.channel ? attrs.channel : recv.as<ChannelAttrs>().channel;
  const auto pairs = transfer_pairs(recv);
  const int64_t me = self(in.context), count = in.context.replica_count() * in.context.partition_count();
  bool expects = pairs.empty();
  for (const auto& [source, target] : pairs) expects |= target == me && source < count;
  if (!expects) return Literal::zeros(shape);
  COLLET_ASSIGN(Literal value, in.context.receive(channel));
  if (!value.shape().compatible(shape))
    return failed_precondition("recv of " + shape.to_string() + " got " + value.shape().to_string());
  return value;
}

Literal with_token(Literal value) {
  std::vector<Literal> parts;
  parts.push_back(std::move(value));
  parts.push_back(Literal::token());
  return Literal::tuple(std::move(parts));
}

}  // namespace

Expected<Literal> evaluate_host_io(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::INFEED: {
      COLLET_ASSIGN(Literal value, in.context.infeed(in.instr.shape.element(0)));
      if (!value.shape().compatible(in.instr.shape.element(0)))
        return failed_precondition("infeed got " + value.shape().to_string() + ", not " +
                                   in.instr.shape.element(0).to_string());
      return with_token(std::move(value));
    }
    case Op::OUTFEED:
      COLLET_TRY(in.context.outfeed(in.operand(0)));
      return Literal::token();
    case Op::SEND: {
      COLLET_TRY(deliver(in));
      std::vector<Literal> parts{in.operand(0), Literal::scalar_int(Type::U32, 0), Literal::token()};
      return Literal::tuple(std::move(parts));
    }
    case Op::SEND_DONE:
      return Literal::token();
    case Op::RECV:
      return Literal::zeros(in.instr.shape);
    default: {  // recv-done
      COLLET_ASSIGN(Literal value, collect(in));
      return with_token(std::move(value));
    }
  }
}

}  // namespace collet::hlo
