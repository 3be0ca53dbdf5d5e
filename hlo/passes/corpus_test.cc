// SPDX-License-Identifier: Apache-2.0
// Runs the pass pipelines over the HLO programs of the corpus: a module's results stay the same, passes marked
// idempotent change nothing in a second run, and the module is valid after each pass. By default only a sample runs;
// COLLET_CORPUS_STRIDE=1 runs every program.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/testing/claims.h"
#include "hlo/testing/corpus.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::string corpus_folder() {
  const char* folder = std::getenv("COLLET_CORPUS_DIR");
  return folder ? folder : "";
}

int stride(int usual) {
  const char* text = std::getenv("COLLET_CORPUS_STRIDE");
  return text ? std::max(1, std::atoi(text)) : usual;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

constexpr std::chrono::seconds kPatience{3};

// Evaluates the module. Returns an error if the time limit or the evaluator stops it.
Expected<Literal> evaluate_module(const Module& module, std::vector<Literal> inputs) {
  EvalOptions options;
  std::atomic<bool> cancel{false};
  options.cancel = &cancel;
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  std::thread watch([&] {
    std::unique_lock lock(mutex);
    if (!done.wait_for(lock, kPatience, [&] { return finished; })) cancel = true;
  });
  auto out = Evaluator(module, options).run(std::move(inputs));
  {
    std::lock_guard lock(mutex);
    finished = true;
  }
  done.notify_all();
  watch.join();
  return out;
}

struct Counts {
  int run = 0, evaluated = 0, failed = 0;
  std::vector<std::string> refused;  // errors of passes that cannot handle a program
};

using Run = Expected<bool> (*)(Module&, PassContext&, const PassObserver&);

// True if the results of the module are not determined by the inputs that the test generates: group sizes may be
// negative, matrices may not be positive definite, and random numbers may differ.
bool is_undefined(const Module& module) {
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      const Op op = module[id].op;
      if (op == Op::RAGGED_DOT || op == Op::CHOLESKY || op == Op::RNG) return true;
    }
  return false;
}

void check_file(const std::string& name, const std::string& text, Run run, bool core_only, Counts& counts) {
  auto module = parse_module(text, name);
  if (!module.ok() || !verify_module(**module).ok()) return;
  ++counts.run;
  auto after = (*module)->clone();
  PassContext context;
  context.replica_count = (*module)->header().replica_count;
  context.partition_count = (*module)->header().num_partitions;
  if (core_only) context.claim = testing::claim_core;
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  const auto changed = run(*after, context, observer);
  if (changed.status().code() == Code::Unimplemented) {
    counts.refused.push_back(name + ": " + changed.status().to_string());
    return;
  }
  if (!changed.ok()) {
    ++counts.failed;
    ADD_FAILURE() << name << ": " << changed.status().to_string();
    return;
  }
  if (context.replica_count * context.partition_count != 1) return;
  if (is_undefined(**module)) return;
  const auto inputs = testing::entry_inputs(**module);
  int64_t bytes = 0;
  for (const Literal& input : inputs) bytes += input.byte_size();
  if (bytes > int64_t{4} << 20) return;
  const auto expected = evaluate_module(**module, inputs);
  if (!expected.ok()) return;
  ++counts.evaluated;
  std::vector<Literal> flat;
  for (const Literal& input : inputs)
    for (const Literal& leaf : flatten(input)) flat.push_back(leaf);
  bool same = inputs.size() == after->entry_computation().parameters.size();
  for (size_t i = 0; i < inputs.size() && same; ++i)
    same = inputs[i].shape().compatible((*after)[after->entry_computation().parameters[i]].shape);
  if (same) flat = inputs;
  const auto actual = evaluate_module(*after, flat);
  if (!actual.ok() && actual.status().code() == Code::Cancelled) return;
  if (!actual.ok()) {
    ++counts.failed;
    ADD_FAILURE() << name << ": after: " << actual.status().to_string();
    return;
  }
  const std::string text_of_difference = testing::difference(*expected, *actual, {1e-10, 1e-4});
  if (!text_of_difference.empty()) {
    ++counts.failed;
    ADD_FAILURE() << name << ": " << text_of_difference;
  }
}

void check_corpus(Run run, bool core_only, int usual) {
  const std::string folder = corpus_folder();
  if (folder.empty()) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    if (required && std::string_view(required) == "1") FAIL() << "COLLET_CORPUS_DIR is not set";
    GTEST_SKIP() << "COLLET_CORPUS_DIR is not set: no program of the corpus was run";
  }
  const auto index = testing::read_index(folder + "/xla-tests.jsonl");
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  Counts counts;
  const char* only = std::getenv("COLLET_CORPUS_ONLY");
  for (size_t i = 0; i < index->entries.size(); ++i) {
    const auto& entry = index->entries[i];
    if (!entry.read || (!only && i % static_cast<size_t>(stride(usual)) != 0)) continue;
    if (only && entry.file.find(only) == std::string::npos) continue;
    if (entry.stopped_at == "hang" || entry.stopped_at == "large") continue;
    if (std::getenv("COLLET_CORPUS_TRACE")) std::cerr << entry.file << std::endl;
    check_file(entry.file, read_file(index->folder + "/" + entry.file), run, core_only, counts);
  }
  std::cout << counts.run << " modules through, " << counts.evaluated << " evaluated before and after, "
            << counts.failed << " failed, " << counts.refused.size() << " refused\n";
  for (const std::string& text : counts.refused) std::cout << text << "\n";
  // Two programs of the corpus have an unknown custom call whose results have dynamic sizes; pad_dynamic refuses them.
  EXPECT_LE(counts.refused.size(), 2u);
  EXPECT_GT(counts.evaluated, 0);
}

Expected<bool> prepare_and_legalize(Module& module, PassContext& context, const PassObserver& observer) {
  COLLET_ASSIGN(const bool first, prepare(module, context, observer));
  COLLET_ASSIGN(const bool second, legalize(module, context, observer));
  return first || second;
}

TEST(Corpus, expansion_keeps_what_modules_compute) {
  check_corpus(&prepare_and_legalize, true, 40);
}

// Runs each pass that passes.def marks as idempotent twice on what prepare returns; the second run must change nothing.
Expected<bool> each_pass_twice(Module& module, PassContext& context, const PassObserver& observer) {
  COLLET_TRY(prepare(module, context, observer).status());
  context.claim = testing::claim_core;
  for (const PassInfo& pass : passes()) {
    if (!pass.idempotent) continue;
    const std::string_view name[] = {pass.name};
    COLLET_TRY(run_passes(module, context, name, observer).status());
    const std::string once = print_module(module);
    COLLET_ASSIGN(const bool again, run_passes(module, context, name, observer));
    if (again || print_module(module) != once)
      return internal_error(std::string(pass.name) + " does more when run twice");
  }
  return true;
}

TEST(Corpus, idempotent_passes_change_nothing_when_run_twice) {
  check_corpus(&each_pass_twice, false, 8);
}

// Does the same on unprepared programs, each pass on its own copy. A pass must itself check that a module has the form
// that it needs.
Expected<bool> each_pass_alone(Module& module, PassContext& context, const PassObserver& observer) {
  for (const PassInfo& pass : passes()) {
    auto copy = module.clone();
    PassContext own = context;
    own.claim = testing::claim_core;
    const std::string_view name[] = {pass.name};
    const auto first = run_passes(*copy, own, name, observer);
    if (first.status().code() == Code::Unimplemented) continue;
    COLLET_TRY(first.status());
    if (!pass.idempotent) continue;
    const std::string once = print_module(*copy);
    COLLET_ASSIGN(const bool again, run_passes(*copy, own, name, observer));
    if (again || print_module(*copy) != once)
      return internal_error(std::string(pass.name) + " alone does more when run twice");
  }
  return false;
}

TEST(Corpus, passes_take_programs_as_they_come) {
  check_corpus(&each_pass_alone, false, 8);
}

Expected<bool> prepare_and_canonicalize(Module& module, PassContext& context, const PassObserver& observer) {
  COLLET_ASSIGN(const bool first, prepare(module, context, observer));
  COLLET_ASSIGN(const bool second, canonicalize(module, context, observer));
  return first || second;
}

TEST(Corpus, canonical_forms_keep_what_modules_compute) {
  check_corpus(&prepare_and_canonicalize, false, 8);
}

Expected<bool> prepare_and_fuse(Module& module, PassContext& context, const PassObserver& observer) {
  COLLET_ASSIGN(const bool first, prepare(module, context, observer));
  COLLET_ASSIGN(const bool second, propose_fusions(module, context, observer));
  static constexpr std::string_view kOrder[] = {"schedule"};
  COLLET_ASSIGN(const bool third, run_passes(module, context, kOrder, observer));
  return first || second || third;
}

TEST(Corpus, fusion_keeps_what_modules_compute) {
  check_corpus(&prepare_and_fuse, false, 8);
}

TEST(Corpus, prepare_keeps_what_modules_compute) {
  check_corpus(&prepare, false, 8);
}

}  // namespace
}  // namespace collet::hlo
