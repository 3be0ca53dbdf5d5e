// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/simplify_rules.h"

namespace collet::hlo {

bool RuleInput::is(size_t i, double value) const {
  const Literal* v = splat(i);
  if (!v || v->imaginary(0) != 0) return false;
  const double x = v->as_double(0);
  return x == value && std::signbit(x) == std::signbit(value);
}

bool RuleInput::is_int(size_t i, int64_t value) const {
  const Literal* v = splat(i);
  return v && (is_integer(v->type()) || v->type() == Type::PRED) &&
         v->as_int(0) == Literal::scalar_int(v->type(), value).as_int(0);
}

InstrId RuleInput::all(double value) const {
  return instr.shape.has_dynamic() ? InstrId::None : b.fill(instr.shape, value);
}

InstrId RuleInput::all_int(int64_t value) const {
  return instr.shape.has_dynamic() ? InstrId::None : b.fill_int(instr.shape, value);
}

namespace {

constexpr int kMostRounds = 16;
constexpr int kMostStepsPerInstruction = 32;
// In a module with more instructions a conditional with a constant predicate is not inlined, because copies of its
// branches could make the module too large. It still runs correctly.
constexpr size_t kMostDecided = kMostInlined / 16;

using RulesByOp = std::array<std::vector<const Rule*>, kLastOp + 1>;

const RulesByOp& rules() {
  static const RulesByOp* const table = [] {
    auto* out = new RulesByOp;
    for (auto list : {structure_rules(), movement_rules(), window_rules(), arithmetic_rules()})
      for (const Rule& rule : list)
        if (rule.op != Op::INVALID)
          (*out)[static_cast<size_t>(rule.op)].push_back(&rule);
        else
          for (auto& row : *out) row.push_back(&rule);
    return out;
  }();
  return *table;
}

InstrId apply_any(Module& module, Builder& b, const Instruction& instr, size_t most) {
  // An instruction with control predecessors must keep its position in the order, so it is not replaced.
  if (instr.extras && !instr.extras->control_predecessors.empty()) return InstrId::None;
  for (const Rule* rule : rules()[static_cast<size_t>(instr.op)]) {
    const InstrId id = rule->apply({module, b, instr, most});
    // A rule is not applied if its result has lost or changed a dynamic size.
    if (id != InstrId::None && module[id].shape.same_without_layout(instr.shape)) return id;
  }
  return InstrId::None;
}

Expected<bool> simplify_once(Module& module, CompId computation, size_t most) {
  Rewriter rewriter(module, computation);
  Builder& b = rewriter.builder();
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    if (instr.op == Op::PARAMETER) {
      rewriter.keep(id);
      continue;
    }
    const size_t limit = module.instruction_limit();
    InstrId with = apply_any(module, b, instr, most);
    if (with == InstrId::None) {
      rewriter.keep(id);
      continue;
    }
    // A new instruction may be simplified further. One that existed before has been simplified already.
    for (int step = 0; step < kMostStepsPerInstruction && index_of(with) >= limit; ++step) {
      const InstrId next = apply_any(module, b, module[with], most);
      if (next == InstrId::None) break;
      with = next;
    }
    rewriter.replace(id, with);
  }
  const bool changed = rewriter.finish();
  COLLET_TRY(b.status());
  return changed;
}

}  // namespace

Expected<bool> simplify(Module& module, PassContext& context) {
  return repeat_until_stable(module, context, kMostRounds, [&]() -> Expected<bool> {
    bool changed = false;
    const size_t standing = module.instruction_count();
    const size_t most = module.instruction_limit() + kMostDecided - std::min(standing, kMostDecided);
    const std::vector<bool> asynchronous = asynchronous_computations(module);
    for (CompId computation : post_order(module)) {
      if (asynchronous[index_of(computation)]) continue;
      COLLET_ASSIGN(const bool did, simplify_once(module, computation, most));
      changed |= did;
    }
    return changed;
  });
}

}  // namespace collet::hlo
