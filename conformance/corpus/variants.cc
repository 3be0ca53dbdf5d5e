// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/variants.h"

#include "hlo/eval/evaluator.h"
#include "hlo/testing/deadline.h"
#include "hlo/testing/inputs.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Type;

Expected<std::vector<Literal>> evaluate(const std::string& text, const std::string& file, std::vector<Literal> inputs,
                                        bool as_f64, bool other_choices, double seconds) {
  hlo::ParseOptions parse;
  parse.floats_as_f64 = as_f64;
  COLLET_ASSIGN(const std::unique_ptr<hlo::Module> module, hlo::parse_module(text, file, parse));
  COLLET_TRY(hlo::verify_module(*module));
  const hlo::testing::Deadline deadline(seconds);
  hlo::EvalOptions options;
  options.cancel = deadline.flag();
  options.other_choices = other_choices;
  COLLET_ASSIGN(const Literal result, hlo::Evaluator(*module, options).run(std::move(inputs)));
  return hlo::flatten(result);
}

std::vector<Literal> widened(const std::vector<Literal>& values) {
  std::vector<Literal> out;
  for (const Literal& value : values) {
    const Type type = value.type();
    const bool widens = type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::C64;
    const Type wide = hlo::is_complex(type) ? Type::C128 : Type::F64;
    out.push_back(widens ? hlo::testing::converted(value, value.shape().with_type(wide)) : value);
  }
  return out;
}

}  // namespace

VariantRuns run_variants(const std::string& text, const std::string& file, const std::vector<Literal>& inputs,
                         double seconds) {
  VariantRuns runs;
  const auto keep = [](Expected<std::vector<Literal>> result, std::vector<Literal>& into) {
    if (result.ok()) into = *std::move(result);
  };
  keep(evaluate(text, file, inputs, false, false, seconds), runs.reference);
  if (runs.reference.empty()) return runs;
  keep(evaluate(text, file, widened(inputs), true, false, seconds), runs.wide);
  keep(evaluate(text, file, inputs, false, true, seconds), runs.other);
  return runs;
}

}  // namespace collet::conformance
