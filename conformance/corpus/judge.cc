// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "conformance/oracle/bounds.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Type;
using hlo::testing::ModelCase;
using hlo::testing::ModelOutput;

bool is_number(Type type) {
  return hlo::is_float(type) || hlo::is_complex(type);
}

// Returns the error of one real or imaginary part divided by `allowed`; more than 1 is wrong.
double share_of(double expected, double got, double allowed) {
  if (!std::isfinite(expected) || !std::isfinite(got)) {
    const bool same = std::isnan(expected) ? std::isnan(got) : expected == got;
    return same ? 0 : HUGE_VAL;
  }
  const double error = std::fabs(expected - got);
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : HUGE_VAL;
}

// Compares element `at(i)` of `got` with element i of `expected`.
Agreement compare_elements(size_t output, const Literal& expected, const Literal& got, double allowed,
                           const std::function<int64_t(int64_t)>& at) {
  Agreement result;
  int64_t first = -1, bad = 0;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const int64_t j = at(i);
    double share = 0;
    if (is_number(expected.type())) {
      share = std::max(share_of(expected.as_double(i), got.as_double(j), allowed),
                       share_of(expected.imaginary(i), got.imaginary(j), allowed));
    } else if (expected.as_int(i) != got.as_int(j)) {
      share = HUGE_VAL;
    }
    result.share = std::max(result.share, share);
    if (share <= 1) continue;
    if (first < 0) first = i;
    ++bad;
  }
  if (first < 0) return result;
  result.wrong = fmt::format(
      "output {}: expected {}, got {} at {}; {} of {} compared are wrong, the worst {:.3g} times what is allowed "
      "({:.3g})",
      output, element_text(expected, first), element_text(got, at(first)), index_text(got.shape(), at(first)), bad,
      expected.element_count(), result.share, allowed);
  return result;
}

Agreement merged(Agreement all, const Agreement& one) {
  if (all.wrong.empty()) all.wrong = one.wrong;
  all.share = std::max(all.share, one.share);
  return all;
}

std::string count_mismatch(size_t expected, size_t got) {
  return expected == got ? "" : fmt::format("{} results, expected {}", got, expected);
}

// `allowed` is the allowed error of a float output.
Agreement agrees_with_samples(const ModelCase& model, const std::vector<Literal>& got,
                              const std::function<double(const ModelOutput&)>& allowed) {
  Agreement all{count_mismatch(model.outputs.size(), got.size()), 0};
  if (!all.wrong.empty()) return all;
  for (size_t i = 0; i < got.size(); ++i) {
    const ModelOutput& output = model.outputs[i];
    if (!got[i].shape().same_dims(output.shape)) {
      return {fmt::format("output {} is {}, expected {}", i, got[i].shape().to_string(), output.shape.to_string()),
              HUGE_VAL};
    }
    const double bound = output.exact ? 0 : allowed(output);
    all = merged(all, compare_elements(i, output.sample, got[i], bound, [&](int64_t k) { return k * output.stride; }));
  }
  return all;
}

}  // namespace

Agreement agrees_with_index(const std::vector<Literal>& expected, const std::vector<Literal>& got,
                            const hlo::testing::VariantLists& variants) {
  hlo::testing::Agreement judged = hlo::testing::agrees_with_index(expected, got, variants);
  if (judged.agrees) return {.wrong = {}, .share = judged.worst, .note = std::move(judged.detail)};
  return {.wrong = std::move(judged.detail), .share = judged.worst};
}

Agreement agrees_with_model(const ModelCase& model, const std::vector<Literal>& got) {
  return agrees_with_samples(model, got, [](const ModelOutput& output) {
    return std::max(4 * output.xla_max_abs_error, 8 * ulp_at(output.shape.type(), output.max_abs));
  });
}

Agreement agrees_with_model_in_f64(const ModelCase& model, const std::vector<Literal>& got) {
  return agrees_with_samples(model, got,
                             [](const ModelOutput& output) { return hlo::testing::kWideError * output.max_abs; });
}

bool needs_f64(const ModelCase& model) {
  if (!model.reference.empty()) return false;
  return std::any_of(model.outputs.begin(), model.outputs.end(),
                     [](const ModelOutput& o) { return !o.exact && o.xla_max_abs_error > 1e-4 * o.max_abs; });
}

}  // namespace collet::conformance
