// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/verdicts.h"

#include <functional>

#include "sdk/runtime/run/host_call.h"

namespace collet::runtime {
namespace {

// True for ops that depend on the other participants of a run.
bool concerns_others(hlo::Op op) {
  return op_info(op).op_class == hlo::OpClass::COMMUNICATION || op == hlo::Op::REPLICA_ID ||
         op == hlo::Op::PARTITION_ID;
}

// True for control flow that the device or the runtime executes. A call with a name is a pattern, and does not count.
bool is_control_flow(const collet_program* p, const collet_op& op) {
  if (!runtime::is_control_flow(static_cast<hlo::Op>(op.opcode))) return false;
  if (op.opcode != COLLET_OP_CALL) return true;
  collet_call_attrs attrs;
  collet_read_attributes(p, &op, &attrs, sizeof attrs);
  return attrs.name.count == 0;
}

bool holds_what_concerns_others(const collet_program* p, const collet_op& op) {
  for (uint32_t r = 0; r < op.regions.count; ++r) {
    const collet_region* region = collet_region_at(p, op.regions.first + r);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const collet_op* inner = collet_op_at(p, region->ops.first + i);
      if (concerns_others(static_cast<hlo::Op>(inner->opcode)) || holds_what_concerns_others(p, *inner)) return true;
    }
  }
  return false;
}

// True for a send or recv whose partner is the host, which the interface does not support.
bool is_host_transfer(const collet_program* p, const collet_op& op) {
  switch (static_cast<hlo::Op>(op.opcode)) {
    case hlo::Op::SEND:
    case hlo::Op::SEND_DONE:
    case hlo::Op::RECV:
    case hlo::Op::RECV_DONE: {
      collet_channel_attrs attrs;
      collet_read_attributes(p, &op, &attrs, sizeof attrs);
      return attrs.host_transfer != 0;
    }
    default:
      return false;
  }
}

// Returns the reason why the device cannot run the op, whatever it would answer; empty if it may be asked.
std::string refusal(const Backend& backend, const DeviceFacts& facts, const collet_program* p, const collet_op& op,
                    bool alone) {
  const auto code = static_cast<hlo::Op>(op.opcode);
  const hlo::OpInfo& info = hlo::op_info(code);
  if (op.since > backend.opset()) return "newer than the backend's opset " + std::to_string(backend.opset());
  if (is_control_flow(p, op) && !facts.has(COLLET_TRAIT_CONTROL_FLOW)) return "the device runs no control flow";
  if (is_host_transfer(p, op)) return "transfers to and from the host are not supported; infeed and outfeed are";
  if (info.op_class == hlo::OpClass::COMMUNICATION && !facts.has(COLLET_TRAIT_COLLECTIVES))
    return "the device has no collectives";
  if (alone && (concerns_others(code) || holds_what_concerns_others(p, op)))
    return "each participant runs on its own here";
  const uint32_t needed = info.has(COLLET_OP_MOVES) || code == hlo::Op::CONSTANT || code == hlo::Op::IOTA
                              ? uint32_t{COLLET_MAY_MOVE}
                              : uint32_t{COLLET_MAY_COMPUTE};
  const auto undeclared = [&](uint32_t value) -> std::string {
    const uint32_t element = collet_value_type(p, value)->element;
    if (element == COLLET_TYPE_TOKEN || element == COLLET_TYPE_OPAQUE) return {};
    // A device that computes with a type can also move it.
    if (facts.type_flags[element] & (needed | COLLET_MAY_COMPUTE)) return {};
    const std::string name(collet_type_name(element));
    if (facts.type_flags[element] == 0) return "the device does not hold " + name;
    return name + " may be stored but not " + (needed == COLLET_MAY_MOVE ? "moved" : "computed");
  };
  for (uint32_t i = 0; i < op.operands.count; ++i)
    if (std::string why = undeclared(collet_operand(p, &op, i)); !why.empty()) return why;
  for (uint32_t i = 0; i < op.results.count; ++i)
    if (std::string why = undeclared(op.results.first + i); !why.empty()) return why;
  return {};
}

}  // namespace

bool is_control_flow(hlo::Op op) {
  return op == hlo::Op::WHILE || op == hlo::Op::CONDITIONAL || op == hlo::Op::CALL;
}

std::vector<uint32_t> ops_to_ask(const collet_program* p) {
  std::vector<uint32_t> out;
  std::vector<uint32_t> regions{0};
  for (size_t at = 0; at < regions.size(); ++at) {
    const collet_region* region = collet_region_at(p, regions[at]);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const uint32_t number = region->ops.first + i;
      out.push_back(number);
      const collet_op* op = collet_op_at(p, number);
      if (!is_control_flow(p, *op)) continue;
      for (uint32_t r = 0; r < op->regions.count; ++r) regions.push_back(op->regions.first + r);
    }
  }
  return out;
}

Expected<Verdicts> Verdicts::ask(Backend& backend, uint32_t device, const hlo::Module& module,
                                 const hlo::Program& program, bool alone,
                                 std::span<const collet_host_function> host_functions) {
  Verdicts out;
  out.list_.resize(module.instruction_limit());
  const collet_program* p = program.get();
  const DeviceFacts& facts = backend.devices()[device];
  std::vector<uint32_t> asked;
  for (uint32_t op : ops_to_ask(p)) {
    Verdict& v = out.list_[hlo::index_of(program.ops[op])];
    v.reason = backend.computes() ? refusal(backend, facts, p, *collet_op_at(p, op), alone) : "the backend runs no ops";
    if (calls_any(host_functions, module, module[program.ops[op]])) v.reason = "it calls the embedder";
    if (v.reason.empty()) asked.push_back(op);
  }
  std::vector<collet_verdict> answers(asked.size());
  COLLET_TRY(backend.supports(device, p, asked, answers));
  std::vector<bool>& seen = out.asked_;
  seen.resize(module.instruction_limit());
  for (size_t i = 0; i < asked.size(); ++i) {
    const size_t index = hlo::index_of(program.ops[asked[i]]);
    Verdict& v = out.list_[index];
    // A computation that is called twice occurs twice in the program: the worse answer counts.
    if (seen[index] && v.answer != COLLET_ACCEPT) continue;
    seen[index] = true;
    v = {answers[i].answer, answers[i].group, answers[i].cost_ns, answers[i].reason};
  }
  // Large constants are arguments: the device is not asked about an op, but it must declare the type.
  for (const hlo::ConstantArgument& c : program.constants) {
    const auto type = static_cast<uint32_t>(module[c.instr].shape.type());
    const bool known = backend.computes() && (facts.type_flags[type] & (COLLET_MAY_MOVE | COLLET_MAY_COMPUTE));
    if (known) out.list_[hlo::index_of(c.instr)] = {COLLET_ACCEPT, 0, 0, {}};
  }
  return out;
}

}  // namespace collet::runtime
