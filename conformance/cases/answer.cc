// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/answer.h"

#include <cmath>
#include <optional>

#include "conformance/cases/exact_answer.h"
#include "conformance/oracle/functions.h"
#include "hlo/base/float_format.h"
#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Module;

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

// Whether more than one op of the entry needs a kernel. Control flow counts as several.
bool has_several_ops(const Module& module) {
  int count = 0;
  for (const hlo::InstrId id : module.entry_computation().order) {
    const Op op = module[id].op;
    if (op == Op::WHILE || op == Op::CONDITIONAL || op == Op::CALL || op == Op::FUSION) return true;
    count += hlo::op_info(op).op_class != hlo::OpClass::EXECUTOR;
  }
  return count > 1;
}

Expected<std::vector<Literal>> evaluate(const Module& module, const std::vector<Literal>& inputs) {
  COLLET_ASSIGN(const Literal result, hlo::Evaluator(module).run(inputs));
  return hlo::flatten(result);
}

// The same numbers in the wider type of `shape`; `magnitudes`: their absolute values.
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

// The result before rounding; for Sum also the same of absolute values: what gamma(n) multiplies.
Status add_exact(const Case& one, Answer& answer) {
  COLLET_ASSIGN(const std::unique_ptr<Module> wide, read(one, true));
  const std::vector<Shape> shapes = parameter_shapes(*wide);
  std::vector<Literal> exact, absolute;
  for (size_t i = 0; i < answer.inputs.size(); ++i) {
    const bool data = one.bound.signed_data && i == 0;
    exact.push_back(widened(answer.inputs[i], shapes[i], false));
    absolute.push_back(widened(answer.inputs[i], shapes[i], !data));
  }
  COLLET_ASSIGN(const std::vector<Literal> results, evaluate(*wide, exact));
  for (size_t i = 0; i < answer.outputs.size(); ++i) answer.outputs[i].exact = results[i];
  if (one.bound.kind != Bound::Kind::Sum) return ok_status();
  COLLET_ASSIGN(const std::vector<Literal> magnitudes, evaluate(*wide, absolute));
  for (size_t i = 0; i < answer.outputs.size(); ++i) answer.outputs[i].magnitude = magnitudes[i];
  return ok_status();
}

// Where the program is one elementary function of its parameters, what comes out is known without the evaluator: rounded once, and
// for f32 and f64 before rounding too. Of narrower types the bound is on the rounded result.
void correct_by_functions(const Module& module, const Case& one, Answer& answer) {
  const hlo::Instruction& root = module[module.entry_computation().root];
  if (!has_exact_function(root.op) || !root.shape.is_array() || !hlo::is_float(root.shape.type())) return;
  if (one.bound.kind != Bound::Kind::Ulp && one.bound.kind != Bound::Kind::Exact) return;
  const auto count = static_cast<size_t>(root.shape.element_count());
  std::vector<std::vector<double>> operands;
  for (const hlo::InstrId id : root.operands) {
    const hlo::Instruction& operand = module[id];
    if (operand.op != Op::PARAMETER || !operand.shape.same_without_layout(root.shape)) return;
    const Literal& input = answer.inputs[static_cast<size_t>(operand.as<hlo::ParameterAttrs>().number)];
    std::vector<double>& values = operands.emplace_back(count);
    for (size_t i = 0; i < count; ++i) values[i] = input.as_double(static_cast<int64_t>(i));
  }
  std::vector<ExactResult> results(count);
  operands.resize(2);
  exact_functions(root.op, operands[0], operands[1], results);
  const Type type = root.shape.type();
  Reference reference{Literal::zeros(root.shape), {}, {}};
  const bool has_nan = float_format(static_cast<uint32_t>(type)).specials != FloatSpecials::FINITE;
  const bool wide =
      type == Type::F32 || type == Type::F64 || !has_nan;  // where NaN has no bits, the result before rounding shows it
  const Shape f64 = Shape::array(Type::F64, root.shape.dims());
  if (wide) reference.exact = reference.rest = Literal::zeros(f64);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    reference.value.set_double(at, type == Type::F64 ? results[i].value : results[i].rounded_to_odd());
    if (!wide) continue;
    reference.exact.set_double(at, results[i].value);
    reference.rest.set_double(at, results[i].rest);
  }
  answer.outputs = {std::move(reference)};
}

// Likewise for one product or sum, of which the exact result is a sum of exact products.
void correct_by_sums(const Module& module, Answer& answer) {
  std::optional<Reference> exact = exact_sums(module, answer.inputs);
  if (!exact) return;
  Reference& reference = answer.outputs[0];
  const Literal& sums = exact->exact;
  // What overflows on the way is left to the evaluator, which adds in the type of the sum.
  for (int64_t i = 0; i < sums.element_count(); ++i) {
    const ExactResult result{sums.as_double(i), exact->rest.as_double(i)};
    if (!std::isfinite(result.value) || !std::isfinite(reference.value.as_double(i))) continue;
    reference.value.set_double(i, reference.value.type() == Type::F64 ? result.value : result.rounded_to_odd());
  }
  reference.exact = std::move(exact->exact);
  reference.rest = std::move(exact->rest);
  reference.magnitude = std::move(exact->magnitude);
}

}  // namespace

Expected<Answer> answer_case(const Case& one, uint64_t seed, bool flushes) {
  COLLET_ASSIGN(const std::unique_ptr<Module> module, read(one, false));
  const std::vector<Shape> shapes = parameter_shapes(*module);
  if (shapes.size() != one.inputs.size()) return internal_error("the case has as many inputs as parameters");
  Answer answer;
  answer.several_ops = has_several_ops(*module);
  for (size_t i = 0; i < shapes.size(); ++i) {
    answer.inputs.push_back(make_input(one.inputs[i], shapes[i], i, shapes.size(), seed, flushes));
  }
  COLLET_ASSIGN(std::vector<Literal> outputs, evaluate(*module, answer.inputs));
  for (Literal& output : outputs) answer.outputs.push_back({std::move(output), {}, {}});
  correct_by_functions(*module, one, answer);
  if (one.bound.kind == Bound::Kind::Sum) correct_by_sums(*module, answer);
  const bool is_known = !answer.outputs.empty() && answer.outputs[0].rest.valid();
  if (!is_known && (one.bound.kind == Bound::Kind::Sum || one.bound.exact)) COLLET_TRY(add_exact(one, answer));
  return answer;
}

std::vector<Literal> other_inputs(const Case& one, const Answer& answer, uint64_t seed, bool flushes) {
  std::vector<Literal> out;
  const uint64_t other = case_seed(one.name, seed ^ 0x5EED);
  for (size_t i = 0; i < answer.inputs.size(); ++i) {
    const Shape& shape = answer.inputs[i].shape();
    out.push_back(one.inputs[i].values == Values::Fixed
                      ? answer.inputs[i]
                      : make_input(one.inputs[i], shape, i, answer.inputs.size(), other, flushes));
  }
  return out;
}

}  // namespace collet::conformance
