// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/expand/expand.h"

// Rewrites every matrix product into [m,k] x [k,n], or [b,m,k] x [b,k,n] if there are batch dimensions, as libraries of
// matrix products expect it. Several dimensions of one role (batch, free, contracting) are merged into one; the
// transposes that bring them together are omitted where they change nothing.

namespace collet::hlo {
namespace {

int64_t product(const Shape& shape, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(static_cast<int>(d));
  return n;
}

// The dimensions of `shape` that neither list names.
Ints free_dims(const Shape& shape, Dims batch, Dims contracting) {
  Ints out;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      out.push_back(d);
  return out;
}

bool is_canonical(const DotAttrs& attrs, const Shape& lhs, const Shape& rhs) {
  const int batch = attrs.lhs_batch.empty() ? 0 : 1;
  const auto is = [](Dims dims, Ints wanted) {
    return std::equal(dims.begin(), dims.end(), wanted.begin(), wanted.end());
  };
  const Ints zero = batch ? Ints{0} : Ints{};
  return lhs.rank() == batch + 2 && rhs.rank() == batch + 2 && is(attrs.lhs_batch, zero) && is(attrs.rhs_batch, zero) &&
         is(attrs.lhs_contracting, {batch + 1}) && is(attrs.rhs_contracting, {batch});
}

InstrId canonical(Builder& b, const Instruction& instr) {
  const auto& attrs = instr.as<DotAttrs>();
  const Shape lhs = b.shape(instr.operand(0)), rhs = b.shape(instr.operand(1));
  const Ints lhs_free = free_dims(lhs, attrs.lhs_batch, attrs.lhs_contracting);
  const Ints rhs_free = free_dims(rhs, attrs.rhs_batch, attrs.rhs_contracting);
  const bool batched = !attrs.lhs_batch.empty();
  const int64_t batch = product(lhs, to_ints(attrs.lhs_batch)), k = product(lhs, to_ints(attrs.lhs_contracting));
  const auto side = [&](InstrId x, std::initializer_list<std::span<const int64_t>> roles, Ints dims) {
    Ints order;
    for (const auto& role : roles) order.insert(order.end(), role.begin(), role.end());
    if (batched) dims.insert(dims.begin(), batch);
    return b.reshape(b.transpose(x, order), dims);
  };
  const int64_t m = product(lhs, lhs_free), n = product(rhs, rhs_free);
  const InstrId left = side(instr.operand(0), {attrs.lhs_batch, lhs_free, attrs.lhs_contracting}, {m, k});
  const InstrId right = side(instr.operand(1), {attrs.rhs_batch, attrs.rhs_contracting, rhs_free}, {k, n});
  DotAttrs out;
  out.precision = attrs.precision;
  out.algorithm = attrs.algorithm;
  if (batched) out.lhs_batch = out.rhs_batch = b.module().dims({0});
  out.lhs_contracting = b.module().dims({batched ? 2 : 1});
  out.rhs_contracting = b.module().dims({batched ? 1 : 0});
  return b.reshape(b.dot(left, right, out, instr.shape.type()), instr.shape.dims());
}

bool wanted(const Module& module, PassContext& context, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.op != Op::DOT || instr.shape.has_dynamic()) return false;
  const Shape &lhs = module[instr.operand(0)].shape, &rhs = module[instr.operand(1)].shape;
  if (lhs.has_dynamic() || rhs.has_dynamic() || is_canonical(instr.as<DotAttrs>(), lhs, rhs)) return false;
  return !context.claim || (index_of(id) < context.claims_end && context.claim(module, id) == Claim::Expand);
}

}  // namespace

Expected<bool> canonicalize_dots(Module& module, PassContext& context) {
  return rewrite_wanted(module, [&](InstrId id) { return wanted(module, context, id); }, canonical);
}

}  // namespace collet::hlo
