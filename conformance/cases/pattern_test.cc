// SPDX-License-Identifier: Apache-2.0
// Tests that the SDK finds in each case of a pattern exactly that pattern, with no ops left over.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string_view>

#include "conformance/cases/case.h"
#include "hlo/passes/pipeline.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

// Returns the composites in the program for a device that supports all patterns; empty if the program is refused.
std::vector<std::string> patterns_in(const Case& one) {
  auto module = hlo::parse_module(one.text, one.name);
  if (!module.ok() || !hlo::verify_module(**module).ok()) return {};
  hlo::PassContext context;
  if (!hlo::prepare_patterns(**module, context).ok()) return {};
  if (!hlo::run_passes(**module, context, std::array{std::string_view("eliminate_dead")}).ok()) return {};
  std::vector<std::string> found;
  for (const hlo::InstrId id : (*module)->entry_computation().order) {
    const hlo::Instruction& instr = (**module)[id];
    if (instr.op == Op::PARAMETER) continue;
    const bool composite = instr.op == Op::CALL && instr.as<hlo::CallAttrs>().is_composite;
    found.push_back(composite ? std::string(std::string_view(instr.as<hlo::CallAttrs>().name)) : "an op of its own");
  }
  return found;
}

TEST(PatternCases, HoldWhatTheSdkFinds) {
  size_t bad = 0;
  for (const Case& one : all_cases(true)) {
    if (one.pattern.empty() || bad > 20) continue;
    const std::vector<std::string> found = patterns_in(one);
    if (found == std::vector{one.pattern}) continue;
    ++bad;
    std::string all;
    for (const std::string& name : found) all += " " + name;
    ADD_FAILURE() << one.name << " has:" << all << "\n" << one.text;
  }
}

TEST(PatternCases, BeginWithThePattern) {
  for (const Case& one : all_cases(true)) {
    if (one.pattern.empty()) continue;
    EXPECT_TRUE(one.name.starts_with(one.pattern + "/")) << one.name;
  }
}

TEST(PatternCases, AreThereForEachPatternAndType) {
  std::map<std::string, std::set<Type>, std::less<>> types;
  for (const Case& one : all_cases(false))
    if (!one.pattern.empty()) types[one.pattern].insert(one.type);
  const std::vector<std::string_view> known = hlo::pattern_names();
  ASSERT_FALSE(known.empty());
  // The types of a quantized pattern's cases are those of the stored numbers.
  const std::set<std::string, std::less<>> quantized = {"integer_dot",        "integer_convolution", "scaled_dot",
                                                        "scaled_convolution", "dequantized_dot",     "requantize",
                                                        "quantize",           "quantized_attention", "integer_add"};
  for (const std::string_view name : known) {
    const std::set<Type> wanted =
        quantized.contains(name) ? std::set<Type>{Type::S8} : std::set<Type>{Type::F32, Type::BF16, Type::F16};
    for (const Type type : wanted)
      EXPECT_TRUE(types[std::string(name)].contains(type)) << name << " " << type_name(type);
  }
  EXPECT_EQ(types.size(), known.size());
}

}  // namespace
}  // namespace collet::conformance
