// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "hlo/ops/flops.h"
#include "sdk/tool/support/terminal.h"

namespace collet::tool {
namespace {

using namespace collet::hlo;

double shape_bytes(const Shape& shape) {
  return static_cast<double>(shape.byte_size());
}

// Returns the computations that run element by element, as part of their callers.
std::set<uint32_t> scalar_computations(const Module& module) {
  std::set<uint32_t> ids;
  for (const CompId comp : module.computations()) {
    for (const InstrId id : module[comp].order) {
      const Instruction& instr = module[id];
      const Regions regions = op_info(instr.op).regions;
      if ((regions == Regions::TO_APPLY && instr.op != Op::CALL) || regions == Regions::SELECT_SCATTER) {
        for (const CompId called : instr.called) ids.insert(index_of(called));
      }
    }
  }
  return ids;
}

void count_instruction(const Module& module, const Instruction& instr, Statistics& s) {
  ++s.instructions;
  OpCount& row = s.ops[static_cast<size_t>(instr.op)];
  ++row.instructions;
  if (instr.shape.is_array()) ++s.types[static_cast<size_t>(instr.shape.type())];
  if (instr.op == Op::CONSTANT) s.constant_bytes += shape_bytes(instr.shape);
  if (instr.op == Op::WHILE) ++s.loops;
  if (op_info(instr.op).op_class == OpClass::EXECUTOR) return;
  const double flops = flops_of(module, instr);
  double bytes = shape_bytes(instr.shape);
  for (const InstrId operand : instr.operands) bytes += shape_bytes(module[operand].shape);
  row.flops += flops;
  row.bytes += bytes;
  s.flops += flops;
  s.bytes += bytes;
}

std::vector<Op> by_count(const Statistics& s) {
  std::vector<Op> ops;
  for (int op = 1; op <= kLastOp; ++op) {
    if (s.ops[static_cast<size_t>(op)].instructions > 0) ops.push_back(static_cast<Op>(op));
  }
  std::stable_sort(ops.begin(), ops.end(), [&](Op a, Op b) {
    return s.ops[static_cast<size_t>(a)].instructions > s.ops[static_cast<size_t>(b)].instructions;
  });
  return ops;
}

}  // namespace

Statistics collect_statistics(const Module& module) {
  Statistics s;
  const std::set<uint32_t> scalar = scalar_computations(module);
  for (const CompId comp : module.computations()) {
    ++s.computations;
    if (scalar.contains(index_of(comp))) {
      s.instructions += static_cast<int64_t>(module[comp].order.size());
      continue;
    }
    for (const InstrId id : module[comp].order) count_instruction(module, module[id], s);
  }
  const Computation& entry = module.entry_computation();
  for (const InstrId id : entry.parameters) {
    s.parameters += module[id].shape.leaf_count();
    s.parameter_bytes += shape_bytes(module[id].shape);
  }
  if (entry.root != InstrId::None) {
    s.results = module[entry.root].shape.leaf_count();
    s.result_bytes = shape_bytes(module[entry.root].shape);
  }
  return s;
}

std::string statistics_text(const Module& module, const Statistics& s) {
  std::string out = fmt::format("module {}: {} instructions in {} computations{}\n", module.name(), s.instructions,
                                s.computations, s.loops > 0 ? fmt::format(", {} loops", s.loops) : "");
  out += fmt::format("  {} parameters, {}; {} results, {}; constants {}\n", s.parameters, human(s.parameter_bytes, "B"),
                     s.results, human(s.result_bytes, "B"), human(s.constant_bytes, "B"));
  out += fmt::format("  {}, {} read and written without fusion: {:.3g} flop a byte (each loop body once)\n",
                     human(s.flops, "flop"), human(s.bytes, "B"), s.bytes > 0 ? s.flops / s.bytes : 0.0);
  out += "  element types:";
  for (size_t type = 0; type < s.types.size(); ++type) {
    if (s.types[type] > 0) out += fmt::format(" {} {}", type_info(static_cast<Type>(type)).text, s.types[type]);
  }
  out += fmt::format("\n\n  {:<26} {:>8} {:>12} {:>12}\n", "op", "count", "flop", "bytes");
  for (const Op op : by_count(s)) {
    const OpCount& row = s.ops[static_cast<size_t>(op)];
    out += fmt::format("  {:<26} {:>8} {:>12} {:>12}\n", op_info(op).text, row.instructions,
                       row.flops > 0 ? human(row.flops) : "", row.bytes > 0 ? human(row.bytes, "B") : "");
  }
  return out;
}

void statistics_json(const Module& module, const Statistics& s, JsonWriter& json) {
  json.begin_object().field("name", module.name()).field("computations", s.computations);
  json.field("instructions", s.instructions).field("loops", s.loops).field("parameters", s.parameters);
  json.field("results", s.results).field("parameter_bytes", s.parameter_bytes).field("result_bytes", s.result_bytes);
  json.field("constant_bytes", s.constant_bytes).field("flops", s.flops).field("bytes", s.bytes);
  json.key("types").begin_object();
  for (size_t type = 0; type < s.types.size(); ++type) {
    if (s.types[type] > 0) json.field(type_info(static_cast<Type>(type)).text, s.types[type]);
  }
  json.end_object().key("ops").begin_array();
  for (const Op op : by_count(s)) {
    const OpCount& row = s.ops[static_cast<size_t>(op)];
    json.begin_object().field("op", op_info(op).text).field("count", row.instructions);
    json.field("flops", row.flops).field("bytes", row.bytes).end_object();
  }
  json.end_array().end_object();
}

}  // namespace collet::tool
