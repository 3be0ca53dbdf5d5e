// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/annotate.h"
#include "hlo/passes/spmd/propagation.h"

namespace collet::hlo {

using namespace spmd;

Expected<bool> propagate_shardings(Module& module, PassContext& context) {
  if (context.partition_count <= 1) return false;
  const auto partitions = static_cast<size_t>(context.partition_count);
  const size_t had = module.computations().size();
  COLLET_ASSIGN(const ProgramRegions regions, ProgramRegions::build(module, partitions));
  COLLET_ASSIGN(const ShardingTable table, spmd::propagate_shardings(module, regions));
  bool changed = module.computations().size() != had;
  if (changed) order_computations(module);  // copies of computations come before their callers
  for (const Region& region : regions.all())
    for (InstrId id : module[region.computation].order) {
      Instruction& instr = module[id];
      const auto& leaves = table.of(id);
      if (leaves.empty() || regions.is_manual(id)) continue;
      if (instr.op == Op::CUSTOM_CALL && regions.one_device(instr)) continue;
      const Extras* extras = with_shardings(module, instr.extras, leaves, instr.shape.is_tuple(), partitions);
      changed = changed || !instr.extras || !instr.extras->sharding || *instr.extras->sharding != *extras->sharding;
      instr.extras = extras;
    }
  return changed;
}

}  // namespace collet::hlo
