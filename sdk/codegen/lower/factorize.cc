// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/factorize.h"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/base/factorization.h"
#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/lower/routines.h"

namespace collet::codegen {
namespace {

using Kind = LibraryFactorization::Kind;

std::optional<Kind> kind_of(const Graph& graph, const Node& node) {
  if (node.opcode == COLLET_OP_CHOLESKY) return Kind::kCholesky;
  if (node.opcode == COLLET_OP_TRIANGULAR_SOLVE) return Kind::kTriangularSolve;
  switch (factorization_of(graph.program, node.op)) {
    case Factorization::kLu:
      return Kind::kLu;
    case Factorization::kQr:
      return Kind::kQr;
    case Factorization::kReflectors:
      return Kind::kReflectors;
    case Factorization::kEigh:
      return Kind::kEigh;
    case Factorization::kSvd:
      return Kind::kSvd;
    default:
      return std::nullopt;
  }
}

/// Returns the kernel that writes to each element of `to` the expression that `compute` returns for its position.
template <class Compute>
KernelPlan kernel_of(const Graph& graph, ValueId to, const Compute& compute) {
  KernelPlan plan;
  for (const int64_t d : graph.type(to).dims) plan.kernel.loops.push_back({d});
  plan.kernel.outer = plan.kernel.loops.size();
  KernelBuilder builder(graph, plan.kernel, [](ValueId) { return true; });
  Position at;
  for (size_t d = 0; d < plan.kernel.loops.size(); ++d) at.at.push_back(loop_index(d));
  const ExprId x = compute(builder, at);
  plan.kernel.stores.push_back({builder.output(to), x, builder.linear(at, graph.type(to).dims), kNoExpr});
  plan.writes = {to};
  plan.buffers = builder.buffers();
  return plan;
}

}  // namespace

std::optional<LibraryFactorization> library_factorization(const Graph& graph, const Node& node) {
  const std::optional<Kind> kind = kind_of(graph, node);
  if (!kind || !has_factorization(graph, node)) return std::nullopt;
  LibraryFactorization f;
  f.kind = *kind;
  const size_t inputs = f.kind == Kind::kReflectors || f.kind == Kind::kTriangularSolve ? 2 : 1;
  const ValueId* const operands = node.operands.data() + (node.operands.size() - inputs);
  const ArrayType& a = graph.type(operands[0]);
  const size_t rank = a.dims.size();
  const int64_t m = a.dims[rank - 2], n = a.dims[rank - 1];
  f.type = a.element;
  for (size_t d = 0; d + 2 < rank; ++d) f.batches *= a.dims[d];
  f.rows = m;
  f.columns = n;
  switch (f.kind) {
    case Kind::kCholesky:
      // Read by columns, the array is the transpose of A, and the upper triangle of that is the lower one of A. The
      // factor U of U^H U = A^T is, read by rows, L = U^T, and L L^H = (U^H U)^T = A.
      f.lower = attributes<collet_cholesky_attrs>(graph, node).lower == 0;
      break;
    case Kind::kTriangularSolve: {
      // op(A) X = B is X^T op(A)^T = B^T, where op(A)^T is the same operation on A^T.
      const auto attrs = attributes<collet_triangular_solve_attrs>(graph, node);
      const Dims& b = graph.type(operands[1]).dims;
      f.rows = b[rank - 1];
      f.columns = b[rank - 2];
      f.left = attrs.left_side == 0;
      f.lower = attrs.lower == 0;
      f.unit_diagonal = attrs.unit_diagonal != 0;
      f.transposed = attrs.transpose_a != COLLET_TRANSPOSE_NONE;
      f.conjugated = attrs.transpose_a == COLLET_TRANSPOSE_ADJOINT;
      break;
    }
    case Kind::kReflectors:
      f.factors = graph.type(operands[1]).dims.back();
      break;
    case Kind::kEigh:
      // Read by columns, the array is the transpose, whose lower triangle is the upper one of A.
      f.lower = !reads_lower_triangle(graph.program, node.op);
      break;
    case Kind::kSvd: {
      f.vectors = node.results.size() == 3;
      f.full = f.vectors && m != n && graph.type(node.results[1]).dims.back() == m &&
               graph.type(node.results[2]).dims[rank - 2] == n;
      f.rows = m > n ? m : n;
      f.columns = m > n ? n : m;
      break;
    }
    case Kind::kLu:
    case Kind::kQr:
      break;
  }
  // The library counts elements of a matrix, rows and batches with 32 bits.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t largest = f.rows > f.columns ? f.rows : f.columns;
  const auto exceeds = [](int64_t x, int64_t y) { return x != 0 && y > kMost / x; };
  if (f.batches > kMost || largest > kMost || exceeds(largest, f.kind == Kind::kTriangularSolve ? 1 : largest) ||
      exceeds(f.rows, f.columns))
    return std::nullopt;
  return f;
}

KernelPlan matrix_kernel(const Graph& graph, ValueId from, const MatrixCopy& how, ValueId to) {
  const uint32_t type = graph.type(to).element;
  const uint32_t part = half_type(type);
  const size_t rank = graph.type(to).dims.size();
  KernelPlan plan = kernel_of(graph, to, [&](KernelBuilder& builder, const Position& at) {
    const auto number = [&](double x) {
      const ExprId real = builder.convert(builder.constant(COLLET_TYPE_F64, &x), part);
      return part == type ? real : builder.op(COLLET_OP_COMPLEX, type, {real, real});
    };
    Position source = at;
    if (how.transposes) {
      source[rank - 2] = at[rank - 1];
      source[rank - 1] = at[rank - 2];
    }
    ExprId x = builder.load(from, source, kNoExpr);
    if (how.conjugates && part != type) {
      const ExprId imaginary = builder.op(COLLET_OP_IMAG, part, {x});
      x = builder.op(COLLET_OP_COMPLEX, type,
                     {builder.op(COLLET_OP_REAL, part, {x}), builder.op(COLLET_OP_NEGATE, part, {imaginary})});
    }
    if (how.info != kNone) {
      Position matrix;
      matrix.at.assign(at.at.begin(), at.at.begin() + static_cast<std::ptrdiff_t>(graph.type(how.info).dims.size()));
      const ExprId failed = builder.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED,
                                       {builder.load(how.info, matrix, kNoExpr), builder.integer(COLLET_TYPE_S32, 0)},
                                       COLLET_DIRECTION_NE, COLLET_COMPARE_SIGNED);
      x = builder.op(COLLET_OP_SELECT, type, {failed, number(std::numeric_limits<double>::quiet_NaN()), x});
    }
    if (how.zeroes != 0) {
      const ExprId row = builder.index_value(at[rank - 2]), column = builder.index_value(at[rank - 1]);
      const ExprId is_outside =
          builder.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {row, column},
                     how.zeroes < 0 ? COLLET_DIRECTION_GT : COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED);
      x = builder.op(COLLET_OP_SELECT, type, {is_outside, number(0), x});
    }
    return x;
  });
  if (!how.transposes) plan.in_place = {{from, to}};
  return plan;
}

KernelPlan decrement_kernel(const Graph& graph, ValueId from, ValueId to) {
  KernelPlan plan = kernel_of(graph, to, [&](KernelBuilder& builder, const Position& at) {
    return builder.op(COLLET_OP_SUBTRACT, COLLET_TYPE_S32,
                      {builder.load(from, at, kNoExpr), builder.integer(COLLET_TYPE_S32, 1)});
  });
  plan.in_place = {{from, to}};
  return plan;
}

}  // namespace collet::codegen
