// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "conformance/contract/contract.h"
#include "conformance/runner/conform.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/random_case.h"
#include "conformance/runner/serve_processes.h"
#include "conformance/runner/soak.h"
#include "hlo/base/sha256.h"

// Selects the cases of a run.

namespace collet::conformance {
namespace {

// Returns all cases. Cases of the grid have names only, except those for which `wanted` holds, which have their programs.
std::vector<Case> every_case(bool full, const std::function<bool(const std::string&)>& wanted = {}) {
  std::vector<Case> cases;
  for (const ContractCase& one : contract_cases()) cases.push_back({.name = one.name, .text = describe_case(one)});
  for (Case& one : all_cases(full)) cases.push_back(std::move(one));
  if (!full) return cases;
  for (const GridBlock& block : grid_blocks()) {
    std::vector<Case> some = grid_cases(block, true);
    if (wanted && std::any_of(some.begin(), some.end(), [&](const Case& one) { return wanted(one.name); }))
      some = grid_cases(block, false);
    std::move(some.begin(), some.end(), std::back_inserter(cases));
  }
  return cases;
}

bool matches(const std::vector<std::string>& filters, const std::string& name) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
           return fnmatch(filter.c_str(), name.c_str(), 0) == 0;
         });
}

// More random programs than a worker can run per second, which bounds the number in a run.
constexpr double kRandomPerSecond = 2000;
constexpr uint64_t kMostRandom = 1000000;

bool is_chosen(const ConformOptions& options, const Case& one) {
  if (options.fuzz_seconds > 0 || options.soak_seconds > 0) return false;
  if (!options.names.empty() && !options.names.contains(one.name)) return false;
  if (!matches(options.filters, one.name)) return false;
  return options.profiles.empty() ||
         std::any_of(options.profiles.begin(), options.profiles.end(), [&](const std::string& name) {
           const Profile* profile = find_profile(name);
           return profile != nullptr && profile->holds(one.name, one.op, one.type);
         });
}

// Returns a text with everything that defines a case, and nothing that depends on where it runs.
std::string description(const Case& one) {
  std::string text = fmt::format("{}\n{}\n{} {} {} {} {} {} {} {} {} {} {}\n", one.name, one.text, one.pattern,
                                 static_cast<int>(one.bound.kind), one.bound.ulps, one.bound.terms, one.bound.wide,
                                 one.bound.signed_data, one.bound.exact, one.bound.conditioned, one.bound.triangle,
                                 one.bound.operands, one.bound.additions);
  for (const InputSpec& input : one.inputs)
    text += fmt::format("{} {} {} {} {}\n", values_name(input.values), input.low, input.high, input.definite,
                        fmt::join(input.fixed, " "));
  return text + '\0';
}

}  // namespace

std::vector<Case> chosen_cases(const ConformOptions& options, bool with_programs) {
  std::vector<Case> cases = !options.cases.empty()  ? options.cases
                            : options.processes > 0 ? cases_of_processes(options)
                                                    : every_case(options.full, [&](const std::string& name) {
                                                        return with_programs && matches(options.filters, name) &&
                                                               (options.names.empty() || options.names.contains(name));
                                                      });
  if (options.cases.empty()) cases.insert(cases.end(), options.declared.begin(), options.declared.end());
  std::erase_if(cases, [&](const Case& one) { return !is_chosen(options, one); });
  // Random programs are chosen by their names alone.
  for (const std::string& filter : options.filters)
    if (const auto seed = random_case_seed(filter))
      cases.push_back({.name = filter, .text = with_programs ? random_case_text(*seed) : "", .pattern = "random"});
  const double random =
      std::min(kRandomPerSecond * options.fuzz_seconds * options.jobs, static_cast<double>(kMostRandom));
  for (uint64_t i = 0; i < static_cast<uint64_t>(random); ++i)
    cases.push_back({.name = random_case_name(options.seed + i), .pattern = "random"});
  for (unsigned i = 0; options.soak_seconds > 0 && i < options.jobs; ++i)
    cases.push_back({.name = soak_case_name(options.seed + i), .pattern = "soak"});
  std::vector<Case> shard;
  for (size_t i = options.shard; i < cases.size(); i += options.shards) shard.push_back(std::move(cases[i]));
  return shard;
}

std::vector<std::string> idle_filters(const ConformOptions& options) {
  std::vector<Case> cases = !options.cases.empty()  ? options.cases
                            : options.processes > 0 ? cases_of_processes(options)
                                                    : every_case(options.full);
  if (options.cases.empty()) cases.insert(cases.end(), options.declared.begin(), options.declared.end());
  std::vector<std::string> idle;
  for (const std::string& filter : options.filters) {
    if (random_case_seed(filter)) continue;
    const auto is_matched = [&](const Case& one) { return matches({filter}, one.name); };
    if (std::none_of(cases.begin(), cases.end(), is_matched)) idle.push_back(filter);
  }
  return idle;
}

std::string suite_digest(const ConformOptions& options) {
  Sha256 digest;
  size_t number = 0;
  const auto take = [&](const Case& one) {
    if (is_chosen(options, one) && number++ % options.shards == options.shard) digest.add(description(one));
  };
  for (const ContractCase& one : contract_cases()) take({.name = one.name, .text = describe_case(one)});
  for (const Case& one : all_cases(options.full)) take(one);
  for (const GridBlock& block : options.full ? grid_blocks() : std::vector<GridBlock>())
    for (const Case& one : grid_cases(block, false)) take(one);
  return digest.finish();
}

}  // namespace collet::conformance
