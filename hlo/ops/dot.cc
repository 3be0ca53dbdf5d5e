// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// The dimension numbers of dot, ragged-dot or scaled-dot.
struct DotDims {
  const Dims& lhs_batch;
  const Dims& lhs_contracting;
  const Dims& rhs_batch;
  const Dims& rhs_contracting;
};

template <typename Attrs>
DotDims dims_of(const Attrs& a) {
  return {a.lhs_batch, a.lhs_contracting, a.rhs_batch, a.rhs_contracting};
}

Status check_side(Op op, std::string_view side, const Shape& shape, const Dims& batch, const Dims& contracting,
                  std::string_view batch_label, std::string_view contracting_label, std::string_view unique_label) {
  if (first_outside(batch, shape.rank()) >= 0)
    return broken(op, batch_label, side, " batch dimensions ", batch, " do not lie in ", shape);
  if (first_outside(contracting, shape.rank()) >= 0)
    return broken(op, contracting_label, side, " contracting dimensions ", contracting, " do not lie in ", shape);
  std::vector<int64_t> all(batch.begin(), batch.end());
  all.insert(all.end(), contracting.begin(), contracting.end());
  if (has_repeats(all))
    return broken(op, unique_label, side, " batch dimensions ", batch, " and contracting dimensions ", contracting,
                  " name one twice");
  return ok_status();
}

Status check_pairs(Op op, std::string_view label, std::string_view what, const Shape& lhs, const Dims& l,
                   const Shape& rhs, const Dims& r) {
  for (size_t i = 0; i < l.size(); ++i) {
    const int64_t a = lhs.dim(static_cast<int>(l[i])), b = rhs.dim(static_cast<int>(r[i]));
    if (!sizes_agree(a, b))
      return broken(op, label, what, " sizes differ: lhs dim ", l[i], " is ", Size{a}, ", rhs dim ", r[i], " is ",
                    Size{b});
  }
  return ok_status();
}

Status check_dims(const InferInput& in, const DotDims& d) {
  const Shape& lhs = in.operand(0);
  const Shape& rhs = in.operand(1);
  COLLET_TRY(expect_array(in, 0, "lhs"));
  COLLET_TRY(expect_array(in, 1, "rhs"));
  COLLET_TRY(check_side(in.op, "lhs", lhs, d.lhs_batch, d.lhs_contracting, "C5", "C6", "C3"));
  COLLET_TRY(check_side(in.op, "rhs", rhs, d.rhs_batch, d.rhs_contracting, "C7", "C8", "C4"));
  if (d.lhs_batch.size() != d.rhs_batch.size())
    return broken(in.op, "C1", "lhs has ", d.lhs_batch.size(), " batch dimensions, rhs has ", d.rhs_batch.size());
  if (d.lhs_contracting.size() != d.rhs_contracting.size())
    return broken(in.op, "C2", "lhs has ", d.lhs_contracting.size(), " contracting dimensions, rhs has ",
                  d.rhs_contracting.size());
  COLLET_TRY(check_pairs(in.op, "C9", "batch", lhs, d.lhs_batch, rhs, d.rhs_batch));
  return check_pairs(in.op, "C10", "contracting", lhs, d.lhs_contracting, rhs, d.rhs_contracting);
}

void push_result(const InferInput& in, const DotDims& d, const Dims& rhs_group, DimList& dims) {
  const Shape& lhs = in.operand(0);
  const Shape& rhs = in.operand(1);
  for (int64_t i : d.lhs_batch) dims.push(lhs, i);
  for (int64_t i = 0; i < lhs.rank(); ++i)
    if (!contains(d.lhs_batch, i) && !contains(d.lhs_contracting, i)) dims.push(lhs, i);
  for (int64_t i = 0; i < rhs.rank(); ++i)
    if (!contains(d.rhs_batch, i) && !contains(d.rhs_contracting, i) && !contains(rhs_group, i)) dims.push(rhs, i);
}

// Returns the type of the result. The text may declare another type than the operands have: sums of s8 in s32, of bf16
// in f32.
Type result_type(const InferInput& in) {
  if (in.declared && in.declared->is_array()) return in.declared->type();
  return wider_type(in.operand(0).type(), in.operand(1).type());
}

// Returns the leading dimensions that group_sizes must have if it has more than one dimension.
std::vector<int64_t> group_prefix(const Shape& lhs, const DotDims& d, int64_t ragged) {
  std::vector<int64_t> prefix;
  const auto take = [&](std::span<const int64_t> numbers) {
    for (int64_t i : numbers) {
      if (i == ragged) return;
      prefix.push_back(lhs.dim(static_cast<int>(i)));
    }
  };
  take(d.lhs_batch);
  if (contains(d.lhs_batch, ragged)) return prefix;
  if (contains(d.lhs_contracting, ragged)) {
    take(d.lhs_contracting);
    return prefix;
  }
  std::vector<int64_t> free;
  for (int64_t i = 0; i < lhs.rank(); ++i)
    if (!contains(d.lhs_batch, i) && !contains(d.lhs_contracting, i)) free.push_back(i);
  take(free);
  return prefix;
}

Status check_group_sizes(const InferInput& in, const DotDims& d, int64_t ragged) {
  const Shape& sizes = in.operand(2);
  COLLET_TRY(expect_array(in, 2, "group_sizes"));
  if (sizes.rank() == 1) return ok_status();
  const std::vector<int64_t> prefix = group_prefix(in.operand(0), d, ragged);
  if (static_cast<size_t>(sizes.rank()) != prefix.size() + 1)
    return broken(in.op, "", "group_sizes must have rank 1 or ", prefix.size() + 1, ", but is ", sizes);
  for (size_t i = 0; i < prefix.size(); ++i)
    if (!sizes_agree(prefix[i], sizes.dim(static_cast<int>(i))))
      return broken(in.op, "", "dimension ", i, " of group_sizes ", sizes, " must be ", Size{prefix[i]});
  return ok_status();
}

Expected<Shape> infer_ragged(const InferInput& in) {
  const auto& a = in.as<RaggedDotAttrs>();
  const DotDims d = dims_of(a);
  const Shape& lhs = in.operand(0);
  const Shape& rhs = in.operand(1);
  COLLET_TRY(check_dims(in, d));
  if (a.lhs_ragged.size() != 1)
    return broken(in.op, "", "lhs must have one ragged dimension, but has ", a.lhs_ragged.size());
  const int64_t ragged = a.lhs_ragged[0];
  if (ragged < 0 || ragged >= lhs.rank())
    return broken(in.op, "", "ragged dimension ", ragged, " lies outside of ", lhs);
  COLLET_TRY(check_group_sizes(in, d, ragged));
  if (first_outside(a.rhs_group, rhs.rank()) >= 0)
    return broken(in.op, "", "rhs group dimensions ", a.rhs_group, " do not lie in ", rhs);
  for (int64_t g : a.rhs_group)
    if (contains(d.rhs_batch, g) || contains(d.rhs_contracting, g))
      return broken(in.op, "", "rhs group dimension ", g, " is a batch or contracting dimension");
  const Shape& groups = in.operand(2);
  const int last = groups.rank() - 1;
  const bool contracting = contains(d.lhs_contracting, ragged);
  if (contracting || contains(d.lhs_batch, ragged)) {
    if (!a.rhs_group.empty())
      return broken(in.op, "", "rhs has no group dimension where the ragged one is a batch or contracting dimension");
  } else {
    if (a.rhs_group.size() != 1)
      return broken(in.op, "", "rhs must have one group dimension, but has ", a.rhs_group.size());
    const int64_t size = rhs.dim(static_cast<int>(a.rhs_group[0]));
    if (!sizes_agree(size, groups.dim(last)))
      return broken(in.op, "", "rhs group dimension is ", Size{size}, ", but there are ", Size{groups.dim(last)},
                    " groups");
  }
  DimList dims;
  if (contracting) dims.push(groups, last);
  push_result(in, d, a.rhs_group, dims);
  return dims.shape(result_type(in));
}

// True for the placeholder that stands for an operand without a scale.
bool no_scale(const Shape& operand, const Shape& scale) {
  const auto is_one = [](int64_t size) { return size == 1; };
  return operand.type() == Type::BF16 && scale.type() == Type::BF16 &&
         std::all_of(scale.dims().begin(), scale.dims().end(), is_one) &&
         !std::all_of(operand.dims().begin(), operand.dims().end(), is_one);
}

Status check_scale(const InferInput& in, size_t operand_index, size_t contracting_count) {
  const Shape& operand = in.operand(operand_index);
  const Shape& scale = in.operand(operand_index + 2);
  COLLET_TRY(expect_array(in, operand_index + 2, "the scale"));
  if (no_scale(operand, scale)) return ok_status();
  if (scale.rank() != operand.rank())
    return broken(in.op, "", "scale ", scale, " must have the rank of its operand ", operand);
  if (contracting_count != 1)
    return broken(in.op, "", "there must be one contracting dimension, but there are ", contracting_count);
  for (int i = 0; i < operand.rank(); ++i) {
    const int64_t size = operand.dim(i), part = scale.dim(i);
    if (size == kUnbounded || part == kUnbounded) continue;
    if (part <= 0 ? size != part : size % part != 0)
      return broken(in.op, "", "dimension ", i, " of ", operand, " is no multiple of that of its scale ", scale);
  }
  return ok_status();
}

Expected<Shape> infer_scaled(const InferInput& in) {
  const DotDims d = dims_of(in.as<DotAttrs>());
  COLLET_TRY(check_dims(in, d));
  COLLET_TRY(check_scale(in, 0, d.lhs_contracting.size()));
  COLLET_TRY(check_scale(in, 1, d.rhs_contracting.size()));
  if (in.operand(2).is_scalar() && in.operand(3).is_scalar())
    return broken(in.op, "", "one of the scales must not be a scalar");
  DimList dims;
  push_result(in, d, {}, dims);
  return dims.shape(result_type(in));
}

}  // namespace

Expected<Shape> infer_dot(const InferInput& in) {
  if (in.op == Op::RAGGED_DOT) return infer_ragged(in);
  if (in.op == Op::SCALED_DOT) return infer_scaled(in);
  const DotDims d = dims_of(in.as<DotAttrs>());
  COLLET_TRY(check_dims(in, d));
  DimList dims;
  push_result(in, d, {}, dims);
  return dims.shape(result_type(in));
}

Status verify_dot(const Module&, const Instruction& instr) {
  const Dims& precision =
      instr.op == Op::RAGGED_DOT ? instr.as<RaggedDotAttrs>().precision : instr.as<DotAttrs>().precision;
  if (first_outside(precision, static_cast<int64_t>(Precision::HIGHEST) + 1) >= 0)
    return broken(instr.op, "", "no such precision: ", precision);
  return ok_status();
}

}  // namespace collet::hlo
