// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/base/float_format.h"
#include "hlo/passes/expand/expand.h"
#include "hlo/passes/expand/float_bits.h"

// Expands random number ops by Threefry 2x32-20 and Philox 4x32-10, with the same bits in the same order as XLA
// (reference: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

namespace collet::hlo {
namespace {

Type unsigned_of(int bits) {
  return bits == 64 ? Type::U64 : bits == 32 ? Type::U32 : bits == 16 ? Type::U16 : Type::U8;
}

struct Words {
  InstrId low, high;
};

/// The state that both generators share.
struct Bits {
  const ExpandInput& in;
  Builder& b;
  InstrId state;

  InstrId word(int64_t i) const { return b.reshape(b.slice_dim(state, 0, i, i + 1), std::initializer_list<int64_t>{}); }
  Words split(InstrId wide) const { return {b.convert(wide, Type::U32), b.convert(b.shr(wide, 32), Type::U32)}; }
  InstrId join(Words w) const { return b.or_(b.convert(w.low, Type::U64), b.shl(b.convert(w.high, Type::U64), 32)); }
  InstrId spread(InstrId scalar, InstrId like) const { return b.broadcast(scalar, b.dims(like), {}); }
  InstrId rotate(InstrId x, int64_t by) const { return b.or_(b.shl(x, by), b.shr(x, 32 - by)); }
  // Converts random bits of the result's width to its type.
  InstrId as_type(InstrId bits, Type type) const {
    const TypeInfo& info = type_info(type);
    const int width = info.bits < 8 ? 8 : info.bits;
    InstrId out = b.convert(bits, unsigned_of(width));
    if (type == Type::PRED) return b.compare(b.and_(out, b.like_int(out, 1)), Direction::NE, b.like_int(out, 0));
    if (info.bits < 8 && is_float(type)) return b.bitcast_convert(b.convert(out, bits_type(type)), type);
    if (info.bits < 8) return b.convert(out, type);
    return b.bitcast_convert(out, type);
  }
};

// ---- Threefry ----

Words threefry(const Bits& g, Words key, Words x) {
  Builder& b = g.b;
  const InstrId parity = b.fill_int(b.shape(key.low), 0x1BD11BDA);
  const InstrId keys[] = {g.spread(key.low, x.low), g.spread(key.high, x.low),
                          g.spread(b.xor_(b.xor_(key.low, key.high), parity), x.low)};
  static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x = {b.add(x.low, keys[0]), b.add(x.high, keys[1])};
  for (int group = 1; group <= 5; ++group) {
    for (int r : kRotations[(group - 1) % 2]) {
      x.low = b.add(x.low, x.high);
      x.high = b.xor_(g.rotate(x.high, r), x.low);
    }
    x.low = b.add(x.low, keys[group % 3]);
    x.high = b.add(b.add(x.high, keys[(group + 1) % 3]), b.like_int(x.high, group));
  }
  return x;
}

InstrId by_threefry(const Bits& g, const Shape& shape) {
  Builder& b = g.b;
  const Words key = g.split(g.word(0));
  const InstrId counter = g.word(1);
  // Each counter gives 64 bits. A 64-bit element uses one counter; two narrower elements share a counter, and they are
  // adjacent along one dimension, which is halved here.
  const bool wide = type_info(shape.type()).bits == 64;
  Ints dims = to_ints(shape.dims());
  size_t halved = 0;
  if (!wide && !dims.empty()) {
    bool even = false;
    for (size_t d = 0; d < dims.size() && !even; ++d)
      if (dims[d] % 2 == 0) {
        halved = d;
        even = true;
      }
    if (!even) halved = static_cast<size_t>(std::max_element(dims.begin(), dims.end()) - dims.begin());
    dims[halved] = (dims[halved] + 1) / 2;
  }
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  InstrId place = b.fill_int(Shape::scalar(Type::U64), 0);
  if (!dims.empty()) place = b.reshape(b.iota(Shape::array(Type::U64, {count}), 0), dims);
  const Words y = threefry(g, key, g.split(b.add(place, g.spread(counter, place))));
  InstrId bits = wide ? g.join(y) : y.low;
  if (!wide && !dims.empty()) {
    Ints pairs = dims;
    pairs.insert(pairs.begin() + static_cast<ptrdiff_t>(halved) + 1, 1);
    const InstrId both[] = {b.reshape(y.low, pairs), b.reshape(y.high, pairs)};
    Ints merged = dims;
    merged[halved] *= 2;
    bits = b.reshape(b.concatenate(both, static_cast<int64_t>(halved) + 1), merged);
    bits = b.slice_dim(bits, static_cast<int64_t>(halved), 0, shape.dim(static_cast<int>(halved)));
  }
  const InstrId words[] = {b.reshape(g.word(0), {1}), b.reshape(b.add(counter, b.scalar_int(Type::U64, count)), {1})};
  const InstrId results[] = {b.concatenate(words, 0), g.as_type(bits, shape.type())};
  return b.tuple(results);
}

// ---- Philox ----

std::array<InstrId, 4> philox(const Bits& g, Words key, std::array<InstrId, 4> x) {
  Builder& b = g.b;
  const auto multiply = [&](InstrId a, int64_t by) {
    const InstrId wide = b.convert(a, Type::U64);
    return g.split(b.mul(wide, b.like_int(wide, by)));
  };
  for (int round = 0; round < 10; ++round) {
    const Words p0 = multiply(x[0], 0xD2511F53), p1 = multiply(x[2], 0xCD9E8D57);
    x = {b.xor_(b.xor_(p1.high, x[1]), g.spread(key.low, x[0])), p1.low,
         b.xor_(b.xor_(p0.high, x[3]), g.spread(key.high, x[0])), p0.low};
    key = {b.add(key.low, b.like_int(key.low, 0x9E3779B9)), b.add(key.high, b.like_int(key.high, 0xBB67AE85))};
  }
  return x;
}

InstrId by_philox(const Bits& g, const Shape& shape) {
  Builder& b = g.b;
  const bool wide = type_info(shape.type()).bits == 64;
  const bool three = b.shape(g.state).dim(0) == 3;
  const InstrId key = g.word(0), low = g.word(1), high = g.word(three ? 2 : 0);
  const int64_t count = shape.element_count(), per_block = wide ? 2 : 4;
  const int64_t blocks = (count + per_block - 1) / per_block;
  // Adds the block's number to the 128-bit counter, with carry between the two halves.
  const auto advance = [&](InstrId by, InstrId& out_low, InstrId& out_high) {
    const InstrId l = g.spread(low, by), h = g.spread(high, by);
    out_low = b.add(l, by);
    out_high = b.add(h, b.convert(b.compare(out_low, Direction::LT, l), Type::U64));
  };
  InstrId at_low, at_high;
  advance(b.iota(Shape::array(Type::U64, {blocks}), 0), at_low, at_high);
  const Words l = g.split(at_low), h = g.split(at_high);
  const auto x = philox(g, g.split(key), {l.low, l.high, h.low, h.high});
  std::vector<InstrId> columns;
  if (wide)
    columns = {g.join({x[0], x[1]}), g.join({x[2], x[3]})};
  else
    columns.assign(x.begin(), x.end());
  for (InstrId& c : columns) c = b.reshape(c, {blocks, 1});
  const InstrId flat = b.reshape(b.concatenate(columns, 1), {blocks * per_block});
  const InstrId bits = b.reshape(b.slice_dim(flat, 0, 0, count), shape.dims());
  InstrId next_low, next_high;
  advance(b.scalar_int(Type::U64, blocks), next_low, next_high);
  std::vector<InstrId> words{b.reshape(key, {1}), b.reshape(next_low, {1})};
  if (three) words.push_back(b.reshape(next_high, {1}));
  const InstrId results[] = {b.concatenate(words, 0), g.as_type(bits, shape.type())};
  return b.tuple(results);
}

InstrId rng_bit_generator(const ExpandInput& in) {
  const bool alone = in.shape().is_array();  // the op returns bits only, not the new state
  const Shape& shape = alone ? in.shape() : in.shape().element(1);
  const Shape& state = in.operand_shape(0);
  if (shape.has_dynamic() || state.rank() != 1) return InstrId::None;
  if (shape.element_count() == 0) {
    const InstrId results[] = {in.operand(0), in.b.fill_int(shape, 0)};
    return alone ? results[1] : in.b.tuple(results);
  }
  // The state may be given as twice as many 32-bit words.
  InstrId words = in.operand(0);
  if (state.type() == Type::U32 && state.dim(0) % 2 == 0) {
    const InstrId pairs = in.b.reshape(words, {state.dim(0) / 2, 2});
    words = in.b.op(Op::BITCAST_CONVERT, Shape::array(Type::U64, {state.dim(0) / 2}), {pairs});
  } else if (state.type() != Type::U64) {
    return InstrId::None;
  }
  const Bits bits{in, in.b, words};
  InstrId result = in.as<RngBitGeneratorAttrs>().algorithm == RngAlgorithm::THREE_FRY ? by_threefry(bits, shape)
                                                                                      : by_philox(bits, shape);
  if (alone) return in.b.get(result, 1);
  if (state.type() == Type::U32 && in.b.status().ok()) {
    const InstrId wide = in.b.get(result, 0);
    const InstrId narrow = in.b.op(Op::BITCAST_CONVERT, Shape::array(Type::U32, {in.b.shape(wide).dim(0), 2}), {wide});
    const InstrId results[] = {in.b.reshape(narrow, {state.dim(0)}), in.b.get(result, 1)};
    result = in.b.tuple(results);
  }
  return result;
}

// ---- rng ----

// Draws random bits; the state is a counter of the program.
InstrId draw(const ExpandInput& in, const Shape& shape) {
  Builder& b = in.b;
  auto* update = in.module.make<RngStateAttrs>();
  update->delta = (shape.element_count() * (type_info(shape.type()).bits == 64 ? 2 : 1) + 3) / 4;
  const InstrId counter = b.op(Op::RNG_GET_AND_UPDATE_STATE, Shape::array(Type::U64, {2}), {}, update);
  const InstrId words[] = {b.reshape(b.scalar_int(Type::U64, 0x5EED0F1A2B3C4D5E), {1}), counter};
  auto* attrs = in.module.make<RngBitGeneratorAttrs>();
  attrs->algorithm = RngAlgorithm::PHILOX;
  const Shape state = Shape::array(Type::U64, {3});
  return b.get(b.op(Op::RNG_BIT_GENERATOR, Shape::tuple({state, shape}), {b.concatenate(words, 0)}, attrs), 1);
}

// Returns numbers in [0, 1) with as many random bits as the mantissa holds.
InstrId unit_interval(const ExpandInput& in, Type type, std::span<const int64_t> dims) {
  Builder& b = in.b;
  const int mantissa = type == Type::F64 ? 52 : 23, width = type == Type::F64 ? 64 : 32;
  const InstrId bits = b.shr(draw(in, Shape::array(unsigned_of(width), dims)), width - mantissa);
  const InstrId whole = b.convert(bits, type);
  return b.mul(whole, b.like(whole, type == Type::F64 ? 0x1p-52 : 0x1p-23));
}

InstrId uniform(const ExpandInput& in) {
  Builder& b = in.b;
  const Type type = in.type();
  const auto bound = [&](size_t i, Type as) {
    return b.broadcast(b.convert(in.operand(i), as), in.shape().dims(), {});
  };
  if (type == Type::PRED) {
    const InstrId bits = draw(in, in.shape().with_type(Type::U32));
    return b.compare(b.and_(bits, b.like_int(bits, 1)), Direction::NE, b.like_int(bits, 0));
  }
  if (is_float(type)) {
    const Type wide = wide_float(type);
    const InstrId low = bound(0, wide), high = bound(1, wide);
    const InstrId value = b.mad(unit_interval(in, wide, in.shape().dims()), b.sub(high, low), low);
    // Rounding may give the upper bound, which is not in the half-open interval.
    const InstrId out = b.convert(value, type), limit = bound(1, type);
    return b.select(b.compare(out, Direction::LT, limit), out, bound(0, type));
  }
  if (!is_integer(type)) return InstrId::None;
  const Type bits = unsigned_of(std::max(8, static_cast<int>(type_info(type).bits)));
  const Type wide = type_info(type).bits < 32 ? Type::U32 : bits;
  const InstrId low = bound(0, type);
  // The difference wraps around in the type; its bits are the range. A conversion of a narrow type extends the sign.
  InstrId range = b.convert(b.sub(bound(1, type), low), bits);
  if (const int narrow = type_info(type).bits; narrow < 8) range = b.and_(range, b.like_int(range, (1 << narrow) - 1));
  range = b.convert(range, wide);
  const InstrId offset = b.binary(Op::REMAINDER, draw(in, in.shape().with_type(wide)), range);
  return b.add(low, b.convert(b.convert(offset, bits), type));
}

// The Box-Muller transform: two uniform numbers give two normal ones; only the first is used.
InstrId normal(const ExpandInput& in) {
  Builder& b = in.b;
  if (!is_float(in.type())) return InstrId::None;
  const Type wide = wide_float(in.type());
  const auto bound = [&](size_t i) { return b.broadcast(b.convert(in.operand(i), wide), in.shape().dims(), {}); };
  const InstrId u = unit_interval(in, wide, in.shape().dims()), v = unit_interval(in, wide, in.shape().dims());
  const InstrId radius =
      b.unary(Op::SQRT, b.mul(b.like(u, -2), b.unary(Op::LOG, b.sub(b.like(u, 1), u))));  // 1 - u is in (0, 1]
  const InstrId z = b.mul(radius, b.unary(Op::COSINE, b.mul(v, b.like(v, 6.283185307179586))));
  return b.convert(b.mad(z, bound(1), bound(0)), in.type());
}

InstrId rng(const ExpandInput& in) {
  if (in.shape().has_dynamic() || in.instr.operands.size() != 2) return InstrId::None;
  if (in.shape().element_count() == 0)
    return in.b.broadcast(in.b.convert(in.operand(0), in.type()), in.shape().dims(), {});
  return in.as<RngAttrs>().distribution == Distribution::NORMAL ? normal(in) : uniform(in);
}

constexpr Expansion kTable[] = {{Op::RNG, &rng}, {Op::RNG_BIT_GENERATOR, &rng_bit_generator}};

}  // namespace

Expected<bool> expand_random(Module& module, PassContext& context) {
  return expand_by_table(module, context, kTable);
}

}  // namespace collet::hlo
