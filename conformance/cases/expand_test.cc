// SPDX-License-Identifier: Apache-2.0
// Each extended op, for each type that it has, run as claimed and as expanded for a device that has core ops alone:
// both are to agree within the op's bound. The rows come from the op table, the programs from the cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"
#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Claim;
using hlo::CompId;
using hlo::InstrId;
using hlo::Literal;
using hlo::Module;
using hlo::OpClass;

bool is_extended(Op op) {
  const OpClass c = hlo::op_info(op).op_class;
  return c == OpClass::EXACT || c == OpClass::MATH || c == OpClass::STRUCTURED;
}

// What takes complex values apart and puts them together: no core op can, and there is nothing to compute.
bool is_pairing(const Module& module, const hlo::Instruction& instr) {
  if (instr.op == Op::COMPLEX) return true;
  return (instr.op == Op::REAL || instr.op == Op::IMAG) && hlo::is_complex(module[instr.operand(0)].shape.type());
}

Claim claim_core(const Module& module, InstrId id) {
  const hlo::Instruction& instr = module[id];
  if (is_pairing(module, instr)) return Claim::Take;
  const bool complex = instr.shape.is_array() && hlo::is_complex(instr.shape.type());
  // Arithmetic on complex numbers is not core.
  if (complex && (instr.op == Op::ADD || instr.op == Op::MULTIPLY || instr.op == Op::DIVIDE)) return Claim::Expand;
  return is_extended(instr.op) ? Claim::Expand : Claim::Take;
}

// Why an op is not expanded, or not compared; empty where it is both.
std::string_view why_not(Op op) {
  switch (op) {
    case Op::SET_DIMENSION_SIZE:
    case Op::DYNAMIC_RESHAPE:
      return "sizes known at run time alone do not cross the joint: the fallback keeps them";
    case Op::RNG:
      return "its numbers are not specified";
    default:
      return {};
  }
}

/// Types that stand in no case of their own are tried by respelling the cases of a type of the same kind.
struct Sibling {
  Type type;
  std::string_view like;
};
constexpr Sibling kSiblings[] = {
    {Type::S2, "s4"},
    {Type::U2, "u4"},
    {Type::F8E4M3, "f8e4m3fn"},
    {Type::F8E3M4, "f8e4m3fn"},
    {Type::F8E4M3B11FNUZ, "f8e4m3fn"},
    {Type::F8E4M3FNUZ, "f8e4m3fn"},
    {Type::F8E5M2FNUZ, "f8e5m2"},
};

std::string respelled(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    const bool whole =
        at + from.size() == text.size() || !std::isalnum(static_cast<unsigned char>(text[at + from.size()]));
    if (whole) text.replace(at, from.size(), to);
  }
  return text;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Case& one : all_cases(std::getenv("COLLET_EXPAND_ALL") != nullptr)) {
    if (!is_extended(one.op) || !why_not(one.op).empty()) continue;
    for (const Sibling& sibling : kSiblings) {
      if (type_name(one.type) != sibling.like) continue;
      Case other = one;
      other.type = sibling.type;
      other.name = respelled(one.name, sibling.like, type_name(sibling.type));
      other.text = respelled(one.text, sibling.like, type_name(sibling.type));
      all.push_back(std::move(other));
    }
    all.push_back(std::move(one));
  }
  return all;
}

// A device that declines everything, with no fallback: whatever has an expansion is expanded, constants too.
Claim claim_nothing(const Module&, InstrId) {
  return Claim::Expand;
}

std::string run_expanded(const Case& one, const Answer& answer) {
  auto module = hlo::parse_module(one.text, one.name);
  if (!module.ok()) return module.status().to_string();
  hlo::PassContext context;
  context.claim = claim_core;
  hlo::PassObserver observer;
  observer.verify = [](const Module& m) { return hlo::verify_module(m); };
  if (auto done = hlo::prepare(**module, context, observer); !done.ok()) return done.status().to_string();
  if (auto done = hlo::legalize(**module, context, observer); !done.ok()) return done.status().to_string();
  for (CompId c : hlo::flow_computations(**module))
    for (InstrId id : (**module)[c].order)
      if (claim_core(**module, id) == Claim::Expand)
        return "is left with " + std::string(hlo::op_info((**module)[id].op).text);
  const auto result = hlo::Evaluator(**module).run(answer.inputs);
  if (!result.ok()) return result.status().to_string();
  const std::vector<Literal> outputs = hlo::flatten(*result);
  if (outputs.size() != answer.outputs.size()) return "gives another number of results";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Comparison c = compare(answer.outputs[i], outputs[i], one.bound, false);
    if (!c.agrees)
      return "expected " + c.expected + ", got " + c.got + " at " + std::to_string(c.first) + ", worst " +
             std::to_string(c.worst_ulp) + " ulp, " + std::to_string(c.bad) + " bad";
  }
  return {};
}

TEST(Expand, EachOpForEachTypeAgreesWithItself) {
  const char* only = std::getenv("COLLET_EXPAND_ONLY");
  std::set<std::pair<Op, Type>> rows;
  std::set<Op> ops;
  int programs = 0;
  for (const Case& one : cases()) {
    if (only && one.name.find(only) == std::string::npos) continue;
    const auto answer = answer_case(one, case_seed(one.name, 0), false);
    if (!answer.ok()) {
      ADD_FAILURE() << one.name << ": " << answer.status().to_string();
      continue;
    }
    ++programs;
    rows.emplace(one.op, one.type);
    ops.insert(one.op);
    const std::string complaint = run_expanded(one, *answer);
    EXPECT_TRUE(complaint.empty()) << one.name << ": " << complaint << "\n" << (only ? one.text : "");
  }
  std::cout << programs << " programs, " << rows.size() << " pairs of op and type\n";
  if (only) return;
  for (int id = 1; id <= hlo::kLastOp; ++id) {
    const Op op = static_cast<Op>(id);
    if (!is_extended(op)) continue;
    EXPECT_NE(ops.contains(op), !why_not(op).empty()) << hlo::op_info(op).text;
  }
}

// What an expansion takes apart, no cleaning up puts together again: or the rounds would not end.
TEST(Expand, EndsWhereNothingIsTaken) {
  const char* only = std::getenv("COLLET_EXPAND_ONLY");
  int programs = 0;
  for (const Case& one : all_cases(false)) {
    if (!why_not(one.op).empty() || (only && one.name.find(only) == std::string::npos)) continue;
    auto module = hlo::parse_module(one.text, one.name);
    ASSERT_TRUE(module.ok()) << one.name << ": " << module.status().to_string();
    hlo::PassContext context;
    ASSERT_TRUE(hlo::prepare(**module, context).ok()) << one.name;
    context.claim = claim_nothing;
    const auto done = hlo::legalize(**module, context);
    EXPECT_TRUE(done.ok()) << one.name << ": " << (done.ok() ? "" : done.status().to_string());
    ++programs;
  }
  std::cout << programs << " programs\n";
}

}  // namespace
}  // namespace collet::conformance
