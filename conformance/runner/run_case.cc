// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/run_case.h"

#include <collet/backend.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "conformance/cases/answer.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/run_program.h"
#include "hlo/testing/reduce_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

bool same(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Literal& x, const Literal& y) { return x == y; });
}

// Returns the seconds of an execution on another backend, or 0 if it does not run the program.
double seconds_on(const Session& session, const Case& one, const Answer& answer) {
  const Expected<Program> program = session.compile(one.text, {.file = one.name, .ignore_costs = true});
  if (!program.ok()) return 0;
  const auto in = program->upload(answer.inputs);
  if (!in.ok() || !program->execute(*in).ok()) return 0;
  const auto start = std::chrono::steady_clock::now();
  return program->execute(*in).ok() ? seconds_since(start) : 0;
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

Expected<Runs> run_thrice(const Program& program, std::span<const Literal> inputs, std::span<const Literal> others) {
  const auto fetch_all = [](const std::vector<BufferHandle>& buffers) -> Expected<std::vector<Literal>> {
    std::vector<Literal> out;
    for (const BufferHandle& buffer : buffers) {
      COLLET_ASSIGN(Literal value, fetch(buffer.get()));
      out.push_back(std::move(value));
    }
    return out;
  };
  Runs runs;
  COLLET_ASSIGN(const std::vector<BufferHandle> in, program.upload(inputs));
  COLLET_ASSIGN(const std::vector<BufferHandle> out, program.execute(in));
  if (!inputs.empty()) {
    COLLET_ASSIGN(const std::vector<BufferHandle> other_in, program.upload(others));
    COLLET_ASSIGN(const std::vector<BufferHandle> other_out, program.execute(other_in));
    COLLET_ASSIGN(runs.other, fetch_all(other_out));
  }
  COLLET_ASSIGN(runs.first, fetch_all(out));
  const auto start = std::chrono::steady_clock::now();
  COLLET_ASSIGN(const std::vector<BufferHandle> third, program.execute(in));
  runs.seconds = seconds_since(start);
  COLLET_ASSIGN(runs.again, fetch_all(third));
  COLLET_ASSIGN(const std::vector<Literal> arguments, fetch_all(in));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == inputs[i % inputs.size()]) continue;
    runs.complaint = fmt::format("argument {} has changed in an execution", i);
    break;
  }
  return runs;
}

Fields judged(const Case& one, const Answer& answer, const Answer* other, const Runs& runs, bool flushes) {
  Judgement judgement = judge(one, answer, runs.first, flushes);
  const auto look = [&](const Answer& expected, const std::vector<Literal>& got, const char* which) {
    Judgement later = judge(one, expected, got, flushes);
    later.detail = fmt::format("in the {} execution, {}", which, later.detail);
    if (!later.pass) judgement = std::move(later);
  };
  if (judgement.pass && !runs.complaint.empty())
    judgement = {false, judgement.ulp, judgement.share, runs.complaint, judgement.errors};
  if (judgement.pass && other && !answer.inputs.empty()) look(*other, runs.other, "second");
  // A sum may be computed in another order in each run, so both results are checked.
  if (judgement.pass && !same(runs.first, runs.again)) look(answer, runs.again, "third");
  Fields fields = with_status(judgement.pass ? "pass" : "fail", judgement.detail);
  fields.emplace_back("ulp", fmt::format("{}", judgement.ulp));
  fields.emplace_back("share", fmt::format("{}", judgement.share));
  fields.emplace_back("errors", fmt::format("{}", fmt::join(judgement.errors, " ")));
  if (!judgement.evidence.empty()) fields.emplace_back("evidence", judgement.evidence);
  if (answer.independent) fields.emplace_back("independent", "1");
  return fields;
}

namespace {

bool passes(const Fields& fields) {
  return find_field(fields, "status") == "pass";
}

// Runs a case whose expected results are known on a program that is compiled already.
Fields run_program(const Case& one, const Session& session, const Answer& answer, const Answer& other,
                   const Program& program, const RunCaseOptions& options) {
  const bool flushes = (session.traits() & COLLET_TRAIT_FLUSHES_DENORMALS) != 0;
  const Session* beside = options.beside;
  const Expected<Runs> runs = run_thrice(program, answer.inputs, other.inputs);
  if (!runs.ok()) return of_error(runs.status(), false);
  if (!answer.several_ops) {
    if (const std::string why = not_compiled(program); !why.empty())
      return with_status("fail", why + "; supports had said yes");
  }
  const bool is_judged = other.independent || !options.independent_only;
  Fields fields = judged(one, answer, is_judged ? &other : nullptr, *runs, flushes);
  fields.emplace_back("run_seconds", fmt::format("{}", runs->seconds));
  if (beside && passes(fields))
    fields.emplace_back("beside_seconds", fmt::format("{}", seconds_on(*beside, one, answer)));
  fields.emplace_back("uses", program.uses().text());
  if (const Expected<collet_executable_facts> facts = program.facts(); facts.ok()) {
    fields.emplace_back("device_ops", std::to_string(facts->device_ops));
    fields.emplace_back("fallback_ops", std::to_string(facts->fallback_ops));
  }
  return fields;
}

}  // namespace

Fields run_case(const Case& one, const Session& session, uint64_t seed, const RunCaseOptions& options) {
  const bool flushes = (session.traits() & COLLET_TRAIT_FLUSHES_DENORMALS) != 0;
  auto start = std::chrono::steady_clock::now();
  const Expected<Answer> answer = answer_case(one, case_seed(one.name, seed), flushes);
  if (!answer.ok()) return with_status("oracle", answer.status().to_string());
  if (options.independent_only && !answer->independent)
    return with_status("unsupported", "the evaluator has a part in the answer");
  const Expected<Answer> other = other_answer(one, *answer, seed, flushes);
  const double answer_seconds = seconds_since(start);
  if (!other.ok()) return with_status("oracle", other.status().to_string());
  KeptProgram own;
  KeptProgram& kept = options.kept ? *options.kept : own;
  std::string earlier;  // the case that ran the kept program before, if this one fails
  if (kept.program && kept.text == one.text) {
    Fields fields = run_program(one, session, *answer, *other, *kept.program, options);
    if (passes(fields)) {
      kept.name = one.name;
      fields.emplace_back("answer_seconds", fmt::format("{}", answer_seconds));
      return fields;
    }
    earlier = kept.name;
  }
  kept = {};
  start = std::chrono::steady_clock::now();
  Expected<Program> program = session.compile(one.text, {.file = one.name, .ignore_costs = true});
  const double compile_seconds = seconds_since(start);
  if (!program.ok()) return of_error(program.status(), answer->several_ops);
  Fields fields = run_program(one, session, *answer, *other, *program, options);
  if (!earlier.empty() && passes(fields)) {
    return with_status(
        "fail", fmt::format("it passes with an executable of its own, and not with that which had run {}", earlier));
  }
  fields.emplace_back("answer_seconds", fmt::format("{}", answer_seconds));
  fields.emplace_back("compile_seconds", fmt::format("{}", compile_seconds));
  if (passes(fields)) kept = {*std::move(program), one.text, one.name};
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
