// SPDX-License-Identifier: Apache-2.0
// Runs random modules through the pipelines and through passes in random order: their results must not change. A
// failure reports its seed; COLLET_RANDOM_SEED=N runs that seed only and prints the module; COLLET_RANDOM_FIRST=N
// starts at seed N.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/testing/claims.h"
#include "hlo/testing/equivalence.h"
#include "hlo/testing/inputs.h"
#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

using Way = Status (*)(Module&, const PassObserver&, uint64_t seed, std::string& told);

Status optimized(Module& module, const PassObserver& observer, uint64_t seed, std::string& told) {
  PassContext context;
  COLLET_TRY(prepare(module, context, observer).status());
  if (seed % 3 == 0) {
    told = "canonical";
    COLLET_TRY(canonicalize(module, context, observer).status());
  }
  COLLET_TRY(propose_fusions(module, context, observer).status());
  static constexpr std::string_view kOrder[] = {"schedule"};
  return run_passes(module, context, kOrder, observer).status();
}

Status expanded(Module& module, const PassObserver& observer, uint64_t seed, std::string& told) {
  PassContext context;
  COLLET_TRY(prepare(module, context, observer).status());
  context.claim = seed % 4 == 0 ? testing::claim_nothing : testing::claim_core;
  told = seed % 4 == 0 ? "nothing is taken" : "core is taken";
  return legalize(module, context, observer).status();
}

// Runs some passes in random order, some of them twice. A pass that needs flat tuples or static shapes must check that
// itself.
Status shuffled(Module& module, const PassObserver& observer, uint64_t seed, std::string& told) {
  PassContext context;
  context.claim = testing::claim_core;
  std::vector<std::string_view> names;
  const uint64_t count = 3 + mix(seed) % 10;
  for (uint64_t i = 0; i < count; ++i) names.push_back(passes()[mix(seed * 131 + i) % passes().size()].name);
  for (std::string_view name : names) told += (told.empty() ? "" : ",") + std::string(name);
  return run_passes(module, context, names, observer).status();
}

std::vector<Literal> leaves(const Literal& value) {
  return flatten(value);
}

std::string compare(const Literal& expected, const Literal& actual) {
  const std::vector<Literal> a = leaves(expected), b = leaves(actual);
  if (a.size() != b.size()) return "another number of results";
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string difference = testing::difference(a[i], b[i], {1e-10, 1e-5});
    if (!difference.empty()) return "result " + std::to_string(i) + ": " + difference;
  }
  return {};
}

EvalOptions listening(std::vector<Literal>& sent) {
  EvalOptions options;
  options.outfeed = [&sent](const Literal& value) {
    sent.push_back(value);
    return ok_status();
  };
  return options;
}

// Returns the fault that one seed shows; empty if there is none.
std::string check(uint64_t seed, bool show) {
  testing::RandomModule options;
  options.steps = 8 + static_cast<int>(seed % 40);
  options.everything = seed % 4 != 0;
  options.effects = seed % 5 == 0;
  const std::string text = testing::random_module(seed, options);
  if (show) std::cout << text;
  auto module = parse_module(text, "random");
  if (!module.ok()) return "the generator: " + module.status().to_string();
  if (Status status = verify_module(**module); !status.ok()) return "the generator: " + status.to_string();
  const std::vector<Literal> inputs = testing::entry_inputs(**module);
  std::vector<Literal> sent, sent_after;
  const auto expected = Evaluator(**module, listening(sent)).run(inputs);
  if (!expected.ok()) return "before: " + expected.status().to_string();
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  for (Way way : {&optimized, &expanded, &shuffled}) {
    auto after = (*module)->clone();
    std::string told;
    if (Status status = way(*after, observer, seed, told); !status.ok()) return told + ": " + status.to_string();
    if (show) std::cout << "// " << told << "\n" << print_module(*after, {});
    sent_after.clear();
    const auto actual = Evaluator(*after, listening(sent_after)).run(inputs);
    if (!actual.ok()) return told + ": after: " + actual.status().to_string();
    if (const std::string what = compare(*expected, *actual); !what.empty()) return told + ": " + what;
    if (sent.size() != sent_after.size())
      return told + ": sent " + std::to_string(sent_after.size()) + " times, not " + std::to_string(sent.size());
    for (size_t i = 0; i < sent.size(); ++i)
      if (const std::string what = compare(sent[i], sent_after[i]); !what.empty()) return told + ": sent: " + what;
  }
  return {};
}

void sweep(uint64_t from, uint64_t to) {
  const char* only = std::getenv("COLLET_RANDOM_SEED");
  if (only) {
    from = std::strtoull(only, nullptr, 10);
    to = from + 1;
  } else if (const char* first = std::getenv("COLLET_RANDOM_FIRST")) {
    to -= from;
    from = std::strtoull(first, nullptr, 10);
    to += from;
  }
  int failures = 0;
  for (uint64_t seed = from; seed < to && failures < 20; ++seed) {
    const std::string complaint = check(seed, only != nullptr);
    failures += !complaint.empty();
    EXPECT_TRUE(complaint.empty()) << "COLLET_RANDOM_SEED=" << seed << ": " << complaint;
  }
}

TEST(Random, modules_keep_what_they_compute) {
  sweep(0, 3000);
}

TEST(RandomLong, modules_keep_what_they_compute) {
  sweep(1000, 21000);
}

}  // namespace
}  // namespace collet::hlo
