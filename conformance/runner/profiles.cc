// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/profiles.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "hlo/passes/passes.h"

namespace collet::conformance {
namespace {

using hlo::OpClass;

bool is_contract(std::string_view name) {
  return name.starts_with("contract/");
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return name.starts_with(start); });
}

bool is_usual(Type type) {
  return type == Type::F32 || type == Type::S32 || type == Type::PRED;
}

bool is_control_flow(Op op) {
  return op == Op::WHILE || op == Op::CONDITIONAL || op == Op::CALL;
}

bool in_memory(std::string_view name, Op, Type) {
  return is_one_of(name, {"contract/lifecycle/", "contract/alloc/", "contract/memory/", "contract/copy/"});
}

bool in_core(std::string_view name, Op op, Type type) {
  return !is_contract(name) && is_usual(type) && hlo::op_info(op).op_class == OpClass::CORE;
}

bool in_extended(std::string_view name, Op op, Type type) {
  const OpClass op_class = hlo::op_info(op).op_class;
  return in_core(name, op, type) ||
         (!is_contract(name) && is_usual(type) && !is_control_flow(op) &&
          (op_class == OpClass::EXACT || op_class == OpClass::MATH || op_class == OpClass::STRUCTURED));
}

// Cases of the ops and types that vision and language models use at inference.
bool in_inference(std::string_view name, Op op, Type type) {
  switch (op) {
    case Op::CONVOLUTION:
    case Op::REDUCE_WINDOW:
    case Op::EXPONENTIAL:
    case Op::TANH:
    case Op::LOGISTIC:
    case Op::ERF:
    case Op::RSQRT:
    case Op::SQRT:
    case Op::LOG:
    case Op::POWER:
    case Op::NEGATE:
    case Op::SUBTRACT:
    case Op::MINIMUM:
    case Op::CLAMP:
    case Op::TOPK:
    case Op::ABS:
    case Op::SINE:
    case Op::COSINE:
      break;
    default:
      if (hlo::op_info(op).op_class != OpClass::CORE) return false;
  }
  return !is_contract(name) && (is_usual(type) || type == Type::BF16);
}

bool in_training(std::string_view name, Op op, Type type) {
  const bool more = op == Op::SELECT_AND_SCATTER || op == Op::BATCH_NORM_GRAD || op == Op::BATCH_NORM_TRAINING ||
                    op == Op::RNG_BIT_GENERATOR || op == Op::LOG_PLUS_ONE || op == Op::SORT ||
                    op == Op::EXPONENTIAL_MINUS_ONE || op == Op::SHIFT_RIGHT_LOGICAL || op == Op::SIGN;
  return in_inference(name, op, type) || (more && !is_contract(name) && (is_usual(type) || type == Type::U32));
}

bool in_low_precision(std::string_view name, Op op, Type type) {
  const int bits = hlo::type_info(type).bits;
  return !is_contract(name) && type != Type::PRED && bits > 0 && bits <= 16 && op != Op::INVALID &&
         hlo::op_info(op).op_class == OpClass::CORE;
}

// Cases of the patterns of quantized models.
bool in_quantized(std::string_view name, Op, Type) {
  return !is_tiled(name) && is_one_of(name, {"integer_dot/", "integer_convolution/", "quantize/", "requantize/",
                                             "quantized_dot/", "dequantized_dot/", "scaled_dot/", "scaled_convolution/",
                                             "quantized_attention/", "integer_add/"});
}

bool in_control_flow(std::string_view name, Op, Type) {
  return is_one_of(name, {"while/", "conditional/", "call/"});
}

// Cases of arrays that are larger than scratchpads.
bool in_tiled(std::string_view name, Op, Type) {
  return is_tiled(name);
}

// Those of them that are groups: for devices that have no single ops.
bool in_tiled_layers(std::string_view name, Op op, Type) {
  return is_tiled(name) && op == Op::CALL;
}

// Cases of the patterns that a backend declares itself.
bool in_own_patterns(std::string_view name, Op op, Type) {
  const std::string_view first = name.substr(0, name.find('/'));
  const std::vector<std::string_view> known = hlo::pattern_names();
  const bool is_op = hlo::op_from_text(first).has_value() || first.starts_with("compare-");
  return op == Op::CALL && !is_contract(name) && !is_op && std::find(known.begin(), known.end(), first) == known.end();
}

bool in_collectives(std::string_view name, Op op, Type) {
  return name.starts_with("contract/collective/") || name.starts_with("contract/processes/") ||
         (op != Op::INVALID && hlo::op_info(op).op_class == OpClass::COMMUNICATION);
}

bool in_contract(std::string_view name, Op, Type) {
  return is_contract(name);
}

// Cases with a size of 4000 or more, which is part of their name, and cases with every bit pattern.
bool in_stress(std::string_view name, Op, Type) {
  if (is_contract(name)) return name.starts_with("contract/repeat/") || name.starts_with("contract/hazard/");
  if (name.ends_with("/all")) return true;
  long number = 0;
  for (const char c : name) {
    number = c >= '0' && c <= '9' ? std::min(number * 10 + (c - '0'), 1000000L) : 0;
    if (number >= 4000) return true;
  }
  return false;
}

// Returns the name of a case's program: cases that differ by their inputs only have one.
std::string_view program_of(std::string_view name) {
  return name.substr(0, name.rfind('/'));
}

// Returns the programs of the profile `quick`. A fault mostly concerns an element type of an op, special values, or a shape, so each op has
// one program for each of its element types, if possible one with edge values, and one for a part of its other shapes (what a name says after op and
// element type).
std::unordered_set<std::string> make_quick_programs() {
  constexpr size_t kAllShapes = 8;         // of an op with at most so many shapes all are taken
  constexpr uint64_t kOf = 3, kTaken = 1;  // of one with more, so many of so many
  struct Program {
    std::string_view type, shape;
    uint64_t hash = 0;
    bool has_edges = false;
  };
  const std::vector<Case> cases = all_cases(false);
  std::map<std::string_view, std::map<std::string_view, Program>> ops;  // by op, then by program
  for (const Case& one : cases) {
    // Exact results of many elements, and many iterations, take as long as hundreds of other cases.
    const bool is_slow = hlo::op_info(one.op).op_class == OpClass::MATH || is_control_flow(one.op);
    if (is_slow && in_stress(one.name, one.op, one.type)) continue;
    const std::string_view program = program_of(one.name), op = program.substr(0, program.find('/'));
    const size_t end = std::min(program.find('/', op.size() + 1), program.size());
    Program& found = ops[op][program];
    found.type = program.substr(0, end);
    found.shape = program.substr(end);
    found.hash = case_seed(program, 0);
    found.has_edges |= one.name.ends_with("/edges") || one.name.ends_with("/critical");
  }
  std::unordered_set<std::string> out;
  for (const auto& [op, programs] : ops) {
    std::map<std::string_view, int> types, shapes;  // how often each is taken
    const auto take = [&](const auto& may_be, const auto& rank) {
      const std::pair<const std::string_view, Program>* best = nullptr;
      for (const auto& one : programs)
        if (may_be(one.second) && (!best || rank(one.second) < rank(best->second))) best = &one;
      ++types[best->second.type];
      ++shapes[best->second.shape];
      out.insert(std::string(best->first));
    };
    for (const auto& [name, program] : programs) {
      const std::string_view type = program.type;
      if (types[type] > 0) continue;
      take([&](const Program& one) { return one.type == type; },
           [&](const Program& one) { return std::tuple(!one.has_edges, shapes[one.shape], one.hash); });
    }
    std::set<std::string_view> all;
    for (const auto& [name, program] : programs) all.insert(program.shape);
    for (const std::string_view shape : all) {
      const bool taken = all.size() <= kAllShapes || case_seed(std::string(op) + std::string(shape), 0) % kOf < kTaken;
      if (!taken || shapes[shape] > 0) continue;
      take([&](const Program& one) { return one.shape == shape; },
           [&](const Program& one) { return std::tuple(types[one.type], one.hash); });
    }
  }
  return out;
}

// A subset of the cases. What a case costs is mostly the compilation of its program, so programs are chosen, and run with all their inputs.
bool in_quick(std::string_view name, Op op, Type type) {
  if (is_contract(name)) {
    if (name == "contract/compile/yes_compiles_all_shapes") return false;
    return !is_one_of(name, {"contract/fusion/", "contract/repeat/"}) || case_seed(name, 0) % 8 == 0;
  }
  static const std::unordered_set<std::string> kPrograms = make_quick_programs();
  if (is_tiled(name) || in_own_patterns(name, op, type)) return case_seed(program_of(name), 0) % 8 == 0;
  return kPrograms.contains(std::string(program_of(name)));
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> kProfiles = {
      {"memory", "holds and copies data", in_memory},
      {"core", "the core ops on f32, s32 and pred", in_core},
      {"extended", "all ops that need a kernel, on f32, s32 and pred", in_extended},
      {"inference", "what models use when they run, on f32, bf16, s32 and pred", in_inference},
      {"training", "inference, and what gradients and optimisers use", in_training},
      {"low-precision", "the core ops on types of at most 16 bits", in_low_precision},
      {"quantized", "layers of quantized models: products of integers, and what is stored in 8 or 4 bits",
       in_quantized},
      {"tiled", "arrays that are larger than scratchpads of 16 KiB to 4 MiB, in ops and in groups", in_tiled},
      {"tiled-layers", "the groups of tiled, for devices that have no single ops", in_tiled_layers},
      {"own-patterns", "the patterns that the backend declares itself", in_own_patterns},
      {"control-flow", "while, conditional and call", in_control_flow},
      {"collectives", "communication among devices", in_collectives},
      {"contract", "what the headers promise beyond the meaning of ops", in_contract},
      {"stress", "large arrays, every bit pattern, many repetitions", in_stress, false},
      {"quick", "a choice that finds most faults in half a minute", in_quick, false},
  };
  return kProfiles;
}

const Profile* find_profile(std::string_view name) {
  const auto found =
      std::find_if(profiles().begin(), profiles().end(), [&](const Profile& one) { return one.name == name; });
  return found == profiles().end() ? nullptr : &*found;
}

std::string profile_names() {
  std::string out;
  for (const Profile& one : profiles()) out += (out.empty() ? "" : ", ") + std::string(one.name);
  return out;
}

Expected<std::vector<std::string>> read_claims(std::string_view text) {
  std::vector<std::string> claims;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, std::min(text.find('#'), end));
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty()) continue;
    const Profile* profile = find_profile(line);
    if (profile == nullptr || !profile->may_be_claimed)
      return invalid_argument("'" + std::string(line) +
                              "' is no profile that can be claimed; there are: " + profile_names());
    claims.emplace_back(line);
  }
  return claims;
}

const Profile* claimed_profile(const std::vector<std::string>& claims, const CaseResult& one) {
  for (const std::string& claim : claims) {
    // Of these profiles a device may skip cases, which then are about optional features.
    if (is_contract(one.name) && (claim == "memory" || claim == "contract")) continue;
    const Profile* profile = find_profile(claim);
    if (profile != nullptr && profile->holds(one.name, one.op, one.type)) return profile;
  }
  return nullptr;
}

bool ran_some(const ConformReport& report, std::string_view claim) {
  const Profile* profile = find_profile(claim);
  return profile != nullptr && std::any_of(report.cases.begin(), report.cases.end(), [&](const CaseResult& one) {
           return profile->holds(one.name, one.op, one.type) && one.outcome == Outcome::Pass &&
                  (is_contract(one.name) || one.device_ops > 0);
         });
}

std::vector<std::string> idle_claims(const ConformReport& report) {
  // Across processes collectives are the runtime's, and a device need not run any op.
  if (report.processes > 0) return {};
  std::vector<std::string> out;
  for (const std::string& claim : report.claims) {
    const Profile* profile = find_profile(claim);
    if (profile == nullptr || ran_some(report, claim)) continue;
    const bool any = std::any_of(report.cases.begin(), report.cases.end(),
                                 [&](const CaseResult& one) { return profile->holds(one.name, one.op, one.type); });
    if (any || report.whole) out.push_back(claim);
  }
  return out;
}

}  // namespace collet::conformance
