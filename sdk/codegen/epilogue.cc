// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sdk/codegen/contraction.h"

namespace collet::codegen {
namespace {

/// Which loops of a kernel walk the dimensions of the product: those of size 1 need not be there. False where the
/// shapes differ.
bool match_loops(const Kernel& kernel, const Dims& dims, std::vector<size_t>& loop_of) {
  loop_of.assign(dims.size(), SIZE_MAX);
  size_t l = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    while (l < kernel.loops.size() && kernel.loops[l].size == 1) ++l;
    if (l == kernel.loops.size() || kernel.loops[l].size != dims[d]) return false;
    loop_of[d] = l++;
  }
  return std::all_of(kernel.loops.begin() + static_cast<int64_t>(l), kernel.loops.end(),
                     [](const Loop& loop) { return loop.size == 1; });
}

}  // namespace

bool make_epilogue(const KernelPlan& plan, const Product& product, Epilogue& out) {
  std::vector<size_t> loop_of;
  if (!match_loops(plan.kernel, product.dims, loop_of)) return false;
  auto loops_of = [&](const std::vector<size_t>& group) {
    std::vector<size_t> r;
    for (size_t d : group) {
      if (loop_of[d] != SIZE_MAX) r.push_back(loop_of[d]);
    }
    return r;
  };
  std::vector<std::vector<size_t>> groups;
  for (size_t d : product.batch_loops) groups.push_back(loops_of({d}));
  groups.push_back(loops_of(product.row_loops));
  groups.push_back(loops_of(product.column_loops));
  const Store store = plan.kernel.stores[0];
  const auto found = std::find(plan.buffers.begin(), plan.buffers.end(), product.result);
  if (found == plan.buffers.end()) return false;
  const uint32_t type = plan.kernel.tape[static_cast<size_t>(store.value)].type;
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX || collet_type_bytes(type) != collet_type_bytes(product.type)) {
    return false;
  }
  out.kernel = plan.kernel;
  out.kernel.stores.clear();
  if (!regroup_loops(out.kernel, groups)) return false;
  // Tiles know their places: no size matters, and the same epilogue serves products of other sizes.
  constexpr int64_t kAnySize = int64_t{1} << 40;
  for (Loop& l : out.kernel.loops) l.size = kAnySize;
  out.kernel.lane_loop = out.kernel.loops.size() - 1;
  out.product = static_cast<uint32_t>(found - plan.buffers.begin());
  for (Instruction& i : out.kernel.tape) {
    if (i.op == TapeOp::kLoad && i.buffer == out.product) i.index = {};
  }
  out.value = store.value;
  out.buffers = plan.buffers;
  out.target = plan.buffers[store.buffer];
  return true;
}

}  // namespace collet::codegen
