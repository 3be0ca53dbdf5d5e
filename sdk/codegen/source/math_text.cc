// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/math_text.h"

#include <iterator>

#include "sdk/codegen/base/real_functions.h"

namespace collet::codegen::source {
namespace {

using C = elementary::Complex<F>;

/// Returns `text` with $T for the type of floats, $U for their bits, $O for the latter in OpenCL C, and $W for the width.
std::string instance(std::string text, bool wide) {
  const std::pair<const char*, const char*> kNames[] = {{"$T", wide ? "double" : "float"},
                                                        {"$U", wide ? "uint64_t" : "uint32_t"},
                                                        {"$O", wide ? "ulong" : "uint"},
                                                        {"$W", wide ? "64" : "32"}};
  for (const auto& [from, to] : kNames) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) text.replace(at, 2, to);
  }
  return text;
}

constexpr const char* kQuarter =
    R"(/* A number modulo pi / 2: the remainder, its low part, and how many quarters were subtracted. */
struct quarter_f$W {
  $T r, low;
  $U quarter;
};
)";

/// The remainder by long division of the significands. $D is the number of bits of a significand in memory.
constexpr const char* kRemainder = R"(static $T fmod_f$W($T x, $T y) {
  const $U one = 1, hidden = one << $D, top = one << ($W - 1), infinity = (top - 1) ^ (hidden - 1);
  const $U sign = bits_of_f$W(x) & top, a = bits_of_f$W(x) & ~top, b = bits_of_f$W(y) & ~top;
  if (a >= infinity || b > infinity || b == 0) return x * y / (x * y);
  if (a < b) return x;
  int e = (int)(a >> $D), of_b = (int)(b >> $D);
  $U r = e == 0 ? a : (a & (hidden - 1)) | hidden, divisor = of_b == 0 ? b : (b & (hidden - 1)) | hidden;
  for (e += e == 0; r < hidden; --e) r <<= 1;
  for (of_b += of_b == 0; divisor < hidden; --of_b) divisor <<= 1;
  for (;; --e, r <<= 1) {
    if (r >= divisor) r -= divisor;
    if (e == of_b) break;
  }
  if (r == 0) return f$W_of_bits(sign);
  for (; r < hidden; --e) r <<= 1;
  return f$W_of_bits(sign | (e < 1 ? r >> (1 - e) : r - hidden + (($U)e << $D)));
}
)";

/// Reduces with 192 bits of 2 / pi. Numbers below 0.75 and those that are not finite are returned as they are.
constexpr const char* kReduceLarge =
    R"(/* Returns 64 bits of 2 / pi, beginning `bit` bits after the binary point. Bits before the point are zero. */
static uint64_t bits_of_two_over_pi(int64_t bit) {
  if (bit <= -64) return 0;
  if (bit < 0) return $P[0] >> -bit;
  const int64_t word = bit / 64, shift = bit % 64;
  return shift == 0 ? $P[word] : $P[word] << shift | $P[word + 1] >> (64 - shift);
}

/* Returns the upper 64 bits of x * y, and stores the lower ones. */
static uint64_t long_product(uint64_t x, uint64_t y, uint64_t *low) {
  const uint64_t x0 = x & 0xffffffffu, x1 = x >> 32, y0 = y & 0xffffffffu, y1 = y >> 32;
  const uint64_t middle = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (middle & 0xffffffffu);
  *low = x * y;
  return x1 * y1 + (middle >> 32) + (other >> 32);
}

/* x = m * 2^e; m * (2 / pi) is computed modulo 4. */
static struct quarter_f64 reduce_large_f64(double x) {
  const uint64_t raw = bits_of_f64(x) & 0x7fffffffffffffffu;
  struct quarter_f64 y = {x - x, x - x, 0};
  if (raw >= 0x7ff0000000000000u) return y;
  const int64_t first = (int64_t)(raw >> 52) - 1077;
  const uint64_t m = (raw & 0xfffffffffffffu) | 0x10000000000000u;
  uint64_t low1, low2;
  const uint64_t high1 = long_product(m, bits_of_two_over_pi(first + 64), &low1);
  const uint64_t high2 = long_product(m, bits_of_two_over_pi(first + 128), &low2);
  const uint64_t middle = low1 + high2;
  const uint64_t top = m * bits_of_two_over_pi(first) + high1 + (middle < low1);
  uint64_t head = top << 2 | middle >> 62, tail = middle << 2 | low2 >> 62;
  const bool negative = head >> 63;
  const uint64_t quarter = ((top >> 62) + negative) & 3;
  if (negative) {
    tail = 0 - tail;
    head = ~head + (tail == 0);
  }
  const double high = (double)(head & ~(uint64_t)0x7ff) * 0x1p-64;
  const double rest = (double)(head & 0x7ff) * 0x1p-64 + (double)tail * 0x1p-128;
  const double half_pi = 1.5707963267948966, product = high * half_pi;
  const double error = fma(high, half_pi, -product) + high * 6.123233995736766e-17 + rest * half_pi;
  const double sum = product + error, left = product - sum + error;
  const bool flips = negative != (x < 0);
  y.r = flips ? -sum : sum;
  y.low = flips ? -left : left;
  y.quarter = x < 0 ? 0 - quarter : quarter;
  return y;
}
)";

constexpr const char* kReduceLarge32 = R"(static struct quarter_f32 reduce_large_f32(float x) {
  const struct quarter_f64 wide = reduce_quarter_f64(x);
  const float head = (float)wide.r;
  const struct quarter_f32 y = {head, (float)(wide.r - head + wide.low), (uint32_t)wide.quarter};
  return y;
}
)";

const std::string& reduction(Unit& unit, bool wide);

std::string make_reduction(Unit& unit, bool wide) {
  const std::string width = wide ? "64" : "32";
  unit.helper("quarter_f" + width, [&] { return instance(kQuarter, wide); });
  unit.helper("reduce_large_f" + width, [&]() -> std::string {
    if (!wide) {
      reduction(unit, true);
      return kReduceLarge32;
    }
    bits_of(unit, true);
    std::string words;
    for (const uint64_t word : kTwoOverPi) words += (words.empty() ? "" : ", ") + std::to_string(word) + "u";
    std::string text = kReduceLarge;
    const std::string table = unit.table("uint64_t", words);
    for (size_t at = text.find("$P"); at != std::string::npos; at = text.find("$P", at)) text.replace(at, 2, table);
    return text;
  });
  Function f(unit);
  const std::string quarter = "struct quarter_f" + width;
  const F x(&f, f.constant(wide ? "double" : "float", "x"));
  f.open("if ($b0)", {(magnitude(x) > x.like(elementary::small_limit(x))).v});
  f.statement("return reduce_large_f" + width + "(x);");
  f.close();
  const elementary::Quarter<F> near = elementary::reduce_small(x);
  f.statement("const " + quarter + " y = {$a0, $a1, $a2};", {near.r.v, near.low.v, near.quarter.v});
  f.statement("return y;");
  return f.print("static inline " + quarter + " reduce_quarter_f" + width + "(" + x.type() + " x)");
}

const std::string& reduction(Unit& unit, bool wide) {
  return unit.helper(wide ? "reduce_quarter_f64" : "reduce_quarter_f32", [&] { return make_reduction(unit, wide); });
}

/// Functions by name.
struct Real {
  const char* name;
  F (*one)(F);
  F (*two)(F, F);
};
constexpr Real kReal[] = {
    {"acos", elementary::acos<F>, nullptr},
    {"acosh", elementary::acosh<F>, nullptr},
    {"asin", elementary::asin<F>, nullptr},
    {"asinh", elementary::asinh<F>, nullptr},
    {"atanh", elementary::atanh<F>, nullptr},
    {"cbrt", elementary::cbrt<F>, nullptr},
    {"cos", elementary::cos<F>, nullptr},
    {"cosh", elementary::cosh<F>, nullptr},
    {"erf", elementary::erf<F>, nullptr},
    {"exp", elementary::exp<F>, nullptr},
    {"expm1", elementary::expm1<F>, nullptr},
    {"log", elementary::log<F>, nullptr},
    {"log1p", elementary::log1p<F>, nullptr},
    {"logistic", elementary::logistic<F>, nullptr},
    {"sin", elementary::sin<F>, nullptr},
    {"sinh", elementary::sinh<F>, nullptr},
    {"tan", elementary::tan<F>, nullptr},
    {"tanh", elementary::tanh<F>, nullptr},
    {"atan2", nullptr, elementary::atan2<F>},
    {"hypot", nullptr, hypotenuse<F>},
    {"pow", nullptr, [](F x, F y) { return power_of(x, y, elementary::kNaN); }},
};

struct Composite {
  const char* name;
  C (*one)(C);
  C (*two)(C, C);
};
constexpr Composite kComplex[] = {
    {"acos", complex_arc_cosine<F>, nullptr},
    {"acosh", complex_arc_hyperbolic_cosine<F>, nullptr},
    {"asin", complex_arc_sine<F>, nullptr},
    {"asinh", complex_arc_hyperbolic_sine<F>, nullptr},
    {"atanh", complex_arc_hyperbolic_tangent<F>, nullptr},
    {"cos", elementary::cosine<F>, nullptr},
    {"cosh", elementary::hyperbolic_cosine<F>, nullptr},
    {"exp", elementary::exponential<F>, nullptr},
    {"expm1", elementary::exponential_minus_one<F>, nullptr},
    {"log", elementary::logarithm<F>, nullptr},
    {"log1p", elementary::logarithm_plus_one<F>, nullptr},
    {"logistic", elementary::logistic_of<F>, nullptr},
    {"rsqrt", elementary::inverse_root<F>, nullptr},
    {"sign", elementary::direction<F>, nullptr},
    {"sin", elementary::sine<F>, nullptr},
    {"sinh", elementary::hyperbolic_sine<F>, nullptr},
    {"sqrt", elementary::square_root<F>, nullptr},
    {"tan", elementary::tangent<F>, nullptr},
    {"tanh", elementary::hyperbolic_tangent<F>, nullptr},
    {"atan2", nullptr, complex_arc_tangent<F>},
    {"divide", nullptr, elementary::divide<F>},
    {"pow", nullptr, elementary::power_of<F>},
};

template <class Table>
const auto& entry(const Table& table, const std::string& name) {
  for (const auto& row : table) {
    if (name == row.name) return row;
  }
  return table[0];  // not reached: callers name entries of the table
}

F real_function(const std::string& name, F x, const F* y) {
  const std::string type = x.type();
  const bool reduces = name == "sin" || name == "cos" || name == "tan";
  Function* const f = x.f;
  if (reduces && f->large.tests) f->large.tests->push_back((magnitude(x) > x.like(elementary::small_limit(x))).v);
  const bool near = reduces && f->large.unlikely;
  const std::string own = name + (near ? "_near" : "") + (x.wide() ? "_f64" : "_f32");
  const std::string& called = f->unit.helper(own, [&] {
    Function g(f->unit);
    g.large.unlikely = near;
    const F a(&g, g.constant(type, "x")), b(&g, g.constant(type, "y"));
    const Real& row = entry(kReal, name);
    g.statement("return $a0;", {(y ? row.two(a, b) : row.one(a)).v});
    return g.print("static inline " + type + " " + own + "(" + type + " x" + (y ? ", " + type + " y)" : ")"));
  });
  return {f, y ? f->call(type, called, {x.v, y->v}) : f->call(type, called, {x.v})};
}

C complex_function(const std::string& name, C x, const C* y) {
  const std::string type = x.re.type(), own = x.re.wide() ? "c128" : "c64";
  Unit& unit = x.re.f->unit;
  unit.helper(own, [&] { return "typedef struct {\n  " + type + " re, im;\n} " + own + ";\n"; });
  const std::string& called = unit.helper(name + "_" + own, [&] {
    Function g(unit);
    const auto part = [&](const char* of) { return F(&g, g.constant(type, of)); };
    const C a{part("x_re"), part("x_im")}, b{part("y_re"), part("y_im")};
    const Composite& row = entry(kComplex, name);
    const C z = y ? row.two(a, b) : row.one(a);
    g.statement("const " + own + " z = {$a0, $a1};", {z.re.v, z.im.v});
    g.statement("return z;");
    return g.print("static inline " + own + " " + name + "_" + own + "(" + type + " x_re, " + type + " x_im" +
                   (y ? ", " + type + " y_re, " + type + " y_im)" : ")"));
  });
  std::vector<Id> args{x.re.v, x.im.v};
  if (y) args.insert(args.end(), {y->re.v, y->im.v});
  Function* const f = x.re.f;
  const Id z = f->call(own, called, args);
  return {{f, f->value(type, "$v0.re", {z})}, {f, f->value(type, "$v0.im", {z})}};
}

}  // namespace

const std::string& bits_of(Unit& unit, bool wide) {
  return unit.helper(wide ? "bits_of_f64" : "bits_of_f32", [&] {
    return instance("static inline $U bits_of_f$W($T x) {\n" + std::string(unit.language.bits_of) + "}\n", wide);
  });
}
const std::string& of_bits(Unit& unit, bool wide) {
  return unit.helper(wide ? "f64_of_bits" : "f32_of_bits", [&] {
    return instance("static inline $T f$W_of_bits($U i) {\n" + std::string(unit.language.of_bits) + "}\n", wide);
  });
}

elementary::Quarter<F> reduce_quarter(F x) {
  Function* const f = x.f;
  if (f->large.unlikely) return elementary::reduce_small(x);
  const std::string width = x.wide() ? "64" : "32";
  const Id y = f->call("struct quarter_f" + width, reduction(f->unit, x.wide()), {x.v});
  return {{f, f->value(x.type(), "$v0.r", {y})},
          {f, f->value(x.type(), "$v0.low", {y})},
          {f, f->value("uint" + width + "_t", "$v0.quarter", {y})}};
}

F remainder_of(F x, F y) {
  Function* const f = x.f;
  if (f->unit.language.has_fmod) return {f, f->call(x.type(), x.of_type("fmod"), {x.v, y.v})};
  const bool wide = x.wide();
  const std::string& name = f->unit.helper(wide ? "fmod_f64" : "fmod_f32", [&] {
    bits_of(f->unit, wide);
    of_bits(f->unit, wide);
    std::string text = instance(kRemainder, wide);
    for (size_t at = text.find("$D"); at != std::string::npos; at = text.find("$D", at))
      text.replace(at, 2, wide ? "52" : "23");
    return text;
  });
  return {f, f->call(x.type(), name, {x.v, y.v})};
}

F call_function(const std::string& name, F x) {
  return real_function(name, x, nullptr);
}
F call_function(const std::string& name, F x, F y) {
  return real_function(name, x, &y);
}
C call_function(const std::string& name, C x) {
  return complex_function(name, x, nullptr);
}
C call_function(const std::string& name, C x, C y) {
  return complex_function(name, x, &y);
}

// What <collet/complex_functions.hpp> asks of its user.

F compute(elementary::Function f, F x) {
  constexpr const char* kNames[] = {"exp", "expm1", "log", "log1p", "sin", "sinh", "cosh"};
  return call_function(kNames[static_cast<size_t>(f)], x);
}
elementary::SineAndCosine<F> sine_and_cosine_of(F x) {
  return {call_function("sin", x), call_function("cos", x)};
}
F length(F x, F y) {
  return call_function("hypot", x, y);
}
F angle(F y, F x) {
  return call_function("atan2", y, x);
}

}  // namespace collet::codegen::source
