// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/sorting.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

/// A comparator that only compares the two elements of operand `operand`.
struct PlainComparator {
  Kernel kernel;
  size_t operand;
  bool swapped;
  int bits;
};

std::optional<PlainComparator> plain_comparator(const Module& module, CompId computation) {
  const Computation& c = module[computation];
  const Instruction& root = module[c.root];
  if (root.op != Op::COMPARE) return std::nullopt;
  const auto parameter = [&](InstrId id) {
    return static_cast<size_t>(std::find(c.parameters.begin(), c.parameters.end(), id) - c.parameters.begin());
  };
  const size_t a = parameter(root.operand(0)), b = parameter(root.operand(1));
  if (a == c.parameters.size() || b == c.parameters.size() || a / 2 != b / 2 || a == b) return std::nullopt;
  const Type type = module[root.operand(0)].shape.type();
  const auto& attrs = root.as<CompareAttrs>();
  return PlainComparator{find_compare(attrs.direction, attrs.type, type), a / 2, a > b, type_info(type).bits};
}

/// Returns the dimensions of `shape` with `last` moved to the end.
Ints order_with_last(const Shape& shape, int64_t last) {
  Ints order;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (d != last) order.push_back(d);
  if (shape.rank()) order.push_back(last);
  return order;
}

/// The offset of the first element of each vector along `dim`, and the step between its elements.
struct Lines {
  Ints starts;
  int64_t step = 1, length = 1;
  Lines(const Shape& shape, int64_t dim) {
    const Ints strides = row_major_strides(shape.dims());
    Ints dims, steps;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == dim) continue;
      dims.push_back(shape.dims()[static_cast<size_t>(d)]);
      steps.push_back(strides[static_cast<size_t>(d)]);
    }
    if (shape.rank()) {
      step = strides[static_cast<size_t>(dim)];
      length = shape.dims()[static_cast<size_t>(dim)];
    }
    for (IndexIterator it(dims, {steps}); !it.done(); it.next()) starts.push_back(it.offset(0));
  }
};

class Sort {
 public:
  explicit Sort(const EvalInput& in)
      : in_(in),
        arrays_(in.operand_count()),
        lines_(in.operand(0).shape(), in.instr.as<SortAttrs>().dimension),
        plain_(plain_comparator(in.module, in.instr.called[0])),
        body_(in.module, in.instr.called[0], in.context, 1),
        is_stable_(in.instr.as<SortAttrs>().stable),
        turns_ties_(in.context.other_choices()) {}

  Expected<Literal> run() {
    if (body_.argument_count() != 2 * arrays_ || body_.result_count() != 1)
      return invalid_argument("a comparator takes two scalars per operand and returns one pred");
    const Ints order = order_with_last(in_.operand(0).shape(), in_.instr.as<SortAttrs>().dimension);
    std::vector<Literal> results;
    for (size_t k = 0; k < arrays_; ++k) {
      values_.push_back(pack(in_.operand(k), order));
      results.push_back(
          Literal::uninitialized(in_.instr.shape.is_tuple() ? in_.instr.shape.element(k) : in_.instr.shape));
    }
    std::vector<int64_t> positions(static_cast<size_t>(lines_.length));
    for (size_t line = 0; line < lines_.starts.size() && lines_.length; ++line) {
      std::iota(positions.begin(), positions.end(), 0);
      base_ = static_cast<int64_t>(line) * lines_.length;
      if (!merge_sort(positions, [this](int64_t a, int64_t b) { return less(a, b); })) return status_;
      if (turns_ties_) turn_ties(positions);
      for (size_t k = 0; k < arrays_; ++k) move(k, lines_.starts[line], positions, results[k]);
    }
    if (!in_.instr.shape.is_tuple()) return std::move(results[0]);
    return Literal::tuple(std::move(results));
  }

 private:
  int less(int64_t a, int64_t b) {
    if (++comparisons_ % 65536 == 0 && in_.context.cancelled()) {
      status_ = Status(Code::Cancelled, "cancelled in a sort");
      return -1;
    }
    if (plain_) {
      const WideArray& keys = values_[plain_->operand];
      int64_t result;
      const void *x = keys.at(base_ + a), *y = keys.at(base_ + b);
      apply(plain_->kernel, plain_->bits, &result, plain_->swapped ? y : x, plain_->swapped ? x : y, 1);
      return result != 0;
    }
    for (size_t k = 0; k < arrays_; ++k) {
      const size_t size = lane_bytes(values_[k].wide());
      std::memcpy(body_.argument(2 * k), values_[k].at(base_ + a), size);
      std::memcpy(body_.argument(2 * k + 1), values_[k].at(base_ + b), size);
    }
    status_ = body_.run(1);
    if (!status_.ok()) return -1;
    return *static_cast<const int64_t*>(body_.result(0)) != 0;
  }

  /// True if the sort may leave two elements in either order: the comparator puts neither before the other and the sort is
  /// unstable, or the comparator puts each before the other, so that it is no strict order.
  bool is_open(int64_t a, int64_t b) {
    const int before = less(a, b), after = less(b, a);
    return before == after && before >= 0 && !(is_stable_ && before == 0);
  }

  /// Reorders the elements that may be in either order, so that each has another position; for other_choices().
  void turn_ties(std::vector<int64_t>& positions) {
    for (size_t begin = 0, end; begin < positions.size(); begin = end) {
      end = begin + 1;
      while (end < positions.size() && is_open(positions[end - 1], positions[end])) ++end;
      std::rotate(positions.begin() + static_cast<long>(begin), positions.begin() + static_cast<long>(begin) + 1,
                  positions.begin() + static_cast<long>(end));
    }
  }

  void move(size_t k, int64_t start, const std::vector<int64_t>& positions, Literal& result) {
    const auto bytes = type_info(result.type()).bytes();
    const auto size = static_cast<size_t>(bytes);
    const uint8_t* from = in_.operand(k).bytes() + start * bytes;
    uint8_t* to = result.mutable_bytes() + start * bytes;
    const int64_t step = lines_.step * bytes;
    for (size_t i = 0; i < positions.size(); ++i)
      std::memcpy(to + static_cast<int64_t>(i) * step, from + positions[i] * step, size);
  }

  const EvalInput& in_;
  size_t arrays_;
  Lines lines_;
  std::optional<PlainComparator> plain_;
  Body body_;
  bool is_stable_, turns_ties_;
  std::vector<WideArray> values_;
  int64_t base_ = 0;
  uint64_t comparisons_ = 0;
  Status status_;
};

}  // namespace

Expected<Literal> evaluate_topk_of(const Literal& operand, int64_t k, bool smallest, const Shape& shape) {
  const int64_t rank = operand.shape().rank();
  if (rank == 0 || !shape.is_tuple() || shape.elements().size() != 2)
    return invalid_argument("topk gives values and indices of an operand with dimensions");
  const int64_t length = operand.shape().dims().back();
  if (k < 0 || k > length) return invalid_argument("topk asks for more elements than there are");
  // Sorts by total order, so that NaN has a defined position.
  const Type type = operand.type();
  const Kernel before = find_compare(smallest ? Direction::LT : Direction::GT, CompareType::TOTALORDER, type);
  const int bits = type_info(type).bits, bytes = type_info(type).bytes();
  const WideArray keys = pack(operand);
  Literal values = Literal::uninitialized(shape.element(0)), indices = Literal::uninitialized(shape.element(1));
  if (values.element_count() != (length ? operand.element_count() / length * k : values.element_count()))
    return invalid_argument("the shape of topk does not fit");
  std::vector<int64_t> positions(static_cast<size_t>(length));
  uint8_t* to = values.mutable_bytes();
  for (int64_t line = 0; k > 0 && line < operand.element_count() / length; ++line) {
    std::iota(positions.begin(), positions.end(), 0);
    merge_sort(positions, [&](int64_t a, int64_t b) {
      int64_t result;
      apply(before, bits, &result, keys.at(line * length + a), keys.at(line * length + b), 1);
      return static_cast<int>(result);
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = positions[static_cast<size_t>(i)];
      std::memcpy(to + (line * k + i) * bytes, operand.bytes() + (line * length + at) * bytes,
                  static_cast<size_t>(bytes));
      indices.set_int(line * k + i, at);
    }
  }
  std::vector<Literal> results;
  results.push_back(std::move(values));
  results.push_back(std::move(indices));
  return Literal::tuple(std::move(results));
}

Expected<Literal> evaluate_sort(const EvalInput& in) {
  if (in.instr.op == Op::TOPK) {
    const auto& attrs = in.instr.as<TopKAttrs>();
    return evaluate_topk_of(in.operand(0), attrs.k, attrs.smallest, in.instr.shape);
  }
  return Sort(in).run();
}

}  // namespace collet::hlo
