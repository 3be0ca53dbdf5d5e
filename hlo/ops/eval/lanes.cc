// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/lanes.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "hlo/base/float_format.h"

namespace collet::hlo::eval {
namespace {

constexpr uint64_t kInfinity = 0x7FF0000000000000u;

// The codec of integers that are stored as `Storage`; those narrower than a byte have kBits bits.
template <typename Storage, int kBits>
struct IntCodec {
  static constexpr bool kSigned = std::is_signed_v<Storage>;
  using Bits = std::conditional_t<kSigned, int64_t, uint64_t>;
  static uint64_t wrap(uint64_t v) {
    if constexpr (kBits >= 8 * static_cast<int>(sizeof(Storage)))
      return static_cast<uint64_t>(static_cast<Bits>(static_cast<Storage>(v)));
    else if constexpr (kSigned)
      return static_cast<uint64_t>(static_cast<int64_t>(v << (64 - kBits)) >> (64 - kBits));
    else
      return v & ((1u << kBits) - 1);
  }
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    auto* in = reinterpret_cast<const Storage*>(from);
    auto* out = static_cast<uint64_t*>(lanes);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = wrap(static_cast<uint64_t>(in[i]));
    else
      for (int64_t i = 0; i < n; ++i) out[i] = wrap(static_cast<uint64_t>(in[i * stride]));
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const uint64_t*>(lanes);
    auto* out = reinterpret_cast<Storage*>(to);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Storage>(wrap(in[i]));
    else
      for (int64_t i = 0; i < n; ++i) out[i * stride] = static_cast<Storage>(wrap(in[i]));
  }
  static void round(void* lanes, int64_t n) {
    auto* v = static_cast<uint64_t*>(lanes);
    for (int64_t i = 0; i < n; ++i) v[i] = wrap(v[i]);
  }
};

struct PredCodec {
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    auto* out = static_cast<uint64_t*>(lanes);
    for (int64_t i = 0; i < n; ++i) out[i] = from[i * stride] != 0;
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const uint64_t*>(lanes);
    for (int64_t i = 0; i < n; ++i) to[i * stride] = in[i] != 0;
  }
  static void round(void* lanes, int64_t n) {
    auto* v = static_cast<uint64_t*>(lanes);
    for (int64_t i = 0; i < n; ++i) v[i] = v[i] != 0;
  }
};

// Converts a float to a double and keeps sign and payload of NaN, so that the total order of the narrow type is that of
// the doubles.
double widen(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  return std::bit_cast<double>((uint64_t{bits >> 31} << 63) | kInfinity | (uint64_t{bits & 0x7FFFFFu} << 29));
}

void load_floats(const float* in, int64_t stride, double* out, int64_t n) {
  bool nan = false;
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = in[i];
      nan |= in[i] != in[i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const float f = in[i * stride];
      out[i] = f;
      nan |= f != f;
    }
  }
  if (!nan) return;
  for (int64_t i = 0; i < n; ++i)
    if (std::isnan(in[i * stride])) out[i] = widen(in[i * stride]);
}

struct F32Codec {
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    load_floats(reinterpret_cast<const float*>(from), stride, static_cast<double*>(lanes), n);
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const double*>(lanes);
    auto* out = reinterpret_cast<float*>(to);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
    else
      for (int64_t i = 0; i < n; ++i) out[i * stride] = static_cast<float>(in[i]);
  }
  static void round(void* lanes, int64_t n) {
    auto* v = static_cast<double*>(lanes);
    for (int64_t i = 0; i < n; ++i) v[i] = static_cast<float>(v[i]);
  }
};

template <typename T>
struct WideCodec {  // for double and complex<double>, whose elements already have the wide form
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    auto* in = reinterpret_cast<const T*>(from);
    auto* out = static_cast<T*>(lanes);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const T*>(lanes);
    auto* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
  }
  static void round(void*, int64_t) {}
};

struct C64Codec {
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    auto* in = reinterpret_cast<const float*>(from);
    auto* out = static_cast<double*>(lanes);
    for (int64_t i = 0; i < n; ++i) {
      out[2 * i] = in[2 * i * stride];
      out[2 * i + 1] = in[2 * i * stride + 1];
    }
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const double*>(lanes);
    auto* out = reinterpret_cast<float*>(to);
    for (int64_t i = 0; i < n; ++i) {
      out[2 * i * stride] = static_cast<float>(in[2 * i]);
      out[2 * i * stride + 1] = static_cast<float>(in[2 * i + 1]);
    }
  }
  static void round(void* lanes, int64_t n) { F32Codec::round(lanes, 2 * n); }
};

// Rounds a double to a format with few bits by integer arithmetic. encode_float handles special cases.
template <uint32_t kType>
uint64_t encode_small(double value) {
  constexpr FloatFormat f = float_format(kType);
  if constexpr (f.specials == FloatSpecials::E8M0) {
    return encode_float(f, value);
  } else {
    constexpr int shift = 52 - f.mantissa_bits;
    constexpr uint64_t smallest = static_cast<uint64_t>(1024 - f.bias) << 52;  // 2^(1 - bias)
    // Magnitudes from this one on may overflow: the largest finite one without its mantissa bits. encode_float handles
    // them.
    constexpr uint64_t largest = (static_cast<uint64_t>(1023 - f.bias + (1 << f.exponent_bits) - 2) << 52);
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
    if (magnitude >= largest) return encode_float(f, value);
    uint64_t code;
    if (magnitude >= smallest) {
      const uint64_t rounded = magnitude + (uint64_t{1} << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
      code = (rounded >> shift) - (static_cast<uint64_t>(1023 - f.bias) << f.mantissa_bits);
    } else {
      // Adding a power of two whose last bit is the format's smallest step, and subtracting it again, rounds to that
      // step.
      constexpr uint64_t magic = static_cast<uint64_t>(1023 + 1 - f.bias - f.mantissa_bits + 52) << 52;
      code = std::bit_cast<uint64_t>(std::bit_cast<double>(magnitude) + std::bit_cast<double>(magic)) - magic;
    }
    if (f.specials == FloatSpecials::FNUZ && code == 0) return 0;
    return code | ((bits >> 63) << (f.exponent_bits + f.mantissa_bits));
  }
}

// The codec of IEEE formats with 16 bits.
template <uint32_t kType>
double decode_half(uint16_t code) {
  constexpr FloatFormat f = float_format(kType);
  constexpr uint64_t scale = static_cast<uint64_t>(1023 + 1023 - f.bias) << 52;
  constexpr uint16_t special = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint64_t sign = uint64_t{code & 0x8000u} << 48;
  const uint64_t bits = uint64_t{code & 0x7FFFu} << (52 - f.mantissa_bits);
  const double magnitude = (code & special) == special ? std::bit_cast<double>(bits | kInfinity)
                                                       : std::bit_cast<double>(bits) * std::bit_cast<double>(scale);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) | sign);
}

template <uint32_t kType>
std::array<double, 256> make_decode_table() {
  constexpr FloatFormat f = float_format(kType);
  std::array<double, 256> table;
  for (unsigned code = 0; code < 256; ++code) {
    double value = decode_float(f, low_bits(code, f.bits()));
    if (std::isnan(value) && f.specials != FloatSpecials::E8M0) {
      const int width = f.exponent_bits + f.mantissa_bits;
      const uint64_t payload = low_bits(code, f.mantissa_bits) << (52 - f.mantissa_bits);
      value = std::bit_cast<double>((uint64_t{(code >> width) & 1} << 63) | kInfinity |
                                    (payload ? payload : uint64_t{1} << 51));
    }
    table[code] = value;
  }
  return table;
}

template <uint32_t kType>
struct SmallCodec {
  static constexpr bool kHalf = float_format(kType).bits() == 16;
  using Storage = std::conditional_t<kHalf, uint16_t, uint8_t>;
  static double decode(Storage code) {
    if constexpr (kHalf) {
      return decode_half<kType>(code);
    } else {
      static const std::array<double, 256> table = make_decode_table<kType>();
      return table[code];
    }
  }
  static void load(const uint8_t* from, int64_t stride, void* lanes, int64_t n) {
    auto* in = reinterpret_cast<const Storage*>(from);
    auto* out = static_cast<double*>(lanes);
    for (int64_t i = 0; i < n; ++i) out[i] = decode(in[i * stride]);
  }
  static void store(const void* lanes, uint8_t* to, int64_t stride, int64_t n) {
    auto* in = static_cast<const double*>(lanes);
    auto* out = reinterpret_cast<Storage*>(to);
    for (int64_t i = 0; i < n; ++i) out[i * stride] = static_cast<Storage>(encode_small<kType>(in[i]));
  }
  static void round(void* lanes, int64_t n) {
    auto* v = static_cast<double*>(lanes);
    for (int64_t i = 0; i < n; ++i) v[i] = decode(static_cast<Storage>(encode_small<kType>(v[i])));
  }
};

template <typename C>
constexpr Codec make_codec(int bytes) {
  return {&C::load, &C::store, &C::round, bytes};
}

constexpr std::array<Codec, COLLET_TYPE_LIMIT> make_codecs() {
  std::array<Codec, COLLET_TYPE_LIMIT> t{};
  t[COLLET_TYPE_PRED] = make_codec<PredCodec>(1);
  t[COLLET_TYPE_S1] = make_codec<IntCodec<int8_t, 1>>(1);
  t[COLLET_TYPE_S2] = make_codec<IntCodec<int8_t, 2>>(1);
  t[COLLET_TYPE_S4] = make_codec<IntCodec<int8_t, 4>>(1);
  t[COLLET_TYPE_S8] = make_codec<IntCodec<int8_t, 8>>(1);
  t[COLLET_TYPE_S16] = make_codec<IntCodec<int16_t, 16>>(2);
  t[COLLET_TYPE_S32] = make_codec<IntCodec<int32_t, 32>>(4);
  t[COLLET_TYPE_S64] = make_codec<IntCodec<int64_t, 64>>(8);
  t[COLLET_TYPE_U1] = make_codec<IntCodec<uint8_t, 1>>(1);
  t[COLLET_TYPE_U2] = make_codec<IntCodec<uint8_t, 2>>(1);
  t[COLLET_TYPE_U4] = make_codec<IntCodec<uint8_t, 4>>(1);
  t[COLLET_TYPE_U8] = make_codec<IntCodec<uint8_t, 8>>(1);
  t[COLLET_TYPE_U16] = make_codec<IntCodec<uint16_t, 16>>(2);
  t[COLLET_TYPE_U32] = make_codec<IntCodec<uint32_t, 32>>(4);
  t[COLLET_TYPE_U64] = make_codec<IntCodec<uint64_t, 64>>(8);
#define COLLET_FLOAT_FORMAT(NAME, exponent, mantissa, bias, specials) \
  if constexpr (float_format(COLLET_TYPE_##NAME).bits() <= 16)        \
    t[COLLET_TYPE_##NAME] =                                           \
        make_codec<SmallCodec<COLLET_TYPE_##NAME>>(float_format(COLLET_TYPE_##NAME).bits() == 16 ? 2 : 1);
#include <collet/types.def>
  t[COLLET_TYPE_F32] = make_codec<F32Codec>(4);
  t[COLLET_TYPE_F64] = make_codec<WideCodec<double>>(8);
  t[COLLET_TYPE_C64] = make_codec<C64Codec>(8);
  t[COLLET_TYPE_C128] = make_codec<WideCodec<Cx>>(16);
  return t;
}
constexpr std::array<Codec, COLLET_TYPE_LIMIT> kCodecs = make_codecs();

// Converts an integer to a double by rounding to odd: bits that do not fit are cut off, and if any was set, the last
// bit is set. Rounding the double again to at most 32 bits of mantissa then gives the same result as rounding the
// integer.
double to_odd(bool negative, uint64_t magnitude) {
  if (magnitude >> 53) magnitude = ((magnitude >> 11) | ((magnitude & 0x7FF) != 0)) << 11;
  const auto value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

void ints_to_reals(Type from, Type to, const int64_t* in, double* out, int64_t n) {
  const bool exact = to == Type::F64 || to == Type::C128;
  if (from == Type::U64) {
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<uint64_t>(in[i]);
      out[i] = exact ? static_cast<double>(v) : to_odd(false, v);
    }
  } else if (from == Type::S64 && !exact) {
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<uint64_t>(in[i]);
      out[i] = to_odd(in[i] < 0, in[i] < 0 ? -v : v);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<double>(in[i]);
  }
}

void reals_to_ints(Type to, const double* in, int64_t* out, int64_t n) {
  const int bits = type_info(to).bits;
  if (kind_of(to) == Kind::Unsigned) {
    const double above = std::ldexp(1.0, bits);
    const auto largest = static_cast<int64_t>(low_bits(~uint64_t{0}, bits));
    for (int64_t i = 0; i < n; ++i)
      out[i] = !(in[i] > 0) ? 0 : in[i] >= above ? largest : static_cast<int64_t>(static_cast<uint64_t>(in[i]));
  } else {
    const double above = std::ldexp(1.0, bits - 1);
    const int64_t smallest = sign_extend(uint64_t{1} << (bits - 1), bits);
    for (int64_t i = 0; i < n; ++i)
      out[i] = in[i] != in[i]    ? 0
               : in[i] >= above  ? ~smallest
               : in[i] <= -above ? smallest
                                 : static_cast<int64_t>(in[i]);
  }
}

void to_pred(Wide from, const void* in, int64_t* out, int64_t n) {
  if (from == Wide::Int)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<const int64_t*>(in)[i] != 0;
  else if (from == Wide::Real)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<const double*>(in)[i] != 0;
  else
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<const Cx*>(in)[i] != Cx(0);
}

}  // namespace

const Codec& codec(Type type) {
  return kCodecs[static_cast<size_t>(type)];
}

void splat(Wide wide, void* lanes, int64_t n) {
  if (wide == Wide::Complex) {
    auto* v = static_cast<Cx*>(lanes);
    for (int64_t i = 1; i < n; ++i) v[i] = v[0];
  } else {
    auto* v = static_cast<uint64_t*>(lanes);
    for (int64_t i = 1; i < n; ++i) v[i] = v[0];
  }
}

void convert_lanes(Type from, Type to, const void* in, void* out, int64_t n) {
  const Wide source = wide_of(from), target = wide_of(to);
  if (to == Type::PRED) return to_pred(source, in, static_cast<int64_t*>(out), n);
  if (source == target) {
    std::memcpy(out, in, static_cast<size_t>(n) * lane_bytes(source));
    return;
  }
  double reals[kLanes];
  const double* real = source == Wide::Real ? static_cast<const double*>(in) : reals;
  if (source == Wide::Int)
    ints_to_reals(from, to, static_cast<const int64_t*>(in), target == Wide::Real ? static_cast<double*>(out) : reals,
                  n);
  else if (source == Wide::Complex)
    for (int64_t i = 0; i < n; ++i) reals[i] = static_cast<const Cx*>(in)[i].real();
  if (target == Wide::Int) {
    reals_to_ints(to, real, static_cast<int64_t*>(out), n);
  } else if (target == Wide::Complex) {
    for (int64_t i = 0; i < n; ++i) static_cast<Cx*>(out)[i] = Cx(real[i], 0);
  } else if (source == Wide::Complex) {
    std::memcpy(out, reals, static_cast<size_t>(n) * sizeof(double));
  }
}

}  // namespace collet::hlo::eval
