// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/run_case.h"

#include <collet/backend.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "conformance/cases/answer.h"
#include "conformance/oracle/operand_pattern.h"
#include "hlo/testing/reduce_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

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

struct Judgement {
  bool pass = true;
  double ulp = 0, share = 0;
  std::string detail;
  ErrorCounts errors = {};
  std::string evidence = {};  ///< one line for each of a few wrong elements, then the inputs
};

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

bool same(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Literal& x, const Literal& y) { return x == y; });
}

struct Runs {
  std::vector<Literal> first, again;
  std::string complaint;  // error message about arguments or results that changed unexpectedly
};

// Runs the case, then with other inputs, then with the first inputs again. The results of the first run are read after
// the second run, so errors are found if a run depends on earlier ones, or overwrites their results. The arguments must
// be unchanged.
Expected<Runs> run_thrice(const Program& program, const Answer& answer, const Case& one, uint64_t seed, bool flushes) {
  const auto fetch_all = [](const std::vector<BufferHandle>& buffers) -> Expected<std::vector<Literal>> {
    std::vector<Literal> out;
    for (const BufferHandle& buffer : buffers) {
      COLLET_ASSIGN(Literal value, fetch(buffer.get()));
      out.push_back(std::move(value));
    }
    return out;
  };
  Runs runs;
  COLLET_ASSIGN(const std::vector<BufferHandle> in, program.upload(answer.inputs));
  COLLET_ASSIGN(const std::vector<BufferHandle> out, program.execute(in));
  if (!answer.inputs.empty()) {
    COLLET_ASSIGN(const std::vector<BufferHandle> other_in, program.upload(other_inputs(one, answer, seed, flushes)));
    COLLET_ASSIGN(const std::vector<BufferHandle> other_out, program.execute(other_in));
  }
  COLLET_ASSIGN(runs.first, fetch_all(out));
  COLLET_ASSIGN(const std::vector<BufferHandle> third, program.execute(in));
  COLLET_ASSIGN(runs.again, fetch_all(third));
  COLLET_ASSIGN(const std::vector<Literal> arguments, fetch_all(in));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == answer.inputs[i % answer.inputs.size()]) continue;
    runs.complaint = fmt::format("argument {} has changed in an execution", i);
    break;
  }
  return runs;
}

Fields with_status(std::string status, std::string detail) {
  return {{"status", std::move(status)}, {"detail", std::move(detail)}};
}
std::string& find_detail(Fields& fields) {
  return fields[1].second;
}

// True if the error comes from a call of the backend, as in "compile: backend 'x', compile: ...", and not from a check
// of the runtime.
bool is_from_the_backend(const Status& status) {
  const std::string& message = status.message();
  const size_t start = message.find(": ");
  return start != std::string::npos && std::string_view(message).substr(start + 2).starts_with("backend '");
}

// Converts an error to an outcome. If supports has accepted an op, an executable that returns UNIMPLEMENTED is a
// failure, and so is compile, unless a program of several ops exceeds a limit for the whole program.
Fields of_error(const Status& status, bool may_have_limits) {
  const bool declined = status.code() == Code::Unimplemented && (may_have_limits || !is_from_the_backend(status));
  Fields fields = with_status(declined ? "unsupported" : "fail", status.to_string());
  if (status.code() == Code::Unimplemented && !declined) find_detail(fields) += "; supports had said yes";
  // A lost device stays lost, so the next case gets another process, in which the device may work again.
  if (status.code() == Code::Unavailable) add_retires(fields);
  return fields;
}

// Returns the reason why the device did not compile a program that it had accepted; empty if it did.
std::string not_compiled(const Program& program) {
  constexpr std::string_view kReason = "not compiled: ";
  const Expected<collet_executable_facts> facts = program.facts();
  if (!facts.ok() || facts->fallback_ops == 0) return {};
  const Expected<std::string> plan = program.explain(false);
  const size_t start = plan.ok() ? plan->find(kReason) : std::string::npos;
  return start == std::string::npos ? std::string() : plan->substr(start, plan->find('\n', start) - start);
}

}  // namespace

Fields run_case(const Case& one, const Session& session, uint64_t seed, bool independent_only) {
  const bool flushes = (session.traits() & COLLET_TRAIT_FLUSHES_DENORMALS) != 0;
  const Expected<Answer> answer = answer_case(one, case_seed(one.name, seed), flushes);
  if (!answer.ok()) return with_status("oracle", answer.status().to_string());
  if (independent_only && !answer->independent)
    return with_status("unsupported", "the evaluator has a part in the answer");
  const Expected<Program> program = session.compile(one.text, {.file = one.name, .ignore_costs = true});
  if (!program.ok()) return of_error(program.status(), answer->several_ops);
  const Expected<Runs> runs = run_thrice(*program, *answer, one, seed, flushes);
  if (!runs.ok()) return of_error(runs.status(), false);
  const std::vector<Literal>* got = &runs->first;
  if (!answer->several_ops) {
    if (const std::string why = not_compiled(*program); !why.empty())
      return with_status("fail", why + "; supports had said yes");
  }
  Judgement judgement = judge(one, *answer, *got, flushes);
  if (judgement.pass && !runs->complaint.empty()) {
    judgement = {false, judgement.ulp, judgement.share, runs->complaint, judgement.errors};
  } else if (judgement.pass && !same(runs->first, runs->again)) {
    // A sum may be computed in another order in each run, so both results are checked.
    Judgement again = judge(one, *answer, runs->again, flushes);
    again.detail = "in the third execution, " + again.detail;
    if (!again.pass) judgement = std::move(again);
  }
  Fields fields = with_status(judgement.pass ? "pass" : "fail", judgement.detail);
  fields.emplace_back("ulp", fmt::format("{}", judgement.ulp));
  fields.emplace_back("share", fmt::format("{}", judgement.share));
  fields.emplace_back("errors", fmt::format("{}", fmt::join(judgement.errors, " ")));
  if (!judgement.evidence.empty()) fields.emplace_back("evidence", judgement.evidence);
  if (answer->independent) fields.emplace_back("independent", "1");
  fields.emplace_back("uses", program->uses().text());
  if (const Expected<collet_executable_facts> facts = program->facts(); facts.ok()) {
    fields.emplace_back("device_ops", std::to_string(facts->device_ops));
    fields.emplace_back("fallback_ops", std::to_string(facts->fallback_ops));
  }
  return fields;
}

std::string reduce_case(const Case& one, const Session& session, uint64_t seed, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto module = hlo::parse_module(one.text, one.name);
  if (!module.ok()) return {};
  const auto text_of = [](const hlo::Module& smaller) { return hlo::print_module(smaller); };
  const auto fails = [&](const hlo::Module& smaller) {
    Case other = one;
    other.text = text_of(smaller);
    if (smaller.entry_computation().parameters.size() != one.inputs.size()) return false;
    return find_field(run_case(other, session, seed), "status") == "fail";
  };
  const auto reduced = hlo::testing::reduce_module(
      **module, {.fails = fails, .progress = {}, .smaller = {}, .stop = [&] { return Clock::now() > end; }});
  return reduced.ok() ? text_of(*reduced->module) : std::string();
}

}  // namespace collet::conformance
