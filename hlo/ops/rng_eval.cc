// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

uint32_t low32(uint64_t v) {
  return static_cast<uint32_t>(v);
}
uint32_t high32(uint64_t v) {
  return static_cast<uint32_t>(v >> 32);
}
uint64_t join(uint32_t low, uint32_t high) {
  return low | uint64_t{high} << 32;
}

/// The generator Threefry2x32 with 20 rounds.
void threefry(uint64_t key, uint64_t counter, uint32_t& x0, uint32_t& x1) {
  static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t k[3] = {low32(key), high32(key), 0x1BD11BDAu ^ low32(key) ^ high32(key)};
  x0 = low32(counter) + k[0];
  x1 = high32(counter) + k[1];
  for (uint32_t group = 1; group <= 5; ++group) {
    for (int rotation : kRotations[(group - 1) % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += k[group % 3];
    x1 += k[(group + 1) % 3] + group;
  }
}

/// The generator Philox4x32 with 10 rounds.
void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t x[4]) {
  x[0] = low32(low), x[1] = high32(low), x[2] = low32(high), x[3] = high32(high);
  uint32_t k0 = low32(key), k1 = high32(key);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p0 = uint64_t{x[0]} * 0xD2511F53u, p1 = uint64_t{x[2]} * 0xCD9E8D57u;
    const uint32_t next[4] = {high32(p1) ^ x[1] ^ k0, low32(p1), high32(p0) ^ x[3] ^ k1, low32(p0)};
    std::copy(next, next + 4, x);
  }
}

/// Generates a 32-bit word for every element of `dims`. The array is split in two halves along one dimension, and each
/// counter gives one word of each half. Returns the number of counters used.
uint64_t threefry_words(uint64_t key, uint64_t counter, std::span<const int64_t> dims, std::vector<uint64_t>& out) {
  Ints half(dims.begin(), dims.end());
  size_t split = 0;
  if (!half.empty()) {
    const auto even = std::find_if(half.begin(), half.end(), [](int64_t d) { return d % 2 == 0; });
    split =
        static_cast<size_t>((even != half.end() ? even : std::max_element(half.begin(), half.end())) - half.begin());
    half[split] = (half[split] + 1) / 2;
  }
  const Ints strides = row_major_strides(dims);
  uint64_t i = 0;
  for (IndexIterator it(half, {strides}); !it.done(); it.next(), ++i) {
    uint32_t y0, y1;
    threefry(key, counter + i, y0, y1);
    if (half.empty()) {
      out[0] = y0;
      continue;
    }
    const int64_t along = it.index()[split];
    // The output has twice as many elements along the split dimension.
    const int64_t at = it.offset(0) + along * strides[split];
    out[static_cast<size_t>(at)] = y0;
    if (2 * along + 1 < dims[split]) out[static_cast<size_t>(at + strides[split])] = y1;
  }
  return i;
}

struct Bits {
  std::vector<uint64_t> values;
  uint64_t used = 0;  // number of counters used
};

Bits threefry_bits(uint64_t key, uint64_t counter, const Shape& shape, int width) {
  Bits bits;
  const auto n = static_cast<size_t>(shape.element_count());
  bits.values.resize(n);
  if (width == 64) {
    for (size_t i = 0; i < n; ++i) {
      uint32_t y0, y1;
      threefry(key, counter + i, y0, y1);
      bits.values[i] = join(y0, y1);
    }
    bits.used = n;
  } else if (n > 0) {
    bits.used = threefry_words(key, counter, shape.dims(), bits.values);
  }
  return bits;
}

Bits philox_bits(uint64_t key, uint64_t low, uint64_t high, size_t n, int width) {
  Bits bits;
  bits.values.resize(n);
  const size_t per_block = width == 64 ? 2 : 4;
  for (size_t i = 0; i < n; i += per_block, ++bits.used) {
    uint32_t x[4];
    const uint64_t at = low + bits.used;
    philox(key, at, high + (at < low), x);
    for (size_t j = 0; j < per_block && i + j < n; ++j)
      bits.values[i + j] = width == 64 ? join(x[2 * j], x[2 * j + 1]) : x[j];
  }
  return bits;
}

/// Returns the bits as elements of `shape`.
Literal literal_of(const Bits& bits, const Shape& shape) {
  Literal out = Literal::uninitialized(shape);
  const TypeInfo& info = type_info(shape.type());
  uint8_t* to = out.mutable_bytes();
  const auto bytes = static_cast<size_t>(info.bytes());
  for (size_t i = 0; i < bits.values.size(); ++i) {
    uint64_t word = low_bits(bits.values[i], info.bits);
    if (info.bits < 8 && info.kind == Kind::Signed) word = static_cast<uint64_t>(sign_extend(word, info.bits));
    if (info.kind == Kind::Pred) word &= 1;
    std::memcpy(to + i * bytes, &word, bytes);
  }
  return out;
}

Expected<Literal> evaluate_bit_generator(const EvalInput& in) {
  const Literal& state = in.operand(0);
  // Older programs return the bits only.
  const bool with_state = in.instr.shape.is_tuple();
  const Shape& shape = with_state ? in.instr.shape.element(1) : in.instr.shape;
  COLLET_TRY(check_size(shape));
  const int width = type_info(shape.type()).bits;
  if (width > 64 || !shape.is_array() || is_complex(shape.type()))
    return invalid_argument("rng-bit-generator makes elements of at most 64 bits");
  const size_t words = static_cast<size_t>(state.byte_size()) / 8;
  if (words < 2 || state.byte_size() % 8)
    return invalid_argument("the state of rng-bit-generator holds two or three 64-bit words");
  std::vector<uint64_t> s(words);
  std::memcpy(s.data(), state.bytes(), words * 8);
  Bits bits;
  if (in.instr.as<RngBitGeneratorAttrs>().algorithm == RngAlgorithm::THREE_FRY) {
    bits = threefry_bits(s[0], s[1], shape, width);
    s[1] += bits.used;
  } else {
    const uint64_t high = words >= 3 ? s[2] : s[0];
    bits = philox_bits(s[0], s[1], high, static_cast<size_t>(shape.element_count()), width);
    s[1] += bits.used;
    if (words >= 3 && s[1] < bits.used) ++s[2];
  }
  Literal out = literal_of(bits, shape);
  if (!with_state) return out;
  std::vector<Literal> results;
  results.push_back(Literal::from_bytes(state.shape(), s.data()));
  results.push_back(std::move(out));
  return Literal::tuple(std::move(results));
}

/// Returns a number in [0, 1) with 52 random bits.
double uniform(uint64_t bits) {
  return static_cast<double>(bits >> 12) * 0x1p-52;
}

Expected<Literal> evaluate_uniform(const EvalInput& in, const Bits& bits) {
  const Shape& shape = in.instr.shape;
  Literal out = Literal::uninitialized(shape);
  const Literal &low = in.operand(0), &high = in.operand(1);
  const int64_t n = out.element_count();
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = bits.values[static_cast<size_t>(i)];
    if (wide_of(shape.type()) == Wide::Real) {
      const double a = low.as_double(0), b = high.as_double(0);
      out.set_double(i, a + uniform(word) * (b - a));
      // Rounding may give the upper bound, which is not part of the range.
      if (a < b && out.as_double(i) >= b) out.set_double(i, a);
    } else if (shape.type() == Type::PRED) {
      out.set_int(i, static_cast<int64_t>(word >> 63));
    } else {
      const auto range = static_cast<uint64_t>(high.as_int(0)) - static_cast<uint64_t>(low.as_int(0));
      out.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(low.as_int(0)) + (range ? word % range : 0)));
    }
  }
  return out;
}

Expected<Literal> evaluate_normal(const EvalInput& in, const Bits& bits) {
  if (wide_of(in.instr.shape.type()) != Wide::Real) return unimplemented("rng_normal of values that are no floats");
  Literal out = Literal::uninitialized(in.instr.shape);
  const double mean = in.operand(0).as_double(0), deviation = in.operand(1).as_double(0);
  const int64_t n = out.element_count();
  for (int64_t i = 0; i < n; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(bits.values[static_cast<size_t>(i)])));
    const double angle = 2 * std::numbers::pi * uniform(bits.values[static_cast<size_t>(i + 1)]);
    out.set_double(i, mean + deviation * radius * std::sin(angle));
    if (i + 1 < n) out.set_double(i + 1, mean + deviation * radius * std::cos(angle));
  }
  return out;
}

Expected<Literal> evaluate_rng_op(const EvalInput& in) {
  COLLET_TRY(check_size(in.instr.shape));
  if (in.operand_count() != 2) return invalid_argument("rng takes two scalars");
  const auto n = static_cast<size_t>(in.instr.shape.element_count());
  const auto [low, high] = in.context.next_rng_state((n + 3) / 2);
  const Bits bits = philox_bits(0, low, high, n + 1, 64);
  return in.instr.as<RngAttrs>().distribution == Distribution::UNIFORM ? evaluate_uniform(in, bits)
                                                                       : evaluate_normal(in, bits);
}

}  // namespace

Expected<Literal> evaluate_rng(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::RNG_BIT_GENERATOR:
      return evaluate_bit_generator(in);
    case Op::RNG_GET_AND_UPDATE_STATE: {
      const auto [low, high] = in.context.next_rng_state(static_cast<uint64_t>(in.instr.as<RngStateAttrs>().delta));
      const uint64_t words[2] = {low, high};
      if (in.instr.shape.byte_size() != sizeof words) return invalid_argument("the random state is u64[2]");
      return Literal::from_bytes(in.instr.shape, words);
    }
    default:
      return evaluate_rng_op(in);
  }
}

}  // namespace collet::hlo
