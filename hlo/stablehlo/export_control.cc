// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/exporter.h"

// Exports control flow, asynchronous ops and communication with the host.

namespace collet::hlo {
namespace {

using mlir::TypeRef;
using mlir::Value;

Expected<ExportNode> while_loop(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> state;
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 0), state));
  std::vector<TypeRef> types;
  if (Status known = e.leaf_types(instr.shape, types); !known.ok()) return e.fail(instr, known.message());
  if (state.size() != types.size()) return e.fail(instr, kUnfinished);
  mlir::Op* op = e.emit(scope, "stablehlo.while", state, types);
  COLLET_TRY(e.region(op, instr.called[0]));
  COLLET_TRY(e.region(op, instr.called[1]));
  return Exporter::from_leaves(instr.shape, op->results);
}

/// Exports a conditional. StableHLO's branches have no arguments; they use values of the enclosing region.
Expected<ExportNode> conditional(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(Value * selector, e.operand(scope, instr, 0));
  std::vector<TypeRef> types;
  if (Status known = e.leaf_types(instr.shape, types); !known.ok()) return e.fail(instr, known.message());
  const bool two_way = e.module()[instr.operand(0)].shape.type() == Type::PRED;
  mlir::Op* op = e.emit(scope, two_way ? "stablehlo.if" : "stablehlo.case", {&selector, 1}, types);
  for (size_t i = 0; i < instr.called.size(); ++i) {
    std::vector<ExportNode> bound;
    if (i + 1 < instr.operands.size()) bound.push_back(e.node(scope, instr, i + 1));
    COLLET_TRY(e.region(op, instr.called[i], &bound));
  }
  return Exporter::from_leaves(instr.shape, op->results);
}

Expected<std::vector<ExportNode>> all_nodes(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<ExportNode> out;
  for (size_t i = 0; i < instr.operands.size(); ++i) out.push_back(e.node(scope, instr, i));
  return out;
}

/// Exports the ops of a fusion or of an asynchronous computation in place.
Expected<ExportNode> in_place(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<ExportNode> arguments, all_nodes(e, scope, instr));
  return e.inlined(scope, instr.called[0], std::move(arguments));
}

Expected<ExportNode> already_done(Exporter& e, ExportScope& scope, const Instruction& instr) {
  return e.node(scope, instr, 0);
}

Expected<ExportNode> infeed(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(Value * token, e.operand(scope, instr, 0));
  std::vector<TypeRef> types;
  if (Status known = e.leaf_types(instr.shape, types); !known.ok()) return e.fail(instr, known.message());
  mlir::Op* op = e.emit(scope, "stablehlo.infeed", {&token, 1}, types);
  e.set_text(op, "infeed_config", instr.as<InfeedAttrs>().config);
  return Exporter::from_leaves(instr.shape, op->results);
}

/// Returns the operands of a transfer: the data, then the token.
Expected<std::vector<Value*>> data_and_token(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> out;
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 0), out));
  COLLET_ASSIGN(Value * token, e.operand(scope, instr, 1));
  out.push_back(token);
  return out;
}

Expected<ExportNode> outfeed(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, data_and_token(e, scope, instr));
  COLLET_ASSIGN(TypeRef token, e.type(Shape::token()));
  mlir::Op* op = e.emit(scope, "stablehlo.outfeed", inputs, {token});
  e.set_text(op, "outfeed_config", instr.as<OutfeedAttrs>().config);
  return Exporter::from_results(*op);
}

void set_channel(Exporter& e, mlir::Op* op, const ChannelAttrs& attrs, int64_t host_type) {
  e.set_int(op, "channel_id", attrs.channel);
  e.set_int(op, "channel_type", attrs.host_transfer ? host_type : 1);
  e.set_bool(op, "is_host_transfer", attrs.host_transfer);
}

/// Exports a send at the position of its start; its result is that of the send-done.
Expected<ExportNode> send(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, data_and_token(e, scope, instr));
  COLLET_ASSIGN(TypeRef token, e.type(Shape::token()));
  mlir::Op* op = e.emit(scope, "stablehlo.send", inputs, {token});
  set_channel(e, op, instr.as<ChannelAttrs>(), 2);
  return Exporter::from_results(*op);
}

/// Exports a recv at the position of its recv-done, so that sends in between come before it.
Expected<ExportNode> recv_done(Exporter& e, ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> token;
  COLLET_TRY(e.leaves(scope, e.node(scope, instr, 0), token));
  std::vector<TypeRef> types;
  if (Status known = e.leaf_types(instr.shape, types); !known.ok()) return e.fail(instr, known.message());
  if (token.size() != 1 || !instr.shape.is_tuple()) return e.fail(instr, "its shape is no transfer's");
  mlir::Op* op = e.emit(scope, "stablehlo.recv", token, types);
  set_channel(e, op, instr.as<ChannelAttrs>(), 3);
  const Instruction& start = e.module()[instr.operand(0)];
  if (start.extras && (!instr.extras || instr.extras->frontend_attributes.empty()))
    e.set_frontend_attributes(op, start.extras->frontend_attributes);
  return Exporter::from_leaves(instr.shape, op->results);
}

}  // namespace

std::span<const ExportRow> export_control_rows() {
  static constexpr ExportRow kRows[] = {
      {Op::WHILE, while_loop},
      {Op::CONDITIONAL, conditional},
      {Op::FUSION, in_place},
      {Op::ASYNC_START, in_place},
      {Op::ASYNC_UPDATE, already_done},
      {Op::ASYNC_DONE, already_done},
      {Op::INFEED, infeed},
      {Op::OUTFEED, outfeed},
      {Op::SEND, send},
      {Op::SEND_DONE, already_done},
      {Op::RECV, already_done},
      {Op::RECV_DONE, recv_done},
      {Op::ALL_GATHER_DONE, already_done},
      {Op::ALL_REDUCE_DONE, already_done},
      {Op::COLLECTIVE_PERMUTE_DONE, already_done},
  };
  return kRows;
}

}  // namespace collet::hlo
