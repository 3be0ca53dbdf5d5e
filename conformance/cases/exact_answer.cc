// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exact_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/cases/indices.h"
#include "conformance/oracle/exact_sum.h"

namespace collet::conformance {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Module;
using hlo::Op;
using hlo::Shape;
using hlo::Type;

using Dims = Indices;

// One loop of a loop nest over two arrays: the number of its iterations, and its stride in each array, in elements.
struct Axis {
  int64_t size, left, right;
};

int64_t count_of(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// Returns the offsets into the two arrays in iteration `number` of the loop nest. The last axis is the innermost loop.
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

bool is_summed(const Shape& shape) {
  return shape.is_array() && (hlo::is_float(shape.type()) || hlo::is_complex(shape.type()));
}

// Real and imaginary parts of an array's elements. `im` is empty for types that are not complex.
struct Numbers {
  std::vector<double> re, im;
};
Numbers numbers(const Literal& literal) {
  Numbers out;
  const auto count = static_cast<size_t>(literal.element_count());
  out.re.resize(count);
  if (hlo::is_complex(literal.type())) out.im.resize(count);
  for (size_t i = 0; i < count; ++i) {
    out.re[i] = literal.as_double(static_cast<int64_t>(i));
    if (!out.im.empty()) out.im[i] = literal.imaginary(static_cast<int64_t>(i));
  }
  return out;
}

// Computes the elements of a result, each an exact sum of products, and for each the sum of the products' magnitudes.
class Sums {
 public:
  Sums(const Shape& shape, const Literal& a, const Literal& b)
      : a_(numbers(a)), b_(numbers(b)), is_complex_(hlo::is_complex(shape.type())) {
    const Shape wide = Shape::array(is_complex_ ? Type::C128 : Type::F64, shape.dims());
    out_ = {.exact = Literal::zeros(wide), .magnitude = Literal::zeros(wide), .rest = Literal::zeros(wide)};
  }

  void start(const Literal& value) {
    add(0, value.as_double(0), 1);
    if (is_complex_) add(1, value.imaginary(0), 1);
  }
  void add_product(int64_t left, int64_t right) {
    const auto i = static_cast<size_t>(left), j = static_cast<size_t>(right);
    add(0, a_.re[i], b_.re[j]);
    if (!is_complex_) return;
    add(0, a_.im[i], -b_.im[j]);
    add(1, a_.re[i], b_.im[j]);
    add(1, a_.im[i], b_.re[j]);
  }
  // Stores the sum of what was added since the last call as element `i`, and begins a new sum.
  void finish(int64_t i) {
    const ExactResult re = sums_[0].result(), im = sums_[1].result();
    out_.exact.set_double(i, re.value, im.value);
    out_.rest.set_double(i, re.rest, im.rest);
    out_.magnitude.set_double(i, magnitudes_[0], magnitudes_[1]);
    for (const size_t part : {0, 1}) {
      sums_[part] = ExactSum();
      magnitudes_[part] = 0;
    }
  }
  Reference take() { return std::move(out_); }

 private:
  void add(size_t part, double p, double q) {
    sums_[part].add_product(p, q);
    magnitudes_[part] += std::fabs(p * q);
  }

  Numbers a_, b_;
  bool is_complex_;
  std::array<ExactSum, 2> sums_;
  std::array<double, 2> magnitudes_{};
  Reference out_;
};

// The same for integers, whose sums wrap around.
class IntegerSums {
 public:
  IntegerSums(const Shape& shape, const Literal& a, const Literal& b) : a_(a), b_(b), out_(Literal::zeros(shape)) {}
  void start(const Literal& value) { sum_ = static_cast<uint64_t>(value.as_int(0)); }
  void add_product(int64_t left, int64_t right) {
    sum_ += static_cast<uint64_t>(a_.as_int(left)) * static_cast<uint64_t>(b_.as_int(right));
  }
  void finish(int64_t i) { out_.set_int(i, static_cast<int64_t>(std::exchange(sum_, 0))); }
  Literal take() { return std::move(out_); }

 private:
  const Literal &a_, &b_;
  Literal out_;
  uint64_t sum_ = 0;
};

// Computes one element per iteration of `outer`: the sum of the products over all iterations of `inner`, plus `start` unless
// it is null.
template <typename Sums>
void sum_up(const std::vector<Axis>& outer, const std::vector<Axis>& inner, const Literal* start, Sums& sums) {
  const int64_t results = count_of(outer), terms = count_of(inner);
  std::vector<std::pair<int64_t, int64_t>> steps(static_cast<size_t>(terms));
  for (int64_t i = 0; i < terms; ++i) steps[static_cast<size_t>(i)] = places(inner, i);
  for (int64_t i = 0; i < results; ++i) {
    const auto [left, right] = places(outer, i);
    if (start != nullptr) sums.start(*start);
    for (const auto& [x, y] : steps) sums.add_product(left + x, right + y);
    sums.finish(i);
  }
}

template <typename Sums>
void sum_dot(const Instruction& dot, const Literal& lhs, const Literal& rhs, Sums& sums) {
  const auto& attrs = dot.as<hlo::DotAttrs>();
  const Dims left = strides_of(lhs.shape()), right = strides_of(rhs.shape());
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
  sum_up(outer, inner, nullptr, sums);
}

void sum_reduce(const Instruction& reduce, const Literal& data, const Literal& start, Sums& sums) {
  const auto& over = reduce.as<hlo::DimensionsAttrs>().dimensions;
  const Dims strides = strides_of(data.shape());
  std::vector<Axis> outer, inner;
  for (int d = 0; d < data.shape().rank(); ++d)
    (is_in(over, d) ? inner : outer).push_back({data.shape().dim(d), strides[static_cast<size_t>(d)], 0});
  sum_up(outer, inner, &start, sums);
}

void sum_windows(const Instruction& op, const Literal& data, const Literal& start, Sums& sums) {
  const hlo::Window& window = op.as<hlo::WindowAttrs>().window;
  const Dims strides = strides_of(data.shape()), results = sizes_of(op.shape),
             taps(window.size.begin(), window.size.end());
  Dims place(results.size());
  for (int64_t i = 0; i < op.shape.element_count(); ++i, advance(place, results)) {
    sums.start(start);
    Dims tap(taps.size());
    bool more = !is_empty(taps);
    while (more) {
      int64_t from = 0;
      for (size_t d = 0; d < taps.size() && from >= 0; ++d) {
        const int64_t element = element_seen(window, d, place[d], tap[d], data.shape().dim(static_cast<int>(d)));
        from = element < 0 ? -1 : from + element * strides[d];
      }
      if (from >= 0) sums.add_product(from, 0);
      more = advance(tap, taps);
    }
    sums.finish(i);
  }
}

// Output feature o depends on the input features of its feature group only, or on the batches of its batch group only.
template <typename Sums>
void sum_convolution(const Instruction& op, const Literal& lhs, const Literal& rhs, Sums& sums) {
  const auto& attrs = op.as<hlo::ConvolutionAttrs>();
  const hlo::DimLabels& dims = attrs.labels;
  const hlo::Window& window = attrs.window;
  const Dims left = strides_of(lhs.shape()), right = strides_of(rhs.shape()), out = sizes_of(op.shape);
  const auto size = [](const Literal& array, int64_t d) { return array.shape().dim(static_cast<int>(d)); };
  const int64_t depth = size(rhs, dims.kernel_input_feature), outputs = size(rhs, dims.kernel_output_feature),
                batches = at(out, dims.output_batch), groups = std::max<int64_t>(attrs.feature_groups, 1),
                batch_groups = std::max<int64_t>(attrs.batch_groups, 1);
  const size_t rank = dims.input_spatial.size();
  Dims taps(rank);
  for (size_t d = 0; d < rank; ++d) taps[d] = size(rhs, dims.kernel_spatial[d]);
  Dims place(out.size());
  for (int64_t i = 0; i < op.shape.element_count(); ++i, advance(place, out)) {
    const int64_t o = at(place, dims.output_feature), group = o / (outputs / groups),
                  batch_group = o / (outputs / batch_groups);
    const int64_t from = (at(place, dims.output_batch) + batch_group * batches) * at(left, dims.input_batch) +
                         group * depth * at(left, dims.input_feature);
    Dims tap(rank);
    bool more = !is_empty(taps);
    while (more) {
      int64_t x = from, y = o * at(right, dims.kernel_output_feature);
      bool sees = true;
      for (size_t d = 0; d < rank && sees; ++d) {
        const int64_t element =
            element_seen(window, d, at(place, dims.output_spatial[d]), tap[d], size(lhs, dims.input_spatial[d]));
        sees = element >= 0;
        x += element * at(left, dims.input_spatial[d]);
        y += (window.reversed_at(d) ? taps[d] - 1 - tap[d] : tap[d]) * at(right, dims.kernel_spatial[d]);
      }
      for (int64_t k = 0; sees && k < depth; ++k)
        sums.add_product(x + k * at(left, dims.input_feature), y + k * at(right, dims.kernel_input_feature));
      more = advance(tap, taps);
    }
    sums.finish(i);
  }
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
  if (root.operands.size() != 2 || !is_summed(root.shape)) return std::nullopt;
  std::vector<const Literal*> operands;
  for (const hlo::InstrId id : root.operands) {
    const Instruction& operand = module[id];
    if (operand.op != Op::PARAMETER || !is_summed(operand.shape)) return std::nullopt;
    if (hlo::is_complex(operand.shape.type()) != hlo::is_complex(root.shape.type())) return std::nullopt;
    operands.push_back(&inputs[static_cast<size_t>(operand.as<hlo::ParameterAttrs>().number)]);
  }
  const Literal &first = *operands[0], &second = *operands[1];
  if (root.op == Op::DOT || root.op == Op::CONVOLUTION) {
    Sums sums(root.shape, first, second);
    root.op == Op::DOT ? sum_dot(root, first, second, sums) : sum_convolution(root, first, second, sums);
    return sums.take();
  }
  if ((root.op != Op::REDUCE && root.op != Op::REDUCE_WINDOW) || !adds(module, root.called[0])) return std::nullopt;
  // A reduction over no dimension may or may not add the init value, so its result is not determined.
  if (root.op == Op::REDUCE && root.as<hlo::DimensionsAttrs>().dimensions.empty()) return std::nullopt;
  // A sum is computed as a sum of products with the constant 1.
  Literal one = Literal::zeros(second.shape());
  one.set_double(0, 1);
  Sums sums(root.shape, first, one);
  root.op == Op::REDUCE ? sum_reduce(root, first, second, sums) : sum_windows(root, first, second, sums);
  return sums.take();
}

std::optional<Literal> integer_products(const Instruction& op, const Literal& lhs, const Literal& rhs) {
  const auto is_integer = [](const Shape& shape) { return shape.is_array() && hlo::is_integer(shape.type()); };
  if (!is_integer(op.shape) || !is_integer(lhs.shape()) || !is_integer(rhs.shape())) return std::nullopt;
  if (op.op != Op::DOT && op.op != Op::CONVOLUTION) return std::nullopt;
  IntegerSums sums(op.shape, lhs, rhs);
  op.op == Op::DOT ? sum_dot(op, lhs, rhs, sums) : sum_convolution(op, lhs, rhs, sums);
  return sums.take();
}

}  // namespace collet::conformance
