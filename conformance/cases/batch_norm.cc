// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

struct Row {
  Dims dims;
  int64_t feature;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {{{4, 5}, 1},  {{2, 3, 4, 5}, 3}, {{2, 3, 4, 5}, 1},
                                         {{17, 3}, 0}, {{65}, 0},         {{2, 7, 1}, 2}};
  return kRows;
}

Bound norm_bound() {
  return {.kind = Bound::Kind::Scaled, .ulps = 64};
}

std::string attributes(const Row& row, double epsilon) {
  return fmt::format("epsilon={}, feature_index={}", epsilon, row.feature);
}

void add(CaseList& list, Op op, const Row& row, Type type, double epsilon) {
  Text text;
  const Shape whole = Shape::array(type, row.dims),
              one_each = Shape::array(type, {row.dims[static_cast<size_t>(row.feature)]});
  const std::string_view name = hlo::op_info(op).text;
  Case one{fmt::format("{}/{}/{}_by_{}_eps_{}/unit", name, type_name(type), dims_name(row.dims), row.feature, epsilon),
           op,
           type,
           "",
           {},
           norm_bound()};
  const InputSpec data{.low = -2, .high = 3}, positive{.low = 0.5, .high = 2};
  Shape result = whole;
  std::string operands = text.parameter(whole) + ", " + text.parameter(one_each) + ", " + text.parameter(one_each);
  if (op == Op::BATCH_NORM_TRAINING) {
    one.inputs = {data, positive, {}};
    result = Shape::tuple({whole, one_each, one_each});
  } else {
    operands += ", " + text.parameter(one_each) + ", " + text.parameter(op == Op::BATCH_NORM_GRAD ? whole : one_each);
    // operand, scale, offset, mean, variance; or operand, scale, mean, variance, gradient
    if (op == Op::BATCH_NORM_GRAD) {
      one.inputs = {data, positive, {}, positive, {}};
      result = Shape::tuple({whole, one_each, one_each});
    } else {
      one.inputs = {data, positive, {}, {}, positive};
    }
  }
  one.text = text.root(result, fmt::format("{}({}), {}", name, operands, attributes(row, epsilon)));
  list.add(std::move(one));
}

}  // namespace

void add_batch_norm_cases(CaseList& list) {
  for (const Op op : {Op::BATCH_NORM_TRAINING, Op::BATCH_NORM_INFERENCE, Op::BATCH_NORM_GRAD}) {
    for (const Row& row : rows()) {
      for (const Type type : {Type::F32, Type::F64}) {
        add(list, op, row, type, 0.001);
        add(list, op, row, type, 0.25);
      }
    }
  }
}

}  // namespace collet::conformance
