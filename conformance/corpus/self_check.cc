// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "conformance/corpus/round_trip.h"
#include "hlo/passes/passes.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/testing/checks.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Check;
using hlo::Module;
namespace mlir = hlo::mlir;

EntryOutcome failed(const Status& status) {
  return {CorpusStatus::Fail, status.to_string()};
}

Expected<std::vector<std::unique_ptr<mlir::Program>>> read_programs(const std::string& path) {
  COLLET_ASSIGN(const std::string bytes, contents(path));
  std::vector<std::unique_ptr<mlir::Program>> programs;
  if (mlir::is_bytecode(bytes)) {
    COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, mlir::read_bytecode(bytes));
    programs.push_back(std::move(program));
    return programs;
  }
  for (std::string_view piece : mlir::split_programs(bytes)) {
    COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, mlir::read_text(piece, path));
    programs.push_back(std::move(program));
  }
  return programs;
}

/// Translates and verifies a program, and checks that printing and reading gives the same module.
Expected<std::unique_ptr<Module>> translate(const mlir::Program& program, std::string_view entry) {
  COLLET_ASSIGN(std::unique_ptr<Module> module, hlo::import_program(program, {.entry = entry}));
  COLLET_TRY(hlo::verify_module(*module));
  COLLET_TRY(check_round_trip(*module));
  return module;
}

/// Reads the results that the checks in the text expect.
Expected<std::vector<hlo::ExpectedResult>> expected_of_text(const std::string& path) {
  COLLET_ASSIGN(const auto programs, read_programs(path));
  if (programs.size() != 1) return invalid_argument(path + ": more than one program");
  COLLET_ASSIGN(std::unique_ptr<Module> module, hlo::import_program(*programs[0]));
  hlo::PassContext context;
  COLLET_TRY(hlo::inline_calls(*module, context).status());
  return hlo::expected_results(*module);
}

Expected<std::vector<hlo::Literal>> run_without_arguments(const Module& module, LazySession& session) {
  COLLET_ASSIGN(const Session* opened, session.get());
  COLLET_ASSIGN(const Program program, opened->compile(hlo::print_module(module), {}));
  return program.run({});
}

/// Runs the module and compares its checks; returns their number.
Expected<size_t> run_checks(Module& module, LazySession& session) {
  hlo::PassContext context;
  COLLET_TRY(hlo::inline_calls(module, context).status());
  COLLET_ASSIGN(const std::vector<Check> checks, hlo::lift_checks(module));
  if (checks.empty()) return size_t{0};
  COLLET_ASSIGN(const std::vector<hlo::Literal> results, run_without_arguments(module, session));
  for (const Check& check : checks) {
    if (check.expected >= results.size()) return internal_error("the program gives too few results");
    COLLET_TRY(hlo::compare_check(check, results[check.actual], results[check.expected]));
  }
  return checks.size();
}

/// Runs the checks of the artifact or, if the compiler that wrote it has removed them, those of the text with the same
/// stem.
Expected<size_t> run_artifact_checks(Module& module, const std::string& path, LazySession& session) {
  COLLET_ASSIGN(const size_t own, run_checks(module, session));
  if (own > 0) return own;
  const std::string twin = std::filesystem::path(path).replace_extension(".mlir").string();
  COLLET_ASSIGN(const std::vector<hlo::ExpectedResult> wanted, expected_of_text(twin));
  if (wanted.empty()) return size_t{0};
  COLLET_ASSIGN(const std::vector<hlo::Literal> results, run_without_arguments(module, session));
  for (const hlo::ExpectedResult& want : wanted) {
    if (want.result >= results.size()) return internal_error("the program gives too few results");
    COLLET_TRY(hlo::compare_check(want.check, results[want.result], want.value));
  }
  return wanted.size();
}

}  // namespace

EntryOutcome run_self_checking(const std::string& path, bool checks, LazySession& session) {
  const auto programs = read_programs(path);
  if (!programs.ok()) return failed(programs.status());
  const bool is_artifact = std::filesystem::path(path).extension() == ".mlirbc";
  size_t functions = 0, compared = 0;
  for (const std::unique_ptr<mlir::Program>& program : *programs) {
    std::vector<std::string_view> entries{"main"};
    // If there is a function main, other functions without arguments are helpers, not tests.
    const std::vector<std::string_view> all = hlo::functions_without_arguments(*program);
    const bool has_main = std::find(all.begin(), all.end(), "main") != all.end();
    if (!has_main && !all.empty()) entries = all;
    for (std::string_view entry : entries) {
      auto module = translate(*program, entry);
      if (!module.ok()) return failed(module.status().with_prefix(fmt::format("@{}: ", entry)));
      ++functions;
      if (!checks) continue;
      const Expected<size_t> done =
          is_artifact ? run_artifact_checks(**module, path, session) : run_checks(**module, session);
      if (!done.ok()) return failed(done.status().with_prefix(fmt::format("@{}: ", entry)));
      compared += *done;
    }
  }
  if (checks && compared == 0) return {CorpusStatus::Fail, "no check was made"};
  return {CorpusStatus::Pass, fmt::format("{} functions, {} checks", functions, compared)};
}

}  // namespace collet::conformance
