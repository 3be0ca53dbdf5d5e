// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

struct Role {
  std::string_view name;
  std::string_view size_label;
};
// The operands after the first, which have one element per feature.
constexpr Role kTraining[] = {{"scale", "C3"}, {"offset", "C4"}};
constexpr Role kInference[] = {{"scale", "C3"}, {"offset", "C4"}, {"mean", "C5"}, {"variance", "C6"}};
constexpr Role kGrad[] = {{"scale", "C5"}, {"mean", "C4"}, {"variance", "C4"}};

std::span<const Role> roles_of(Op op) {
  if (op == Op::BATCH_NORM_TRAINING) return kTraining;
  if (op == Op::BATCH_NORM_INFERENCE) return kInference;
  return kGrad;
}

Status check_grad_output(const InferInput& in, const Shape& operand) {
  const Shape& gradient = in.operand(4);
  COLLET_TRY(expect_array(in, 4, "grad_output"));
  if (!types_agree(gradient.type(), operand.type()))
    return broken(in.op, "C2", "element types differ: operand is ", operand, ", grad_output is ", gradient);
  if (!dims_agree(gradient, operand))
    return broken(in.op, "C3", "shapes differ: operand is ", operand, ", grad_output is ", gradient);
  return ok_status();
}

}  // namespace

Expected<Shape> infer_batch_norm(const InferInput& in) {
  const Shape& operand = in.operand(0);
  const int64_t feature = in.as<BatchNormAttrs>().feature;
  if (feature < 0 || feature >= operand.rank())
    return broken(in.op, "C1", "feature_index ", feature, " lies outside of ", operand);
  const int64_t count = operand.dim(static_cast<int>(feature));
  const std::span<const Role> roles = roles_of(in.op);
  for (size_t i = 0; i < roles.size(); ++i) {
    const Shape& shape = in.operand(i + 1);
    COLLET_TRY(expect_array(in, i + 1, roles[i].name));
    if (shape.rank() != 1) return broken(in.op, "", roles[i].name, " must have rank 1, but is ", shape);
    if (!types_agree(shape.type(), operand.type()))
      return broken(in.op, "C2", "element types differ: operand is ", operand, ", ", roles[i].name, " is ", shape);
    if (!sizes_agree(shape.dim(0), count))
      return broken(in.op, roles[i].size_label, roles[i].name, " is ", shape, ", but there are ", Size{count},
                    " features");
  }
  if (in.op == Op::BATCH_NORM_INFERENCE) return operand.without_layout();
  if (in.op == Op::BATCH_NORM_GRAD) COLLET_TRY(check_grad_output(in, operand));
  DimList features;
  features.push(operand, feature);
  const Shape per_feature = features.shape(operand.type());
  return Shape::tuple({operand.without_layout(), per_feature, per_feature});
}

Status verify_batch_norm(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
