// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "conformance/oracle/operand_pattern.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

// Sets what a triangular result does not specify to zero.
Literal keep_triangle(const Literal& value, int triangle) {
  if (triangle == 0 || value.shape().rank() < 2) return value;
  Literal kept = Literal::from_bytes(value.shape(), value.bytes());
  const int rank = value.shape().rank();
  const int64_t rows = value.shape().dim(rank - 2), columns = value.shape().dim(rank - 1);
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    if (triangle < 0 ? column > row : column < row) kept.set_double(i, 0);
  }
  return kept;
}

// Returns the first elements of an input as text.
std::string beginning_of(const Literal& value) {
  constexpr int64_t kMost = 8;
  std::string text = value.shape().to_string();
  for (int64_t i = 0; i < std::min(value.element_count(), kMost); ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", element_text(value, i));
  return text + (value.element_count() > kMost ? ", ...\n" : "\n");
}

bool is_by_element(const Case& one) {
  const hlo::Family family = hlo::op_info(one.op).family;
  return (family == hlo::Family::elementwise || family == hlo::Family::convert) && one.pattern.empty();
}

// Returns expected and actual values of some wrong elements, and for an elementwise op also the operands of each.
std::string evidence_of(const Case& one, const Answer& answer, const Literal& expected, const Literal& got,
                        std::span<const int64_t> bad, const std::string& common) {
  std::string text = common.empty() ? "" : "wrong where " + common + "\n";
  constexpr size_t kMost = 8;
  for (const int64_t i : bad.first(std::min(bad.size(), kMost))) {
    text += fmt::format("at {}: expected {}, got {}", index_text(got.shape(), i), element_text(expected, i),
                        element_text(got, i));
    for (size_t p = 0; is_by_element(one) && p < answer.inputs.size(); ++p) {
      const Literal& input = answer.inputs[p];
      if (input.element_count() == got.element_count()) text += fmt::format(", p{} {}", p, element_text(input, i));
    }
    text += '\n';
  }
  for (size_t p = 0; p < answer.inputs.size(); ++p) text += fmt::format("p{}: {}", p, beginning_of(answer.inputs[p]));
  return text;
}

}  // namespace

Judgement judge(const Case& one, const Answer& answer, const std::vector<Literal>& got, bool flushes) {
  Judgement all;
  if (got.size() != answer.outputs.size()) {
    return {false, 0, 0, fmt::format("{} results, expected {}", got.size(), answer.outputs.size())};
  }
  for (size_t i = 0; i < got.size(); ++i) {
    Reference reference = answer.outputs[i];
    reference.value = keep_triangle(reference.value, one.bound.triangle);
    const Literal result = keep_triangle(got[i], one.bound.triangle);
    const Comparison c = compare(reference, result, one.bound, flushes);
    all.ulp = std::max(all.ulp, c.worst_ulp);
    all.share = std::max(all.share, c.worst_share);
    for (size_t bin = 0; bin < kErrorBins; ++bin) all.errors[bin] += c.errors[bin];
    if (c.agrees || !all.pass) continue;
    const bool has_operands =
        is_by_element(one) && !answer.inputs.empty() && answer.inputs[0].element_count() == result.element_count();
    const std::string common = has_operands ? describe_operands(answer.inputs, c.all_bad) : "";
    if (!c.all_bad.empty()) all.evidence = evidence_of(one, answer, reference.value, result, c.all_bad, common);
    all.pass = false;
    all.detail = fmt::format("result {}: expected {}, got {} at {}; {} wrong: {}", i, c.expected, c.got,
                             index_text(result.shape(), c.first), c.bad, c.pattern);
    if (c.worst_ulp > 0) all.detail += fmt::format("; largest error {:.3g} ULP", c.worst_ulp);
    if (!common.empty()) all.detail += "; wrong where " + common;
  }
  return all;
}

}  // namespace collet::conformance
