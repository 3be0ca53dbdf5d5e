// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/batch.h"

#include <collet/backend.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "conformance/cases/answer.h"
#include "conformance/runner/run_program.h"
#include "hlo/passes/pipeline.h"
#include "hlo/program/leaves.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

/// A program that becomes one function of a larger one.
struct Joined {
  std::string computations;  ///< as text, with the entry as a computation like the others
  std::string entry;         ///< its name
  std::vector<hlo::Shape> parameters;
  hlo::Shape result;
};

Expected<Joined> joined(const std::string& text, size_t number) {
  COLLET_ASSIGN(const std::unique_ptr<hlo::Module> module, hlo::parse_module(text, fmt::format("program {}", number)));
  const hlo::ModuleHeader& header = module->header();
  if (!header.aliases.empty() || !header.donors.empty() || header.replica_count != 1 || header.num_partitions != 1 ||
      header.has_entry_layout || !header.frontend_attributes.empty())
    return invalid_argument(fmt::format("program {} has more in its header than a name", number));
  Joined out;
  // Names of instructions belong to their computations.
  for (const hlo::CompId c : module->computations())
    (*module)[c].name = module->arena().string(fmt::format("program{}.{}", number, (*module)[c].name));
  for (const hlo::CompId c : module->computations()) {
    std::string printed = hlo::print_computation(*module, c);
    constexpr std::string_view kEntry = "ENTRY ";
    if (printed.starts_with(kEntry)) printed.erase(0, kEntry.size());
    out.computations += printed + "\n";
  }
  const hlo::Computation& entry = module->entry_computation();
  out.entry = entry.name;
  for (const hlo::InstrId parameter : entry.parameters) out.parameters.push_back((*module)[parameter].shape);
  out.result = (*module)[entry.root].shape;
  return out;
}

bool is_flat(const hlo::Shape& result) {
  if (!result.is_tuple()) return result.is_array();
  return std::all_of(result.elements().begin(), result.elements().end(),
                     [](const hlo::Shape& element) { return element.is_array(); });
}

/// True if the SDK leaves an op of a program to the device: what a program that it computes itself passes, says nothing of the device.
bool has_work(const std::string& text) {
  const auto module = hlo::parse_module(text, "program");
  hlo::PassContext context;
  if (!module.ok() || !hlo::prepare(**module, context).ok()) return false;
  const hlo::Module& m = **module;
  return std::any_of(m.entry_computation().order.begin(), m.entry_computation().order.end(), [&](hlo::InstrId id) {
    const Op op = m[id].op;
    return op != Op::PARAMETER && op != Op::CONSTANT && !hlo::is_transparent(m[id]);
  });
}

/// The cases of a batch that have one text. They differ by their inputs, so each runs in a round of its own.
struct Member {
  std::vector<size_t> cases;
  size_t parameters = 0, results = 0;
};

}  // namespace

bool may_be_in_batch(const Case& one) {
  const bool is_random = one.op == Op::RNG || one.op == Op::RNG_GET_AND_UPDATE_STATE;
  return one.program.empty() && one.op != Op::INVALID && !is_random;
}

Expected<std::string> join_programs(std::span<const std::string> texts) {
  std::string computations, calls;
  std::vector<std::string> results, types;
  size_t parameter = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    COLLET_ASSIGN(const Joined one, joined(texts[i], i));
    if (!is_flat(one.result)) return invalid_argument(fmt::format("program {} returns a tuple in a tuple", i));
    computations += one.computations;
    std::vector<std::string> operands;
    for (const hlo::Shape& shape : one.parameters) {
      if (!shape.is_array()) return invalid_argument(fmt::format("program {} has a parameter that is no array", i));
      calls += fmt::format("  p{} = {} parameter({})\n", parameter, shape.to_string(), parameter);
      operands.push_back(fmt::format("p{}", parameter++));
    }
    calls += fmt::format("  call{} = {} call({}), to_apply={}\n", i, one.result.to_string(), fmt::join(operands, ", "),
                         one.entry);
    if (!one.result.is_tuple()) {
      results.push_back(fmt::format("call{}", i));
      types.push_back(one.result.to_string());
      continue;
    }
    for (size_t k = 0; k < one.result.elements().size(); ++k) {
      types.push_back(one.result.elements()[k].to_string());
      results.push_back(fmt::format("r{}.{}", i, k));
      calls += fmt::format("  {} = {} get-tuple-element(call{}), index={}\n", results.back(), types.back(), i, k);
    }
  }
  return fmt::format("HloModule batch\n\n{}ENTRY main {{\n{}  ROOT results = ({}) tuple({})\n}}\n", computations, calls,
                     fmt::join(types, ", "), fmt::join(results, ", "));
}

Fields run_batch(std::span<const Case* const> cases, const Session& session, uint64_t seed, bool independent_only) {
  const auto note = [](std::string why) { return Fields{{"note", std::move(why)}}; };
  const bool flushes = (session.traits() & COLLET_TRAIT_FLUSHES_DENORMALS) != 0;
  std::vector<std::optional<Answer>> answers(cases.size()), others(cases.size());
  std::vector<double> answer_seconds(cases.size());
  std::map<std::string_view, size_t> numbers;
  std::vector<Member> members;
  std::vector<std::string> texts;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    Expected<Answer> answer = answer_case(*cases[i], case_seed(cases[i]->name, seed), flushes);
    if (!answer.ok() || (independent_only && !answer->independent) || !has_work(cases[i]->text)) continue;
    Expected<Answer> other = other_answer(*cases[i], *answer, seed, flushes);
    answer_seconds[i] = seconds_since(start);
    if (!other.ok()) continue;
    const auto [at, is_new] = numbers.emplace(cases[i]->text, members.size());
    if (is_new) {
      members.push_back({{}, answer->inputs.size(), answer->outputs.size()});
      texts.push_back(cases[i]->text);
    }
    members[at->second].cases.push_back(i);
    answers[i] = *std::move(answer);
    others[i] = *std::move(other);
  }
  if (members.empty()) return note("no case has an answer");
  const Expected<std::string> text = join_programs(texts);
  if (!text.ok()) return note(text.status().to_string());
  const auto start = std::chrono::steady_clock::now();
  const Expected<Program> program = session.compile(*text, {.file = "batch", .ignore_costs = true});
  const double compile_seconds = seconds_since(start) / static_cast<double>(cases.size());
  if (!program.ok()) return note(program.status().to_string());
  const Expected<collet_executable_facts> facts = program->facts();
  if (!facts.ok()) return note(facts.status().to_string());
  if (facts->fallback_ops != 0 || facts->host_ops != 0) return note("ops of it ran elsewhere than on the device");
  Fields reply;
  size_t rounds = 0;
  for (const Member& member : members) rounds = std::max(rounds, member.cases.size());
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<Literal> inputs, other_inputs;
    const auto case_of = [&](const Member& member) { return member.cases[std::min(round, member.cases.size() - 1)]; };
    for (const Member& member : members) {
      const size_t i = case_of(member);
      inputs.insert(inputs.end(), answers[i]->inputs.begin(), answers[i]->inputs.end());
      other_inputs.insert(other_inputs.end(), others[i]->inputs.begin(), others[i]->inputs.end());
    }
    const Expected<Runs> runs = run_thrice(*program, inputs, other_inputs);
    if (!runs.ok()) return note(runs.status().to_string());
    if (!runs->complaint.empty()) return note(runs->complaint);
    if (!inputs.empty() && runs->other.size() != runs->first.size()) return note("the program has too few results");
    ptrdiff_t first = 0;
    for (const Member& member : members) {
      const auto end = first + static_cast<ptrdiff_t>(member.results);
      if (end > static_cast<ptrdiff_t>(runs->first.size())) return note("the program has too few results");
      if (round < member.cases.size()) {
        const size_t i = member.cases[round];
        // Without any inputs there is no second execution.
        const bool is_judged = !inputs.empty() && (others[i]->independent || !independent_only);
        Runs part = {{runs->first.begin() + first, runs->first.begin() + end},
                     {},
                     {runs->again.begin() + first, runs->again.begin() + end},
                     runs->seconds / static_cast<double>(members.size())};
        if (!inputs.empty()) part.other = {runs->other.begin() + first, runs->other.begin() + end};
        Fields fields = judged(*cases[i], *answers[i], is_judged ? &*others[i] : nullptr, part, flushes);
        fields.emplace_back("run_seconds", fmt::format("{}", part.seconds));
        fields.emplace_back("answer_seconds", fmt::format("{}", answer_seconds[i]));
        fields.emplace_back("compile_seconds", fmt::format("{}", compile_seconds));
        fields.emplace_back("device_ops", std::to_string(std::max<uint64_t>(facts->device_ops / members.size(), 1)));
        fields.emplace_back("fallback_ops", "0");
        reply.emplace_back(fmt::format("case{}", i), encode_fields(fields));
      }
      first = end;
    }
  }
  reply.emplace_back("uses", program->uses().text());
  return reply;
}

}  // namespace collet::conformance
