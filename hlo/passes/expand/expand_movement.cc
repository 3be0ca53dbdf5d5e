// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/expand/expand.h"

namespace collet::hlo {
namespace {

// Writes each operand to its offset in the result by dynamic-update-slice.
InstrId concatenate(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.shape().has_dynamic() || in.shape().rank() == 0) return InstrId::None;
  if (in.instr.operands.size() == 1) return in.operand(0);
  const int64_t dim = in.as<DimensionAttrs>().dimension;
  std::vector<InstrId> starts(static_cast<size_t>(in.shape().rank()), b.scalar_int(Type::S32, 0));
  InstrId out = b.fill(in.shape(), 0);
  int64_t at = 0;
  for (InstrId part : in.instr.operands) {
    starts[static_cast<size_t>(dim)] = b.scalar_int(at > INT32_MAX ? Type::S64 : Type::S32, at);
    if (at > INT32_MAX) return InstrId::None;
    out = b.dynamic_update_slice(out, part, starts);
    at += b.shape(part).dim(static_cast<int>(dim));
  }
  return out;
}

// Reverses one dimension after the other by a gather with descending indices.
InstrId reverse(const ExpandInput& in) {
  Builder& b = in.b;
  if (in.shape().has_dynamic() || in.shape().element_count() == 0) return InstrId::None;
  InstrId x = in.operand(0);
  const int64_t rank = in.shape().rank();
  for (int64_t dim : in.as<DimensionsAttrs>().dimensions) {
    const int64_t n = in.shape().dim(static_cast<int>(dim));
    const InstrId count = b.iota(Shape::array(Type::S64, {n, 1}), 0);
    const InstrId index = b.sub(b.like_int(count, n - 1), count);
    auto* attrs = in.module.make<GatherAttrs>();
    Ints others = counting(rank), sizes = to_ints(in.shape().dims());
    others.erase(others.begin() + dim);
    sizes[static_cast<size_t>(dim)] = 1;
    attrs->offset_dims = in.module.dims(others);
    attrs->collapsed_slice_dims = in.module.dims({dim});
    attrs->start_index_map = in.module.dims({dim});
    attrs->index_vector_dim = 1;
    attrs->slice_sizes = in.module.dims(sizes);
    x = b.op(Op::GATHER, in.shape().without_layout(), {x, index}, attrs);
  }
  return x;
}

// Negative padding is rewritten into a slice.
InstrId pad(const ExpandInput& in) {
  const Padding& p = in.as<PadAttrs>().padding;
  const auto negative = [](int64_t v) { return v < 0; };
  if (std::none_of(p.low.begin(), p.low.end(), negative) && std::none_of(p.high.begin(), p.high.end(), negative))
    return InstrId::None;
  if (in.operand_shape(0).has_dynamic()) return InstrId::None;
  return in.b.pad_and_cut(in.operand(0), in.operand(1), p.low, p.high, p.interior);
}

constexpr Expansion kTable[] = {{Op::CONCATENATE, &concatenate}, {Op::REVERSE, &reverse}, {Op::PAD, &pad}};

}  // namespace

Expected<bool> expand_movement(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
