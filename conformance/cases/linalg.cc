// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

// The matrices are well conditioned, so the error of a stable method is about n ULP of the largest element.
Bound factor_bound(int64_t n) {
  return {.kind = Bound::Kind::Scaled, .ulps = 16.0 + 4 * static_cast<double>(n)};
}

void add_cholesky(CaseList& list, const Dims& dims, Type type, bool lower) {
  Text text;
  const Shape shape = Shape::array(type, dims);
  const std::string x = text.parameter(shape);
  Case one{fmt::format("cholesky/{}/{}_{}/unit", type_name(type), dims_name(dims), lower ? "lower" : "upper"),
           Op::CHOLESKY,
           type,
           "",
           {{.definite = true}},
           factor_bound(dims.back())};
  // Only one triangle is specified; the other one is set to zero before the comparison.
  one.bound.triangle = lower ? -1 : 1;
  one.text = text.root(shape, fmt::format("cholesky({}), lower={}", x, lower));
  list.add(std::move(one));
}

struct Solve {
  bool left, lower, unit;
  const char* transpose;
};

void add_solve(CaseList& list, const Dims& a, const Dims& b, Type type, const Solve& solve) {
  Text text;
  const Shape matrix = Shape::array(type, a), right = Shape::array(type, b);
  const std::string x = text.parameter(matrix), y = text.parameter(right);
  Case one{fmt::format("triangular-solve/{}/{}_{}_{}_{}_{}_{}/unit", type_name(type), dims_name(a), dims_name(b),
                       solve.left ? "left" : "right", solve.lower ? "lower" : "upper", solve.transpose,
                       solve.unit ? "unit_diagonal" : "diagonal"),
           Op::TRIANGULAR_SOLVE,
           type,
           "",
           {{.definite = true}, {}},
           factor_bound(a.back())};
  one.text =
      text.root(right, fmt::format("triangular-solve({}, {}), left_side={}, lower={}, unit_diagonal={}, transpose_a={}",
                                   x, y, solve.left, solve.lower, solve.unit, solve.transpose));
  list.add(std::move(one));
}

}  // namespace

void add_linalg_cases(CaseList& list) {
  for (const Type type : {Type::F32, Type::F64, Type::C64}) {
    for (const Dims& dims : {Dims{1, 1}, Dims{4, 4}, Dims{17, 17}, Dims{3, 5, 5}, Dims{0, 0}, Dims{0, 3, 3}}) {
      for (const bool lower : {true, false}) add_cholesky(list, dims, type, lower);
    }
    for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
      for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const Solve solve{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, transpose};
        add_solve(list, {5, 5}, solve.left ? Dims{5, 3} : Dims{3, 5}, type, solve);
        add_solve(list, {2, 9, 9}, solve.left ? Dims{2, 9, 4} : Dims{2, 4, 9}, type, solve);
      }
    }
  }
}

}  // namespace collet::conformance
