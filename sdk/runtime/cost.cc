// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/cost.h"

#include <algorithm>

#include "hlo/ops/flops.h"

namespace collet::runtime {
namespace {

using hlo::InstrId;
using hlo::Instruction;
using hlo::Module;
using hlo::Op;

constexpr double kMathFlops = 15;  // operations per element of exp, tanh and similar functions

Work work_of_computation(const Module& m, hlo::CompId c, int depth);

double contracted(const Module& m, const Instruction& instr) {
  const hlo::Shape& lhs = m[instr.operand(0)].shape;
  const hlo::Dims dims = instr.op == Op::RAGGED_DOT ? instr.as<hlo::RaggedDotAttrs>().lhs_contracting
                                                    : instr.as<hlo::DotAttrs>().lhs_contracting;
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(lhs.dim(static_cast<int>(d)));
  return n;
}

double flops_of(const Module& m, const Instruction& instr, int depth) {
  const double out = static_cast<double>(instr.shape.is_tuple() && !instr.shape.elements().empty()
                                             ? instr.shape.element(0).element_count()
                                             : instr.shape.element_count());
  const double in = instr.operands.empty() ? 0 : static_cast<double>(m[instr.operand(0)].shape.element_count());
  switch (instr.op) {
    case Op::DOT:
    case Op::SCALED_DOT:
    case Op::RAGGED_DOT:
      return 2 * out * contracted(m, instr);
    case Op::CONVOLUTION: {
      const auto& a = instr.as<hlo::ConvolutionAttrs>();
      const hlo::Shape& kernel = m[instr.operand(1)].shape;
      const double features =
          static_cast<double>(std::max<int64_t>(kernel.dim(static_cast<int>(a.labels.kernel_output_feature)), 1));
      return 2 * out * static_cast<double>(kernel.element_count()) / features;
    }
    case Op::REDUCE:
    case Op::SELECT_AND_SCATTER:
    case Op::SCATTER:
      return in;
    case Op::REDUCE_WINDOW: {
      double window = 1;
      for (int64_t s : instr.as<hlo::WindowAttrs>().window.size) window *= static_cast<double>(s);
      return out * window;
    }
    case Op::SORT:
    case Op::TOPK:
      return 40 * in;
    case Op::FFT:
      return 50 * out;
    case Op::CHOLESKY:
    case Op::TRIANGULAR_SOLVE: {
      const hlo::Shape& a = m[instr.operand(0)].shape;
      return out * static_cast<double>(a.rank() ? a.dim(a.rank() - 1) : 1);
    }
    case Op::FUSION:
    case Op::CALL: {
      if (depth > 16 || instr.called.empty()) return out;
      return work_of_computation(m, instr.called[0], depth + 1).flops;
    }
    default:
      return op_info(instr.op).op_class == hlo::OpClass::MATH ? kMathFlops * out : out;
  }
}

Work control_flow(const Module& m, const Instruction& instr, int depth) {
  Work out;
  if (depth > 16) return out;
  if (instr.op == Op::WHILE) {
    for (hlo::CompId c : instr.called) out += work_of_computation(m, c, depth + 1);
    const double trips = trips_of(instr);
    return {out.flops * trips, out.bytes * trips};
  }
  for (hlo::CompId c : instr.called) {
    const Work branch = work_of_computation(m, c, depth + 1);
    out.flops = std::max(out.flops, branch.flops);
    out.bytes = std::max(out.bytes, branch.bytes);
  }
  return out;
}

Work work_of(const Module& m, const Instruction& instr, int depth) {
  if (hlo::is_transparent(instr) || instr.op == Op::PARAMETER || instr.op == Op::CONSTANT) return {};
  if (instr.op == Op::WHILE || instr.op == Op::CONDITIONAL || instr.op == Op::CALL)
    return control_flow(m, instr, depth);
  Work out;
  out.flops = flops_of(m, instr, depth);
  const auto result = static_cast<double>(instr.shape.byte_size());
  out.bytes = result;
  switch (instr.op) {
    case Op::RESHAPE:
    case Op::BITCAST:
      return {0, 0};
    case Op::SLICE:
    case Op::DYNAMIC_SLICE:
    case Op::GATHER:
      out.bytes += result;  // reads as many bytes as it writes
      return out;
    case Op::DYNAMIC_UPDATE_SLICE:
      out.bytes = 2 * static_cast<double>(m[instr.operand(1)].shape.byte_size());
      return out;
    default:
      for (InstrId o : instr.operands) out.bytes += static_cast<double>(m[o].shape.byte_size());
      return out;
  }
}

Work work_of_computation(const Module& m, hlo::CompId c, int depth) {
  Work out;
  for (InstrId id : m[c].order) out += work_of(m, m[id], depth);
  return out;
}

double arithmetic_of(const Module& m, hlo::CompId c, int depth) {
  constexpr int kDeepest = 64;
  double flops = 0;
  if (depth > kDeepest) return flops;
  for (InstrId id : m[c].order) {
    const Instruction& instr = m[id];
    double most = 0, all = 0;
    switch (instr.op) {
      case Op::WHILE:
      case Op::CALL:
      case Op::FUSION:
      case Op::CONDITIONAL:
        for (hlo::CompId called : instr.called) {
          const double one = arithmetic_of(m, called, depth + 1);
          all += one;
          most = std::max(most, one);
        }
        flops += instr.op == Op::CONDITIONAL ? most : instr.op == Op::WHILE ? all * trips_of(instr) : all;
        break;
      default:
        flops += hlo::flops_of(m, instr);
    }
  }
  return flops;
}

}  // namespace

Speed speed_of(const DeviceFacts& facts, const Speed& otherwise) {
  Speed s = otherwise;
  if (facts.memory_bytes_per_ns > 0) s.bytes_per_ns = facts.memory_bytes_per_ns;
  if (facts.flops_per_ns > 0) s.flops_per_ns = facts.flops_per_ns;
  s.launch_ns = facts.launch_ns;
  return s;
}

double trips_of(const Instruction& instr) {
  const int64_t plus_one = instr.as<hlo::WhileAttrs>().trip_count_plus_one;
  return plus_one > 0 ? static_cast<double>(plus_one - 1) : kUnknownTrips;
}

Work work_of(const Module& module, const Instruction& instr) {
  return work_of(module, instr, 0);
}

double arithmetic_of(const Module& module) {
  return arithmetic_of(module, module.entry(), 0);
}

double time_ns(const Work& work, const Speed& speed) {
  return std::max(work.flops / speed.flops_per_ns, work.bytes / speed.bytes_per_ns);
}

uint64_t leaf_bytes(const Module& module, hlo::Leaf leaf) {
  const hlo::Shape& shape = hlo::leaf_shape(module[leaf.instr].shape, leaf.index);
  return shape.is_array() ? static_cast<uint64_t>(shape.byte_size()) : 0;
}

}  // namespace collet::runtime
