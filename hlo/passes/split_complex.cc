// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/expand/expand.h"

// Rewrites products and convolutions of complex numbers as one product or convolution of real numbers each, which devices compute
// with the speed of their matrix units. One operand, x, becomes [Re x, Im x] along the features that are summed. The other, y, becomes
//
//   [ Re y  Im y]
//   [-Im y  Re y]
//
// along the features that are summed and those of the result, which then are the real parts, followed by the imaginary ones.
// All four multiplications of parts are useful work. The parts of a group of features stay beside each other.

namespace collet::hlo {
namespace {

/// Fewer real multiplications than this do not pay for moving the operands and the result.
constexpr int64_t kLeastProducts = 1 << 14;
/// With fewer rows or columns, the operands of a product take longer to move than to multiply.
constexpr int64_t kLeastRows = 32;
/// With fewer numbers in each sum, the result of a product takes longer to move than to compute. Also the least number of filters.
constexpr int64_t kLeastDepth = 4;

int64_t at(std::span<const int64_t> dims, int64_t d) {
  return dims[static_cast<size_t>(d)];
}

/// Returns the dimensions after dimension d is split into [groups, features of a group].
Ints in_groups(std::span<const int64_t> dims, int64_t d, int64_t groups) {
  Ints out = to_ints(dims);
  out[static_cast<size_t>(d)] /= groups;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(d), groups);
  return out;
}

/// Concatenates x and y along dimension d, group by group: each of the `groups` groups of x is followed by the same group of y.
InstrId beside(Builder& b, InstrId x, InstrId y, int64_t d, int64_t groups) {
  if (groups == 1) return b.concatenate(std::array{x, y}, d);
  const Ints apart = in_groups(b.dims(x), d, groups);
  Ints dims = to_ints(b.dims(x));
  dims[static_cast<size_t>(d)] *= 2;
  const std::array halves{b.reshape(x, apart), b.reshape(y, apart)};
  return b.reshape(b.concatenate(halves, d + 1), dims);
}

/// Returns the complex numbers whose parts follow each other in each group along dimension d.
InstrId joined(Builder& b, InstrId parts, int64_t d, int64_t groups) {
  Ints dims = to_ints(b.dims(parts));
  dims[static_cast<size_t>(d)] /= 2;
  if (groups > 1) parts = b.reshape(parts, in_groups(b.dims(parts), d, groups));
  const int64_t along = groups > 1 ? d + 1 : d;
  const int64_t half = at(b.dims(parts), along) / 2;
  const auto part = [&](int64_t i) { return b.reshape(b.slice_dim(parts, along, i * half, (i + 1) * half), dims); };
  const InstrId re = part(0), im = part(1);
  return b.binary(Op::COMPLEX, re, im);
}

/// Returns the operand of which each part is multiplied once: [Re x, Im x] along dimension d.
InstrId plain_operand(Builder& b, InstrId x, int64_t d, int64_t groups) {
  const InstrId re = b.unary(Op::REAL, x), im = b.unary(Op::IMAG, x);
  return beside(b, re, im, d, groups);
}

/// Returns the operand of which each part is multiplied twice. Dimension `summed` has one group, and dimension `kept` has `groups`.
InstrId double_operand(Builder& b, InstrId y, int64_t summed, int64_t kept, int64_t groups) {
  const InstrId re = b.unary(Op::REAL, y), im = b.unary(Op::IMAG, y);
  const InstrId first = beside(b, re, im, kept, groups), second = beside(b, b.neg(im), re, kept, groups);
  return beside(b, first, second, summed, 1);
}

/// The dimensions of an operand of a dot that are neither summed nor of the batch, in order.
Ints kept_dims(std::span<const int64_t> dims, std::span<const int64_t> batch, std::span<const int64_t> summed) {
  Ints out;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (std::ranges::count(batch, d) + std::ranges::count(summed, d) == 0) out.push_back(d);
  return out;
}

InstrId split_dot(Builder& b, const Instruction& instr) {
  const auto& a = instr.as<DotAttrs>();
  const InstrId x = instr.operand(0), y = instr.operand(1);
  const Ints rows = kept_dims(b.dims(x), a.lhs_batch, a.lhs_contracting),
             columns = kept_dims(b.dims(y), a.rhs_batch, a.rhs_contracting);
  const int64_t batch = static_cast<int64_t>(a.lhs_batch.size()),
                first_column = batch + static_cast<int64_t>(rows.size());
  const int64_t sum_x = a.lhs_contracting[0], sum_y = a.rhs_contracting[0];
  const Type part = real_type(instr.shape.type());
  // The smaller operand is the one whose parts are needed twice.
  const bool doubles_y = b.shape(y).element_count() <= b.shape(x).element_count();
  const InstrId lhs = doubles_y ? plain_operand(b, x, sum_x, 1) : double_operand(b, x, sum_x, rows[0], 1);
  const InstrId rhs = doubles_y ? double_operand(b, y, sum_y, columns[0], 1) : plain_operand(b, y, sum_y, 1);
  return joined(b, b.dot(lhs, rhs, a, part), doubles_y ? first_column : batch, 1);
}

InstrId split_convolution(Builder& b, const Instruction& instr) {
  const auto& a = instr.as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  // The features of the filter's results are in groups of either kind.
  const int64_t groups = std::max(a.feature_groups, a.batch_groups);
  const InstrId input = plain_operand(b, instr.operand(0), l.input_feature, a.feature_groups);
  const InstrId filter = double_operand(b, instr.operand(1), l.kernel_input_feature, l.kernel_output_feature, groups);
  Ints dims = to_ints(instr.shape.dims());
  dims[static_cast<size_t>(l.output_feature)] *= 2;
  const InstrId product = b.op(Op::CONVOLUTION, Shape::array(real_type(instr.shape.type()), dims), {input, filter}, &a);
  return joined(b, product, l.output_feature, groups);
}

int64_t product_of(std::span<const int64_t> dims, std::span<const int64_t> chosen) {
  int64_t out = 1;
  for (int64_t d : chosen) out *= at(dims, d);
  return out;
}

bool wanted(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if ((instr.op != Op::DOT && instr.op != Op::CONVOLUTION) || !is_complex(instr.shape.type())) return false;
  if (instr.shape.has_dynamic() || instr.shape.element_count() == 0) return false;
  for (InstrId o : instr.operands) {
    const Shape& shape = module[o].shape;
    if (shape.type() != instr.shape.type() || shape.has_dynamic() || shape.element_count() == 0) return false;
  }
  const auto x = module[instr.operand(0)].shape.dims(), y = module[instr.operand(1)].shape.dims();
  int64_t depth = 0;
  if (instr.op == Op::DOT) {
    const auto& a = instr.as<DotAttrs>();
    if (product_of(x, kept_dims(x, a.lhs_batch, a.lhs_contracting)) < kLeastRows ||
        product_of(y, kept_dims(y, a.rhs_batch, a.rhs_contracting)) < kLeastRows)
      return false;
    depth = product_of(x, a.lhs_contracting);
  } else {
    const auto& a = instr.as<ConvolutionAttrs>();
    const DimLabels& l = a.labels;
    if (l.input_feature < 0 || l.kernel_input_feature < 0 || l.kernel_output_feature < 0 || l.output_feature < 0)
      return false;
    if (at(y, l.kernel_output_feature) / std::max(a.feature_groups, a.batch_groups) < kLeastDepth) return false;
    depth = at(y, l.kernel_input_feature) * product_of(a.window.size, counting(static_cast<int64_t>(a.window.rank())));
  }
  return depth >= kLeastDepth && 4 * instr.shape.element_count() * depth >= kLeastProducts;
}

}  // namespace

Expected<bool> split_complex(Module& module, PassContext&) {
  return rewrite_wanted(
      module, [&](InstrId id) { return wanted(module, id); },
      [](Builder& b, const Instruction& instr) {
        return instr.op == Op::DOT ? split_dot(b, instr) : split_convolution(b, instr);
      });
}

}  // namespace collet::hlo
