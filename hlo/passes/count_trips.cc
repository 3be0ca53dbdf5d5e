// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/loops.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {

Expected<bool> count_trips(Module& module, PassContext&) {
  bool changed = false;
  LoopFinder finder(module);
  for (CompId c : flow_computations(module))
    for (InstrId id : module[c].order) {
      const auto loop = finder.find(id);
      if (!loop) continue;
      const auto found = find_trip_count(module, *loop);
      const auto& old = module[id].as<WhileAttrs>();
      auto* attrs = module.make<WhileAttrs>();
      if (found) {
        attrs->trip_count_plus_one = found->trips + 1;
        attrs->induction_operand = static_cast<int64_t>(found->induction) + 1;
        attrs->induction_init = found->init;
        attrs->induction_step = found->step;
      }
      if (equal_records(Record::While, &old, attrs)) continue;
      module[id].attrs = attrs;
      changed = true;
    }
  return changed;
}

}  // namespace collet::hlo
