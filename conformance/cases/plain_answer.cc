// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/plain_answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/cases/exact_answer.h"
#include "conformance/cases/indices.h"
#include "conformance/oracle/functions.h"
#include "hlo/base/float_format.h"

namespace collet::conformance {
namespace {

using Operands = std::span<const Literal* const>;

using Results = std::optional<std::vector<Literal>>;

// Returns the op of a computation that is one op on two scalars in order; INVALID for any other. `second` is set if the
// computation returns its second parameter.
Op body_of(const Module& module, hlo::CompId id, bool& second) {
  const hlo::Computation& body = module[id];
  const Instruction& root = module[body.root];
  second = root.op == Op::PARAMETER && body.parameters.size() == 2 && body.root == body.parameters[1];
  const bool plain = body.parameters.size() == 2 && root.operands.size() == 2 &&
                     root.operand(0) == body.parameters[0] && root.operand(1) == body.parameters[1];
  return plain ? root.op : Op::INVALID;
}

// Returns the function of a combiner whose result does not depend on the order: ops on integers, and maximum and
// minimum of floats.
PlainFunction combiner_of(const Module& module, const Instruction& instr, Type type) {
  bool second = false;
  const Op op = body_of(module, instr.called[0], second);
  const bool depends =
      op == Op::SUBTRACT || op == Op::DIVIDE || op == Op::REMAINDER || (op == Op::ADD && hlo::is_float(type));
  return depends ? nullptr : plain_function(op, type);
}

// A reduction over no dimension may or may not combine the initial value, so the result is known only if the value does
// not matter.
std::optional<Literal> unreduced(const Module& module, const Instruction& instr, const Literal& from,
                                 const Literal& start) {
  bool second = false;
  const Op op = body_of(module, instr.called[0], second);
  const double neutral = op == Op::MULTIPLY ? 1 : 0;
  if ((op == Op::ADD || op == Op::MULTIPLY) && !hlo::is_integer(from.type()) && from.type() != Type::PRED) {
    bool has_negative_zero = false;  // -0, which becomes +0 when 0 is added
    for (int64_t i = 0; i < from.element_count(); ++i)
      for (const double part : {from.as_double(i), from.imaginary(i)})
        has_negative_zero |= part == 0 && std::signbit(part);
    const bool changes = start.as_double(0) != neutral || start.imaginary(0) != 0 || has_negative_zero;
    return changes ? std::nullopt : std::optional(from);
  }
  const PlainFunction combine = plain_function(op, from.type());
  if (combine == nullptr || !instr.shape.is_array()) return std::nullopt;
  Literal combined = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < combined.element_count(); ++i) combine(combined, i, start, 0, from, i);
  return combined == from ? std::optional(combined) : std::nullopt;
}

// Returns the number of the result's element to which a reduction over the dimensions `over` adds the element at `index`. `strides` are
// those of the result.
int64_t offset_in_result(const Indices& index, std::span<const int64_t> over, const Indices& strides) {
  int64_t offset = 0;
  size_t kept = 0;
  for (size_t d = 0; d < index.size(); ++d)
    if (!is_in(over, static_cast<int64_t>(d))) offset += index[d] * strides[kept++];
  return offset;
}

std::optional<Literal> reduced(const Module& module, const Instruction& instr, const Literal& from,
                               const Literal& start) {
  const auto& over = instr.as<hlo::DimensionsAttrs>().dimensions;
  if (over.empty()) return unreduced(module, instr, from, start);
  const PlainFunction combine = combiner_of(module, instr, from.type());
  if (combine == nullptr || !instr.shape.is_array()) return std::nullopt;
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, start, 0);
  const Indices sizes = sizes_of(from.shape()), strides = strides_of(instr.shape);
  Indices index(sizes.size());
  for (int64_t i = 0; i < from.element_count(); ++i, advance(index, sizes)) {
    const int64_t to = offset_in_result(index, over, strides);
    combine(out, to, out, to, from, i);
  }
  return out;
}

// Calls `each` with the number of a window and that of an element in it, for all elements of all windows.
template <typename Each>
void for_each_in_window(const hlo::Window& window, const Shape& from, const Shape& results, Each each) {
  const Indices sizes = sizes_of(results), strides = strides_of(from), taps(window.size.begin(), window.size.end());
  Indices place(sizes.size());
  for (int64_t to = 0; to < results.element_count(); ++to, advance(place, sizes)) {
    Indices tap(taps.size());
    for (bool more = !is_empty(taps); more; more = advance(tap, taps)) {
      int64_t element = 0;
      for (size_t d = 0; d < taps.size() && element >= 0; ++d) {
        const int64_t seen = element_seen(window, d, place[d], tap[d], from.dim(static_cast<int>(d)));
        element = seen < 0 ? -1 : element + seen * strides[d];
      }
      if (element >= 0) each(to, element);
    }
  }
}

std::optional<Literal> reduced_windows(const Module& module, const Instruction& instr, const Literal& from,
                                       const Literal& start) {
  const PlainFunction combine = combiner_of(module, instr, from.type());
  if (combine == nullptr || !instr.shape.is_array()) return std::nullopt;
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, start, 0);
  for_each_in_window(instr.as<hlo::WindowAttrs>().window, from.shape(), instr.shape,
                     [&](int64_t to, int64_t i) { combine(out, to, out, to, from, i); });
  return out;
}

std::optional<Literal> selected_and_scattered(const Module& module, const Instruction& instr, Operands operands) {
  bool second = false;
  const bool adds = body_of(module, instr.called[1], second) == Op::ADD;
  const Literal &from = *operands[0], &source = *operands[1], &start = *operands[2];
  if (!adds || !hlo::is_integer(from.type())) return std::nullopt;
  const PlainFunction add = plain_function(Op::ADD, from.type());
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, start, 0);
  const bool is_known =
      for_each_selected(module, instr, operands, [&](int64_t to, int64_t i) { add(out, to, out, to, source, i); });
  return is_known ? std::optional(std::move(out)) : std::nullopt;
}

Literal counted(const Instruction& instr) {
  const auto dimension = static_cast<size_t>(instr.as<hlo::IotaAttrs>().dimension);
  Literal out = Literal::zeros(instr.shape);
  const Indices sizes = sizes_of(instr.shape);
  Indices index(sizes.size());
  const bool is_integer = hlo::is_integer(instr.shape.type());
  for (int64_t i = 0; i < out.element_count(); ++i, advance(index, sizes)) {
    if (is_integer) {
      out.set_int(i, index[dimension]);
    } else {
      out.set_double(i, static_cast<double>(index[dimension]));
    }
  }
  return out;
}

// Computes top-k. Among equal elements the one with the lower index comes first. Floats are in total order.
std::optional<std::vector<Literal>> largest(const Instruction& instr, const Literal& from) {
  const auto& attrs = instr.as<hlo::TopKAttrs>();
  if (hlo::is_complex(from.type())) return std::nullopt;
  const bool is_float = hlo::is_float(from.type()), is_unsigned = hlo::is_unsigned(from.type());
  if (is_float && !has_total_order(from)) return std::nullopt;
  const auto is_before = [&](int64_t i, int64_t j) {
    if (attrs.smallest) std::swap(i, j);
    if (is_float) return total_key(from, i) > total_key(from, j);
    const int64_t a = from.as_int(i), b = from.as_int(j);
    return is_unsigned ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b;
  };
  std::vector<Literal> out = {Literal::zeros(instr.shape.element(0)), Literal::zeros(instr.shape.element(1))};
  const int64_t size = from.shape().dim(from.shape().rank() - 1), rows = size == 0 ? 0 : from.element_count() / size;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), row * size);
    std::stable_sort(order.begin(), order.end(), is_before);
    for (int64_t k = 0; k < attrs.k; ++k) {
      const int64_t index = order[static_cast<size_t>(k)];
      copy_element(out[0], row * attrs.k + k, from, index);
      out[1].set_int(row * attrs.k + k, index - row * size);
    }
  }
  return out;
}

// Sorts each line along the sort's dimension.
template <typename IsBefore>
std::vector<Literal> sorted_lines(const Instruction& instr, Operands operands, IsBefore is_before) {
  const auto dimension = static_cast<size_t>(instr.as<hlo::SortAttrs>().dimension);
  const Shape& shape = operands[0]->shape();
  const Indices sizes = sizes_of(shape);
  const int64_t size = sizes[dimension], step = strides_of(shape)[dimension];
  std::vector<Literal> out;
  for (const Literal* operand : operands) out.push_back(Literal::zeros(operand->shape()));
  Indices index(sizes.size());
  for (int64_t i = 0; i < operands[0]->element_count(); ++i, advance(index, sizes)) {
    if (index[dimension] != 0) continue;
    std::vector<int64_t> order(static_cast<size_t>(size));
    for (int64_t k = 0; k < size; ++k) order[static_cast<size_t>(k)] = i + k * step;
    std::stable_sort(order.begin(), order.end(), is_before);
    for (size_t o = 0; o < out.size(); ++o)
      for (int64_t k = 0; k < size; ++k)
        copy_element(out[o], i + k * step, *operands[o], order[static_cast<size_t>(k)]);
  }
  return out;
}

// Computes a sort whose comparator compares elements of the first operand. The order of keys with NaN, or zeros of both
// signs, may be undetermined, unless the comparison is by the total order.
std::optional<std::vector<Literal>> sorted(const Module& module, const Instruction& instr, Operands operands) {
  const hlo::Computation& body = module[instr.called[0]];
  const Instruction& root = module[body.root];
  if (root.op != Op::COMPARE || root.operand(0) != body.parameters[0] || root.operand(1) != body.parameters[1])
    return std::nullopt;
  const auto& compare = root.as<hlo::CompareAttrs>();
  const bool descending = compare.direction == hlo::Direction::GT;
  if (!descending && compare.direction != hlo::Direction::LT) return std::nullopt;
  const Literal& keys = *operands[0];
  if (hlo::is_complex(keys.type())) return std::nullopt;
  const bool is_float = hlo::is_float(keys.type()), is_unsigned = !hlo::is_signed(keys.type());
  const bool is_total = is_float && compare.type == hlo::CompareType::TOTALORDER;
  if (is_total && !has_total_order(keys)) return std::nullopt;
  for (int64_t i = 0; is_float && !is_total && i < keys.element_count(); ++i)
    if (std::isnan(keys.as_double(i)) || (keys.as_double(i) == 0 && std::signbit(keys.as_double(i))))
      return std::nullopt;
  const auto is_before = [&](int64_t i, int64_t j) {
    if (descending) std::swap(i, j);
    if (is_total) return total_key(keys, i) < total_key(keys, j);
    if (is_float) return keys.as_double(i) < keys.as_double(j);
    const int64_t a = keys.as_int(i), b = keys.as_int(j);
    return is_unsigned ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  };
  return sorted_lines(instr, operands, is_before);
}

std::optional<Literal> scattered(const Module& module, const Instruction& instr, Operands operands) {
  if (operands.size() != 3 || !instr.shape.is_array()) return std::nullopt;
  bool second = false;
  body_of(module, instr.called[0], second);
  const PlainFunction combine = combiner_of(module, instr, instr.shape.type());
  if (combine == nullptr && !second) return std::nullopt;
  return plain_scatter(instr, operands, second ? nullptr : combine);
}

// Computes a sum, difference, product or quotient of floats, or a square root, rounded once. For complex numbers only
// sums and differences, whose parts are rounded once each.
std::optional<Literal> rounded_once(const Instruction& instr, Operands operands) {
  const bool is_sum = instr.op == Op::ADD || instr.op == Op::SUBTRACT;
  const bool is_rounded = is_sum || instr.op == Op::MULTIPLY || instr.op == Op::DIVIDE || instr.op == Op::SQRT;
  if (!is_rounded || !instr.shape.is_array()) return std::nullopt;
  const Type type = instr.shape.type();
  const bool is_complex = hlo::is_complex(type);
  if (!hlo::is_float(type) && !(is_complex && is_sum)) return std::nullopt;
  const auto count = static_cast<size_t>(instr.shape.element_count());
  for (const Literal* operand : operands)
    if (operand->type() != type || operand->element_count() != instr.shape.element_count()) return std::nullopt;
  std::vector<ExactResult> parts[2];
  for (const bool imaginary : {false, true}) {
    std::vector<ExactResult>& results = parts[imaginary];
    results.resize(count);
    if (imaginary && !is_complex) break;
    std::vector<double> values[2];
    for (size_t k = 0; k < operands.size(); ++k)
      for (size_t i = 0; i < count; ++i) {
        const auto at = static_cast<int64_t>(i);
        values[k].push_back(imaginary ? operands[k]->imaginary(at) : operands[k]->as_double(at));
      }
    exact_functions(instr.op, values[0], values[1], results);
  }
  Literal out = Literal::zeros(instr.shape);
  for (size_t i = 0; i < count; ++i)
    out.set_double(static_cast<int64_t>(i), parts[0][i].to_store_as(type), parts[1][i].to_store_as(type));
  return out;
}

// Returns the element at `i` as a scalar.
Known element_of(const Literal& value, int64_t i) {
  Literal out = Literal::zeros(Shape::scalar(value.type()));
  copy_element(out, 0, value, i);
  return {.value = std::move(out)};
}

bool is_same_element(const Literal& value, int64_t i, int64_t j) {
  const auto size = static_cast<size_t>(value.byte_size() / value.element_count());
  return std::memcmp(value.bytes() + static_cast<size_t>(i) * size, value.bytes() + static_cast<size_t>(j) * size,
                     size) == 0;
}

// Computes a sort by running its comparator. The result is known if each element is before the next one, or may be exchanged with it:
// the sort is stable, or they are equal.
std::optional<std::vector<Literal>> sorted_by_region(const PlainInterpreter& interpreter, const Instruction& instr,
                                                     Operands operands) {
  bool is_known = true;
  const auto is_before = [&](Operands values, int64_t i, int64_t j) {
    std::vector<Known> arguments;
    for (const Literal* value : values)
      for (const int64_t k : {i, j}) arguments.push_back(element_of(*value, k));
    const std::optional<Known> result = interpreter.run(instr.called[0], std::move(arguments));
    is_known &= result && !result->is_tuple && result->is_exact();
    return is_known && result->value.as_int(0) != 0;
  };
  std::vector<Literal> out =
      sorted_lines(instr, operands, [&](int64_t i, int64_t j) { return is_before(operands, i, j); });
  std::vector<const Literal*> results;
  for (const Literal& one : out) results.push_back(&one);
  const auto& attrs = instr.as<hlo::SortAttrs>();
  const auto dimension = static_cast<size_t>(attrs.dimension);
  const Indices sizes = sizes_of(out[0].shape());
  const int64_t step = strides_of(out[0].shape())[dimension];
  Indices index(sizes.size());
  for (int64_t i = 0; is_known && i < out[0].element_count(); ++i, advance(index, sizes)) {
    const int64_t next = i + step;
    if (index[dimension] + 1 == sizes[dimension] || (!is_before(results, next, i) && is_before(results, i, next)))
      continue;
    const bool is_equal =
        std::all_of(out.begin(), out.end(), [&](const Literal& one) { return is_same_element(one, i, next); });
    is_known &= !is_before(results, next, i) && (attrs.stable || is_equal);
  }
  return is_known ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Literal> mapped(const PlainInterpreter& interpreter, const Instruction& instr, Operands operands) {
  Literal out = Literal::zeros(instr.shape);
  for (int64_t i = 0; i < out.element_count(); ++i) {
    std::vector<Known> arguments;
    for (const Literal* operand : operands) arguments.push_back(element_of(*operand, i));
    const std::optional<Known> one = interpreter.run(instr.called[0], std::move(arguments));
    if (!one || one->is_tuple) return std::nullopt;
    copy_element(out, i, one->value, 0);
  }
  return out;
}

// The elements that are combined into one element of each result: a first one of each operand, and the numbers of the others.
using Group = std::vector<Known>;  // an element of each operand
struct Line {
  Group first;
  std::vector<int64_t> others;
};

// Combines the elements of all lines at once, as combined_in_any_order does one by one. Element l of an array belongs to line l.
class LinesAtOnce {
 public:
  LinesAtOnce(const Module& module, hlo::CompId body, Operands elements, const std::vector<Line>& lines)
      : module_(module), body_(module[body]), elements_(elements), lines_(lines) {}

  // Returns the results by operand; `is_done` becomes false if the body has ops other than those of plain_elements on scalars, or
  // the arrays would be too large.
  Results run(bool& is_done) {
    constexpr size_t kMostElements = size_t{1} << 22;
    size_t longest = 0;
    for (const Line& line : lines_) longest = std::max(longest, line.others.size());
    is_done = lines_.size() > 1 && (longest + 1) * lines_.size() <= kMostElements;
    for (const hlo::InstrId at : body_.order) {
      const Instruction& instr = module_[at];
      const bool is_root_tuple = instr.op == Op::TUPLE && at == body_.root;
      is_done &= is_root_tuple || (instr.shape.is_array() && instr.shape.rank() == 0);
    }
    if (!is_done) return std::nullopt;
    std::vector<Arrays> all = {firsts()};
    for (size_t i = 0; i < longest; ++i) all.push_back(others(i, false));
    const Arrays forward = in_turn(all), tree = in_pairs(all);
    for (size_t i = 0; i < longest; ++i) all[i + 1] = others(i, true);
    const Arrays backward = in_turn(all), other_tree = in_pairs(std::move(all));
    is_done = can_run_;
    if (!can_run_ || forward != tree || forward != backward || forward != other_tree) return std::nullopt;
    return forward;
  }

 private:
  using Arrays = std::vector<Literal>;  // an array of each operand

  size_t length(size_t line) const { return lines_[line].others.size() + 1; }

  Arrays firsts() const {
    Arrays out;
    for (size_t k = 0; k < elements_.size(); ++k) {
      out.push_back(array_of(lines_[0].first[k].value.type()));
      for (size_t line = 0; line < lines_.size(); ++line)
        copy_element(out[k], static_cast<int64_t>(line), lines_[line].first[k].value, 0);
    }
    return out;
  }

  // Returns element `i` of the others of each line, counted from the end if `backwards`; zeros where there is none.
  Arrays others(size_t i, bool backwards) const {
    Arrays out;
    for (const Literal* element : elements_) {
      out.push_back(array_of(element->type()));
      for (size_t line = 0; line < lines_.size(); ++line) {
        const std::vector<int64_t>& mine = lines_[line].others;
        if (i < mine.size())
          copy_element(out.back(), static_cast<int64_t>(line), *element, mine[backwards ? mine.size() - 1 - i : i]);
      }
    }
    return out;
  }

  Literal array_of(Type type) const {
    const int64_t count = static_cast<int64_t>(lines_.size());
    return Literal::zeros(Shape::array(type, std::span(&count, 1)));
  }

  // Returns the body's results for the lines for which `is_there` holds, and `a` for the others.
  template <typename Predicate>
  Arrays combine(const Arrays& a, const Arrays& b, const Predicate& is_there) {
    std::vector<Literal> values(module_.instruction_limit());
    const auto value = [&](hlo::InstrId at) -> const Literal& { return values[hlo::index_of(at)]; };
    for (const hlo::InstrId at : body_.order) {
      const Instruction& instr = module_[at];
      if (instr.op == Op::TUPLE || !can_run_) continue;
      if (instr.op == Op::PARAMETER) {
        const auto number = static_cast<size_t>(instr.as<hlo::ParameterAttrs>().number);
        values[hlo::index_of(at)] = number < a.size() ? a[number] : b[number - a.size()];
        continue;
      }
      std::vector<const Literal*> operands;
      for (const hlo::InstrId operand : instr.operands) operands.push_back(&value(operand));
      std::optional<Literal> result = plain_elements(instr, array_of(instr.shape.type()).shape(), operands);
      can_run_ = result.has_value();
      if (result) values[hlo::index_of(at)] = *std::move(result);
    }
    const Instruction& root = module_[body_.root];
    const size_t results = root.op == Op::TUPLE ? root.operands.size() : 1;
    can_run_ = can_run_ && results == a.size();
    if (!can_run_) return a;
    Arrays out;
    for (size_t k = 0; k < a.size(); ++k) {
      out.push_back(value(root.op == Op::TUPLE ? root.operands[k] : body_.root));
      for (size_t line = 0; line < lines_.size(); ++line)
        if (!is_there(line)) copy_element(out[k], static_cast<int64_t>(line), a[k], static_cast<int64_t>(line));
    }
    return out;
  }

  Arrays in_turn(const std::vector<Arrays>& all) {
    Arrays sum = all[0];
    for (size_t i = 1; i < all.size() && can_run_; ++i)
      sum = combine(sum, all[i], [&](size_t line) { return i < length(line); });
    return sum;
  }

  Arrays in_pairs(std::vector<Arrays> all) {
    // After a level with steps of `step`, element i stands for the elements i * step ... of its line.
    for (size_t step = 1; all.size() > 1 && can_run_; step *= 2) {
      std::vector<Arrays> half;
      for (size_t i = 0; i < all.size(); i += 2) {
        half.push_back(i + 1 == all.size() ? std::move(all[i]) : combine(all[i], all[i + 1], [&](size_t line) {
          return (i + 1) * step < length(line);
        }));
      }
      all = std::move(half);
    }
    return std::move(all[0]);
  }

  const Module& module_;
  const hlo::Computation& body_;
  Operands elements_;
  const std::vector<Line>& lines_;
  bool can_run_ = true;
};

// Combines the elements of each line by a computation. The results are known if four orders of combination give the same
// results: forward and backward, each one element at a time and pairwise as a tree.
Results combined_in_any_order(const PlainInterpreter& interpreter, const Instruction& instr, hlo::CompId body,
                              Operands elements, const std::vector<Line>& lines) {
  const size_t count = elements.size();
  bool is_done = false;
  if (Results results = LinesAtOnce(interpreter.module(), body, elements, lines).run(is_done); is_done) {
    for (size_t k = 0; results && k < count; ++k) {
      Literal out = Literal::zeros(instr.shape.is_tuple() ? instr.shape.element(k) : instr.shape);
      for (int64_t i = 0; i < out.element_count(); ++i) copy_element(out, i, (*results)[k], i);
      (*results)[k] = std::move(out);
    }
    return results;
  }
  bool is_known = true;
  const auto combine = [&](const Group& a, const Group& b) {
    Group arguments = a;
    arguments.insert(arguments.end(), b.begin(), b.end());
    std::optional<Known> both = interpreter.run(body, std::move(arguments));
    if (!both || both->is_tuple != (count > 1)) {
      is_known = false;
      return a;
    }
    Group out = both->is_tuple ? std::move(both->parts) : Group{*std::move(both)};
    // An interpreter that bounds errors has rounded results in f64, with a radius, which may agree by chance.
    is_known &= std::all_of(out.begin(), out.end(), [](const Known& part) { return part.is_exact(); });
    return is_known ? out : a;
  };
  const auto in_pairs = [&](std::vector<Group> all) {
    while (all.size() > 1) {
      std::vector<Group> half;
      for (size_t i = 0; i < all.size(); i += 2)
        half.push_back(i + 1 < all.size() ? combine(all[i], all[i + 1]) : all[i]);
      all = std::move(half);
    }
    return all[0];
  };
  const auto in_turn = [&](const std::vector<Group>& all) {
    Group sum = all[0];
    for (size_t i = 1; i < all.size(); ++i) sum = combine(sum, all[i]);
    return sum;
  };
  std::vector<Literal> out;
  for (size_t k = 0; k < count; ++k)
    out.push_back(Literal::zeros(instr.shape.is_tuple() ? instr.shape.element(k) : instr.shape));
  for (size_t line = 0; line < lines.size(); ++line) {
    std::vector<Group> all = {lines[line].first};
    for (const int64_t i : lines[line].others) {
      Group& group = all.emplace_back();
      for (const Literal* element : elements) group.push_back(element_of(*element, i));
    }
    const Group forward = in_turn(all), tree = in_pairs(all);
    std::reverse(all.begin() + 1, all.end());
    const Group backward = in_turn(all), other_tree = in_pairs(all);
    if (!is_known) return std::nullopt;
    for (size_t k = 0; k < count; ++k) {
      for (const Group* other : {&tree, &backward, &other_tree})
        if (!((*other)[k].value == forward[k].value)) return std::nullopt;
      copy_element(out[k], static_cast<int64_t>(line), forward[k].value, 0);
    }
  }
  return out;
}

// Returns the shape that all results have.
const Shape& shape_of_results(const Instruction& instr) {
  return instr.shape.is_tuple() ? instr.shape.element(0) : instr.shape;
}

// Returns a line for each element of the results. Each begins with the init values.
std::vector<Line> lines_from(Operands starts, const Shape& results) {
  Line line;
  for (const Literal* start : starts) line.first.push_back({.value = *start});
  return std::vector<Line>(static_cast<size_t>(results.element_count()), line);
}

// Computes a reduction whose body has several ops.
Results reduced_in_any_order(const PlainInterpreter& interpreter, const Instruction& instr, Operands operands) {
  const size_t count = operands.size() / 2;
  const auto& over = instr.as<hlo::DimensionsAttrs>().dimensions;
  const Shape &from = operands[0]->shape(), &results = shape_of_results(instr);
  if (over.empty()) return std::nullopt;
  std::vector<Line> lines = lines_from(operands.subspan(count), results);
  const Indices sizes = sizes_of(from), strides = strides_of(results);
  Indices index(sizes.size());
  for (int64_t i = 0; i < from.element_count(); ++i, advance(index, sizes)) {
    const int64_t to = offset_in_result(index, over, strides);
    lines[static_cast<size_t>(to)].others.push_back(i);
  }
  return combined_in_any_order(interpreter, instr, instr.called[0], operands.first(count), lines);
}

// Computes a reduction of windows whose body has several ops.
Results windows_in_any_order(const PlainInterpreter& interpreter, const Instruction& instr, Operands operands) {
  const size_t count = operands.size() / 2;
  std::vector<Line> lines = lines_from(operands.subspan(count), shape_of_results(instr));
  for_each_in_window(instr.as<hlo::WindowAttrs>().window, operands[0]->shape(), shape_of_results(instr),
                     [&](int64_t to, int64_t i) { lines[static_cast<size_t>(to)].others.push_back(i); });
  return combined_in_any_order(interpreter, instr, instr.called[0], operands.first(count), lines);
}

// Computes a scatter of several operands, or whose body has several ops.
Results scattered_in_any_order(const PlainInterpreter& interpreter, const Instruction& instr, Operands operands) {
  const size_t count = operands.size() / 2;
  const Operands updates = operands.subspan(count + 1);
  std::vector<Line> lines(static_cast<size_t>(operands[0]->element_count()));
  for (size_t i = 0; i < lines.size(); ++i)
    for (size_t k = 0; k < count; ++k) lines[i].first.push_back(element_of(*operands[k], static_cast<int64_t>(i)));
  for_each_update(instr, std::vector{operands[0], operands[count], updates[0]},
                  [&](int64_t to, int64_t i) { lines[static_cast<size_t>(to)].others.push_back(i); });
  return combined_in_any_order(interpreter, instr, instr.called[0], updates, lines);
}

// True if the collective returns its operand when there is one participant.
bool is_copy_alone(const Module& module, const Instruction& instr) {
  if (module.header().replica_count > 1 || module.header().num_partitions > 1) return false;
  switch (instr.op) {
    case Op::ALL_REDUCE:
    case Op::ALL_GATHER:
    case Op::ALL_TO_ALL:
    case Op::REDUCE_SCATTER:
    case Op::COLLECTIVE_BROADCAST:
      return instr.operands.size() == 1 && instr.shape.is_array();
    case Op::COLLECTIVE_PERMUTE:
      return instr.operands.size() == 1 && instr.shape.is_array() &&
             std::ranges::equal(instr.as<hlo::CollectivePermuteAttrs>().pairs, std::initializer_list<int64_t>{0, 0});
    default:
      return false;
  }
}

Results known_results(const PlainInterpreter& interpreter, const Instruction& instr,
                      std::span<const Known* const> operands) {
  std::vector<const Literal*> values;
  for (const Known* operand : operands) {
    if (operand->is_tuple || !operand->is_exact() || !operand->value.shape().is_array()) return std::nullopt;
    values.push_back(&operand->value);
  }
  return plain_results(interpreter, instr, values);
}

void flatten_into(const Known& known, std::vector<Literal>& out) {
  if (!known.is_tuple) out.push_back(known.value);
  for (const Known& part : known.parts) flatten_into(part, out);
}

}  // namespace

bool for_each_selected(const Module& module, const Instruction& instr, std::span<const Literal* const> operands,
                       const std::function<void(int64_t to, int64_t window)>& each) {
  bool second = false;
  const Instruction& select = module[module[instr.called[0]].root];
  const Literal &from = *operands[0], &source = *operands[1];
  if (body_of(module, instr.called[0], second) != Op::COMPARE) return false;
  const hlo::Direction direction = select.as<hlo::CompareAttrs>().direction;
  const bool takes_least = direction == hlo::Direction::LE || direction == hlo::Direction::LT;
  // By these the first of equal elements is not kept: which one is depends on the order of the comparisons.
  const bool is_strict = direction == hlo::Direction::GT || direction == hlo::Direction::LT;
  if (!takes_least && !is_strict && direction != hlo::Direction::GE) return false;
  const bool is_float = hlo::is_float(from.type());
  if (!is_float && !hlo::is_signed(from.type())) return false;
  for (int64_t i = 0; is_float && i < from.element_count(); ++i)
    if (std::isnan(from.as_double(i))) return false;
  const auto is_selected = [&](int64_t i, int64_t j) {
    if (takes_least) std::swap(i, j);
    return is_float ? from.as_double(i) > from.as_double(j) : from.as_int(i) > from.as_int(j);
  };
  std::vector<int64_t> best(static_cast<size_t>(source.element_count()), -1);
  bool has_ties = false;
  for_each_in_window(instr.as<hlo::WindowAttrs>().window, from.shape(), source.shape(), [&](int64_t to, int64_t i) {
    int64_t& selected = best[static_cast<size_t>(to)];
    has_ties |= selected >= 0 && !is_selected(i, selected) && !is_selected(selected, i);
    if (selected < 0 || is_selected(i, selected)) selected = i;
  });
  if (is_strict && has_ties) return false;
  for (size_t i = 0; i < best.size(); ++i)
    if (best[i] >= 0) each(best[i], static_cast<int64_t>(i));
  return true;
}

std::optional<std::vector<Literal>> plain_results(const PlainInterpreter& interpreter, const Instruction& instr,
                                                  Operands operands) {
  const Module& module = interpreter.module();
  const bool is_cut = std::any_of(operands.begin(), operands.end(),
                                  [](const Literal* operand) { return !operand->dynamic_sizes().empty(); });
  if (is_cut) return std::nullopt;
  std::optional<Literal> one;
  switch (instr.op) {
    case Op::SORT:
      if (auto by_key = sorted(module, instr, operands)) return by_key;
      return sorted_by_region(interpreter, instr, operands);
    case Op::REDUCE:
      if (operands.size() == 2) one = reduced(module, instr, *operands[0], *operands[1]);
      if (!one) return reduced_in_any_order(interpreter, instr, operands);
      break;
    case Op::REDUCE_WINDOW:
      if (operands.size() == 2) one = reduced_windows(module, instr, *operands[0], *operands[1]);
      if (!one) return windows_in_any_order(interpreter, instr, operands);
      break;
    case Op::DOT:
    case Op::CONVOLUTION:
      one = integer_products(instr, *operands[0], *operands[1]);
      break;
    case Op::SCATTER:
      one = scattered(module, instr, operands);
      if (!one) return scattered_in_any_order(interpreter, instr, operands);
      break;
    case Op::SELECT_AND_SCATTER:
      one = selected_and_scattered(module, instr, operands);
      break;
    case Op::IOTA:
      one = counted(instr);
      break;
    case Op::CONSTANT:
      one = module.literal(instr);
      break;
    case Op::TOPK:
      return largest(instr, *operands[0]);
    case Op::RNG_BIT_GENERATOR:
      return plain_random(instr, operands);
    case Op::MAP:
      one = mapped(interpreter, instr, operands);
      break;
    case Op::PARTITION_ID:
    case Op::REPLICA_ID:
      one = Literal::zeros(instr.shape);
      break;
    case Op::GET_DIMENSION_SIZE:
      one = Literal::scalar_int(instr.shape.type(),
                                operands[0]->shape().dim(static_cast<int>(instr.as<hlo::DimensionAttrs>().dimension)));
      break;
    default:
      if (operands.empty()) return std::nullopt;
      if (auto results = plain_algebra(instr, operands)) return results;
      if (is_copy_alone(module, instr)) one = *operands[0];
      if (!one) one = plain_move(instr, operands);
      if (!one) one = plain_elements(instr, operands);
      if (!one) one = rounded_once(instr, operands);
  }
  if (!one) return std::nullopt;
  std::vector<Literal> out;
  out.push_back(*std::move(one));
  return out;
}

std::optional<std::vector<Literal>> plain_answer(const Module& module, std::span<const Literal> inputs) {
  const PlainInterpreter interpreter(module,
                                     [](const PlainInterpreter& self, const Instruction& instr,
                                        std::span<const Known* const> operands) -> std::optional<std::vector<Known>> {
                                       Results results = known_results(self, instr, operands);
                                       if (!results) return std::nullopt;
                                       std::vector<Known> out;
                                       for (Literal& result : *results) out.push_back({.value = std::move(result)});
                                       return out;
                                     });
  std::vector<Known> arguments;
  for (const Literal& input : inputs) arguments.push_back({.value = input});
  const std::optional<Known> root = interpreter.run(module.entry(), std::move(arguments));
  if (!root) return std::nullopt;
  std::vector<Literal> out;
  flatten_into(*root, out);
  return out;
}

}  // namespace collet::conformance
