// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <optional>
#include <utility>

#include "conformance/cases/bounded_answer.h"
#include "conformance/cases/exact_answer.h"
#include "conformance/cases/plain_answer.h"
#include "conformance/oracle/complex_functions.h"
#include "conformance/oracle/functions.h"
#include "hlo/base/float_format.h"
#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

Expected<std::unique_ptr<Module>> read(const Case& one, bool as_f64) {
  hlo::ParseOptions options;
  options.floats_as_f64 = as_f64;
  COLLET_ASSIGN(std::unique_ptr<Module> module, hlo::parse_module(one.text, one.name, options));
  COLLET_TRY(hlo::verify_module(*module));
  return module;
}

std::vector<Shape> parameter_shapes(const Module& module) {
  std::vector<Shape> shapes;
  for (const hlo::InstrId id : module.entry_computation().parameters) shapes.push_back(module[id].shape);
  return shapes;
}

// True if more than one op of the entry needs a kernel. Control flow counts as several ops.
bool has_several_ops(const Module& module) {
  int count = 0;
  for (const hlo::InstrId id : module.entry_computation().order) {
    const Op op = module[id].op;
    if (op == Op::WHILE || op == Op::CONDITIONAL || op == Op::CALL || op == Op::FUSION) return true;
    count += hlo::op_info(op).op_class != hlo::OpClass::EXECUTOR;
  }
  return count > 1;
}

Expected<std::vector<Literal>> evaluate(const Module& module, const std::vector<Literal>& inputs,
                                        bool other_choices = false) {
  hlo::EvalOptions options;
  options.other_choices = other_choices;
  COLLET_ASSIGN(const Literal result, hlo::Evaluator(module, options).run(inputs));
  return hlo::flatten(result);
}

// Converts the numbers to the wider type of `shape`; with `magnitudes`, their absolute values.
Literal widened(const Literal& value, const Shape& shape, bool magnitudes) {
  const bool exact =
      value.type() == shape.type() && (!magnitudes || hlo::is_integer(value.type()) || value.type() == Type::PRED);
  if (exact) return value;
  Literal wide = Literal::zeros(shape);
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double real = value.as_double(i), imaginary = value.imaginary(i);
    if (magnitudes) {
      wide.set_double(i, std::hypot(real, imaginary));
    } else {
      wide.set_double(i, real, imaginary);
    }
  }
  return wide;
}

enum class Kind { Finite, NaN, PositiveInfinity, NegativeInfinity };
Kind kind_of(double value) {
  if (std::isnan(value)) return Kind::NaN;
  if (std::isfinite(value)) return Kind::Finite;
  return value > 0 ? Kind::PositiveInfinity : Kind::NegativeInfinity;
}

// Marks the elements that are NaN or infinite in some of the evaluator's runs only: what is so depends on the order or the width of
// sums.
void open_undecided(const Literal& other, Reference& reference) {
  if (!hlo::is_float(reference.value.type()) || other.element_count() != reference.value.element_count()) return;
  for (int64_t i = 0; i < other.element_count(); ++i) {
    if (kind_of(reference.value.as_double(i)) == kind_of(other.as_double(i))) continue;
    if (!reference.open.valid()) reference.open = Literal::zeros(Shape::array(Type::PRED, other.shape().dims()));
    reference.open.set_int(i, 1);
  }
}

// Sets the allowed error of a program of several ops: `ulps` at the largest magnitude, or some times what rounding
// changed in the evaluator's own runs, `value` and `other`. Where ops magnify errors, a device that is right may be off
// by as much as these are.
void allow_noise(double ulps, const Literal& other, Reference& reference) {
  const Type type = reference.value.type();
  if (!hlo::is_float(type) && !hlo::is_complex(type)) return;
  double most = 0, noise = 0;
  const auto note = [&](double exact, double rounded) {
    if (!std::isfinite(exact) || !std::isfinite(rounded)) return;
    most = std::max(most, std::fabs(exact));
    noise = std::max(noise, std::fabs(rounded - exact));
  };
  for (const Literal* rounded : {&std::as_const(reference.value), &other}) {
    for (int64_t i = 0; i < rounded->element_count(); ++i) {
      note(reference.exact.as_double(i), rounded->as_double(i));
      note(reference.exact.imaginary(i), rounded->imaginary(i));
    }
  }
  const double ulp = ulp_at(hlo::is_complex(type) ? hlo::real_type(type) : type, most);
  const double allowed = std::max(ulps * ulp, kEvaluatorNoise * noise);
  reference.allowed = Literal::zeros(reference.exact.shape());
  for (int64_t i = 0; i < reference.allowed.element_count(); ++i) reference.allowed.set_double(i, allowed, allowed);
}

// Adds the result before rounding. For a Sum bound also adds the result for absolute values, which is the factor of
// gamma(n) in the error bound.
Status add_exact(const Module& module, const Case& one, Answer& answer) {
  Expected<std::unique_ptr<Module>> read_wide = read(one, true);
  // A program that takes floats apart has no meaning in f64. The bound is then relative to the evaluator's result.
  if (!read_wide.ok()) return one.bound.kind == Bound::Kind::Scaled ? ok_status() : read_wide.status();
  const std::unique_ptr<Module> wide = *std::move(read_wide);
  const std::vector<Shape> shapes = parameter_shapes(*wide);
  std::vector<Literal> exact, absolute;
  for (size_t i = 0; i < answer.inputs.size(); ++i) {
    const bool data = one.bound.signed_data && i == 0;
    exact.push_back(widened(answer.inputs[i], shapes[i], false));
    absolute.push_back(widened(answer.inputs[i], shapes[i], !data));
  }
  COLLET_ASSIGN(const std::vector<Literal> results, evaluate(*wide, exact));
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    answer.outputs[i].exact = results[i];
    open_undecided(results[i], answer.outputs[i]);
  }
  if (one.bound.kind == Bound::Kind::Scaled) {
    COLLET_ASSIGN(const std::vector<Literal> others, evaluate(module, answer.inputs, true));
    for (size_t i = 0; i < others.size(); ++i) {
      allow_noise(one.bound.ulps, others[i], answer.outputs[i]);
      open_undecided(others[i], answer.outputs[i]);
    }
    return ok_status();
  }
  if (one.bound.kind != Bound::Kind::Sum) return ok_status();
  COLLET_ASSIGN(const std::vector<Literal> magnitudes, evaluate(*wide, absolute));
  for (size_t i = 0; i < answer.outputs.size(); ++i) answer.outputs[i].magnitude = magnitudes[i];
  return ok_status();
}

// Returns the literals of the program's parameters, if the program is one op on them and they have equal shapes except
// for the element type.
std::optional<std::vector<const Literal*>> operands_of(const Module& module, const Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  std::vector<const Literal*> operands;
  if (!root.shape.is_array()) return std::nullopt;
  for (const hlo::InstrId id : root.operands) {
    const hlo::Instruction& operand = module[id];
    if (operand.op != Op::PARAMETER || !operand.shape.is_array()) return std::nullopt;
    if (!std::ranges::equal(operand.shape.dims(), root.shape.dims())) return std::nullopt;
    operands.push_back(&answer.inputs[static_cast<size_t>(operand.as<hlo::ParameterAttrs>().number)]);
  }
  return operands;
}

Reference by_real_function(Op op, const Shape& shape, const std::vector<const Literal*>& inputs) {
  const auto count = static_cast<size_t>(shape.element_count());
  std::vector<std::vector<double>> operands;
  for (const Literal* input : inputs) {
    std::vector<double>& values = operands.emplace_back(count);
    for (size_t i = 0; i < count; ++i) values[i] = input->as_double(static_cast<int64_t>(i));
  }
  std::vector<ExactResult> results(count);
  operands.resize(2);
  exact_functions(op, operands[0], operands[1], results);
  const Type type = shape.type();
  Reference reference{.value = Literal::zeros(shape)};
  const bool has_nan = float_format(static_cast<uint32_t>(type)).specials != FloatSpecials::FINITE;
  const bool wide =
      // f32 and f64 can store NaN; for other types the exact result in f64 is added if there is a NaN.
      type == Type::F32 || type == Type::F64 || !has_nan;
  if (wide) reference.exact = reference.rest = Literal::zeros(Shape::array(Type::F64, shape.dims()));
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    reference.value.set_double(at, results[i].to_store_as(type));
    if (!wide) continue;
    reference.exact.set_double(at, results[i].value);
    reference.rest.set_double(at, results[i].rest);
  }
  return reference;
}

// Replaces the evaluator's results in `reference.value` by results of MPFR if `op` is a complex function, and sets the
// moduli that conditioning needs. Returns false for other ops, whose results stay as they are.
bool by_complex_function(Op op, const std::vector<const Literal*>& inputs, Reference& reference) {
  const Shape& shape = reference.value.shape();
  const auto count = static_cast<size_t>(shape.element_count());
  std::vector<std::vector<std::complex<double>>> operands(2);
  for (size_t k = 0; k < inputs.size(); ++k)
    for (size_t i = 0; i < count; ++i)
      operands[k].emplace_back(inputs[k]->as_double(static_cast<int64_t>(i)),
                               inputs[k]->imaginary(static_cast<int64_t>(i)));
  std::vector<ExactComplex> results(count);
  exact_complex_functions(op, operands[0], operands[1], results);
  const Type wide = hlo::is_complex(shape.type()) ? Type::C128 : Type::F64;
  reference.exact = reference.rest = reference.magnitude = Literal::zeros(Shape::array(wide, shape.dims()));
  bool all = true;
  for (size_t i = 0; i < count; ++i) {
    const ExactComplex& result = results[i];
    all &= result.is_known;
    const auto at = static_cast<int64_t>(i);
    if (!result.is_known) {
      const double re = reference.value.as_double(at), im = reference.value.imaginary(at);
      reference.exact.set_double(at, re, im);
      reference.magnitude.set_double(at, std::hypot(re, im), std::hypot(re, im));
      continue;
    }
    reference.value.set_double(at, result.real.to_store_as(shape.type()), result.imaginary.to_store_as(shape.type()));
    reference.exact.set_double(at, result.real.value, result.imaginary.value);
    reference.rest.set_double(at, result.real.rest, result.imaginary.rest);
    reference.magnitude.set_double(at, result.real_slope, result.imaginary_slope);
  }
  return all;
}

// If the program is one elementary function of its parameters, computes the results without the evaluator: rounded
// once, and for f32, f64 and complex numbers also before rounding. For narrower types the error bound applies to the
// rounded result.
void correct_by_functions(const Module& module, const Case& one, Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  if (one.bound.kind != Bound::Kind::Ulp && one.bound.kind != Bound::Kind::Exact) return;
  const auto operands = operands_of(module, answer);
  if (!operands || operands->empty()) return;
  const Type from = (*operands)[0]->type();
  if (has_exact_function(root.op) && from == root.shape.type() && hlo::is_float(from)) {
    answer.outputs = {by_real_function(root.op, root.shape, *operands)};
    answer.independent = true;
  } else if (has_exact_complex_function(root.op) && hlo::is_complex(from)) {
    answer.independent = by_complex_function(root.op, *operands, answer.outputs[0]);
  }
}

// Returns the inputs that are the root's operands; empty if the root has other operands.
std::vector<const Literal*> inputs_of_root(const Module& module, const Answer& answer) {
  std::vector<const Literal*> operands;
  for (const hlo::InstrId id : module[module.entry_computation().root].operands) {
    if (module[id].op != Op::PARAMETER) return {};
    operands.push_back(&answer.inputs[static_cast<size_t>(module[id].as<hlo::ParameterAttrs>().number)]);
  }
  return operands;
}

// True if the sum is this value in every order, because no order can overflow on the way. Otherwise the result is left
// to the evaluator, which adds in the type of the sum. `magnitude` is that of the finite terms; a sum is NaN or infinite by the others.
bool is_sum_known(Type type, bool wide, double sum, double magnitude) {
  const double most = largest_finite(type), most_added = wide ? std::max(most, largest_finite(Type::F32)) : most;
  if (std::isnan(sum)) return true;
  if (!(magnitude < most_added / 2)) return false;
  // Between these limits it depends on rounding whether the sum overflows.
  return std::fabs(sum) < most || std::fabs(sum) > 1.125 * most;
}

// Does the same for a program of one product or sum, whose exact result is a sum of exact products. An element to which
// a scatter adds nothing keeps its value.
void correct_by_sums(const Module& module, const Case& one, Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  const std::vector<const Literal*> operands = inputs_of_root(module, answer);
  if (operands.empty()) return;
  if (std::optional<Reference> products = exact_products(module, root, operands)) {
    answer.outputs[0] = *std::move(products);
    answer.independent = true;
    return;
  }
  std::optional<ExactSums> found = exact_sums(module, root, operands);
  if (!found) return;
  Reference* exact = &found->sum;
  Reference& reference = answer.outputs[0];
  const Literal& sums = exact->exact;
  const Literal& rests = exact->rest;
  answer.independent = true;
  const Type type = reference.value.type();
  for (int64_t i = 0; i < sums.element_count(); ++i) {
    const ExactResult real{sums.as_double(i), rests.as_double(i)}, imaginary{sums.imaginary(i), rests.imaginary(i)};
    const bool is_known = is_sum_known(type, one.bound.wide, real.value, exact->magnitude.as_double(i)) &&
                          (!hlo::is_complex(type) ||
                           (is_sum_known(type, one.bound.wide, imaginary.value, exact->magnitude.imaginary(i)) &&
                            std::isfinite(real.value) && std::isfinite(imaginary.value)));
    answer.independent &= is_known;
    if (is_known) reference.value.set_double(i, real.to_store_as(type), imaginary.to_store_as(type));
  }
  reference.exact = std::move(exact->exact);
  reference.rest = std::move(exact->rest);
  reference.magnitude = std::move(exact->magnitude);
  const bool is_scatter = root.op == Op::SCATTER || root.op == Op::SELECT_AND_SCATTER;
  if (!is_scatter || hlo::is_complex(root.shape.type())) return;
  // Each element has its own number of terms.
  const double own = unit_roundoff(type), u = one.bound.wide ? std::min(own, unit_roundoff(Type::F32)) : own;
  reference.allowed = Literal::zeros(Shape::array(Type::F64, root.shape.dims()));
  for (int64_t i = 0; i < reference.value.element_count(); ++i) {
    const auto terms = static_cast<double>(found->terms[static_cast<size_t>(i)]);
    const double magnitude = reference.magnitude.as_double(i);
    reference.allowed.set_double(
        i, terms < 2 ? 0 : gamma_of(terms, u) * magnitude + ulp_at(type, reference.exact.as_double(i)));
  }
}

// Handles programs of several ops: exact arithmetic, with a bound on the error that the ops may have together.
void correct_by_bounds(const Module& module, bool flushes, Answer& answer) {
  std::optional<std::vector<Reference>> bounded = bounded_answer(module, answer.inputs, flushes);
  if (!bounded || bounded->size() != answer.outputs.size()) return;
  answer.outputs = *std::move(bounded);
  answer.independent = true;
}

// True if the bits are a signalling NaN: one whose highest bit of the mantissa is 0 (IEEE 754-2019, 6.2.1).
bool is_signalling(const Literal& value, int64_t i) {
  const FloatFormat format = float_format(static_cast<uint32_t>(value.type()));
  if (format.specials != FloatSpecials::IEEE || !std::isnan(value.as_double(i))) return false;
  const auto width = static_cast<size_t>(format.bits() / 8);
  uint64_t bits = 0;
  std::memcpy(&bits, value.bytes() + static_cast<size_t>(i) * width, width);
  return (bits >> (format.mantissa_bits - 1) & 1) == 0;
}

// Powers that have a value for a quiet NaN may be NaN for a signalling one.
void open_signalling(const Module& module, Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  const auto operands = root.op == Op::POWER ? operands_of(module, answer) : std::nullopt;
  if (!operands || !hlo::is_float(root.shape.type())) return;
  Literal open = Literal::zeros(Shape::array(Type::PRED, root.shape.dims()));
  for (int64_t i = 0; i < root.shape.element_count(); ++i)
    for (const Literal* operand : *operands)
      if (is_signalling(*operand, i)) open.set_int(i, 1);
  answer.outputs[0].nan_too = std::move(open);
}

// True if the exact product or quotient is below the least normal number of its type.
bool is_tiny(Op op, double a, double b, double least) {
  constexpr double kScale = 0x1p60;  // away from the denormals of f64, so that the difference has its sign
  const double x = std::fabs(a), y = std::fabs(b);
  return op == Op::MULTIPLY ? std::fma(std::max(x, y), std::min(x, y) * kScale, -least * kScale) < 0
                            : std::fma(least * kScale, y, -x * kScale) > 0;
}

// A device that flushes denormals may flush products and quotients that are tiny only before they are rounded.
void open_tiny(const Module& module, Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  const bool is_inexact = root.op == Op::MULTIPLY || root.op == Op::DIVIDE;
  const auto operands = is_inexact ? operands_of(module, answer) : std::nullopt;
  if (!operands || !hlo::is_float(root.shape.type())) return;
  const double least = std::ldexp(1.0, 1 - float_format(static_cast<uint32_t>(root.shape.type())).bias);
  Literal open = Literal::zeros(Shape::array(Type::PRED, root.shape.dims()));
  const Literal &a = *(*operands)[0], &b = *(*operands)[1];
  for (int64_t i = 0; i < root.shape.element_count(); ++i)
    open.set_int(i, is_tiny(root.op, a.as_double(i), b.as_double(i), least));
  answer.outputs[0].zero_too = std::move(open);
}

// A device that takes a pattern as one call may have another formula for it, which has a limit where the pattern's own has NaN for
// infinite operands: x * logistic(x) for -infinity.
void open_limits(const Case& one, Answer& answer) {
  if (one.pattern.empty()) return;
  bool infinity = false;
  for (const Literal& input : answer.inputs) {
    for (int64_t i = 0; hlo::is_float(input.type()) && i < input.element_count(); ++i) {
      if (std::isnan(input.as_double(i))) return;
      infinity |= std::isinf(input.as_double(i));
    }
  }
  for (Reference& output : answer.outputs) {
    const Literal& value = output.value;
    if (!infinity || !value.shape().is_array() || !hlo::is_float(value.type())) continue;
    if (!output.open.valid()) output.open = Literal::zeros(Shape::array(Type::PRED, value.shape().dims()));
    for (int64_t i = 0; i < value.element_count(); ++i)
      if (std::isnan(value.as_double(i))) output.open.set_int(i, 1);
  }
}

Expected<Answer> answer_to(const Module& module, const Case& one, std::vector<Literal> inputs, bool flushes) {
  Answer answer;
  answer.inputs = std::move(inputs);
  answer.several_ops = has_several_ops(module);
  COLLET_ASSIGN(std::vector<Literal> outputs, evaluate(module, answer.inputs));
  for (Literal& output : outputs) answer.outputs.push_back({std::move(output), {}, {}});
  const bool is_rounded = one.bound.kind == Bound::Kind::Sum || one.bound.exact;
  if (one.large) {
    if (is_rounded || one.bound.kind == Bound::Kind::Ulp) COLLET_TRY(add_exact(module, one, answer));
    open_limits(one, answer);
    return answer;
  }
  correct_by_functions(module, one, answer);
  open_signalling(module, answer);
  if (flushes) open_tiny(module, answer);
  if (answer.independent) return answer;
  if (!is_rounded) {
    if (std::optional<std::vector<Literal>> plain = plain_answer(module, answer.inputs)) {
      for (size_t i = 0; i < plain->size(); ++i) answer.outputs[i].value = std::move((*plain)[i]);
      answer.independent = true;
    }
    return answer;
  }
  correct_by_sums(module, one, answer);
  const bool is_known =
      !answer.outputs.empty() && (answer.outputs[0].rest.valid() || answer.outputs[0].allowed.valid());
  if (is_known) return answer;
  correct_by_bounds(module, flushes, answer);
  if (!answer.independent) COLLET_TRY(add_exact(module, one, answer));
  open_limits(one, answer);
  return answer;
}

}  // namespace

Expected<Answer> answer_case(const Case& one, uint64_t seed, bool flushes) {
  COLLET_ASSIGN(const std::unique_ptr<Module> module, read(one, false));
  const std::vector<Shape> shapes = parameter_shapes(*module);
  if (shapes.size() != one.inputs.size())
    return invalid_argument(
        fmt::format("the case has {} inputs, its program {} parameters", one.inputs.size(), shapes.size()));
  std::vector<Literal> inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back(make_input(one.inputs[i], shapes[i], i, shapes.size(), seed, flushes));
  return answer_to(*module, one, std::move(inputs), flushes);
}

Expected<Answer> answer_for(const Case& one, std::vector<Literal> inputs, bool flushes) {
  COLLET_ASSIGN(const std::unique_ptr<Module> module, read(one, false));
  return answer_to(*module, one, std::move(inputs), flushes);
}

Expected<Answer> other_answer(const Case& one, const Answer& answer, uint64_t seed, bool flushes) {
  std::vector<Literal> inputs;
  const uint64_t other = case_seed(one.name, seed ^ 0x5EED);
  for (size_t i = 0; i < answer.inputs.size(); ++i) {
    const Shape& shape = answer.inputs[i].shape();
    inputs.push_back(one.inputs[i].values == Values::Fixed
                         ? answer.inputs[i]
                         : make_input(one.inputs[i], shape, i, answer.inputs.size(), other, flushes));
  }
  if (inputs == answer.inputs) return answer;
  return answer_for(one, std::move(inputs), flushes);
}

}  // namespace collet::conformance
