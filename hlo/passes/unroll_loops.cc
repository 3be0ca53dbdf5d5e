// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// True if unrolling creates few instructions. A loop of one iteration does not grow, unless its body has other callers
// and so must be copied. Nested loops are copied once per level, so the module may not grow beyond `most` instructions.
bool is_small(const Module& module, const Loop& loop, int64_t trips, const std::vector<uint32_t>& callers, size_t most,
              const PassContext& context) {
  const size_t copies =
      module[loop.body].order.size() * static_cast<size_t>(std::min(trips, context.most_unrolled_trips));
  if (module.instruction_limit() + copies > most) return false;
  if (trips == 0 || (trips == 1 && callers[index_of(loop.body)] == 1)) return true;
  return trips <= context.most_unrolled_trips && copies <= context.most_unrolled_instructions;
}

}  // namespace

Expected<bool> unroll_loops(Module& module, PassContext& context) {
  bool changed = false;
  const size_t most = module.instruction_limit() + kMostInlined / 16;
  LoopFinder finder(module);
  const std::vector<uint32_t> callers = count_callers(module);
  const std::vector<bool> effects = computations_with_effects(module);
  for (CompId c : flow_computations(module)) {
    bool any = false;
    for (InstrId id : module[c].order) any |= module[id].op == Op::WHILE;
    if (!any) continue;
    Rewriter rewriter(module, c);
    for (InstrId id : rewriter.instructions()) {
      rewriter.enter(id);
      const auto loop = finder.find(id);
      // A loop whose condition has effects is not unrolled.
      const bool counts = loop && !effects[index_of(loop->condition)];
      const auto count = counts ? find_trip_count(module, *loop) : std::nullopt;
      const bool small = count && is_small(module, *loop, count->trips, callers, most, context);
      if (!small) {
        rewriter.keep(id);
        continue;
      }
      InstrId state = loop->init;
      for (int64_t trip = 0; trip < count->trips; ++trip) {
        const InstrId argument[] = {state};
        state = inline_computation(rewriter.builder(), loop->body, argument);
      }
      rewriter.replace(id, state);
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
