// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/annotate.h"

#include <vector>

namespace collet::hlo::spmd {

const Extras* with_shardings(Module& module, const Extras* extras, std::span<const ArraySharding> leaves, bool tuple,
                             size_t partitions) {
  Extras out = extras ? *extras : Extras();
  std::vector<FrontendAttribute> kept;
  for (const FrontendAttribute& a : out.frontend_attributes)
    if (a.name != "xla.sdy.sharding") kept.push_back(a);
  out.frontend_attributes = module.arena().list(kept);
  Sharding all;
  if (tuple) {
    all.kind = Sharding::Kind::Tuple;
    for (const ArraySharding& leaf : leaves) all.elements.push_back(to_hlo_sharding(leaf, partitions));
  } else if (!leaves.empty()) {
    all = to_hlo_sharding(leaves[0], partitions);
  }
  out.sharding = module.keep(std::move(all));
  return module.arena().make<Extras>(out);
}

}  // namespace collet::hlo::spmd
