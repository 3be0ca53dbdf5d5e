// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exact_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/oracle/exact_sum.h"

namespace collet::conformance {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Module;
using hlo::Op;
using hlo::Shape;
using hlo::Type;

using Dims = std::vector<int64_t>;

// The steps between neighbours in each dimension of a row-major array.
Dims strides_of(const Shape& shape) {
  Dims strides(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int d = shape.rank(); d-- > 0;) {
    strides[static_cast<size_t>(d)] = step;
    step *= shape.dim(d);
  }
  return strides;
}

// A dimension of a loop: its size, and the step that it makes in each of two arrays.
struct Axis {
  int64_t size, left, right;
};

int64_t count_of(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// Where the two arrays are in turn `number` of the loops, the last axis turning fastest.
std::pair<int64_t, int64_t> places(const std::vector<Axis>& axes, int64_t number) {
  int64_t left = 0, right = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t at = number % axes[i].size;
    number /= axes[i].size;
    left += at * axes[i].left;
    right += at * axes[i].right;
  }
  return {left, right};
}

bool is_in(std::span<const int64_t> dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

bool is_real_float(const Shape& shape) {
  return shape.is_array() && hlo::is_float(shape.type());
}

std::vector<double> numbers(const Literal& literal) {
  std::vector<double> out(static_cast<size_t>(literal.element_count()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = literal.as_double(static_cast<int64_t>(i));
  return out;
}

// For each turn of `outer`, `start` and the sum of the products in all turns of `inner`.
Reference sum_up(const Shape& shape, const std::vector<Axis>& outer, const std::vector<Axis>& inner,
                 const std::vector<double>& a, const std::vector<double>& b, double start, bool has_start) {
  const Shape f64 = Shape::array(Type::F64, shape.dims());
  Reference out{.exact = Literal::zeros(f64), .magnitude = Literal::zeros(f64), .rest = Literal::zeros(f64)};
  const int64_t results = count_of(outer), terms = count_of(inner);
  std::vector<std::pair<int64_t, int64_t>> steps(static_cast<size_t>(terms));
  for (int64_t i = 0; i < terms; ++i) steps[static_cast<size_t>(i)] = places(inner, i);
  for (int64_t i = 0; i < results; ++i) {
    const auto [left, right] = places(outer, i);
    ExactSum sum;
    double magnitude = std::fabs(start);
    if (has_start) sum.add(start);
    for (const auto& [x, y] : steps) {
      const double p = a[static_cast<size_t>(left + x)], q = b[static_cast<size_t>(right + y)];
      sum.add_product(p, q);
      magnitude += std::fabs(p * q);
    }
    const ExactResult result = sum.result();
    out.exact.set_double(i, result.value);
    out.rest.set_double(i, result.rest);
    out.magnitude.set_double(i, magnitude);
  }
  return out;
}

Reference exact_dot(const Instruction& dot, const Literal& lhs, const Literal& rhs) {
  const auto& attrs = dot.as<hlo::DotAttrs>();
  const Dims left = strides_of(lhs.shape()), right = strides_of(rhs.shape());
  const auto at = [](const Dims& strides, int64_t d) { return strides[static_cast<size_t>(d)]; };
  std::vector<Axis> outer, inner;
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i)
    outer.push_back({lhs.shape().dim(static_cast<int>(attrs.lhs_batch[i])), at(left, attrs.lhs_batch[i]),
                     at(right, attrs.rhs_batch[i])});
  for (int d = 0; d < lhs.shape().rank(); ++d)
    if (!is_in(attrs.lhs_batch, d) && !is_in(attrs.lhs_contracting, d))
      outer.push_back({lhs.shape().dim(d), at(left, d), 0});
  for (int d = 0; d < rhs.shape().rank(); ++d)
    if (!is_in(attrs.rhs_batch, d) && !is_in(attrs.rhs_contracting, d))
      outer.push_back({rhs.shape().dim(d), 0, at(right, d)});
  for (size_t i = 0; i < attrs.lhs_contracting.size(); ++i)
    inner.push_back({lhs.shape().dim(static_cast<int>(attrs.lhs_contracting[i])), at(left, attrs.lhs_contracting[i]),
                     at(right, attrs.rhs_contracting[i])});
  return sum_up(dot.shape, outer, inner, numbers(lhs), numbers(rhs), 0, false);
}

Reference exact_reduce(const Instruction& reduce, const Literal& data, const Literal& start) {
  const auto& over = reduce.as<hlo::DimensionsAttrs>().dimensions;
  const Dims strides = strides_of(data.shape());
  std::vector<Axis> outer, inner;
  for (int d = 0; d < data.shape().rank(); ++d)
    (is_in(over, d) ? inner : outer).push_back({data.shape().dim(d), strides[static_cast<size_t>(d)], 0});
  return sum_up(reduce.shape, outer, inner, numbers(data), {1.0}, start.as_double(0), true);
}

// Whether a computation adds its two parameters.
bool adds(const Module& module, hlo::CompId id) {
  const hlo::Computation& body = module[id];
  const Instruction& root = module[body.root];
  return root.op == Op::ADD && body.parameters.size() == 2 && module[root.operand(0)].op == Op::PARAMETER &&
         module[root.operand(1)].op == Op::PARAMETER && root.operand(0) != root.operand(1);
}

}  // namespace

std::optional<Reference> exact_sums(const Module& module, std::span<const Literal> inputs) {
  const Instruction& root = module[module.entry_computation().root];
  if ((root.op != Op::DOT && root.op != Op::REDUCE) || !is_real_float(root.shape)) return std::nullopt;
  if (root.operands.size() != 2) return std::nullopt;
  std::vector<const Literal*> operands;
  for (const hlo::InstrId id : root.operands) {
    const Instruction& operand = module[id];
    if (operand.op != Op::PARAMETER || !is_real_float(operand.shape)) return std::nullopt;
    operands.push_back(&inputs[static_cast<size_t>(operand.as<hlo::ParameterAttrs>().number)]);
  }
  if (root.op == Op::DOT) return exact_dot(root, *operands[0], *operands[1]);
  // Over no dimension it is open whether the value to start with is added.
  if (root.as<hlo::DimensionsAttrs>().dimensions.empty() || !adds(module, root.called[0])) return std::nullopt;
  return exact_reduce(root, *operands[0], *operands[1]);
}

}  // namespace collet::conformance
