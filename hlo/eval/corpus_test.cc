// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>

#include "hlo/eval/evaluator.h"
#include "hlo/ops/flops.h"
#include "hlo/testing/agreement.h"
#include "hlo/testing/deadline.h"
#include "hlo/text/parser.h"

// Compares the evaluator's results with known ones of the corpus. COLLET_CORPUS_DIR names its folder;
// COLLET_CORPUS_ONLY, if set, selects the cases whose name contains it. Models of more than kFewOperations are evaluated
// only if COLLET_CORPUS_WHOLE is 1.

namespace collet::hlo {
namespace {

using testing::Agreement;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool chosen(const std::string& name) {
  return name.find(environment("COLLET_CORPUS_ONLY")) != std::string::npos;
}

bool corpus_missing(const std::string& what) {
  if (!environment("COLLET_CORPUS_DIR").empty()) return false;
  EXPECT_NE(environment("COLLET_REQUIRE_CORPUS"), "1") << "COLLET_CORPUS_DIR is not set";
  std::cout << "not run: " << what << " (COLLET_CORPUS_DIR is not set)\n";
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The index has two loops of 2^31 iterations, which XLA does not run, as it knows their results. All other modules end
// in ten seconds.
constexpr int kModuleSeconds = 20;
constexpr int kModelSeconds = 600;  // on a machine of any speed

Expected<std::vector<Literal>> run(const std::string& path, int limit_s, std::vector<Literal> inputs, bool as_f64,
                                   bool other_choices = false) {
  ParseOptions options;
  options.floats_as_f64 = as_f64;
  COLLET_ASSIGN(const std::unique_ptr<Module> module, parse_module(read_file(path), path, options));
  const testing::Deadline deadline(limit_s);
  EvalOptions eval;
  eval.cancel = deadline.flag();
  eval.other_choices = other_choices;
  eval.outfeed = [](const Literal&) { return ok_status(); };
  COLLET_ASSIGN(const Literal result, Evaluator(*module, eval).run(std::move(inputs)));
  return flatten(result);
}

std::vector<Literal> widened(const std::vector<Literal>& values) {
  std::vector<Literal> out;
  for (const Literal& value : values) {
    const Type type = value.type();
    const bool widens = type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::C64;
    const Type wide = is_complex(type) ? Type::C128 : Type::F64;
    out.push_back(widens ? testing::converted(value, value.shape().with_type(wide)) : value);
  }
  return out;
}

constexpr double kFewOperations = 1e9;

// Returns the arithmetic operations of all computations, each counted once.
Expected<double> operations_of(const std::string& path) {
  COLLET_ASSIGN(const std::unique_ptr<Module> module, parse_module(read_file(path), path));
  double operations = 0;
  for (const CompId computation : module->computations())
    for (const InstrId id : (*module)[computation].order) {
      const Instruction& instr = (*module)[id];
      if (op_info(instr.op).op_class != OpClass::EXECUTOR) operations += flops_of(*module, instr);
    }
  return operations;
}

TEST(EvalCorpus, AgreesWithTheIndex) {
  if (corpus_missing("the results of an index of modules")) GTEST_SKIP();
  const auto index = testing::read_index(environment("COLLET_CORPUS_DIR") + "/xla-tests.jsonl");
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  int64_t all = 0, good = 0;
  for (const testing::IndexEntry& entry : index->entries) {
    if (!entry.has_result() || !chosen(entry.file)) continue;
    ++all;
    const auto begin = std::chrono::steady_clock::now();
    const auto expected = testing::expected_results(*index, entry);
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();
    const std::string path = index->folder + "/" + entry.file;
    const auto inputs = testing::inputs_by_type(entry.inputs);
    const auto got = run(path, kModuleSeconds, inputs, false);
    Agreement agreement =
        got.ok() ? testing::agrees_with_index(*expected, *got) : Agreement{false, 0, got.status().to_string()};
    if (got.ok() && !agreement.agrees) {
      const auto wide = run(path, kModuleSeconds, widened(inputs), true),
                 other = run(path, kModuleSeconds, inputs, false, true);
      testing::VariantLists variants{*got, {}, {}};
      if (wide.ok()) variants.wide = *wide;
      if (other.ok()) variants.other = *other;
      agreement = testing::agrees_with_index(*expected, *got, variants);
      if (agreement.agrees) std::cout << "agrees with a note: " << entry.file << ": " << agreement.detail << '\n';
    }
    good += agreement.agrees;
    if (!agreement.agrees) std::cout << "differs: " << entry.file << ": " << agreement.detail << '\n';
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds > 2) std::cout << "slow: " << entry.file << ": " << seconds << " s\n";
  }
  std::cout << good << " of " << all << " results agree\n";
  EXPECT_GE(static_cast<double>(good), 0.99 * static_cast<double>(all));
}

TEST(EvalCorpus, AgreesWithTheModels) {
  if (corpus_missing("the models")) GTEST_SKIP();
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  for (const auto& folder : fs::directory_iterator(environment("COLLET_CORPUS_DIR") + "/models"))
    if (fs::exists(folder.path() / "case.json")) folders.push_back(folder.path().string());
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    if (!chosen(fs::path(folder).filename().string())) continue;
    const auto model = testing::read_model(folder);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    const auto operations = operations_of(model->program);
    ASSERT_TRUE(operations.ok()) << operations.status().to_string();
    if (*operations > kFewOperations && environment("COLLET_CORPUS_WHOLE") != "1") {
      std::cout << model->name << ": not run, COLLET_CORPUS_WHOLE is not 1\n";
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    double worst = 0;
    // If the error of the other implementation shows that the module is ill-conditioned, the program is evaluated in
    // f64 instead.
    const bool ill = std::any_of(model->outputs.begin(), model->outputs.end(), [](const testing::ModelOutput& output) {
      return !output.exact && output.xla_max_abs_error > 1e-4 * output.max_abs;
    });
    for (bool as_f64 : {false, true}) {
      if (as_f64 && !ill) continue;
      const auto got = run(model->program, kModelSeconds, testing::model_inputs(model->inputs, as_f64), as_f64);
      ASSERT_TRUE(got.ok()) << model->name << ": " << got.status().to_string();
      ASSERT_EQ(got->size(), model->outputs.size()) << model->name;
      for (size_t k = 0; k < got->size(); ++k) {
        if (as_f64 && model->outputs[k].xla_max_abs_error <= 1e-4 * model->outputs[k].max_abs) continue;
        const Agreement agreement = testing::agrees_with_model(model->outputs[k], (*got)[k], as_f64);
        EXPECT_LE(agreement.worst, 1) << model->name << (as_f64 ? " in f64" : "") << " output " << k << ": "
                                      << agreement.detail;
        worst = std::max(worst, agreement.worst);
      }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::cout << model->name << ": " << worst << " of the bound, " << seconds << " s\n";
  }
}

}  // namespace
}  // namespace collet::hlo
