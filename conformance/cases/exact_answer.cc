// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/exact_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/cases/indices.h"
#include "conformance/cases/plain_answer.h"
#include "conformance/oracle/ball.h"
#include "conformance/oracle/exact_sum.h"

namespace collet::conformance {
namespace {

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

// Returns the size of a dimension, which may be less than its bound at run time.
int64_t size_in(const Literal& data, int d) {
  return data.dynamic_sizes().empty() ? data.shape().dim(d) : data.dynamic_sizes()[static_cast<size_t>(d)];
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

// Computes the elements of a result, each an exact sum of products, and for each the sum of the magnitudes of the products of finite
// numbers, and how many products there are.
class Sums {
 public:
  Sums(const Shape& shape, const Literal& a, const Literal& b)
      : a_(numbers(a)), b_(numbers(b)), is_complex_(hlo::is_complex(shape.type())) {
    const Shape wide = Shape::array(is_complex_ ? Type::C128 : Type::F64, shape.dims());
    out_.sum = {.exact = Literal::zeros(wide), .magnitude = Literal::zeros(wide), .rest = Literal::zeros(wide)};
    out_.terms.resize(static_cast<size_t>(shape.element_count()));
  }

  void start(const Literal& value, int64_t i = 0) {
    ++terms_;
    add(0, value.as_double(i), 1);
    if (is_complex_) add(1, value.imaginary(i), 1);
  }
  void add_product(int64_t left, int64_t right) {
    ++terms_;
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
    out_.sum.exact.set_double(i, re.value, im.value);
    out_.sum.rest.set_double(i, re.rest, im.rest);
    out_.sum.magnitude.set_double(i, magnitudes_[0], magnitudes_[1]);
    out_.terms[static_cast<size_t>(i)] = std::exchange(terms_, 0);
    for (const size_t part : {0, 1}) {
      sums_[part] = ExactSum();
      magnitudes_[part] = 0;
    }
  }
  int64_t count() const { return static_cast<int64_t>(out_.terms.size()); }
  ExactSums take() { return std::move(out_); }

 private:
  void add(size_t part, double p, double q) {
    sums_[part].add_product(p, q);
    if (std::isfinite(p) && std::isfinite(q)) magnitudes_[part] += std::fabs(p * q);
  }

  Numbers a_, b_;
  bool is_complex_;
  std::array<ExactSum, 2> sums_;
  std::array<double, 2> magnitudes_{};
  int64_t terms_ = 0;
  ExactSums out_;
};

// Computes the same for integers, whose sums wrap around.
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

// Rows of lhs belong to groups one after another, which have as many as `group_sizes` says, and each group has a matrix of rhs.
// The rows behind the last group give 0.
void sum_ragged_dot(const Instruction& dot, const Literal& lhs, const Literal& rhs, const Literal& group_sizes,
                    Sums& sums) {
  const auto& attrs = dot.as<hlo::RaggedDotAttrs>();
  const Dims left = strides_of(lhs.shape()), right = strides_of(rhs.shape());
  std::vector<Axis> outer, inner;
  for (size_t i = 0; i < attrs.lhs_batch.size(); ++i)
    outer.push_back({lhs.shape().dim(static_cast<int>(attrs.lhs_batch[i])), at(left, attrs.lhs_batch[i]),
                     at(right, attrs.rhs_batch[i])});
  size_t ragged = 0;
  for (int d = 0; d < lhs.shape().rank(); ++d) {
    if (is_in(attrs.lhs_batch, d) || is_in(attrs.lhs_contracting, d)) continue;
    if (d == attrs.lhs_ragged[0]) ragged = outer.size();
    outer.push_back({lhs.shape().dim(d), at(left, d), 0});
  }
  for (int d = 0; d < rhs.shape().rank(); ++d)
    if (!is_in(attrs.rhs_batch, d) && !is_in(attrs.rhs_contracting, d) && !is_in(attrs.rhs_group, d))
      outer.push_back({rhs.shape().dim(d), 0, at(right, d)});
  for (size_t i = 0; i < attrs.lhs_contracting.size(); ++i)
    inner.push_back({lhs.shape().dim(static_cast<int>(attrs.lhs_contracting[i])), at(left, attrs.lhs_contracting[i]),
                     at(right, attrs.rhs_contracting[i])});
  const int64_t below = count_of({outer.begin() + static_cast<std::ptrdiff_t>(ragged) + 1, outer.end()}),
                terms = count_of(inner);
  for (int64_t i = 0; i < count_of(outer); ++i) {
    const int64_t row = i / below % outer[ragged].size;
    int64_t group = 0, end = 0;
    for (; group < group_sizes.element_count(); ++group)
      if (row < (end += group_sizes.as_int(group))) break;
    const auto [x, y] = places(outer, i);
    for (int64_t k = 0; k < terms && group < group_sizes.element_count(); ++k) {
      const auto [dx, dy] = places(inner, k);
      sums.add_product(x + dx, y + dy + group * at(right, attrs.rhs_group[0]));
    }
    sums.finish(i);
  }
}

// Each element times its scale, which stands for a block of elements. The product has few enough digits for f64.
std::optional<Literal> scaled(const Literal& values, const Literal& scales) {
  const Shape &shape = values.shape(), &blocks = scales.shape();
  const bool is_narrow = hlo::type_info(values.type()).bits <= 16 && hlo::type_info(scales.type()).bits <= 16;
  if (!is_narrow || blocks.rank() != shape.rank()) return std::nullopt;
  const Dims sizes = sizes_of(shape), strides = strides_of(blocks);
  Literal out = Literal::zeros(Shape::array(Type::F64, shape.dims()));
  Dims index(sizes.size());
  for (int64_t i = 0; i < out.element_count(); ++i, advance(index, sizes)) {
    int64_t scale = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      scale += index[d] / (sizes[d] / blocks.dim(static_cast<int>(d))) * strides[d];
    out.set_double(i, values.as_double(i) * scales.as_double(scale));
  }
  return out;
}

void sum_reduce(const Instruction& reduce, const Literal& data, const Literal& start, Sums& sums) {
  const auto& over = reduce.as<hlo::DimensionsAttrs>().dimensions;
  const Dims strides = strides_of(data.shape());
  std::vector<Axis> outer, inner;
  for (int d = 0; d < data.shape().rank(); ++d)
    (is_in(over, d) ? inner : outer).push_back({size_in(data, d), strides[static_cast<size_t>(d)], 0});
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

// Adds to each element of `from` the elements of `updates` with the same target. `all`: pairs of target and update.
void sum_updates(const Literal& from, std::vector<std::pair<int64_t, int64_t>> all, Sums& sums) {
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  size_t next = 0;
  const bool is_scalar = from.shape().rank() == 0;
  const int64_t count = sums.count();
  for (int64_t i = 0; i < count; ++i) {
    sums.start(from, is_scalar ? 0 : i);
    for (; next < all.size() && all[next].first == i; ++next) sums.add_product(all[next].second, 0);
    sums.finish(i);
  }
}

// True if a computation consists of this commutative op on its two parameters.
bool is_of_op(const Module& module, hlo::CompId id, Op op) {
  const hlo::Computation& body = module[id];
  const Instruction& root = module[body.root];
  return root.op == op && body.parameters.size() == 2 && root.operands.size() == 2 &&
         module[root.operand(0)].op == Op::PARAMETER && module[root.operand(1)].op == Op::PARAMETER &&
         root.operand(0) != root.operand(1);
}

// The factor 1, which makes a term of a sum a product.
Literal one_of(Type type) {
  return Literal::scalar(type, 1);
}

// The product of all elements and of the initial value. It is kept with 220 bits, which is practically exact.
struct Product {
  static constexpr mpfr_prec_t kBits = 220;
  Ball re{1, kBits}, im{0, kBits};

  void multiply(double a, double b, bool is_complex) {
    const Ball x(a, kBits), y(b, kBits);
    if (!is_complex) {
      re = re * x;
      return;
    }
    const Ball real = re * x - im * y;
    im = re * y + im * x;
    re = real;
  }
};

}  // namespace

std::optional<ExactSums> exact_sums(const Module& module, const Instruction& op,
                                    std::span<const Literal* const> operands) {
  if (!is_summed(op.shape)) return std::nullopt;
  for (const Literal* operand : operands)
    if (!operand->shape().is_array()) return std::nullopt;
  switch (op.op) {
    case Op::DOT:
    case Op::CONVOLUTION: {
      if (operands.size() != 2) return std::nullopt;
      for (const Literal* operand : operands)
        if (!is_summed(operand->shape()) || hlo::is_complex(operand->type()) != hlo::is_complex(op.shape.type()))
          return std::nullopt;
      Sums sums(op.shape, *operands[0], *operands[1]);
      op.op == Op::DOT ? sum_dot(op, *operands[0], *operands[1], sums)
                       : sum_convolution(op, *operands[0], *operands[1], sums);
      return sums.take();
    }
    case Op::RAGGED_DOT: {
      const auto& attrs = op.as<hlo::RaggedDotAttrs>();
      const bool has_free_rows = attrs.lhs_ragged.size() == 1 && attrs.rhs_group.size() == 1 &&
                                 !is_in(attrs.lhs_contracting, attrs.lhs_ragged[0]) &&
                                 !is_in(attrs.lhs_batch, attrs.lhs_ragged[0]);
      if (operands.size() != 3 || !has_free_rows || hlo::is_complex(op.shape.type()) ||
          operands[2]->shape().rank() != 1)
        return std::nullopt;
      Sums sums(op.shape, *operands[0], *operands[1]);
      sum_ragged_dot(op, *operands[0], *operands[1], *operands[2], sums);
      return sums.take();
    }
    case Op::SCALED_DOT: {
      if (operands.size() != 4) return std::nullopt;
      const auto lhs = scaled(*operands[0], *operands[2]), rhs = scaled(*operands[1], *operands[3]);
      if (!lhs || !rhs) return std::nullopt;
      Sums sums(op.shape, *lhs, *rhs);
      sum_dot(op, *lhs, *rhs, sums);
      return sums.take();
    }
    case Op::REDUCE:
    case Op::REDUCE_WINDOW: {
      if (operands.size() != 2 || !is_of_op(module, op.called[0], Op::ADD)) return std::nullopt;
      // A reduction over no dimension may or may not add the init value, so its result is not determined.
      if (op.op == Op::REDUCE && op.as<hlo::DimensionsAttrs>().dimensions.empty()) return std::nullopt;
      // A sum is computed as a sum of products with the constant 1.
      Sums sums(op.shape, *operands[0], one_of(operands[0]->type()));
      op.op == Op::REDUCE ? sum_reduce(op, *operands[0], *operands[1], sums)
                          : sum_windows(op, *operands[0], *operands[1], sums);
      return sums.take();
    }
    case Op::SCATTER: {
      if (operands.size() != 3 || !is_of_op(module, op.called[0], Op::ADD)) return std::nullopt;
      std::vector<std::pair<int64_t, int64_t>> all;
      for_each_update(op, operands, [&](int64_t to, int64_t i) { all.emplace_back(to, i); });
      Sums sums(op.shape, *operands[2], one_of(operands[2]->type()));
      sum_updates(*operands[0], std::move(all), sums);
      return sums.take();
    }
    case Op::SELECT_AND_SCATTER: {
      if (operands.size() != 3 || !is_of_op(module, op.called[1], Op::ADD)) return std::nullopt;
      std::vector<std::pair<int64_t, int64_t>> all;
      const bool is_known =
          for_each_selected(module, op, operands, [&](int64_t to, int64_t i) { all.emplace_back(to, i); });
      if (!is_known) return std::nullopt;
      Sums sums(op.shape, *operands[1], one_of(operands[1]->type()));
      sum_updates(*operands[2], std::move(all), sums);
      return sums.take();
    }
    default:
      return std::nullopt;
  }
}

std::optional<Reference> exact_products(const Module& module, const Instruction& op,
                                        std::span<const Literal* const> operands) {
  if (op.op != Op::REDUCE || operands.size() != 2 || !is_summed(op.shape) ||
      !is_of_op(module, op.called[0], Op::MULTIPLY))
    return std::nullopt;
  const auto& over = op.as<hlo::DimensionsAttrs>().dimensions;
  if (over.empty()) return std::nullopt;
  const Literal &data = *operands[0], &start = *operands[1];
  const bool is_complex = hlo::is_complex(op.shape.type());
  const Type type = hlo::real_type(op.shape.type());
  const Dims strides = strides_of(data.shape());
  std::vector<Axis> outer, inner;
  for (int d = 0; d < data.shape().rank(); ++d)
    (is_in(over, d) ? inner : outer).push_back({data.shape().dim(d), strides[static_cast<size_t>(d)], 0});
  const Shape wide = Shape::array(is_complex ? Type::C128 : Type::F64, op.shape.dims());
  Reference out{.value = Literal::zeros(op.shape),
                .exact = Literal::zeros(wide),
                .rest = Literal::zeros(wide),
                .allowed = Literal::zeros(wide)};
  const int64_t terms = count_of(inner) + 1;
  // The product of two complex numbers is within sqrt(5) u of itself (Brent, Percival, Zimmermann: Error bounds on complex
  // floating-point multiplication): each counts as three roundings.
  const double relative = gamma_of(static_cast<double>(terms) * (is_complex ? 3 : 1), unit_roundoff(type));
  for (int64_t i = 0; i < op.shape.element_count(); ++i) {
    Product product;
    double up = 1, down = 1;  // no partial product is larger than `up`, or smaller than `down`
    const auto take = [&](const Literal& from, int64_t at) {
      product.multiply(from.as_double(at), from.imaginary(at), is_complex);
      const double size = std::hypot(from.as_double(at), from.imaginary(at));
      up *= std::max(size, 1.0);
      down *= std::min(size, 1.0);
    };
    take(start, 0);
    for (int64_t k = 0; k + 1 < terms; ++k) take(data, places(outer, i).first + places(inner, k).first);
    // Overflow and underflow of partial sums depend on the order of the sum.
    if (!(up < largest_finite(type) / 4) || !(down > ulp_at(type, 0) / unit_roundoff(type))) return std::nullopt;
    const ExactResult re = product.re.result(), im = product.im.result();
    out.exact.set_double(i, re.value, im.value);
    out.rest.set_double(i, re.rest, im.rest);
    out.value.set_double(i, re.to_store_as(op.shape.type()), im.to_store_as(op.shape.type()));
    const double size = std::hypot(re.value, im.value), allowed = relative * size;
    out.allowed.set_double(i, allowed + ulp_at(type, re.value), allowed + ulp_at(type, im.value));
  }
  return out;
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
