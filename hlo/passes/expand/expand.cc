// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/expand/expand.h"

#include <array>
#include <numeric>

namespace collet::hlo {

namespace {

constexpr int kMostRounds = 16;

Expected<bool> expand_once(Module& module, PassContext& context, std::span<const Expansion> table) {
  std::array<Expander, kLastOp + 1> by_op{};
  for (const Expansion& row : table) by_op[static_cast<size_t>(row.op)] = row.expand;
  const auto wanted = [&](InstrId id) {
    return by_op[static_cast<size_t>(module[id].op)] && index_of(id) < context.claims_end &&
           context.claim(module, id) == Claim::Expand;
  };
  const auto expanded = [&](Builder& b, const Instruction& instr) {
    return by_op[static_cast<size_t>(instr.op)]({module, b, instr});
  };
  Expected<bool> changed = rewrite_wanted(module, wanted, expanded);
  if (!changed.ok()) return changed.status().with_prefix("expanding ");
  if (*changed) order_computations(module);
  return *changed;
}

}  // namespace

Expected<bool> expand_by_table(Module& module, PassContext& context, std::span<const Expansion> table) {
  if (!context.claim) return false;
  bool changed = false;
  for (int round = 0; round < kMostRounds; ++round) {
    COLLET_ASSIGN(const bool again, expand_once(module, context, table));
    if (!again) break;
    changed = true;
    // The pass stops after one round here, because the device is asked about new instructions only in the next round of
    // legalize.
    if (context.claims_end != UINT32_MAX) break;
  }
  return changed;
}

Ints counting(int64_t n, int64_t first) {
  Ints out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

Ints inverse_permutation(std::span<const int64_t> permutation) {
  Ints out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return out;
}

Type wide_float(Type type) {
  return is_float(type) && type != Type::F64 ? Type::F32 : type;
}

}  // namespace collet::hlo
