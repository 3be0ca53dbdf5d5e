// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "hlo/base/hash.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Computations with more instructions are only equal to themselves. Comparing larger ones costs time and they are
// rarely equal.
constexpr size_t kLargestBody = 256;

uint64_t hash_shape(const Shape& shape) {
  uint64_t h = static_cast<uint64_t>(shape.type());
  for (int64_t d : shape.dims()) h = collet_hash_number(h, static_cast<uint64_t>(d));
  if (shape.is_tuple()) h = collet_hash_number(h, shape.elements().size());
  return h;
}

// The operands as they are compared: sorted if the op is commutative, because every order then gives the same value.
std::vector<uint32_t> key_operands(const Instruction& instr, const std::vector<uint32_t>& number) {
  std::vector<uint32_t> out;
  for (InstrId o : instr.operands) out.push_back(number.empty() ? index_of(o) : number[index_of(o)]);
  if (op_info(instr.op).has(COLLET_OP_COMMUTES)) std::sort(out.begin(), out.end());
  return out;
}

bool same_attributes(const Module& module, const Instruction& a, const Instruction& b) {
  if (a.op == Op::CONSTANT) return module.literal(a) == module.literal(b);
  return a.attrs == b.attrs || equal_records(op_info(a.op).record, a.attrs, b.attrs);
}

// Hashes samples of a large constant only, because weights are hashed in each run of the pass. Constants with equal hashes
// are compared completely.
uint64_t hash_constant(const Literal& literal) {
  constexpr int64_t kWhole = 65536, kSamples = 512, kSample = 16;
  const int64_t size = literal.shape().is_array() ? literal.byte_size() : 0;
  if (size <= kWhole) return literal.hash();
  uint64_t h = collet_hash_number(hash_shape(literal.shape()), static_cast<uint64_t>(size));
  for (int64_t i = 0; i < kSamples; ++i) {
    const auto* at = reinterpret_cast<const char*>(literal.bytes()) + (size - kSample) / (kSamples - 1) * i;
    h = collet_hash_bytes(h, at, kSample);
  }
  return h;
}

uint64_t hash_attributes(const Module& module, const Instruction& instr) {
  if (instr.op == Op::CONSTANT) return hash_constant(module.literal(instr));
  const Record record = op_info(instr.op).record;
  return record == Record::None ? 0 : hash_record(record, instr.attrs);
}

// True if the computations that the op calls must have no other caller.
bool calls_alone(Op op) {
  return op == Op::FUSION || op == Op::ASYNC_START || op == Op::ASYNC_UPDATE || op == Op::ASYNC_DONE;
}

/// Finds equal computations, and chooses one of each set of equal computations to represent the others.
class Representatives {
 public:
  explicit Representatives(Module& module) : module_(module), alone_(module.computation_limit()) {
    first_.resize(module.computation_limit());
    for (size_t i = 0; i < first_.size(); ++i) first_[i] = static_cast<CompId>(i);
    for (CompId c : module.computations())
      for (InstrId id : module[c].order)
        if (calls_alone(module[id].op))
          for (CompId callee : module[id].called) alone_[index_of(callee)] = true;
  }

  /// Returns the first computation that is equal to `c`.
  CompId first(CompId c) const { return first_[index_of(c)]; }
  /// Returns the computation that may be called in place of `c`.
  CompId of(CompId c) const {
    auto it = shared_.find(index_of(first(c)));
    return alone_[index_of(c)] || it == shared_.end() ? c : it->second;
  }

  // Adds a computation. Its callees must have been added before.
  void add(CompId c) {
    const Computation& computation = module_[c];
    if (computation.order.size() > kLargestBody || c == module_.entry()) return;
    uint64_t h = computation.parameters.size();
    for (InstrId id : computation.order) {
      const Instruction& instr = module_[id];
      if (has_side_effect(instr.op)) return;
      h = collet_hash_number(collet_hash_number(h, static_cast<uint64_t>(instr.op)),
                             hash_shape(instr.shape) ^ hash_attributes(module_, instr));
      for (CompId callee : instr.called) h = collet_hash_number(h, index_of(first(callee)));
    }
    for (auto [it, end] = seen_.equal_range(h); it != end; ++it)
      if (equal(module_[it->second], computation)) {
        first_[index_of(c)] = it->second;
        break;
      }
    if (first(c) == c) seen_.emplace(h, c);
    if (!alone_[index_of(c)]) shared_.try_emplace(index_of(first(c)), c);
  }

 private:
  bool equal(const Computation& a, const Computation& b) const {
    if (a.order.size() != b.order.size() || a.parameters.size() != b.parameters.size() ||
        a.execution_thread != b.execution_thread)
      return false;
    std::unordered_map<uint32_t, uint32_t> match;  // maps instructions of `b` to those of `a`
    for (size_t i = 0; i < a.order.size(); ++i) {
      const Instruction& x = module_[a.order[i]];
      const Instruction& y = module_[b.order[i]];
      if (x.op != y.op || !(x.shape == y.shape) || x.operands.size() != y.operands.size() ||
          x.called.size() != y.called.size() || !same_attributes(module_, x, y))
        return false;
      for (size_t k = 0; k < x.operands.size(); ++k)
        if (match.at(index_of(y.operands[k])) != index_of(x.operands[k])) return false;
      for (size_t k = 0; k < x.called.size(); ++k)
        if (first(x.called[k]) != first(y.called[k])) return false;
      match[index_of(b.order[i])] = index_of(a.order[i]);
    }
    return match.at(index_of(b.root)) == index_of(a.root);
  }

  Module& module_;
  std::vector<CompId> first_;
  std::vector<bool> alone_;  // by computation: it must keep exactly one caller
  // First of a set of equal computations -> the one of the set that may have several callers.
  std::unordered_map<uint32_t, CompId> shared_;
  std::unordered_multimap<uint64_t, CompId> seen_;
};

bool holds_buffer(const Shape& shape) {
  if (shape.is_buffer()) return true;
  for (const Shape& element : shape.elements())
    if (holds_buffer(element)) return true;
  return false;
}

bool may_share(const Module& module, const Instruction& instr, const std::vector<bool>& effects) {
  if (instr.op == Op::PARAMETER || has_effect(module, instr, effects)) return false;
  if (instr.op == Op::CUSTOM_CALL) {  // a call that reads or writes a buffer in place is never equal to another one
    if (holds_buffer(instr.shape)) return false;
    for (InstrId o : instr.operands)
      if (holds_buffer(module[o].shape)) return false;
  }
  // Barriers keep equal values apart on purpose, so they are never merged.
  if (instr.op == Op::OPT_BARRIER || instr.op == Op::AFTER_ALL) return false;
  return !(instr.extras && !instr.extras->control_predecessors.empty());
}

bool share_in(Module& module, CompId computation, const Representatives& representatives,
              const std::vector<bool>& effects) {
  const auto same_computations = [&](const Instruction& a, const Instruction& b) {
    return std::equal(a.called.begin(), a.called.end(), b.called.begin(), b.called.end(),
                      [&](CompId x, CompId y) { return representatives.first(x) == representatives.first(y); });
  };
  std::unordered_multimap<uint64_t, InstrId> seen;
  Rewriter rewriter(module, computation);
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    InstrId same = InstrId::None;
    if (may_share(module, instr, effects)) {
      const std::vector<uint32_t> operands = key_operands(instr, {});
      uint64_t h = collet_hash_number(static_cast<uint64_t>(instr.op), hash_shape(instr.shape));
      for (uint32_t o : operands) h = collet_hash_number(h, o);
      h = collet_hash_number(h, hash_attributes(module, instr));
      for (auto [it, end] = seen.equal_range(h); it != end && same == InstrId::None; ++it) {
        const Instruction& other = module[it->second];
        if (other.op == instr.op && other.shape == instr.shape && same_computations(other, instr) &&
            key_operands(other, {}) == operands && same_attributes(module, other, instr))
          same = it->second;
      }
      if (same == InstrId::None) seen.emplace(h, id);
    }
    if (same == InstrId::None)
      rewriter.keep(id);
    else
      rewriter.replace(id, same);
  }
  return rewriter.finish();
}

}  // namespace

Expected<bool> eliminate_common(Module& module, PassContext&) {
  const std::vector<bool> effects = computations_with_effects(module);
  Representatives representatives(module);
  bool changed = false;
  for (CompId c : post_order(module)) {
    for (InstrId id : module[c].order)
      for (CompId& callee : module[id].called) {
        const CompId other = representatives.of(callee);
        changed |= other != callee;
        callee = other;
      }
    changed |= share_in(module, c, representatives, effects);
    representatives.add(c);
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
