// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/cost.h"

#include <algorithm>

#include "hlo/ops/flops.h"

namespace collet::runtime {
namespace {

using hlo::InstrId;
using hlo::Instruction;
using hlo::Module;
using hlo::Op;

Work work_of_computation(const Module& m, hlo::CompId c, int depth);

double contracted(const Module& m, const Instruction& instr) {
  const hlo::Shape& lhs = m[instr.operand(0)].shape;
  const hlo::Dims dims = instr.op == Op::RAGGED_DOT ? instr.as<hlo::RaggedDotAttrs>().lhs_contracting
                                                    : instr.as<hlo::DotAttrs>().lhs_contracting;
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(lhs.dim(static_cast<int>(d)));
  return n;
}

uint32_t kind_of(const Instruction& instr) {
  if (instr.op == Op::DOT || instr.op == Op::SCALED_DOT || instr.op == Op::RAGGED_DOT || instr.op == Op::CONVOLUTION)
    return COLLET_PEAK_PRODUCT;
  return op_info(instr.op).op_class == hlo::OpClass::MATH ? COLLET_PEAK_FUNCTION : COLLET_PEAK_ARITHMETIC;
}

// The operations of an op that calls no program.
double operations_of(const Module& m, const Instruction& instr) {
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
    default:
      return kind_of(instr) == COLLET_PEAK_FUNCTION ? kFlopsOfFunction * out : out;
  }
}

uint32_t type_of(const Module& m, const Instruction& instr) {
  const hlo::Shape& shape = instr.operands.empty() ? instr.shape : m[instr.operand(0)].shape;
  return static_cast<uint32_t>(shape.is_array() ? shape.type() : hlo::Type::Invalid);
}

Work control_flow(const Module& m, const Instruction& instr, int depth) {
  Work out;
  if (depth > 16) return out;
  if (instr.op == Op::WHILE) {
    for (hlo::CompId c : instr.called) out += work_of_computation(m, c, depth + 1);
    const double trips = trips_of(instr);
    for (Work::Part& part : out.parts) part.flops *= trips;
    out.bytes *= trips;
    return out;
  }
  for (hlo::CompId c : instr.called) {
    Work branch = work_of_computation(m, c, depth + 1);
    const double bytes = std::max(out.bytes, branch.bytes);
    if (branch.flops() > out.flops()) out.parts = std::move(branch.parts);
    out.bytes = bytes;
  }
  return out;
}

Work work_of(const Module& m, const Instruction& instr, int depth) {
  if (hlo::is_transparent(instr) || instr.op == Op::PARAMETER || instr.op == Op::CONSTANT) return {};
  if (instr.op == Op::WHILE || instr.op == Op::CONDITIONAL || instr.op == Op::CALL)
    return control_flow(m, instr, depth);
  Work out;
  if (instr.op == Op::FUSION && depth <= 16 && !instr.called.empty())
    out.parts = work_of_computation(m, instr.called[0], depth + 1).parts;
  else
    out.add({kind_of(instr), type_of(m, instr), operations_of(m, instr)});
  const auto result = static_cast<double>(instr.shape.byte_size());
  out.bytes = result;
  switch (instr.op) {
    case Op::RESHAPE:
    case Op::BITCAST:
      return {};
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
  s.peaks = facts.peaks;
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

double Work::flops() const {
  double all = 0;
  for (const Part& part : parts) all += part.flops;
  return all;
}

void Work::add(const Part& part) {
  for (Part& known : parts) {
    if (known.work != part.work || known.type != part.type) continue;
    known.flops += part.flops;
    return;
  }
  parts.push_back(part);
}

Work& Work::operator+=(const Work& o) {
  for (const Part& part : o.parts) add(part);
  bytes += o.bytes;
  return *this;
}

double time_ns(const Work& work, const Speed& speed) {
  double computing = 0;
  for (const Work::Part& part : work.parts) {
    const auto known = std::find_if(speed.peaks.begin(), speed.peaks.end(), [&](const collet_peak& one) {
      return one.work == part.work && one.type == part.type;
    });
    const double unit = part.work == COLLET_PEAK_FUNCTION ? kFlopsOfFunction : 1;
    computing += known != speed.peaks.end() ? part.flops / unit / known->per_ns : part.flops / speed.flops_per_ns;
  }
  return std::max(computing, work.bytes / speed.bytes_per_ns);
}

uint64_t leaf_bytes(const Module& module, hlo::Leaf leaf) {
  const hlo::Shape& shape = hlo::leaf_shape(module[leaf.instr].shape, leaf.index);
  return shape.is_array() ? static_cast<uint64_t>(shape.byte_size()) : 0;
}

}  // namespace collet::runtime
