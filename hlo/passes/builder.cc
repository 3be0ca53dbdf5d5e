// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/builder.h"

#include <algorithm>
#include <array>
#include <limits>

#include "hlo/ops/rules.h"
#include "hlo/ops/windows.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

std::vector<int64_t> to_vector(std::span<const int64_t> values) {
  return {values.begin(), values.end()};
}

}  // namespace

InstrId Builder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return InstrId::None;
}

void Builder::set_origin(const Instruction* instr) {
  const Metadata* origin = instr && instr->extras ? instr->extras->metadata : nullptr;
  if (origin == origin_) return;
  origin_ = origin;
  extras_ = nullptr;
}

const Extras* Builder::extras() {
  if (!origin_ || extras_) return extras_;
  auto* extras = module_.make<Extras>();
  extras->metadata = origin_;
  return extras_ = extras;
}

const Shape& Builder::shape(InstrId id) const {
  static const Shape none = Shape::scalar(Type::PRED);
  return id == InstrId::None ? none : module_[id].shape;
}

InstrId Builder::op(Op op, const Shape& shape, std::span<const InstrId> operands, const void* attrs,
                    std::span<const CompId> called) {
  if (!status_.ok()) return InstrId::None;
  if (std::find(operands.begin(), operands.end(), InstrId::None) != operands.end())
    return fail(internal_error("a rewrite used a value that it had not built"));
  const InstrId id = module_.append(computation_, op, shape, operands, attrs, called);
  module_[id].extras = extras();
  return id;
}

InstrId Builder::inferred(Op op, std::span<const InstrId> operands, const void* attrs, std::span<const CompId> called,
                          const Shape* declared) {
  if (!status_.ok()) return InstrId::None;
  if (std::find(operands.begin(), operands.end(), InstrId::None) != operands.end())
    return fail(internal_error("a rewrite used a value that it had not built"));
  auto id = append_inferred(module_, computation_, op, operands, attrs, called, declared);
  if (!id.ok()) return fail(id.status());
  module_[*id].extras = extras();
  return *id;
}

InstrId Builder::constant(Literal value) {
  const Shape shape = value.shape();
  return op(Op::CONSTANT, shape, {}, module_.constant_attrs(std::move(value)));
}

InstrId Builder::filled(const Shape& shape, Literal scalar) {
  if (!status_.ok()) return InstrId::None;
  InstrId base = InstrId::None;
  const uint64_t hash = scalar.hash();
  for (auto [it, end] = scalars_.equal_range(hash); it != end; ++it)
    if (module_.literal(module_[it->second]) == scalar) base = it->second;
  if (base == InstrId::None) {
    base = constant(std::move(scalar));
    scalars_.emplace(hash, base);
  }
  if (shape.rank() == 0) return base;
  InstrId& made = fills_.try_emplace({base, to_vector(shape.dims())}, InstrId::None).first->second;
  if (made == InstrId::None) made = broadcast(base, shape.dims(), {});
  return made;
}

InstrId Builder::scalar(Type type, double value, double imaginary) {
  return fill(Shape::scalar(type), value, imaginary);
}
InstrId Builder::scalar_int(Type type, int64_t value) {
  return fill_int(Shape::scalar(type), value);
}
InstrId Builder::fill(const Shape& shape, double value, double imaginary) {
  Literal scalar = Literal::zeros(Shape::scalar(shape.type()));
  scalar.set_double(0, value, imaginary);
  return filled(shape, std::move(scalar));
}
InstrId Builder::fill_int(const Shape& shape, int64_t value) {
  return filled(shape, Literal::scalar_int(shape.type(), value));
}
InstrId Builder::ints(Type type, std::span<const int64_t> values) {
  Literal out = Literal::zeros(Shape::array(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) out.set_int(static_cast<int64_t>(i), values[i]);
  return constant(std::move(out));
}

InstrId Builder::unary(Op o, InstrId x) {
  Shape out = shape(x);
  if (o == Op::IS_FINITE) out = out.with_type(Type::PRED);
  if (o == Op::REAL || o == Op::IMAG || (o == Op::ABS && is_complex(out.type())))
    out = out.with_type(real_type(out.type()));
  return op(o, out, {x});
}

InstrId Builder::binary(Op o, InstrId a, InstrId b) {
  Shape out = shape(a);
  if (o == Op::COMPLEX) out = out.with_type(out.type() == Type::F64 ? Type::C128 : Type::C64);
  if (status_.ok() && (!out.same_dims(shape(b)) || shape(a).type() != shape(b).type()))
    return fail(internal_error("a rewrite built " + std::string(op_info(o).text) + " of " + shape(a).to_string() +
                               " and " + shape(b).to_string()));
  return op(o, out, {a, b});
}

InstrId Builder::compare(InstrId a, Direction direction, InstrId b, CompareType type) {
  auto* attrs = module_.make<CompareAttrs>();
  attrs->direction = direction;
  attrs->type = type;
  if (status_.ok() && !shape(a).same_dims(shape(b)))
    return fail(internal_error("a rewrite compared " + shape(a).to_string() + " with " + shape(b).to_string()));
  return op(Op::COMPARE, shape(a).with_type(Type::PRED), {a, b}, attrs);
}

InstrId Builder::select(InstrId predicate, InstrId on_true, InstrId on_false) {
  if (status_.ok() && (!shape(on_true).same_dims(shape(on_false)) || type(on_true) != type(on_false)))
    return fail(internal_error("a rewrite selected between " + shape(on_true).to_string() + " and " +
                               shape(on_false).to_string()));
  return op(Op::SELECT, shape(on_true), {predicate, on_true, on_false});
}

InstrId Builder::convert(InstrId x, Type to) {
  return type(x) == to ? x : op(Op::CONVERT, shape(x).with_type(to), {x});
}
InstrId Builder::clamped_index(InstrId index, int64_t most) {
  // A narrower type may not have `most`.
  if (type_info(type(index)).bits < type_info(index_type_).bits) index = convert(index, index_type_);
  return convert(min(max(index, like_int(index, 0)), like_int(index, most)), index_type_);
}

InstrId Builder::along_dimension(std::span<const InstrId> scalars, const std::vector<int64_t>& dims, int64_t along) {
  if (along >= static_cast<int64_t>(dims.size())) return broadcast(scalars[0], dims, {});
  std::vector<InstrId> parts;
  for (InstrId s : scalars) parts.push_back(reshape(s, {1}));
  const InstrId vector = parts.size() == 1 ? parts[0] : concatenate(parts, 0);
  const std::array<int64_t, 1> mapping = {along};
  return broadcast(vector, dims, mapping);
}

InstrId Builder::bitcast_convert(InstrId x, Type to) {
  return type(x) == to ? x : op(Op::BITCAST_CONVERT, shape(x).with_type(to), {x});
}

InstrId Builder::reshape(InstrId x, std::span<const int64_t> to) {
  const Shape& from = shape(x);
  if (std::equal(to.begin(), to.end(), from.dims().begin(), from.dims().end()) && !from.has_dynamic()) return x;
  return op(Op::RESHAPE, Shape::array(from.type(), to), {x});
}

InstrId Builder::transpose(InstrId x, std::span<const int64_t> permutation) {
  if (!status_.ok()) return InstrId::None;
  bool same = true;
  std::vector<int64_t> out;
  for (size_t i = 0; i < permutation.size(); ++i) {
    same &= permutation[i] == static_cast<int64_t>(i);
    out.push_back(shape(x).dim(static_cast<int>(permutation[i])));
  }
  if (same) return x;
  return op(Op::TRANSPOSE, Shape::array(type(x), out), {x}, make(DimensionsAttrs{module_.dims(permutation)}));
}

InstrId Builder::broadcast(InstrId x, std::span<const int64_t> to, std::span<const int64_t> mapping) {
  if (to.size() == mapping.size() && std::is_sorted(mapping.begin(), mapping.end())) return x;
  return op(Op::BROADCAST, Shape::array(type(x), to), {x}, make(BroadcastAttrs{module_.dims(mapping)}));
}

std::vector<InstrId> Builder::broadcast_scalars(std::span<const InstrId> values, std::span<const int64_t> dims) {
  std::vector<InstrId> out(values.begin(), values.end());
  for (InstrId& value : out)
    if (rank(value) == 0) value = broadcast(value, dims, {});
  return out;
}

InstrId Builder::slice(InstrId x, std::span<const int64_t> start, std::span<const int64_t> limit,
                       std::span<const int64_t> stride) {
  if (!status_.ok()) return InstrId::None;
  std::vector<int64_t> out, steps(start.size(), 1);
  if (!stride.empty()) steps = to_vector(stride);
  bool whole = true;
  for (size_t i = 0; i < start.size(); ++i) {
    out.push_back(limit[i] > start[i] ? (limit[i] - start[i] - 1) / steps[i] + 1 : 0);
    whole &= start[i] == 0 && steps[i] == 1 && limit[i] == shape(x).dim(static_cast<int>(i));
  }
  if (whole) return x;
  auto* attrs = module_.make<SliceAttrs>();
  attrs->slice = {module_.dims(start), module_.dims(limit), module_.dims(steps)};
  return op(Op::SLICE, Shape::array(type(x), out), {x}, attrs);
}

InstrId Builder::slice_dim(InstrId x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  if (!status_.ok()) return InstrId::None;
  std::vector<int64_t> starts(shape(x).dims().size(), 0), limits = to_vector(dims(x)), strides(starts.size(), 1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  strides[static_cast<size_t>(dim)] = stride;
  return slice(x, starts, limits, strides);
}

InstrId Builder::pad(InstrId x, InstrId value, std::span<const int64_t> low, std::span<const int64_t> high,
                     std::span<const int64_t> interior) {
  if (!status_.ok()) return InstrId::None;
  std::vector<int64_t> out, holes(low.size(), 0);
  if (!interior.empty()) holes = to_vector(interior);
  bool none = true;
  for (size_t i = 0; i < low.size(); ++i) {
    const int64_t n = shape(x).dim(static_cast<int>(i));
    out.push_back(low[i] + high[i] + n + std::max<int64_t>(n - 1, 0) * holes[i]);
    none &= low[i] == 0 && high[i] == 0 && (holes[i] == 0 || n < 2);
  }
  if (none) return x;
  auto* attrs = module_.make<PadAttrs>();
  attrs->padding = {module_.dims(low), module_.dims(high), module_.dims(holes)};
  return op(Op::PAD, Shape::array(type(x), out), {x, value}, attrs);
}

InstrId Builder::pad_and_cut(InstrId x, InstrId value, std::span<const int64_t> low, std::span<const int64_t> high,
                             std::span<const int64_t> interior) {
  if (!status_.ok()) return InstrId::None;
  const size_t rank = low.size();
  std::vector<int64_t> start(rank), limit(rank), before(rank), behind(rank), holes(rank), out(rank);
  bool empty = false;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t n = shape(x).dim(static_cast<int>(d));
    holes[d] = interior.empty() || n < 2 ? 0 : interior[d];
    const PaddedDim p = padded_dim(n, low[d], high[d], holes[d]);
    start[d] = p.first;
    limit[d] = p.first + p.count;
    before[d] = p.low;
    behind[d] = p.high;
    out[d] = p.size;
    empty |= p.count == 0;
  }
  if (empty) return broadcast(value, out, {});
  return pad(slice(x, start, limit), value, before, behind, holes);
}

InstrId Builder::pad_dim(InstrId x, InstrId value, int64_t dim, int64_t low, int64_t high, int64_t interior) {
  std::vector<int64_t> lows(shape(x).dims().size(), 0), highs = lows, interiors = lows;
  if (!status_.ok()) return InstrId::None;
  lows[static_cast<size_t>(dim)] = low;
  highs[static_cast<size_t>(dim)] = high;
  interiors[static_cast<size_t>(dim)] = interior;
  return pad(x, value, lows, highs, interiors);
}

InstrId Builder::concatenate(std::span<const InstrId> xs, int64_t dim) {
  if (!status_.ok()) return InstrId::None;
  if (xs.size() == 1) return xs[0];
  std::vector<int64_t> out = to_vector(dims(xs[0]));
  for (size_t i = 1; i < xs.size(); ++i) out[static_cast<size_t>(dim)] += shape(xs[i]).dim(static_cast<int>(dim));
  return op(Op::CONCATENATE, Shape::array(type(xs[0]), out), xs, make(DimensionAttrs{dim}));
}

InstrId Builder::reverse(InstrId x, std::span<const int64_t> which) {
  if (which.empty()) return x;
  return op(Op::REVERSE, shape(x), {x}, make(DimensionsAttrs{module_.dims(which)}));
}

InstrId Builder::iota(const Shape& shape, int64_t dim) {
  return op(Op::IOTA, shape, {}, make(IotaAttrs{dim}));
}

InstrId Builder::dynamic_slice(InstrId x, std::span<const InstrId> starts, std::span<const int64_t> sizes) {
  std::vector<InstrId> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op(Op::DYNAMIC_SLICE, Shape::array(type(x), sizes), operands, make(DynamicSliceAttrs{module_.dims(sizes)}));
}

InstrId Builder::dynamic_update_slice(InstrId x, InstrId update, std::span<const InstrId> starts) {
  std::vector<InstrId> operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return op(Op::DYNAMIC_UPDATE_SLICE, shape(x), operands);
}

CompId Builder::combiner(Op o, Type type) {
  auto [it, fresh] = combiners_.try_emplace({o, type}, CompId::None);
  if (!fresh) return it->second;
  const CompId id = module_.add_computation(module_.unique_computation_name(op_info(o).text));
  const Shape scalar = Shape::scalar(type);
  const InstrId a = module_.append_parameter(id, 0, scalar), b = module_.append_parameter(id, 1, scalar);
  const InstrId both[] = {a, b};
  module_[id].root = module_.append(id, o, scalar, both);
  return it->second = id;
}

Literal Builder::identity(Op combine, Type type) {
  const TypeInfo& info = type_info(type);
  const bool floating = info.kind == Kind::Float;
  const double infinity = std::numeric_limits<double>::infinity();
  // A format without an infinity may give NaN for a huge value, so the largest finite value is searched for: the
  // largest power of two first, then smaller powers of two that can be added to it.
  const auto extreme = [&](bool lowest) {
    if (info.kind == Kind::Pred) return Literal::scalar_int(type, lowest ? 0 : 1);
    if (floating) {
      Literal out = Literal::scalar(type, lowest ? -infinity : infinity);
      if (out.as_double(0) == (lowest ? -infinity : infinity)) return out;
      double best = 1;
      for (double step = 1; step < 1e40; step *= 2)
        if (Literal::scalar(type, step).as_double(0) == step) best = step;
      for (double part = best / 2; part > best / 64; part /= 2)
        if (Literal::scalar(type, best + part).as_double(0) == best + part) best += part;
      return Literal::scalar(type, lowest ? -best : best);
    }
    if (info.kind == Kind::Unsigned) return Literal::scalar_int(type, lowest ? 0 : -1);
    const int64_t least = info.bits >= 64 ? INT64_MIN : -(int64_t{1} << (info.bits - 1));
    return Literal::scalar_int(type, lowest ? least : -(least + 1));
  };
  switch (combine) {
    case Op::MAXIMUM:
      return extreme(true);
    case Op::MINIMUM:
      return extreme(false);
    case Op::MULTIPLY:
      return Literal::scalar(type, 1);
    case Op::AND:
      return Literal::scalar_int(type, info.kind == Kind::Pred ? 1 : -1);
    case Op::ADD:
      return floating ? Literal::scalar(type, -0.0) : Literal::zeros(Shape::scalar(type));
    default:
      return Literal::zeros(Shape::scalar(type));
  }
}

InstrId Builder::reduce(InstrId x, InstrId init, std::span<const int64_t> over, Op combine) {
  if (!status_.ok()) return InstrId::None;
  std::vector<int64_t> out;
  for (int i = 0; i < rank(x); ++i)
    if (std::find(over.begin(), over.end(), i) == over.end()) out.push_back(shape(x).dim(i));
  const CompId called[] = {combiner(combine, type(x))};
  return op(Op::REDUCE, Shape::array(type(x), out), {x, init}, make(DimensionsAttrs{module_.dims(over)}), called);
}

InstrId Builder::reduce(InstrId x, std::span<const int64_t> over, Op combine) {
  if (!status_.ok()) return InstrId::None;
  // The initial value of a sum is +0, so that the sum of no elements is +0.
  Literal init = combine == Op::ADD ? Literal::zeros(Shape::scalar(type(x))) : identity(combine, type(x));
  return reduce(x, filled(Shape::scalar(type(x)), std::move(init)), over, combine);
}

InstrId Builder::dot(InstrId a, InstrId b, const DotAttrs& attrs, Type result) {
  if (!status_.ok()) return InstrId::None;
  const auto has = [](Dims list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); };
  std::vector<int64_t> out;
  for (int64_t d : attrs.lhs_batch) out.push_back(shape(a).dim(static_cast<int>(d)));
  for (int i = 0; i < rank(a); ++i)
    if (!has(attrs.lhs_batch, i) && !has(attrs.lhs_contracting, i)) out.push_back(shape(a).dim(i));
  for (int i = 0; i < rank(b); ++i)
    if (!has(attrs.rhs_batch, i) && !has(attrs.rhs_contracting, i)) out.push_back(shape(b).dim(i));
  return op(Op::DOT, Shape::array(result, out), {a, b}, make(attrs));
}

InstrId Builder::tuple(std::span<const InstrId> xs) {
  std::vector<Shape> shapes;
  for (InstrId x : xs) shapes.push_back(shape(x));
  return op(Op::TUPLE, Shape::tuple(std::move(shapes)), xs);
}

InstrId Builder::get(InstrId tuple, int64_t index) {
  if (!status_.ok()) return InstrId::None;
  return op(Op::GET_TUPLE_ELEMENT, shape(tuple).element(static_cast<size_t>(index)), {tuple},
            make(TupleIndexAttrs{index}));
}

InstrId Builder::loop(CompId condition, CompId body, std::span<const InstrId> state) {
  const InstrId init = tuple(state);
  const CompId called[] = {condition, body};
  return op(Op::WHILE, shape(init), {init}, nullptr, called);
}

std::vector<InstrId> Builder::counted_loop(int64_t trips, std::span<const InstrId> state, const LoopBody& body) {
  std::vector<InstrId> all{scalar_int(Type::S32, 0)};
  all.insert(all.end(), state.begin(), state.end());
  if (!status_.ok()) return std::vector<InstrId>(state.size(), InstrId::None);
  std::vector<Shape> shapes;
  for (InstrId x : all) shapes.push_back(shape(x));
  const Shape tuple_shape = Shape::tuple(shapes);

  const CompId condition = module_.add_computation(module_.unique_computation_name("condition"));
  Builder test(module_, condition);
  const InstrId seen = module_.append_parameter(condition, 0, tuple_shape);
  module_[condition].root = test.compare(test.get(seen, 0), Direction::LT, test.scalar_int(Type::S32, trips));

  const CompId trip = module_.add_computation(module_.unique_computation_name("body"));
  Builder inner(module_, trip);
  const InstrId parameter = module_.append_parameter(trip, 0, tuple_shape);
  const InstrId i = inner.get(parameter, 0);
  std::vector<InstrId> now;
  for (size_t k = 0; k < state.size(); ++k) now.push_back(inner.get(parameter, static_cast<int64_t>(k) + 1));
  std::vector<InstrId> next = body(inner, i, now);
  next.insert(next.begin(), inner.add(i, inner.scalar_int(Type::S32, 1)));
  module_[trip].root = inner.tuple(next);
  if (!inner.status().ok()) fail(inner.status());
  if (!status_.ok()) return std::vector<InstrId>(state.size(), InstrId::None);

  const InstrId result = loop(condition, trip, all);
  if (result != InstrId::None) {
    auto* attrs = module_.make<WhileAttrs>();
    attrs->trip_count_plus_one = trips + 1;
    attrs->induction_operand = 1;
    attrs->induction_step = 1;
    module_[result].attrs = attrs;
  }
  std::vector<InstrId> out;
  for (size_t k = 0; k < state.size(); ++k) out.push_back(get(result, static_cast<int64_t>(k) + 1));
  return out;
}

}  // namespace collet::hlo
