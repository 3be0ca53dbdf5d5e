// SPDX-License-Identifier: Apache-2.0
// Tests that the fusions of the contract cases are among those that the SDK proposes, and that their results change if
// an op in them is replaced by another.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/fusion.h"
#include "conformance/contract/program.h"
#include "hlo/passes/pipeline.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::InstrId;
using hlo::Op;

// The instructions of the entry after the fusion was dissolved and the SDK has proposed its own fusions.
struct Proposed {
  int fusions = 0, others = 0;
};

Expected<Proposed> proposed_for(const Fusion& fusion) {
  COLLET_ASSIGN(const std::unique_ptr<hlo::Module> module,
                hlo::parse_module("HloModule fusion\n\n" + sample_of(fusion).body, fusion.name));
  COLLET_TRY(hlo::verify_module(*module));
  hlo::PassContext context;
  COLLET_TRY(hlo::run_passes(*module, context, std::array{std::string_view("dissolve_fusions")}).status());
  COLLET_TRY(hlo::propose_fusions(*module, context).status());
  Proposed out;
  for (const InstrId id : module->entry_computation().order) {
    const Op op = (*module)[id].op;
    if (op == Op::FUSION) {
      ++out.fusions;
    } else if (op != Op::PARAMETER && op != Op::TUPLE && op != Op::GET_TUPLE_ELEMENT && op != Op::CONSTANT) {
      ++out.others;
    }
  }
  return out;
}

TEST(FusionShapes, AreProposedByTheSdk) {
  for (const Fusion& fusion : fusion_shapes()) {
    const Expected<Proposed> found = proposed_for(fusion);
    ASSERT_TRUE(found.ok()) << fusion.name << ": " << found.status().to_string();
    EXPECT_EQ(found->fusions, 1) << fusion.name << "\n" << fusion.lines;
    EXPECT_EQ(found->others, 0) << fusion.name << "\n" << fusion.lines;
  }
}

const std::map<std::string_view, std::vector<std::string_view>>& others() {
  static const std::map<std::string_view, std::vector<std::string_view>> all = {
      {"add", {"subtract", "multiply", "maximum"}},
      {"subtract", {"add"}},
      {"multiply", {"add", "divide"}},
      {"divide", {"multiply"}},
      {"maximum", {"minimum", "add"}},
      {"minimum", {"maximum"}},
      {"remainder", {"divide"}},
      {"negate", {"abs"}},
      {"abs", {"negate"}},
  };
  return all;
}

// Returns all variants of the lines in which one op is replaced by another, or the operands of a non-commutative op are
// swapped.
std::vector<std::string> exchanges(const std::string& lines) {
  std::vector<std::string> out;
  for (const auto& [op, more] : others()) {
    const std::string call = std::string(op) + "(";
    for (size_t at = 0; (at = lines.find(" " + call, at)) != std::string::npos; ++at) {
      const size_t start = at + 1, open = start + call.size(), close = lines.find(')', open);
      for (const std::string_view other : more)
        out.push_back(lines.substr(0, start) + std::string(other) + lines.substr(start + op.size()));
      const std::string operands = lines.substr(open, close - open);
      const size_t comma = operands.find(", ");
      if (comma == std::string::npos || (op != "subtract" && op != "divide" && op != "remainder")) continue;
      out.push_back(lines.substr(0, open) + operands.substr(comma + 2) + ", " + operands.substr(0, comma) +
                    lines.substr(close));
    }
  }
  return out;
}

bool agree(const TestProgram& program, const TestProgram& other, const Bound& bound) {
  for (const uint64_t seed : {1u, 2u, 4u}) {
    const std::vector<hlo::Literal> inputs = program.draw(seed);
    const auto expected = program.evaluate(inputs), got = other.evaluate(inputs);
    if (!expected.ok() || !got.ok()) return false;
    for (size_t i = 0; i < expected->size(); ++i)
      if (!compare({(*expected)[i], {}, {}}, (*got)[i], bound, false).agrees) return false;
  }
  return true;
}

// True if an even function follows, so that a wrong sign before it has no effect.
bool is_even(const Fusion& fusion) {
  return fusion.name == "subtract_then_abs" || fusion.name == "subtract_under_remainder";
}

TEST(FusionShapes, ShowAnotherOp) {
  size_t count = 0;
  for (const Fusion& fusion : fusion_shapes()) {
    const auto right = TestProgram::make(sample_of(fusion).body);
    ASSERT_TRUE(right.ok()) << fusion.name << ": " << right.status().to_string();
    for (const std::string& lines : exchanges(fusion.lines)) {
      if (is_even(fusion) && lines.find("subtract(y, x)") != std::string::npos) continue;
      Fusion changed = fusion;
      changed.lines = lines;
      const auto wrong = TestProgram::make(sample_of(changed).body);
      if (!wrong.ok()) continue;
      ++count;
      EXPECT_FALSE(agree(**right, **wrong, fusion.bound)) << fusion.name << " does not show\n" << lines;
    }
  }
  EXPECT_GT(count, 800u);
}

}  // namespace
}  // namespace collet::conformance
