// SPDX-License-Identifier: Apache-2.0
// Compares functions of complex numbers with a computation in 60 digits. The error is measured in units in the last
// place of the result's modulus. Most arguments are near zeros, poles and branch points, where formulas cancel.
#include <collet/codegen/target.h>

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "sdk/codegen/llvm/jit.h"
#include "sdk/codegen/llvm/kernel/test_loop.h"
#include "sdk/codegen/llvm/scalar/scalar_ops.h"
#include "sdk/include/tests/complex_specials.h"

namespace collet::codegen {
namespace {

using Wide = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<60>, boost::multiprecision::et_off>;

/// A complex number in 60 digits. The functions below follow the definitions.
struct Z {
  Wide re, im;
};

Z operator+(const Z& a, const Z& b) {
  return {a.re + b.re, a.im + b.im};
}
Z operator-(const Z& a, const Z& b) {
  return {a.re - b.re, a.im - b.im};
}
Z operator*(const Z& a, const Z& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Z operator/(const Z& a, const Z& b) {
  const Wide d = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d};
}
Z times_i(const Z& a) {
  return {-a.im, a.re};
}
Z real(double x) {
  return {x, 0};
}

Z exp_of(const Z& z) {
  const Wide e = exp(z.re);
  return {e * cos(z.im), e * sin(z.im)};
}
Z log_of(const Z& z) {
  return {log(z.re * z.re + z.im * z.im) / 2, atan2(z.im, z.re)};
}
Z sqrt_of(const Z& z) {
  const Wide m = sqrt(z.re * z.re + z.im * z.im);
  // The larger part is computed first; the other follows from the product of both, without cancellation.
  if (m == 0) return z;
  const Wide large = sqrt((m + abs(z.re)) / 2);
  const Wide small = z.im / (2 * large);
  if (z.re >= 0) return {large, small};
  return {abs(small), z.im < 0 ? Wide(-large) : large};
}
Z expm1_of(const Z& z) {
  return exp_of(z) - real(1);
}
Z log1p_of(const Z& z) {
  return log_of(z + real(1));
}
Z logistic_of(const Z& z) {
  return real(1) / (real(1) + exp_of({-z.re, -z.im}));
}
Z sinh_of(const Z& z) {
  return (exp_of(z) - exp_of({-z.re, -z.im})) / real(2);
}
Z cosh_of(const Z& z) {
  return (exp_of(z) + exp_of({-z.re, -z.im})) / real(2);
}
Z tanh_of(const Z& z) {
  const Z e = exp_of({-2 * abs(z.re), z.re < 0 ? Wide(2 * z.im) : Wide(-2 * z.im)});
  const Z y = (real(1) - e) / (real(1) + e);
  return z.re < 0 ? real(0) - y : y;
}
Z turned_back(const Z& z) {
  return {z.im, -z.re};
}
Z sin_of(const Z& z) {
  return turned_back(sinh_of(times_i(z)));
}
Z cos_of(const Z& z) {
  return cosh_of(times_i(z));
}
Z tan_of(const Z& z) {
  return turned_back(tanh_of(times_i(z)));
}
Z rsqrt_of(const Z& z) {
  return real(1) / sqrt_of(z);
}
Z asinh_of(const Z& z) {
  // asinh is odd; negative arguments are reflected so that the sum does not cancel.
  if (z.re < 0) return real(0) - asinh_of(real(0) - z);
  const Z w = sqrt_of(z * z + real(1));
  return log_of(z + w);
}
Z asin_of(const Z& z) {
  return turned_back(asinh_of(times_i(z)));
}
Z acos_of(const Z& z) {
  const Z s = asin_of(z);
  return {acos(Wide(0)) - s.re, -s.im};
}
Z acosh_of(const Z& z) {
  return log_of(z + sqrt_of(z + real(1)) * sqrt_of(z - real(1)));
}
Z atanh_of(const Z& z) {
  return (log_of(real(1) + z) - log_of(real(1) - z)) / real(2);
}

struct Case {
  const char* name;
  uint32_t opcode;
  Z (*truth)(const Z&);
  std::vector<std::complex<double>> points;  ///< zeros, poles and branch points
  /// 1 or 2 if the result grows like e^x in the real (1) or the imaginary (2) part of the argument; else 0
  int overflow = 0;
};

constexpr double kPi = std::numbers::pi;

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"exp", COLLET_OP_EXPONENTIAL, exp_of, {{0, 0}, {0, kPi / 2}, {70, kPi / 2}}, 1},
      {"expm1", COLLET_OP_EXPONENTIAL_MINUS_ONE, expm1_of, {{0, 0}, {0, 2 * kPi}, {0, -40 * kPi}}, 1},
      {"log", COLLET_OP_LOG, log_of, {{1, 0}, {0, 0}, {0, 1}, {-1, 0}, {0.6, 0.8}}},
      {"log1p", COLLET_OP_LOG_PLUS_ONE, log1p_of, {{0, 0}, {-1, 0}, {-2, 0}, {-1, 1}, {-0.4, 0.8}}},
      {"logistic", COLLET_OP_LOGISTIC, logistic_of, {{0, kPi}, {0, -kPi}, {0, 3 * kPi}, {0, 0}, {0, 99 * kPi}}},
      {"sinh", COLLET_OP_SINH, sinh_of, {{0, 0}, {0, kPi}, {0, 100 * kPi}}, 1},
      {"cosh", COLLET_OP_COSH, cosh_of, {{0, kPi / 2}, {0, 0}, {0, 99.5 * kPi}}, 1},
      {"tanh", COLLET_OP_TANH, tanh_of, {{0, 0}, {0, kPi / 2}, {0, -1.5 * kPi}, {0, kPi}, {0, 100.5 * kPi}, {20, 1}}},
      {"sin", COLLET_OP_SINE, sin_of, {{0, 0}, {kPi, 0}, {100 * kPi, 0}}, 2},
      {"cos", COLLET_OP_COSINE, cos_of, {{kPi / 2, 0}, {0, 0}, {99.5 * kPi, 0}}, 2},
      {"tan", COLLET_OP_TAN, tan_of, {{0, 0}, {kPi / 2, 0}, {-1.5 * kPi, 0}, {kPi, 0}, {100.5 * kPi, 0}, {1, 20}}},
      {"sqrt", COLLET_OP_SQRT, sqrt_of, {{0, 0}, {-1, 0}, {1, 0}}},
      {"rsqrt", COLLET_OP_RSQRT, rsqrt_of, {{0, 0}, {-1, 0}, {1, 0}}},
      {"asin", COLLET_OP_ASIN, asin_of, {{0, 0}, {1, 0}, {-1, 0}}},
      {"acos", COLLET_OP_ACOS, acos_of, {{1, 0}, {-1, 0}, {0, 0}}},
      {"asinh", COLLET_OP_ASINH, asinh_of, {{0, 0}, {0, 1}, {0, -1}}},
      {"acosh", COLLET_OP_ACOSH, acosh_of, {{1, 0}, {-1, 0}, {0, 0}}},
      {"atanh", COLLET_OP_ATANH, atanh_of, {{0, 0}, {1, 0}, {-1, 0}}},
  };
  return all;
}

/// Returns x in 60 digits. Zeros become tiny numbers of their sign, which selects the side of a branch cut.
Wide exact(double x) {
  if (x != 0) return x;
  static const Wide tiny("1e-2000");
  return std::signbit(x) ? Wide(-tiny) : tiny;
}

/// Numbers with subnormal or very large parts. Each part of the value counts, not only the larger one.
struct Extreme {
  const char* op;  ///< as in HLO text
  std::complex<double> x, value;
};
constexpr double kLeast = std::numeric_limits<double>::denorm_min(), kMost = std::numeric_limits<double>::max();
constexpr double kLeastFloat = std::numeric_limits<float>::denorm_min();

template <typename T>
std::vector<Extreme> extremes();
template <>
std::vector<Extreme> extremes<double>() {
  return {
      {"log", {kLeast, kLeast}, {-744.0934983311013, 0.7853981633974483}},
      {"log", {-1.5e-323, kLeast}, {-743.2887793748843, 2.819842099193151}},
      {"sign", {kLeast, kLeast}, {0.7071067811865476, 0.7071067811865476}},
      {"sign", {-kLeast, 1e-323}, {-0.4472135954999579, 0.8944271909999159}},
      {"rsqrt", {1e-10, kLeast}, {100000.0, -2.470328229206233e-309}},
      {"rsqrt", {-1e-10, 1e-320}, {4.999944335913415e-306, -100000.0}},
      {"sqrt", {kLeast, kLeast}, {2.4421097261308304e-162, 1.0115549693666347e-162}},
      {"asin", {1.0, kLeast}, {1.5707963267948966, 2.2227587494850775e-162}},
      {"asin", {0.5, 1e-200}, {0.5235987755982989, 1.1547005383792515e-200}},
      {"acos", {1.0, kLeast}, {2.2227587494850775e-162, -2.2227587494850775e-162}},
      {"acos", {-1.0, 1e-320}, {3.141592653589793, -9.99994433575849e-161}},
      {"acos", {3.0, 1e-200}, {3.5355339059327375e-201, -1.762747174039086}},
      {"asinh", {1e-200, 0.5}, {1.1547005383792515e-200, 0.5235987755982989}},
      {"asinh", {kLeast, -1.0}, {2.2227587494850775e-162, -1.5707963267948966}},
      {"acosh", {1.0, kLeast}, {2.2227587494850775e-162, 2.2227587494850775e-162}},
      {"acosh", {0.25, 1e-200}, {1.0327955589886445e-200, 1.318116071652818}},
      {"atanh", {kMost, 1e-05}, {5.562684646268003e-309, 1.5707963267948966}},
      {"atanh", {1e+200, 1e-05}, {1e-200, 1.5707963267948966}},
      {"atanh", {8.988465674311579e+307, -kMost}, {2.225073858507203e-309, -1.5707963267948966}},
      {"atanh", {1.0, 1e-170}, {196.06630649477387, 0.7853981633974483}},
      {"atanh", {-1.0, kLeast}, {-372.5666095509706, 0.7853981633974483}},
  };
}
template <>
std::vector<Extreme> extremes<float>() {
  return {
      {"log", {kLeastFloat, kLeastFloat}, {-102.93235631315189, 0.7853981633974483}},
      {"rsqrt", {1e-05, kLeastFloat}, {316.2277660168379, -2.2156474144813125e-38}},
      {"sign", {kLeastFloat, 2 * kLeastFloat}, {0.4472135954999579, 0.8944271909999159}},
      {"acos", {1.0, kLeastFloat}, {3.743392130574644e-23, -3.743392130574644e-23}},
  };
}

template <typename T>
double ulps(const Z& want, T re, T im) {
  const Wide modulus = sqrt(want.re * want.re + want.im * want.im);
  if (modulus > Wide(std::numeric_limits<T>::max())) return 0;
  if (!std::isfinite(re) || !std::isfinite(im)) return INFINITY;
  int e = 0;
  frexp(modulus, &e);
  const int digits = std::numeric_limits<T>::digits;
  const Wide unit = ldexp(Wide(1), std::max(e, std::numeric_limits<T>::min_exponent) - digits);
  return static_cast<double>(std::max(abs(Wide(re) - want.re), abs(Wide(im) - want.im)) / unit);
}

/// Returns arguments at all distances around the special points, also on the axes through them, and some random
/// arguments.
template <typename T>
void arguments(const Case& c, std::vector<T>& re, std::vector<T>& im) {
  std::mt19937_64 random(11);
  auto unit = [&] { return std::ldexp(static_cast<double>(random() >> 11), -52) - 1; };
  auto add = [&](double x, double y) {
    re.push_back(static_cast<T>(x));
    im.push_back(static_cast<T>(y));
  };
  const int least = sizeof(T) == 4 ? -40 : -80;
  for (const std::complex<double>& p : c.points) {
    add(p.real(), p.imag());
    add(p.real(), 1e-20);
    add(-1e-20, p.imag());
    for (int e = least; e <= 0; ++e) {
      const double d = std::ldexp(1 + 0.5 * unit(), e);
      const double t = unit() * kPi;
      add(p.real() + d * std::cos(t), p.imag() + d * std::sin(t));
      add(p.real() + std::copysign(d, t), p.imag());
      add(p.real(), p.imag() + std::copysign(d, t));
      add(p.real() + std::copysign(d * d, unit()), p.imag() + d);
      add(p.real() + d, p.imag() + d * d);
    }
  }
  for (int i = 0; i < 200; ++i) add(8 * unit(), 8 * unit());
  const double largest = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  for (int i = 0; c.overflow != 0 && i < 100; ++i) {
    const double x = std::copysign(largest + 2 * unit(), unit());
    const double y = unit() * kPi;
    c.overflow == 1 ? add(x, y) : add(y, x);
  }
  while (re.size() % 16 != 0) add(unit(), unit());
}

/// Returns the opcode of a function of HLO text.
uint32_t opcode_of(const std::string& op) {
  static const std::map<std::string, uint32_t> names{
      {"power", COLLET_OP_POWER},
      {"divide", COLLET_OP_DIVIDE},
      {"exponential", COLLET_OP_EXPONENTIAL},
      {"exponential-minus-one", COLLET_OP_EXPONENTIAL_MINUS_ONE},
      {"log", COLLET_OP_LOG},
      {"log-plus-one", COLLET_OP_LOG_PLUS_ONE},
      {"sqrt", COLLET_OP_SQRT},
      {"sinh", COLLET_OP_SINH},
      {"cosh", COLLET_OP_COSH},
      {"tanh", COLLET_OP_TANH},
      {"sine", COLLET_OP_SINE},
      {"cosine", COLLET_OP_COSINE},
      {"tan", COLLET_OP_TAN},
      {"asin", COLLET_OP_ASIN},
      {"acos", COLLET_OP_ACOS},
      {"asinh", COLLET_OP_ASINH},
      {"acosh", COLLET_OP_ACOSH},
      {"atanh", COLLET_OP_ATANH},
      {"logistic", COLLET_OP_LOGISTIC},
      {"sign", COLLET_OP_SIGN},
      {"rsqrt", COLLET_OP_RSQRT},
  };
  return names.at(op);
}

using Loop = void (*)(const void* re, const void* im, void* out_re, void* out_im, int64_t count);

/// Emits a loop over vectors of `lanes` complex numbers, which computes the op for each.
void emit_loop(llvm::Module& module, const Target& target, uint32_t opcode, uint32_t type, int lanes) {
  emit_test_loop(module, target, 4, lanes, [&](Ir& ir, llvm::Function& f, llvm::Value* i) {
    auto& b = ir.b;
    llvm::Type* t = ir.scalar(type);
    llvm::Type* v = ir.wide(t, lanes);
    const llvm::Align align(t->getScalarSizeInBits() / 8);
    auto at = [&](unsigned k) { return b.CreateGEP(t, f.getArg(k), i); };
    const Val x{b.CreateAlignedLoad(v, at(0), align), b.CreateAlignedLoad(v, at(1), align)};
    const Val y = emit_scalar(ir, {opcode, type, {&type, 1}, {&x, 1}});
    b.CreateAlignedStore(y.v, at(2), align);
    b.CreateAlignedStore(y.im, at(3), align);
  });
}

class ComplexTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Status s = Jit::create(host_target(GetParam()), jit_);
    ASSERT_TRUE(s.ok()) << s.message();
  }

  /// Compares special values. All operands of one function are computed by one loop.
  template <typename T>
  void check_specials() {
    using PairLoop = void (*)(const T*, const T*, const T*, const T*, T*, T*, int64_t);
    const uint32_t type = sizeof(T) == 4 ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
    const int lanes = jit_->target().vector_bits / 8 / static_cast<int>(sizeof(T));
    const auto specials = testing::complex_specials();
    for (size_t first = 0; first < specials.size();) {
      size_t last = first;
      while (last < specials.size() && specials[last].op == std::string(specials[first].op)) ++last;
      std::vector<T> in[4], out[2];
      for (size_t i = first; i < last || in[0].size() % static_cast<size_t>(lanes) != 0; ++i) {
        const auto& s = specials[std::min(i, last - 1)];
        const double parts[] = {s.x.real(), s.x.imag(), s.y.real(), s.y.imag()};
        for (size_t k = 0; k < 4; ++k) in[k].push_back(static_cast<T>(parts[k]));
      }
      for (auto& o : out) o.resize(in[0].size());
      std::unique_ptr<LoadedCode> code;
      const auto emit = [&](llvm::Module& m) {
        emit_test_loop(m, jit_->target(), 6, lanes, [&](Ir& ir, llvm::Function& f, llvm::Value* i) {
          auto& b = ir.b;
          llvm::Type* t = ir.scalar(type);
          const llvm::Align align(sizeof(T));
          auto at = [&](unsigned k) { return b.CreateGEP(t, f.getArg(k), i); };
          auto load = [&](unsigned k) { return b.CreateAlignedLoad(ir.wide(t, lanes), at(k), align); };
          const Val x[] = {{load(0), load(1)}, {load(2), load(3)}};
          const uint32_t types[] = {type, type};
          const uint32_t opcode = opcode_of(specials[first].op);
          const size_t count = opcode == COLLET_OP_POWER || opcode == COLLET_OP_DIVIDE ? 2 : 1;
          const Val y = emit_scalar(ir, {opcode, type, {types, count}, {x, count}});
          b.CreateAlignedStore(y.v, at(4), align);
          b.CreateAlignedStore(y.im, at(5), align);
        });
      };
      const Status s = jit_->compile({emit}, false, code);
      ASSERT_TRUE(s.ok()) << s.message();
      reinterpret_cast<PairLoop>(code->find("loop"))(in[0].data(), in[1].data(), in[2].data(), in[3].data(),
                                                     out[0].data(), out[1].data(), static_cast<int64_t>(in[0].size()));
      for (size_t i = first; i < last; ++i) {
        const std::complex<double> got(static_cast<double>(out[0][i - first]), static_cast<double>(out[1][i - first]));
        EXPECT_TRUE(testing::same_special(got, specials[i].value))
            << specials[i].op << testing::special_text(specials[i].x) << testing::special_text(specials[i].y) << " is "
            << testing::special_text(got) << ", not " << testing::special_text(specials[i].value);
      }
      first = last;
    }
  }

  template <typename T>
  void check_extremes() {
    const uint32_t type = sizeof(T) == 4 ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
    const auto lanes = jit_->target().vector_bits / 8 / sizeof(T);
    for (const Extreme& one : extremes<T>()) {
      std::unique_ptr<LoadedCode> code;
      const auto emit = [&](llvm::Module& m) {
        emit_loop(m, jit_->target(), opcode_of(one.op), type, static_cast<int>(lanes));
      };
      ASSERT_TRUE(jit_->compile({emit}, false, code).ok());
      const std::vector<T> re(lanes, static_cast<T>(one.x.real())), im(lanes, static_cast<T>(one.x.imag()));
      std::vector<T> out_re(lanes), out_im(lanes);
      reinterpret_cast<Loop>(code->find("loop"))(re.data(), im.data(), out_re.data(), out_im.data(),
                                                 static_cast<int64_t>(lanes));
      const double got[] = {static_cast<double>(out_re[0]), static_cast<double>(out_im[0])};
      const double want[] = {one.value.real(), one.value.imag()};
      for (int part = 0; part < 2; ++part) {
        const double bound = std::abs(want[part]) * 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) +
                             2 * static_cast<double>(std::numeric_limits<T>::denorm_min());
        EXPECT_NEAR(got[part], want[part], bound) << one.op << testing::special_text(one.x) << ", part " << part;
      }
    }
  }

  template <typename T>
  void check(const Case& c, double limit) {
    const uint32_t type = sizeof(T) == 4 ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
    const int lanes = jit_->target().vector_bits / 8 / static_cast<int>(sizeof(T));
    std::unique_ptr<LoadedCode> code;
    const Status s =
        jit_->compile({[&](llvm::Module& m) { emit_loop(m, jit_->target(), c.opcode, type, lanes); }}, false, code);
    ASSERT_TRUE(s.ok()) << s.message();
    std::vector<T> re;
    std::vector<T> im;
    arguments(c, re, im);
    std::vector<T> out_re(re.size());
    std::vector<T> out_im(re.size());
    auto loop = reinterpret_cast<Loop>(code->find("loop"));
    loop(re.data(), im.data(), out_re.data(), out_im.data(), static_cast<int64_t>(re.size()));
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < re.size(); ++i) {
      const Z want = c.truth({exact(re[i]), exact(im[i])});
      const bool whole = re[i] == std::rint(re[i]) && im[i] == std::rint(im[i]);
      if (whole && std::isinf(out_re[i])) continue;  // the argument is a pole
      const double e = ulps(want, out_re[i], out_im[i]);
      if (!(e <= worst)) {
        worst = e;
        where = i;
      }
    }
    EXPECT_LE(worst, limit) << c.name << (sizeof(T) == 4 ? " c64" : " c128") << " of (" << re[where] << ", "
                            << im[where] << ") is (" << out_re[where] << ", " << out_im[where] << ")";
    if (std::getenv("COLLET_MATH_REPORT")) {
      std::printf("| %s | %s | %.2f |\n", c.name, sizeof(T) == 4 ? "c64" : "c128", worst);
    }
  }

  /// Compares e^x of real numbers as complex ones with the real function, bit by bit.
  template <typename T>
  void check_real_exponentials() {
    const uint32_t complex = sizeof(T) == 4 ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
    const uint32_t real = sizeof(T) == 4 ? COLLET_TYPE_F32 : COLLET_TYPE_F64;
    const int lanes = jit_->target().vector_bits / 8 / static_cast<int>(sizeof(T));
    const auto emit = [&](llvm::Module& m) {
      emit_test_loop(m, jit_->target(), 4, lanes, [&](Ir& ir, llvm::Function& f, llvm::Value* i) {
        auto& b = ir.b;
        llvm::Type* t = ir.scalar(real);
        const llvm::Align align(sizeof(T));
        auto at = [&](unsigned k) { return b.CreateGEP(t, f.getArg(k), i); };
        auto load = [&](unsigned k) { return b.CreateAlignedLoad(ir.wide(t, lanes), at(k), align); };
        const Val z{load(0), load(1)};
        const Val x{load(0)};
        b.CreateAlignedStore(emit_scalar(ir, {COLLET_OP_EXPONENTIAL, complex, {&complex, 1}, {&z, 1}}).v, at(2), align);
        b.CreateAlignedStore(emit_scalar(ir, {COLLET_OP_EXPONENTIAL, real, {&real, 1}, {&x, 1}}).v, at(3), align);
      });
    };
    std::unique_ptr<LoadedCode> code;
    ASSERT_TRUE(jit_->compile({emit}, false, code).ok());
    std::vector<T> re{static_cast<T>(-0.69314718055994531)};
    while (re.size() < 1024) re.push_back(static_cast<T>(re.size()) / 8 - 64);
    const std::vector<T> im(re.size());
    std::vector<T> as_complex(re.size());
    std::vector<T> as_real(re.size());
    reinterpret_cast<Loop>(code->find("loop"))(re.data(), im.data(), as_complex.data(), as_real.data(),
                                               static_cast<int64_t>(re.size()));
    EXPECT_EQ(as_complex, as_real);
  }

  std::unique_ptr<Jit> jit_;
};

TEST_P(ComplexTest, ExponentialsOfRealNumbers_AreThoseOfTheRealFunction) {
  check_real_exponentials<float>();
  check_real_exponentials<double>();
}

TEST_P(ComplexTest, StaysWithinItsBoundsNearZerosAndPoles) {
  for (const Case& c : cases()) {
    check<float>(c, 4);
    check<double>(c, 5);
  }
}

TEST_P(ComplexTest, EachPartIsRightOfExtremeNumbers) {
  check_extremes<float>();
  check_extremes<double>();
}

TEST_P(ComplexTest, HasTheSpecialValuesOfAnnexG) {
  check_specials<float>();
  check_specials<double>();
}

INSTANTIATE_TEST_SUITE_P(Targets, ComplexTest, ::testing::Values("", "-avx512f", "-sse3"));

}  // namespace
}  // namespace collet::codegen
