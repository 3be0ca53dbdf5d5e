// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "hlo/ops/windows.h"
#include "hlo/passes/simplify_rules.h"

namespace collet::hlo {
namespace {

constexpr InstrId kNo = InstrId::None;
using Ints = std::vector<int64_t>;

Ints copy(std::span<const int64_t> values) {
  return {values.begin(), values.end()};
}
bool is_static(const RuleInput& r) {
  if (r.instr.shape.has_dynamic()) return false;
  for (InstrId o : r.instr.operands)
    if (r.module[o].shape.has_dynamic()) return false;
  return true;
}
const Instruction& below(const RuleInput& r, const Instruction& x) {
  return r.module[x.operand(0)];
}
bool same_shape(const RuleInput& r, size_t i) {
  return r.at(i).shape.same_without_layout(r.instr.shape);
}
bool is_scalar_broadcast(const Instruction& x) {
  return x.op == Op::BROADCAST && x.as<BroadcastAttrs>().dimensions.empty();
}
// Returns the sizes that are not 1.
Ints squeezed(std::span<const int64_t> dims) {
  Ints out;
  for (int64_t d : dims)
    if (d != 1) out.push_back(d);
  return out;
}

InstrId reshape_nothing(const RuleInput& r) {
  return same_shape(r, 0) ? r.operand(0) : kNo;
}
InstrId reshape_twice(const RuleInput& r) {
  return r.at(0).op == Op::RESHAPE && is_static(r) && !below(r, r.at(0)).shape.has_dynamic()
             ? r.b.reshape(r.at(0).operand(0), r.instr.shape.dims())
             : kNo;
}
InstrId reshape_of_broadcast(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::BROADCAST || !is_static(r)) return kNo;
  if (is_scalar_broadcast(x)) return r.b.broadcast(x.operand(0), r.instr.shape.dims(), {});
  // The reshape only adds or removes dimensions of size 1: finds for each mapped dimension its new number.
  if (squeezed(x.shape.dims()) != squeezed(r.instr.shape.dims())) return kNo;
  Ints to(x.shape.dims().size(), -1);
  int out = 0;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (x.shape.dim(i) == 1) continue;
    while (r.instr.shape.dim(out) == 1) ++out;
    to[static_cast<size_t>(i)] = out++;
  }
  const Instruction& source = below(r, x);
  Ints mapping, kept;
  for (size_t i = 0; i < x.as<BroadcastAttrs>().dimensions.size(); ++i) {
    const int64_t d = to[static_cast<size_t>(x.as<BroadcastAttrs>().dimensions[i])];
    if (d < 0) continue;  // dimensions of size 1 are removed by a reshape below
    mapping.push_back(d);
    kept.push_back(source.shape.dim(static_cast<int>(i)));
  }
  return r.b.broadcast(r.b.reshape(x.operand(0), kept), r.instr.shape.dims(), mapping);
}

InstrId transpose_nothing(const RuleInput& r) {
  const auto p = r.instr.as<DimensionsAttrs>().dimensions;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int64_t>(i)) return kNo;
  return same_shape(r, 0) ? r.operand(0) : kNo;
}
InstrId transpose_twice(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::TRANSPOSE || !is_static(r)) return kNo;
  Ints p;
  for (int64_t d : r.instr.as<DimensionsAttrs>().dimensions)
    p.push_back(x.as<DimensionsAttrs>().dimensions[static_cast<size_t>(d)]);
  return r.b.transpose(x.operand(0), p);
}
InstrId transpose_ones(const RuleInput& r) {
  if (!is_static(r)) return kNo;
  Ints order;
  for (int64_t d : r.instr.as<DimensionsAttrs>().dimensions)
    if (r.at(0).shape.dim(static_cast<int>(d)) != 1) order.push_back(d);
  return std::is_sorted(order.begin(), order.end()) ? r.b.reshape(r.operand(0), r.instr.shape.dims()) : kNo;
}
InstrId transpose_of_broadcast(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::BROADCAST || !is_static(r)) return kNo;
  const auto p = r.instr.as<DimensionsAttrs>().dimensions;
  Ints where(p.size()), mapping;
  for (size_t i = 0; i < p.size(); ++i) where[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  for (int64_t d : x.as<BroadcastAttrs>().dimensions) mapping.push_back(where[static_cast<size_t>(d)]);
  return r.b.broadcast(x.operand(0), r.instr.shape.dims(), mapping);
}
InstrId transpose_of_iota(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::IOTA || !is_static(r)) return kNo;
  const auto p = r.instr.as<DimensionsAttrs>().dimensions;
  const auto at = std::find(p.begin(), p.end(), x.as<IotaAttrs>().dimension);
  return r.b.iota(r.instr.shape, at - p.begin());
}

InstrId broadcast_nothing(const RuleInput& r) {
  const auto m = r.instr.as<BroadcastAttrs>().dimensions;
  return std::is_sorted(m.begin(), m.end()) && same_shape(r, 0) ? r.operand(0) : kNo;
}
InstrId broadcast_twice(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::BROADCAST || !is_static(r)) return kNo;
  Ints mapping;
  for (int64_t d : x.as<BroadcastAttrs>().dimensions)
    mapping.push_back(r.instr.as<BroadcastAttrs>().dimensions[static_cast<size_t>(d)]);
  return r.b.broadcast(x.operand(0), r.instr.shape.dims(), mapping);
}
InstrId broadcast_of_one(const RuleInput& r) {
  if (!is_static(r) || r.at(0).shape.rank() == 0 || r.at(0).shape.element_count() != 1) return kNo;
  return r.b.broadcast(r.b.reshape(r.operand(0), {}), r.instr.shape.dims(), {});
}
InstrId broadcast_as_reshape(const RuleInput& r) {
  const auto m = r.instr.as<BroadcastAttrs>().dimensions;
  if (!is_static(r) || r.instr.shape.element_count() != r.at(0).shape.element_count()) return kNo;
  Ints mapping;
  for (size_t i = 0; i < m.size(); ++i)
    if (r.at(0).shape.dim(static_cast<int>(i)) != 1) mapping.push_back(m[i]);
  return std::is_sorted(mapping.begin(), mapping.end()) ? r.b.reshape(r.operand(0), r.instr.shape.dims()) : kNo;
}
InstrId broadcast_of_reshape(const RuleInput& r) {
  // The reshape only adds or removes dimensions of size 1. Those of its operand are mapped to dimensions of size 1 of the result,
  // which have to lie between the same others.
  const Instruction& x = r.at(0);
  if (x.op != Op::RESHAPE || !is_static(r) || x.shape.element_count() == 1) return kNo;
  const Shape& from = below(r, x).shape;
  if (from.has_dynamic() || squeezed(from.dims()) != squeezed(x.shape.dims())) return kNo;
  const auto m = r.instr.as<BroadcastAttrs>().dimensions;
  if (!std::is_sorted(m.begin(), m.end())) return kNo;
  Ints targets;  // of the dimensions whose size is not 1
  for (size_t i = 0; i < m.size(); ++i)
    if (x.shape.dim(static_cast<int>(i)) != 1) targets.push_back(m[i]);
  Ints mapping;
  size_t next = 0;
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dim(i) != 1) {
      mapping.push_back(targets[next++]);
      continue;
    }
    int64_t at = mapping.empty() ? 0 : mapping.back() + 1;
    const int64_t end = next < targets.size() ? targets[next] : r.instr.shape.rank();
    while (at < end && r.instr.shape.dim(static_cast<int>(at)) != 1) ++at;
    if (at >= end) return kNo;
    mapping.push_back(at);
  }
  return r.b.broadcast(x.operand(0), r.instr.shape.dims(), mapping);
}

InstrId slice_nothing(const RuleInput& r) {
  return same_shape(r, 0) ? r.operand(0) : kNo;
}
InstrId slice_twice(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::SLICE || !is_static(r)) return kNo;
  const SliceRanges &in = x.as<SliceAttrs>().slice, &out = r.instr.as<SliceAttrs>().slice;
  Ints start, limit, stride;
  for (size_t i = 0; i < in.start.size(); ++i) {
    const int64_t a = in.stride.empty() ? 1 : in.stride[i], b = out.stride.empty() ? 1 : out.stride[i];
    const int64_t n = r.instr.shape.dim(static_cast<int>(i));
    start.push_back(in.start[i] + out.start[i] * a);
    // If there is at most one element, its stride may be any number, and the product of the strides may overflow.
    stride.push_back(n <= 1 ? 1 : a * b);
    limit.push_back(n == 0 ? start.back() : start.back() + (n - 1) * stride.back() + 1);
  }
  return r.b.slice(x.operand(0), start, limit, stride);
}
InstrId slice_of_broadcast(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::BROADCAST || !is_static(r)) return kNo;
  const SliceRanges& s = r.instr.as<SliceAttrs>().slice;
  Ints start, limit, stride;
  for (int64_t d : x.as<BroadcastAttrs>().dimensions) {
    const auto i = static_cast<size_t>(d);
    start.push_back(s.start[i]);
    limit.push_back(s.limit[i]);
    stride.push_back(s.stride.empty() ? 1 : s.stride[i]);
  }
  return r.b.broadcast(r.b.slice(x.operand(0), start, limit, stride), r.instr.shape.dims(),
                       x.as<BroadcastAttrs>().dimensions);
}
InstrId slice_of_concatenate(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::CONCATENATE || !is_static(r) || r.instr.shape.element_count() == 0) return kNo;
  const int64_t dim = x.as<DimensionAttrs>().dimension;
  const auto d = static_cast<size_t>(dim);
  const SliceRanges& s = r.instr.as<SliceAttrs>().slice;
  int64_t first = 0;
  for (InstrId part : x.operands) {
    const int64_t size = r.module[part].shape.dim(static_cast<int>(dim));
    if (s.start[d] >= first && s.limit[d] <= first + size) {
      Ints start = copy(s.start), limit = copy(s.limit);
      start[d] -= first;
      limit[d] -= first;
      return r.b.slice(part, start, limit, s.stride);
    }
    first += size;
  }
  return kNo;
}
InstrId slice_of_pad(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::PAD || !is_static(r) || r.instr.shape.element_count() == 0) return kNo;
  const Padding& p = x.as<PadAttrs>().padding;
  const SliceRanges& s = r.instr.as<SliceAttrs>().slice;
  Ints start = copy(s.start), limit = copy(s.limit);
  for (size_t i = 0; i < start.size(); ++i) {
    const int64_t n = below(r, x).shape.dim(static_cast<int>(i));
    if ((!p.interior.empty() && p.interior[i] != 0)) return kNo;
    start[i] -= p.low[i];
    limit[i] -= p.low[i];
    if (start[i] < 0 || limit[i] > n) return kNo;
  }
  return r.b.slice(x.operand(0), start, limit, s.stride);
}

InstrId concatenate_one(const RuleInput& r) {
  return r.instr.operands.size() == 1 && same_shape(r, 0) ? r.operand(0) : kNo;
}
// Most operands of a merged concatenate. In a chain of concatenates that each append a part, every link would otherwise
// list all parts before it.
constexpr size_t kMostParts = 1024;
InstrId concatenate_flat(const RuleInput& r) {
  if (!is_static(r)) return kNo;
  std::vector<InstrId> parts;
  const int64_t dim = r.instr.as<DimensionAttrs>().dimension;
  bool changed = false;
  for (InstrId o : r.instr.operands) {
    const Instruction& part = r.module[o];
    if (part.shape.dim(static_cast<int>(dim)) == 0) {
      changed = true;
    } else if (part.op == Op::CONCATENATE && part.as<DimensionAttrs>().dimension == dim &&
               parts.size() + part.operands.size() <= kMostParts) {
      parts.insert(parts.end(), part.operands.begin(), part.operands.end());
      changed = true;
    } else {
      parts.push_back(o);
    }
  }
  return changed && !parts.empty() ? r.b.concatenate(parts, dim) : kNo;
}
// True if two slices of one array are adjacent, so that their concatenation is one slice.
bool adjoin(const RuleInput& r, const Instruction& a, const Instruction& b, int64_t dim) {
  if (a.op != Op::SLICE || b.op != Op::SLICE || a.operand(0) != b.operand(0)) return false;
  const SliceRanges &x = a.as<SliceAttrs>().slice, &y = b.as<SliceAttrs>().slice;
  for (size_t i = 0; i < x.start.size(); ++i) {
    const int64_t sx = x.stride.empty() ? 1 : x.stride[i], sy = y.stride.empty() ? 1 : y.stride[i];
    if (static_cast<int64_t>(i) == dim) {
      if (sx != 1 || sy != 1 || x.limit[i] != y.start[i]) return false;
    } else if (x.start[i] != y.start[i] || x.limit[i] != y.limit[i] || sx != sy) {
      return false;
    }
  }
  return !r.module[a.operand(0)].shape.has_dynamic();
}
InstrId concatenate_slices(const RuleInput& r) {
  if (!is_static(r)) return kNo;
  const int64_t dim = r.instr.as<DimensionAttrs>().dimension;
  const size_t count = r.instr.operands.size();
  std::vector<InstrId> parts;
  for (size_t i = 0, last = 0; i < count; i = last + 1) {
    last = i;
    while (last + 1 < count && adjoin(r, r.at(last), r.at(last + 1), dim)) ++last;
    if (last == i) {
      parts.push_back(r.operand(i));
      continue;
    }
    const SliceRanges& s = r.at(i).as<SliceAttrs>().slice;
    Ints limit = copy(s.limit);
    limit[static_cast<size_t>(dim)] = r.at(last).as<SliceAttrs>().slice.limit[static_cast<size_t>(dim)];
    parts.push_back(r.b.slice(r.at(i).operand(0), s.start, limit, s.stride));
  }
  return parts.size() < count ? r.b.concatenate(parts, dim) : kNo;
}

InstrId pad_nothing(const RuleInput& r) {
  const Padding& p = r.instr.as<PadAttrs>().padding;
  const auto zeros = [](Dims d) { return std::all_of(d.begin(), d.end(), [](int64_t v) { return v == 0; }); };
  if (!zeros(p.low) || !zeros(p.high) || !same_shape(r, 0)) return kNo;
  return r.operand(0);
}
InstrId pad_of_nothing(const RuleInput& r) {
  if (!is_static(r)) return kNo;
  const Padding& p = r.instr.as<PadAttrs>().padding;
  bool nothing = false;
  for (size_t d = 0; d < p.low.size(); ++d)
    nothing |=
        padded_dim(r.at(0).shape.dims()[d], p.low[d], p.high[d], p.interior.empty() ? 0 : p.interior[d]).count == 0;
  return nothing ? r.b.broadcast(r.operand(1), r.instr.shape.dims(), {}) : kNo;
}
InstrId pad_only_cuts(const RuleInput& r) {
  if (!is_static(r)) return kNo;
  const Padding& p = r.instr.as<PadAttrs>().padding;
  Ints start, limit;
  for (size_t d = 0; d < p.low.size(); ++d) {
    const int64_t n = r.at(0).shape.dims()[d];
    if (p.low[d] > 0 || p.high[d] > 0 || (n > 1 && !p.interior.empty() && p.interior[d] != 0)) return kNo;
    start.push_back(-p.low[d]);
    limit.push_back(n + p.high[d]);
  }
  return r.b.slice(r.operand(0), start, limit);
}
InstrId pad_splat_with_itself(const RuleInput& r) {
  const Literal *x = r.splat(0), *value = r.splat(1);
  if (!x || !value || !is_static(r) || x->byte_size() == 0) return kNo;
  if (!std::equal(value->bytes(), value->bytes() + value->byte_size(), x->bytes())) return kNo;
  return r.b.broadcast(r.operand(1), r.instr.shape.dims(), {});
}

InstrId reverse_ones(const RuleInput& r) {
  Ints kept;
  for (int64_t d : r.instr.as<DimensionsAttrs>().dimensions)
    if (r.at(0).shape.dim(static_cast<int>(d)) != 1) kept.push_back(d);
  if (kept.size() == r.instr.as<DimensionsAttrs>().dimensions.size()) return kept.empty() ? r.operand(0) : kNo;
  return r.b.reverse(r.operand(0), kept);
}
InstrId reverse_twice(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::REVERSE || !is_static(r)) return kNo;
  Ints dims;
  const auto has = [](Dims list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); };
  const Dims a = x.as<DimensionsAttrs>().dimensions, b = r.instr.as<DimensionsAttrs>().dimensions;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (has(a, i) != has(b, i)) dims.push_back(i);
  return r.b.reverse(x.operand(0), dims);
}
InstrId reverse_of_broadcast(const RuleInput& r) {
  const Instruction& x = r.at(0);
  if (x.op != Op::BROADCAST || !is_static(r)) return kNo;
  const Dims dims = r.instr.as<DimensionsAttrs>().dimensions, mapping = x.as<BroadcastAttrs>().dimensions;
  Ints inner;
  for (size_t i = 0; i < mapping.size(); ++i)
    if (std::find(dims.begin(), dims.end(), mapping[i]) != dims.end()) inner.push_back(static_cast<int64_t>(i));
  return r.b.broadcast(r.b.reverse(x.operand(0), inner), r.instr.shape.dims(), mapping);
}

// Reads the start indices as constants, clamped so that a slice of `sizes` fits; returns false if they are not
// constants.
bool constant_starts(const RuleInput& r, size_t first, std::span<const int64_t> sizes, Ints& out) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t room = r.at(0).shape.dim(static_cast<int>(i)) - sizes[i];
    const Literal* c = r.splat(first + i);
    if (!c && room != 0) return false;
    int64_t start = c ? c->as_int(0) : 0;
    if (c && c->type() == Type::U64 && start < 0) start = INT64_MAX;
    out.push_back(std::clamp<int64_t>(start, 0, room));
  }
  return true;
}
InstrId dynamic_slice_constant(const RuleInput& r) {
  const Dims sizes = r.instr.as<DynamicSliceAttrs>().sizes;
  if (!is_static(r) || r.instr.operands.size() != sizes.size() + 1) return kNo;
  Ints start, limit;
  if (!constant_starts(r, 1, sizes, start)) return kNo;
  for (size_t i = 0; i < start.size(); ++i) limit.push_back(start[i] + sizes[i]);
  return r.b.slice(r.operand(0), start, limit);
}
InstrId update_everything(const RuleInput& r) {
  return is_static(r) && same_shape(r, 1) ? r.operand(1) : kNo;
}
InstrId update_nothing(const RuleInput& r) {
  return is_static(r) && r.at(1).shape.element_count() == 0 ? r.operand(0) : kNo;
}

InstrId iota_of_one(const RuleInput& r) {
  return is_static(r) && r.instr.shape.dim(static_cast<int>(r.instr.as<IotaAttrs>().dimension)) == 1
             ? r.b.fill(r.instr.shape, 0)
             : kNo;
}

// Rewrites an elementwise op of broadcasts with equal mappings into a broadcast of the op on their operands, which have
// fewer elements. `complex` is excluded: for a device without complex numbers its operands must stay separate
// broadcasts.
InstrId sink_into_broadcast(const RuleInput& r) {
  const Op op = r.instr.op;
  if (!is_elementwise(op) || op == Op::MAP || op == Op::STOCHASTIC_CONVERT || op == Op::COMPLEX ||
      r.instr.operands.empty() || !r.instr.shape.is_array() || !is_static(r))
    return kNo;
  const Instruction& first = r.at(0);
  if (first.op != Op::BROADCAST) return kNo;
  const Shape& small = below(r, first).shape;
  std::vector<InstrId> operands;
  for (InstrId o : r.instr.operands) {
    const Instruction& x = r.module[o];
    if (x.op != Op::BROADCAST || !(x.as<BroadcastAttrs>().dimensions == first.as<BroadcastAttrs>().dimensions) ||
        !x.shape.same_dims(r.instr.shape) || !below(r, x).shape.same_dims(small))
      return kNo;
    operands.push_back(x.operand(0));
  }
  if (small.element_count() >= r.instr.shape.element_count()) return kNo;
  const InstrId inner = r.b.op(op, Shape::array(r.instr.shape.type(), small.dims()), operands, r.instr.attrs);
  return r.b.broadcast(inner, r.instr.shape.dims(), first.as<BroadcastAttrs>().dimensions);
}

InstrId no_elements(const RuleInput& r) {
  const OpInfo& info = op_info(r.instr.op);
  // A `complex` is excluded, because an expansion may have made it for a device without complex numbers, and no other
  // rule joins its parts.
  if (r.instr.op == Op::CONSTANT || r.instr.op == Op::COMPLEX || !r.instr.shape.is_array() ||
      r.instr.shape.element_count() != 0 || !is_static(r) || info.op_class == OpClass::EXECUTOR ||
      info.op_class == OpClass::COMMUNICATION || has_side_effect(r.instr.op))
    return kNo;
  return r.b.constant(Literal::zeros(r.instr.shape.without_layout()));
}

// Gives each operand of a map the shape of the result, as devices expect it.
InstrId map_of_scalar(const RuleInput& r) {
  const bool any = std::any_of(r.instr.operands.begin(), r.instr.operands.end(),
                               [&](InstrId o) { return r.module[o].shape.rank() == 0; });
  if (!any || r.instr.shape.rank() == 0 || !is_static(r)) return kNo;
  return r.b.op(Op::MAP, r.instr.shape, r.b.broadcast_scalars(r.instr.operands, r.instr.shape.dims()), r.instr.attrs,
                r.instr.called);
}

constexpr Rule kRules[] = {
    {Op::INVALID, "an array without elements is a constant", no_elements},
    {Op::MAP, "map(x, scalar) = map(x, broadcast(scalar))", map_of_scalar},
    {Op::RESHAPE, "reshape to the same shape does nothing", reshape_nothing},
    {Op::RESHAPE, "reshape(reshape(x)) = reshape(x)", reshape_twice},
    {Op::RESHAPE, "reshape(broadcast(x)) = broadcast(x), if only ones come and go", reshape_of_broadcast},
    {Op::TRANSPOSE, "transpose by the identity does nothing", transpose_nothing},
    {Op::TRANSPOSE, "transpose(transpose(x)) = transpose(x)", transpose_twice},
    {Op::TRANSPOSE, "moving dimensions of size one is a reshape", transpose_ones},
    {Op::TRANSPOSE, "transpose(broadcast(x)) = broadcast(x)", transpose_of_broadcast},
    {Op::TRANSPOSE, "transpose(iota) = iota", transpose_of_iota},
    {Op::BROADCAST, "broadcast to the same shape does nothing", broadcast_nothing},
    {Op::BROADCAST, "broadcast(broadcast(x)) = broadcast(x)", broadcast_twice},
    {Op::BROADCAST, "broadcast of one element = broadcast of a scalar", broadcast_of_one},
    {Op::BROADCAST, "broadcast that adds no element = reshape", broadcast_as_reshape},
    {Op::BROADCAST, "broadcast(reshape(x)) = broadcast(x), if dimensions of size one allow it", broadcast_of_reshape},
    {Op::SLICE, "a slice of everything does nothing", slice_nothing},
    {Op::SLICE, "slice(slice(x)) = slice(x)", slice_twice},
    {Op::SLICE, "slice(broadcast(x)) = broadcast(slice(x))", slice_of_broadcast},
    {Op::SLICE, "slice(concatenate(..., x, ...)) = slice(x)", slice_of_concatenate},
    {Op::SLICE, "slice(pad(x)) = slice(x), inside x", slice_of_pad},
    {Op::CONCATENATE, "concatenate(x) = x", concatenate_one},
    {Op::CONCATENATE, "concatenate of concatenates is one; empty parts drop out", concatenate_flat},
    {Op::CONCATENATE, "slices that adjoin are one slice", concatenate_slices},
    {Op::PAD, "padding by nothing does nothing", pad_nothing},
    {Op::PAD, "padding of which nothing is left but padding is a broadcast", pad_of_nothing},
    {Op::PAD, "edges that only cut off are a slice", pad_only_cuts},
    {Op::PAD, "pad of a splat with its own value is a broadcast", pad_splat_with_itself},
    {Op::REVERSE, "reversing one element does nothing", reverse_ones},
    {Op::REVERSE, "reverse(reverse(x)) = x", reverse_twice},
    {Op::REVERSE, "reverse(broadcast(x)) = broadcast(reverse(x))", reverse_of_broadcast},
    {Op::DYNAMIC_SLICE, "dynamic-slice at constant places is a slice", dynamic_slice_constant},
    {Op::DYNAMIC_UPDATE_SLICE, "an update of everything is the update", update_everything},
    {Op::DYNAMIC_UPDATE_SLICE, "an update of nothing does nothing", update_nothing},
    {Op::IOTA, "iota over one element is zero", iota_of_one},
    {Op::INVALID, "f(broadcast(x), broadcast(y)) = broadcast(f(x, y))", sink_into_broadcast},
};

}  // namespace

std::span<const Rule> movement_rules() {
  return kRules;
}

}  // namespace collet::hlo
