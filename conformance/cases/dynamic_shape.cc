// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

// Sums a part of a row: set-dimension-size limits the elements that count.
void add_bounded_sum(CaseList& list, double size) {
  Text text;
  const std::string combine = text.combiner("add", Type::F32);
  const Shape whole = Shape::array(Type::F32, {3, 17});
  const int64_t dims[] = {3, 17};
  const Shape bounded = Shape::array(Type::F32, dims, {false, true});
  const std::string x = text.parameter(whole), n = text.parameter(Shape::scalar(Type::S32)),
                    zero = text.parameter(Shape::scalar(Type::F32));
  const std::string cut = text.line(bounded, fmt::format("set-dimension-size({}, {}), dimensions={{1}}", x, n));
  list.add({fmt::format("set-dimension-size/f32/3x17_to_{}/unit", size),
            Op::SET_DIMENSION_SIZE,
            Type::F32,
            text.root(Shape::array(Type::F32, {3}),
                      fmt::format("reduce({}, {}), dimensions={{1}}, to_apply={}", cut, zero, combine)),
            {{}, {.values = Values::Fixed, .fixed = {size}}, {.values = Values::Fixed, .fixed = {0}}},
            sum_bound(Type::F32, 18, false)});
}

void add_size(CaseList& list) {
  Text text;
  const Shape scalar = Shape::scalar(Type::S32);
  const std::string x = text.parameter(Shape::array(Type::F32, {3, 17})), y = text.parameter(scalar);
  const std::string n = text.line(scalar, fmt::format("get-dimension-size({}), dimensions={{1}}", x));
  list.add({"get-dimension-size/f32/3x17/unit",
            Op::GET_DIMENSION_SIZE,
            Type::F32,
            text.root(scalar, fmt::format("add({}, {})", n, y)),
            {{}, {.low = -9, .high = 9}},
            {}});
}

}  // namespace

void add_dynamic_shape_cases(CaseList& list) {
  for (const double size : {0.0, 1.0, 9.0, 17.0}) add_bounded_sum(list, size);
  add_size(list);
}

}  // namespace collet::conformance
