// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/random_case.h"

#include <fmt/format.h>

#include <charconv>

#include "hlo/eval/evaluator.h"
#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

constexpr std::string_view kStart = "random/program/seed_";

Fields with_status(std::string_view status, std::string detail) {
  return {{"status", std::string(status)}, {"detail", std::move(detail)}};
}

struct Expectation {
  std::vector<Literal> inputs, outputs;
};

Expected<Expectation> evaluate(const std::string& text) {
  COLLET_ASSIGN(const std::unique_ptr<hlo::Module> module, hlo::parse_module(text, "random"));
  COLLET_TRY(hlo::verify_module(*module));
  Expectation out;
  out.inputs = hlo::testing::entry_inputs(*module);
  COLLET_ASSIGN(const Literal result, hlo::Evaluator(*module).run(out.inputs));
  out.outputs = hlo::flatten(result);
  return out;
}

}  // namespace

std::optional<uint64_t> seed_after(std::string_view start, std::string_view name) {
  if (!name.starts_with(start)) return std::nullopt;
  name.remove_prefix(start.size());
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seed);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return seed;
}

std::string random_case_name(uint64_t seed) {
  return fmt::format("{}{}", kStart, seed);
}

std::optional<uint64_t> random_case_seed(std::string_view name) {
  return seed_after(kStart, name);
}

std::string random_case_text(uint64_t seed) {
  hlo::testing::RandomModule options;
  options.steps = 6 + static_cast<int>(seed % 40);
  options.everything = seed % 3 != 0;
  if (seed % 5 == 0) options.sizes = {1, 8, 17, 64};
  if (seed % 5 == 1) {
    // Long enough for the loops of code generators: blocks, threads, and what is left over at their ends.
    options.sizes = {1, 3, 16, 65, 130, 600, 1025, 4100};
    options.most_elements = 20000;
    options.steps = 4 + static_cast<int>(seed % 14);
  }
  return hlo::testing::random_module(seed, options);
}

Fields run_random_case(uint64_t seed, const Session& session) {
  const std::string text = random_case_text(seed);
  const Expected<Expectation> expected = evaluate(text);
  if (!expected.ok()) return with_status("oracle", expected.status().to_string());
  const Expected<Program> program = session.compile(text, {.file = random_case_name(seed), .ignore_costs = true});
  const auto of_error = [](const Status& status) {
    Fields fields = with_status(status.code() == Code::Unimplemented ? "unsupported" : "fail", status.to_string());
    if (status.code() == Code::Unavailable) add_retires(fields);
    return fields;
  };
  if (!program.ok()) return of_error(program.status());
  const Expected<std::vector<Literal>> got = program->run(expected->inputs);
  if (!got.ok()) return of_error(got.status());
  if (got->size() != expected->outputs.size()) return with_status("fail", "another number of results");
  for (size_t i = 0; i < got->size(); ++i) {
    const std::string difference = hlo::testing::difference(expected->outputs[i], (*got)[i], kRandomTolerance);
    if (!difference.empty()) return with_status("fail", fmt::format("result {}: {}", i, difference));
  }
  Fields fields = with_status("pass", {});
  fields.emplace_back("uses", program->uses().text());
  if (const Expected<collet_executable_facts> facts = program->facts(); facts.ok()) {
    fields.emplace_back("device_ops", std::to_string(facts->device_ops));
    fields.emplace_back("fallback_ops", std::to_string(facts->fallback_ops));
  }
  return fields;
}

}  // namespace collet::conformance
