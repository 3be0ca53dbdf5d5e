// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "sdk/tool/terminal.h"

namespace collet::tool {
namespace {

using namespace collet::hlo;

double elements(const Shape& shape) {
  return static_cast<double>(shape.is_array() ? shape.element_count() : 0);
}

double shape_bytes(const Shape& shape) {
  return static_cast<double>(shape.byte_size());
}

// Operations that one call of a scalar computation makes.
double body_flops(const Module& module, CompId id) {
  double count = 0;
  for (const InstrId instr : module[id].order) count += is_elementwise(module[instr].op) ? 1 : 0;
  return std::max(count, 1.0);
}

double product(Dims dims) {
  double result = 1;
  for (const int64_t dim : dims) result *= static_cast<double>(dim);
  return result;
}

double dot_flops(const Module& module, const Instruction& instr) {
  const Shape& lhs = module[instr.operand(0)].shape;
  const Dims contracting =
      instr.op == Op::RAGGED_DOT ? instr.as<RaggedDotAttrs>().lhs_contracting : instr.as<DotAttrs>().lhs_contracting;
  double depth = 1;
  for (const int64_t dim : contracting) {
    if (dim >= 0 && dim < lhs.rank()) depth *= static_cast<double>(lhs.dim(static_cast<int>(dim)));
  }
  return 2 * depth * elements(instr.shape);
}

double convolution_flops(const Module& module, const Instruction& instr) {
  const auto& attrs = instr.as<ConvolutionAttrs>();
  const Shape& kernel = module[instr.operand(1)].shape;
  const int64_t feature = attrs.labels.kernel_input_feature;
  const double features =
      feature >= 0 && feature < kernel.rank() ? static_cast<double>(kernel.dim(static_cast<int>(feature))) : 1;
  return 2 * product(attrs.window.size) * features * elements(instr.shape);
}

double flops_of(const Module& module, const Instruction& instr) {
  const auto operand_elements = [&](size_t i) {
    return instr.operands.size() > i ? elements(module[instr.operand(i)].shape) : 0;
  };
  switch (instr.op) {
    case Op::DOT:
    case Op::SCALED_DOT:
    case Op::RAGGED_DOT:
      return dot_flops(module, instr);
    case Op::CONVOLUTION:
      return convolution_flops(module, instr);
    case Op::REDUCE:
      return operand_elements(0) * (instr.called.empty() ? 1 : body_flops(module, instr.called[0]));
    case Op::SCATTER:
      return instr.operands.size() < 3 ? 0 : operand_elements(instr.operands.size() - 1);
    case Op::MAP:
      return elements(instr.shape) * (instr.called.empty() ? 1 : body_flops(module, instr.called[0]));
    case Op::REDUCE_WINDOW:
      return (instr.shape.is_tuple() ? elements(instr.shape.element(0)) : elements(instr.shape)) *
             product(instr.as<WindowAttrs>().window.size);
    case Op::SELECT_AND_SCATTER:
      return operand_elements(1) * product(instr.as<WindowAttrs>().window.size);
    case Op::FFT:
      return 5 * operand_elements(0) * std::log2(std::max(2.0, product(instr.as<FftAttrs>().length)));
    case Op::CHOLESKY:
    case Op::TRIANGULAR_SOLVE: {
      const Shape& matrix = module[instr.operand(0)].shape;
      const double n = matrix.rank() > 0 ? static_cast<double>(matrix.dim(matrix.rank() - 1)) : 0;
      return instr.op == Op::CHOLESKY ? operand_elements(0) * n / 3 : operand_elements(1) * n;
    }
    case Op::SORT:
    case Op::TOPK:
      return operand_elements(0) * std::log2(std::max(2.0, operand_elements(0)));
    case Op::BATCH_NORM_TRAINING:
    case Op::BATCH_NORM_INFERENCE:
    case Op::BATCH_NORM_GRAD:
      return 8 * operand_elements(0);
    default:
      return is_elementwise(instr.op) ? elements(instr.shape) : 0;
  }
}

// Computations that run element by element, as part of their callers.
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
