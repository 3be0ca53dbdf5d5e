// SPDX-License-Identifier: Apache-2.0
// Runs passes on testdata/*.hlo and compares the printed module with the expected one. The first lines of a file choose
// what runs: `// pass: a,b` or `// pipeline: name`; `// claim: core` makes legalize expand all ops that are not core
// ops, `// claim: nothing` all ops that can be expanded.
#include <gtest/gtest.h>

#include <sstream>

#include "hlo/passes/pipeline.h"
#include "hlo/testing/claims.h"
#include "hlo/testing/golden.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) out.push_back(item);
  return out;
}

std::string printed(const Module& module) {
  PrintOptions options;
  options.style = PrintStyle::Short;
  options.layouts = false;
  return print_module(module, options);
}

Expected<std::string> apply(const testing::GoldenCase& golden) {
  COLLET_ASSIGN(auto module, parse_module(golden.input, golden.path));
  PassContext context;
  context.replica_count = module->header().replica_count;
  context.partition_count = module->header().num_partitions;
  if (auto it = golden.directives.find("claim"); it != golden.directives.end())
    context.claim = it->second == "nothing" ? testing::claim_nothing : testing::claim_core;
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  if (auto it = golden.directives.find("pipeline"); it != golden.directives.end()) {
    const Pipeline* pipeline = find_pipeline(it->second);
    if (!pipeline) return not_found("no pipeline is called " + it->second);
    COLLET_TRY(pipeline->run(*module, context, observer).status());
    return printed(*module);
  }
  auto it = golden.directives.find("pass");
  if (it == golden.directives.end()) return invalid_argument("neither pass nor pipeline is named");
  const std::vector<std::string> names = split(it->second);
  const std::vector<std::string_view> views(names.begin(), names.end());
  COLLET_TRY(run_passes(*module, context, views, observer).status());
  const PassInfo* last = find_pass(names.back());
  if (last->idempotent) {
    const std::string once = printed(*module);
    COLLET_ASSIGN(const bool again, last->run(*module, context));
    if (again || printed(*module) != once)
      return internal_error("pass " + names.back() + " changes what it has just made:\n" +
                            testing::line_difference(once, printed(*module)));
  }
  return printed(*module);
}

TEST(Golden, files_become_what_they_say) {
  const auto files = testing::golden_files("hlo/passes/testdata");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    const std::string complaint = testing::check_golden(file, apply);
    EXPECT_TRUE(complaint.empty()) << complaint;
  }
}

TEST(Golden, each_pass_has_a_file) {
  std::string all;
  for (const std::string& file : testing::golden_files("hlo/passes/testdata")) {
    const auto golden = testing::read_golden(file);
    if (golden.ok() && golden->directives.contains("pass")) all += "," + golden->directives.at("pass") + ",";
  }
  for (const PassInfo& pass : passes())
    EXPECT_NE(all.find("," + std::string(pass.name) + ","), std::string::npos) << pass.name << " has none";
}

}  // namespace
}  // namespace collet::hlo
