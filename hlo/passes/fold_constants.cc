// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "hlo/ops/evaluate.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

constexpr int64_t kMostCalls = 1 << 20;
constexpr int64_t kSmall = 1024;  // bytes of a constant that costs nothing

/// The evaluation context for folding: runs combiners and comparators, has no device, queues or random numbers, and
/// stops after a limited amount of work.
class FoldContext : public EvalContext {
 public:
  explicit FoldContext(const Module& module) : module_(module) {}

  Expected<Literal> call(CompId computation, std::span<Literal> arguments) override {
    if (++calls_ > kMostCalls) return resource_exhausted("too long for a constant");
    std::unordered_map<uint32_t, Literal> values;
    for (InstrId id : module_[computation].order) {
      const Instruction& instr = module_[id];
      if (instr.op == Op::PARAMETER) {
        values[index_of(id)] = arguments[static_cast<size_t>(instr.as<ParameterAttrs>().number)];
        continue;
      }
      std::vector<Literal> operands;
      for (InstrId o : instr.operands) operands.push_back(values.at(index_of(o)));
      COLLET_ASSIGN(values[index_of(id)], evaluate({module_, instr, operands, *this}));
    }
    return values.at(index_of(module_[computation].root));
  }
  std::pair<uint64_t, uint64_t> next_rng_state(uint64_t) override { return {}; }
  bool cancelled() const override { return calls_ > kMostCalls; }

 private:
  const Module& module_;
  int64_t calls_ = 0;
};

// Estimates how many elements the evaluation of `instr` reads.
int64_t work(const Module& module, const Instruction& instr) {
  int64_t largest = instr.shape.element_count();
  for (InstrId o : instr.operands) largest = std::max(largest, module[o].shape.element_count());
  if (instr.op == Op::DOT) {
    const Shape& lhs = module[instr.operand(0)].shape;
    for (int64_t d : instr.as<DotAttrs>().lhs_contracting)
      largest *= std::max<int64_t>(1, lhs.dim(static_cast<int>(d)));
  }
  return largest;
}

// True for a constant, and for a complex of two constants: a complex constant that was split for a device without
// complex numbers.
bool is_known(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.shape.has_dynamic()) return false;
  return instr.op == Op::CONSTANT ||
         (instr.op == Op::COMPLEX && is_known(module, instr.operand(0)) && is_known(module, instr.operand(1)));
}

Expected<Literal> known_value(const Module& module, InstrId id, EvalContext& context) {
  const Instruction& instr = module[id];
  if (instr.op == Op::CONSTANT) return module.literal(instr);
  std::vector<Literal> parts;
  for (InstrId part : instr.operands) {
    COLLET_ASSIGN(Literal value, known_value(module, part, context));
    parts.push_back(std::move(value));
  }
  return evaluate({module, instr, parts, context});
}

Expected<Literal> fold(const Module& module, const Instruction& instr) {
  FoldContext context(module);
  std::vector<Literal> operands;
  for (InstrId o : instr.operands) {
    COLLET_ASSIGN(Literal value, known_value(module, o, context));
    operands.push_back(std::move(value));
  }
  return evaluate({module, instr, operands, context});
}

bool may_fold(const Module& module, const Instruction& instr, const PassContext& context) {
  const OpInfo& info = op_info(instr.op);
  if (info.op_class == OpClass::COMMUNICATION || info.op_class == OpClass::EXECUTOR || has_side_effect(instr.op))
    return false;
  switch (instr.op) {
    case Op::IOTA:       // cheaper to compute than to store
    case Op::BROADCAST:  // likewise
    case Op::CONVOLUTION:
    case Op::SCATTER:
    case Op::SORT:
    case Op::RNG_BIT_GENERATOR:
    case Op::SET_DIMENSION_SIZE:
    case Op::DYNAMIC_RESHAPE:
      return false;
    case Op::COMPLEX:  // a complex constant that was split for the device must stay split
      if (context.claim) return false;
      break;
    default:
      break;
  }
  if (info.family == Family::window || info.family == Family::linalg || info.family == Family::fft) return false;
  if (!instr.shape.is_array() || instr.shape.has_dynamic()) return false;
  int64_t bytes = 0;
  for (InstrId o : instr.operands) {
    if (!is_known(module, o)) return false;
    bytes += module[o].shape.byte_size();
  }
  const int64_t out = instr.shape.byte_size();
  // Weights that are stored as small integers stay so: devices have products that dequantize them, or that subtract their
  // zero points.
  if (instr.op == Op::CONVERT && out > kSmall) {
    const Type from = module[instr.operand(0)].shape.type();
    if (is_integer(from) && type_info(from).bits <= 8 && type_info(instr.shape.type()).bits > 8) return false;
  }
  if (out > context.largest_folded_bytes || work(module, instr) > context.largest_folded_work) return false;
  return out <= kSmall || out <= 4 * bytes;  // a constant that is much larger than its operands is no gain
}

}  // namespace

Expected<bool> fold_constants(Module& module, PassContext& context) {
  bool changed = false;
  const std::vector<bool> asynchronous = asynchronous_computations(module);
  for (CompId computation : post_order(module)) {
    if (asynchronous[index_of(computation)]) continue;
    Rewriter rewriter(module, computation);
    for (InstrId id : rewriter.instructions()) {
      const Instruction& instr = rewriter.enter(id);
      if (!may_fold(module, instr, context)) {
        rewriter.keep(id);
        continue;
      }
      auto value = fold(module, instr);
      if (!value.ok()) {
        // The evaluation failed; the program may never reach this instruction, and if it does, the error is reported
        // then.
        rewriter.keep(id);
        continue;
      }
      rewriter.replace(id, rewriter.builder().constant(std::move(*value)));
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  // A fusion must not contain unused instructions, so the operands of folded instructions are removed.
  if (changed) COLLET_TRY(eliminate_dead(module, context).status());
  return changed;
}

}  // namespace collet::hlo
