// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/flops.h"

#include <algorithm>
#include <cmath>

namespace collet::hlo {
namespace {

double elements(const Shape& shape) {
  return static_cast<double>(shape.is_array() ? shape.element_count() : 0);
}

// Returns the number of operations of one call of a scalar computation.
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

}  // namespace

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

}  // namespace collet::hlo
