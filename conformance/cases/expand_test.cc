// SPDX-License-Identifier: Apache-2.0
// Runs each op that is not a core op, for each of its types, directly and expanded for a device with core ops only:
// both results must agree within the op's error bound. The ops come from the op table, the programs from the
// conformance cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"
#include "hlo/eval/evaluator.h"
#include "hlo/ops/rules.h"
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

constexpr int kLastType = 33;
// Number of pairs of an op and a type that the verifier accepts.
constexpr size_t kLeastPairs = 1131;

bool is_extended(Op op) {
  const OpClass c = hlo::op_info(op).op_class;
  return c == OpClass::EXACT || c == OpClass::MATH || c == OpClass::STRUCTURED;
}

// True if an op splits complex values into parts or joins parts. No core op does that, so such an op is not expanded.
bool is_pairing(const Module& module, const hlo::Instruction& instr) {
  if (instr.op == Op::COMPLEX) return true;
  return (instr.op == Op::REAL || instr.op == Op::IMAG) && hlo::is_complex(module[instr.operand(0)].shape.type());
}

Claim claim_core(const Module& module, InstrId id) {
  const hlo::Instruction& instr = module[id];
  if (is_pairing(module, instr)) return Claim::Take;
  const bool complex = instr.shape.is_array() && hlo::is_complex(instr.shape.type());
  // Arithmetic on complex numbers does not belong to the core ops.
  if (complex && (instr.op == Op::ADD || instr.op == Op::MULTIPLY || instr.op == Op::DIVIDE)) return Claim::Expand;
  return is_extended(instr.op) ? Claim::Expand : Claim::Take;
}

// Returns the reason why an op is not expanded or compared; empty if it is.
std::string_view why_not(Op op) {
  switch (op) {
    case Op::SET_DIMENSION_SIZE:
    case Op::DYNAMIC_RESHAPE:
      return "sizes known at run time alone do not cross the ABI boundary: the fallback keeps them";
    case Op::RNG:
      return "its numbers are not specified";
    default:
      return {};
  }
}

// Returns types from whose cases a case for `type` may be derived by replacing the type, the most similar first.
std::vector<Type> donors(Type type) {
  using enum Type;
  switch (hlo::kind_of(type)) {
    case hlo::Kind::Float:
      if (hlo::type_info(type).bits <= 8) return {F8E4M3FN, F8E5M2, BF16, F16, F32, U32};
      return {BF16, F16, F32, F64, U32};
    case hlo::Kind::Signed:
      return {S4, S8, S32, S64, U32, F32};
    case hlo::Kind::Unsigned:
      return {U4, U8, U32, U64, S32, F32};
    case hlo::Kind::Complex:
      return {C64, C128, F32, U32};
    case hlo::Kind::Pred:
      return {U8, U32, S32, F32};
    default:
      return {};
  }
}

// Returns the reason why a pair of op and type is not tested; empty if it is.
std::string_view why_not(Op op, Type type) {
  if (op == Op::TOPK && hlo::is_complex(type)) return "complex numbers have no order";
  if (op == Op::CHOLESKY && type == Type::F8E8M0FNU)
    return "what is drawn definite is not, once rounded to powers of two";
  if (op == Op::RNG_BIT_GENERATOR && hlo::is_complex(type)) return "it makes elements of at most 64 bits, no pairs";
  return {};
}

std::string respelled(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    const bool whole =
        at + from.size() == text.size() || !std::isalnum(static_cast<unsigned char>(text[at + from.size()]));
    if (whole) text.replace(at, from.size(), to);
  }
  return text;
}

using CasesByType = std::map<Type, std::vector<Case>>;

// Returns cases for a type that has none, derived from those of another type; empty if the verifier refuses all of
// them.
constexpr size_t kMostRespelled = 6;
std::vector<Case> respelled_cases(const CasesByType& own, Type type, std::string& refusal) {
  std::vector<Case> out;
  for (Type donor : donors(type)) {
    auto from = own.find(donor);
    if (from == own.end()) continue;
    for (const Case& one : from->second) {
      if (out.size() >= kMostRespelled) break;
      Case other = one;
      other.type = type;
      other.name = respelled(one.name, type_name(donor), type_name(type));
      other.text = respelled(one.text, type_name(donor), type_name(type));
      // The random bits must be as wide as the value that they round.
      if (one.op == Op::STOCHASTIC_CONVERT)
        other.text = respelled(other.text, "u" + std::to_string(hlo::type_info(donor).bits),
                               "u" + std::to_string(hlo::type_info(type).bits));
      if (one.bound.kind == Bound::Kind::Ulp) other.bound = function_bound(one.op, type);
      const auto module = hlo::parse_module(other.text, other.name);
      const Status status = module.ok() ? hlo::verify_module(**module) : module.status();
      if (status.ok())
        out.push_back(std::move(other));
      else
        refusal = status.to_string();
    }
    if (!out.empty()) break;
  }
  return out;
}

/// The cases of an op, type by type, and the types of its set that it does not have, with the verifier's reason.
struct Row {
  CasesByType cases;
  std::map<Type, std::string> refused;
};

std::map<Op, Row> rows() {
  std::map<Op, Row> all;
  for (Case& one : all_cases(std::getenv("COLLET_EXPAND_ALL") != nullptr))
    if (is_extended(one.op) && why_not(one.op).empty()) all[one.op].cases[one.type].push_back(std::move(one));
  for (auto& [op, row] : all) {
    const CasesByType own = row.cases;
    for (int id = 1; id <= kLastType; ++id) {
      const Type type = static_cast<Type>(id);
      const hlo::Kind kind = hlo::kind_of(type);
      if (kind == hlo::Kind::Opaque || hlo::type_info(type).text.empty() || own.contains(type) ||
          !hlo::in_type_set(hlo::op_info(op).types, type))
        continue;
      if (const std::string_view why = why_not(op, type); !why.empty()) {
        row.refused[type] = why;
        continue;
      }
      std::string refusal = "no case of another type can be respelled";
      std::vector<Case> cases = respelled_cases(own, type, refusal);
      if (cases.empty())
        row.refused[type] = refusal;
      else
        row.cases[type] = std::move(cases);
    }
  }
  return all;
}

// The claims of a device that declines everything, without a fallback: all ops with an expansion are expanded,
// including constants.
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
  const bool tell = std::getenv("COLLET_EXPAND_TABLE") != nullptr;
  std::set<Op> ops;
  size_t programs = 0, pairs = 0, refused = 0;
  for (const auto& [op, row] : rows()) {
    size_t of_op = 0;
    for (const auto& [type, cases] : row.cases)
      for (const Case& one : cases) {
        if (only && one.name.find(only) == std::string::npos) continue;
        const auto answer = answer_case(one, case_seed(one.name, 0), false);
        if (!answer.ok()) {
          ADD_FAILURE() << one.name << ": " << answer.status().to_string();
          continue;
        }
        ++of_op;
        const std::string complaint = run_expanded(one, *answer);
        EXPECT_TRUE(complaint.empty()) << one.name << ": " << complaint << "\n" << (only ? one.text : "");
      }
    ops.insert(op);
    pairs += row.cases.size();
    refused += row.refused.size();
    programs += of_op;
    if (!tell) continue;
    std::cout << hlo::op_info(op).text << ": " << row.cases.size() << " types, " << of_op << " programs";
    for (const auto& [type, why] : row.refused) std::cout << "\n  not " << type_name(type) << ": " << why;
    std::cout << "\n";
  }
  std::cout << programs << " programs, " << pairs << " pairs of op and type; " << refused
            << " that the verifier refuses\n";
  if (only) return;
  EXPECT_GE(pairs, kLeastPairs);
  for (int id = 1; id <= hlo::kLastOp; ++id) {
    const Op op = static_cast<Op>(id);
    if (!is_extended(op)) continue;
    EXPECT_NE(ops.contains(op), !why_not(op).empty()) << hlo::op_info(op).text;
  }
}

// The simplifier must never recreate an op that an expansion has replaced; otherwise legalization would not end.
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
