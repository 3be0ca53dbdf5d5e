// SPDX-License-Identifier: Apache-2.0
// Runs passes on testdata/*.hlo and compares the printed module with the expected one. The first lines of a file choose
// what runs: `// pass: a,b` or `// pipeline: name`; `// claim: core` makes legalize expand all ops that are not core
// ops, `// claim: nothing` all ops that can be expanded. `// order: any` compares programs up to the order and the
// numbers of new instructions: what is built inside the arguments of one call has another order with each compiler.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <unordered_set>

#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
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

std::string print_short(const Module& module) {
  PrintOptions options;
  options.style = PrintStyle::Short;
  options.layouts = false;
  return print_module(module, options);
}

/// Puts the instructions of a computation in the order in which the root and those without users need them, from the first
/// operand to the last.
void order_by_operands(const Module& module, Computation& computation) {
  std::vector<InstrId> order;
  std::unordered_set<InstrId> placed;
  const auto place = [&](InstrId wanted) {
    std::vector<std::pair<InstrId, bool>> stack = {{wanted, false}};
    while (!stack.empty()) {
      const auto [id, has_operands] = stack.back();
      stack.pop_back();
      if (placed.contains(id)) continue;
      if (has_operands) {
        placed.insert(id);
        order.push_back(id);
        continue;
      }
      stack.emplace_back(id, true);
      for (size_t i = module[id].operands.size(); i-- > 0;) stack.emplace_back(module[id].operand(i), false);
    }
  };
  for (InstrId id : computation.parameters) place(id);
  place(computation.root);
  const std::vector<InstrId> rest(computation.order.begin(), computation.order.end());
  for (InstrId id : rest) place(id);
  computation.order.assign(order.begin(), order.end());
}

/// Makes equal what differs only in the order in which instructions and computations from `first` on were created.
void make_order_canonical(Module& module, uint32_t first) {
  for (CompId c : module.computations()) order_by_operands(module, module[c]);
  order_computations(module);
  std::map<std::string, int> count;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      if (index_of(id) < first) continue;
      const std::string stem(op_info(module[id].op).text);
      module[id].name = module.arena().string(stem + "." + std::to_string(++count[stem]));
    }
}

Expected<std::string> apply(const testing::GoldenCase& golden) {
  COLLET_ASSIGN(auto module, parse_module(golden.input, golden.path));
  const auto first_new = static_cast<uint32_t>(module->instruction_limit());
  const auto printed = [&](Module& result) {
    const auto order = golden.directives.find("order");
    if (order != golden.directives.end() && order->second == "any") make_order_canonical(result, first_new);
    return print_short(result);
  };
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
