// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

// Checks that the last two dimensions are a square matrix.
Status check_square(const InferInput& in, const Shape& a, std::string_view rank_label, std::string_view size_label) {
  if (a.rank() < 2) return broken(in.op, rank_label, "a must have rank 2 or more, but is ", a);
  if (!sizes_agree(a.dim(a.rank() - 2), a.dim(a.rank() - 1)))
    return broken(in.op, size_label, "the last two dimensions of a must be equal, but a is ", a);
  return ok_status();
}

}  // namespace

Expected<Shape> infer_linalg(const InferInput& in) {
  const Shape& a = in.operand(0);
  if (in.op == Op::CHOLESKY) {
    COLLET_TRY(check_square(in, a, "C2", "C3"));
    return a.without_layout();
  }
  const Shape& b = in.operand(1);
  const auto& attrs = in.as<TriangularSolveAttrs>();
  COLLET_TRY(expect_array(in, 1, "b"));
  if (a.type() != b.type()) return broken(in.op, "C1", "element types differ: a is ", a, ", b is ", b);
  COLLET_TRY(check_square(in, a, "C2", "C3"));
  if (a.rank() != b.rank()) return broken(in.op, "C2", "ranks differ: a is ", a, ", b is ", b);
  const int rank = a.rank();
  if (!sizes_agree(a.dim(rank - 1), b.dim(rank - (attrs.left_side ? 2 : 1))))
    return broken(in.op, "C3", "the shared dimensions of a and b differ: a is ", a, ", b is ", b);
  for (int i = 0; i + 2 < rank; ++i)
    if (!sizes_agree(a.dim(i), b.dim(i)))
      return broken(in.op, "C3", "batch dimension ", i, " differs: a is ", a, ", b is ", b);
  if (static_cast<uint32_t>(attrs.transpose_a) > static_cast<uint32_t>(Transpose::ADJOINT))
    return broken(in.op, "", "no such transpose_a: ", static_cast<int64_t>(attrs.transpose_a));
  return b.without_layout();
}

Status verify_linalg(const Module&, const Instruction&) {
  return ok_status();
}

}  // namespace collet::hlo
