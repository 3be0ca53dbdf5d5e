// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/lower/change_loops.h"

#include "sdk/codegen/lower/kernel_rewriter.h"

namespace collet::codegen {

KernelPlan with_loops(const Graph& graph, const KernelPlan& plan, const Dims& sizes,
                      const std::function<std::vector<Index>(KernelBuilder&)>& variables) {
  KernelPlan part;
  for (const int64_t n : sizes) part.kernel.loops.push_back({n});
  part.kernel.outer = sizes.size();
  KernelBuilder builder(graph, part.kernel, [](ValueId) { return true; });
  KernelRewriter rewriter(plan.kernel, plan.buffers, variables(builder), builder, part.kernel);
  for (const Store& store : plan.kernel.stores) {
    const ExprId mask = rewriter.mask(store.mask);
    if (rewriter.is_never(mask)) continue;
    const ExprId value = rewriter.value(store.value);
    const Index index = rewriter.index(store.index);
    part.kernel.stores.push_back({builder.output(plan.buffers[store.buffer]), value, index, mask});
  }
  part.writes = plan.writes;
  part.in_place = plan.in_place;
  part.copies = plan.copies;
  part.buffers = builder.buffers();
  return part;
}

KernelPlan part_of(const Graph& graph, const KernelPlan& plan, const Dims& begin, const Dims& size) {
  return with_loops(graph, plan, size, [&](KernelBuilder&) {
    std::vector<Index> loops;
    for (size_t l = 0; l < begin.size(); ++l) {
      loops.push_back(loop_index(l));
      loops.back().constant = begin[l];
    }
    return loops;
  });
}

}  // namespace collet::codegen
