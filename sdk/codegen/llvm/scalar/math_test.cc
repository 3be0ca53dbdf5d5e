// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/target.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "sdk/codegen/llvm/jit.h"
#include "sdk/codegen/llvm/kernel/test_loop.h"
#include "sdk/codegen/llvm/scalar/math.h"

namespace collet::codegen {
namespace {

using Wide = long double;

/// A function to test, its reference, and the largest error allowed, in units in the last place.
struct Case {
  const char* name;
  math::Function function;
  Wide (*truth)(Wide);
  double f32_ulp;
  double f64_ulp;
  double low;  ///< arguments of all magnitudes within [low, high] are tested
  double high;
};

Wide logistic(Wide x) {
  return 1 / (1 + std::exp(-x));
}
Wide rsqrt(Wide x) {
  return 1 / std::sqrt(x);
}

// The bounds are those of the same functions in sdk/include/tests/elementary_test.cc.
const Case kCases[] = {
    {"exp", math::exp, std::exp, 1.5, 1.5, -750, 750},
    {"expm1", math::expm1, std::expm1, 2, 2, -60, 720},
    {"log", math::log, std::log, 1.5, 1.5, 0, INFINITY},
    {"log1p", math::log1p, std::log1p, 2, 2, -1, INFINITY},
    {"sin", math::sin, std::sin, 1.5, 1.5, -INFINITY, INFINITY},
    {"cos", math::cos, std::cos, 1.5, 1.5, -INFINITY, INFINITY},
    {"tan", math::tan, std::tan, 3, 3, -INFINITY, INFINITY},
    {"asin", math::asin, std::asin, 2, 2, -1, 1},
    {"acos", math::acos, std::acos, 2, 2, -1, 1},
    {"sinh", math::sinh, std::sinh, 3, 3, -715, 715},
    {"cosh", math::cosh, std::cosh, 2.5, 2.5, -715, 715},
    {"tanh", math::tanh, std::tanh, 2, 3, -INFINITY, INFINITY},
    {"asinh", math::asinh, std::asinh, 3.5, 3.5, -INFINITY, INFINITY},
    {"acosh", math::acosh, std::acosh, 3.5, 3.5, 1, INFINITY},
    {"atanh", math::atanh, std::atanh, 3.5, 3.5, -1, 1},
    {"logistic", math::logistic, logistic, 2.5, 2.5, -700, 700},
    {"sqrt", math::sqrt, std::sqrt, 0.51, 0.51, 0, INFINITY},
    {"rsqrt", math::rsqrt, rsqrt, 1.5, 1.5, 0, INFINITY},
    {"cbrt", math::cbrt, std::cbrt, 1, 1, -INFINITY, INFINITY},
    {"erf", math::erf, std::erf, 2.5, 2, -INFINITY, INFINITY},
};

template <typename T>
double ulps(T got, Wide want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return 1e30;
  int e = 0;
  std::frexp(want, &e);
  const int digits = std::numeric_limits<T>::digits;
  const Wide unit = std::ldexp(Wide{1}, std::max(e - digits, std::numeric_limits<T>::min_exponent - digits));
  return static_cast<double>(std::fabs((static_cast<Wide>(got) - want) / unit));
}

/// Returns numbers of all magnitudes in random order, preceded by special values.
template <typename T>
std::vector<T> arguments(double low, double high, size_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::vector<T> xs{T(0),
                    T(-0.0),
                    T(1),
                    T(-1),
                    T(0.5),
                    T(-0.5),
                    std::numeric_limits<T>::infinity(),
                    -std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::quiet_NaN(),
                    std::numeric_limits<T>::min(),
                    std::numeric_limits<T>::denorm_min(),
                    std::numeric_limits<T>::max()};
  std::mt19937_64 random(7);
  while (xs.size() < count) {
    T x = std::bit_cast<T>(static_cast<Bits>(random()));
    if (xs.size() % 2) x = static_cast<T>(std::ldexp(static_cast<double>(random() >> 11), -53) * 16 - 8);
    if (static_cast<double>(x) >= low && static_cast<double>(x) <= high) xs.push_back(x);
  }
  return xs;
}

using Loop = void (*)(const void* x, const void* y, void* out, int64_t count);

/// Emits a loop that applies `body` to vectors of `lanes` elements.
void emit_loop(llvm::Module& module, const Target& target, llvm::Type* (*element)(llvm::LLVMContext&), int lanes,
               const std::function<llvm::Value*(Ir&, llvm::Value*, llvm::Value*)>& body) {
  emit_test_loop(module, target, 3, lanes, [&](Ir& ir, llvm::Function& f, llvm::Value* i) {
    auto& b = ir.b;
    llvm::Type* t = element(module.getContext());
    llvm::Type* v = ir.wide(t, lanes);
    const llvm::Align align(t->getScalarSizeInBits() / 8);
    auto at = [&](unsigned k) { return b.CreateGEP(t, f.getArg(k), i); };
    llvm::Value* x = b.CreateAlignedLoad(v, at(0), align);
    llvm::Value* y = b.CreateAlignedLoad(v, at(1), align);
    b.CreateAlignedStore(body(ir, x, y), at(2), align);
  });
}

class MathTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Status s = Jit::create(host_target(GetParam()), jit_);
    ASSERT_TRUE(s.ok()) << s.message();
  }

  template <typename T>
  std::vector<T> compute(const std::vector<T>& x, const std::vector<T>& y,
                         const std::function<llvm::Value*(Ir&, llvm::Value*, llvm::Value*)>& body) {
    auto element = sizeof(T) == 4 ? +[](llvm::LLVMContext& c) { return llvm::Type::getFloatTy(c); }
                                  : +[](llvm::LLVMContext& c) { return llvm::Type::getDoubleTy(c); };
    const int lanes = jit_->target().vector_bits / 8 / static_cast<int>(sizeof(T));
    std::unique_ptr<LoadedCode> code;
    Status s =
        jit_->compile({[&](llvm::Module& m) { emit_loop(m, jit_->target(), element, lanes, body); }}, false, code);
    EXPECT_TRUE(s.ok()) << s.message();
    std::vector<T> out(x.size());
    auto loop = reinterpret_cast<Loop>(code->find("loop"));
    loop(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
    return out;
  }

  template <typename T>
  void check(const Case& c, double limit, size_t count) {
    double low = c.low;
    double high = c.high;
    if (sizeof(T) == 4 && std::isfinite(high) && high > 100) {
      low = std::max(low, -105.0);
      high = std::min(high, 90.0);
    }
    std::vector<T> x = arguments<T>(low, high, count);
    std::vector<T> y = compute<T>(x, x, [&](Ir& ir, llvm::Value* v, llvm::Value*) { return c.function(ir, v); });
    double worst = 0;
    T where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double e = ulps(y[i], c.truth(static_cast<Wide>(x[i])));
      if (e > worst) {
        worst = e;
        where = x[i];
      }
    }
    EXPECT_LE(worst, limit) << c.name << " of " << static_cast<double>(where);
    if (std::getenv("COLLET_MATH_REPORT")) {
      std::printf("| %s | %s | %.2f |\n", c.name, sizeof(T) == 4 ? "f32" : "f64", worst);
    }
  }

  std::unique_ptr<Jit> jit_;
};

TEST_P(MathTest, StaysWithinItsBounds) {
  for (const Case& c : kCases) {
    check<float>(c, c.f32_ulp, 1 << 16);
    check<double>(c, c.f64_ulp, 1 << 15);
  }
}

template <typename T>
void check_power(const std::vector<T>& x, const std::vector<T>& y, const std::vector<T>& got, double limit) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double e = ulps(got[i], std::pow(static_cast<Wide>(x[i]), static_cast<Wide>(y[i])));
    if (e > worst) worst = e;
    ASSERT_LE(e, limit) << static_cast<double>(x[i]) << " ^ " << static_cast<double>(y[i]) << " = "
                        << static_cast<double>(got[i]);
  }
  if (std::getenv("COLLET_MATH_REPORT")) std::printf("| pow | f%zu | %.2f |\n", sizeof(T) * 8, worst);
}

TEST_P(MathTest, PowerFollowsC) {
  std::mt19937_64 random(3);
  auto draw = [&](auto unit) {
    using T = decltype(unit);
    std::vector<T> x{T(0),  T(-0.0), T(0), T(-0.0), T(1),  T(-1), T(INFINITY), T(-INFINITY),
                     T(-8), T(NAN),  T(1), T(-0.0), T(-2), T(-2), T(0.5),      T(2)};
    std::vector<T> y{T(-1),      T(-1), T(3),    T(-2), T(NAN), T(INFINITY), T(-1),       T(0.5),
                     T(1.0 / 3), T(0),  T(1e30), T(3),  T(3),   T(4),        T(INFINITY), T(-INFINITY)};
    while (x.size() < (1 << 15)) {
      x.push_back(
          static_cast<T>(std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 + 0.5, int(random() % 40) - 20)));
      y.push_back(static_cast<T>(std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5, int(random() % 6))));
    }
    return std::pair(x, y);
  };
  auto power = [](Ir& ir, llvm::Value* a, llvm::Value* b) { return math::pow(ir, a, b); };
  auto [x32, y32] = draw(float{});
  check_power(x32, y32, compute<float>(x32, y32, power), 1.5);
  auto [x64, y64] = draw(double{});
  check_power(x64, y64, compute<double>(x64, y64, power), 2);
}

/// Powers with these constant exponents are computed from square roots.
TEST_P(MathTest, PowersOfHalves) {
  const auto check = [&]<typename T>(T) {
    std::vector<T> x{T(0),
                     T(-0.0),
                     T(INFINITY),
                     T(-INFINITY),
                     T(-2),
                     T(NAN),
                     T(1),
                     std::numeric_limits<T>::max(),
                     T(4),
                     std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::denorm_min(),
                     T(-1e-30)};
    std::mt19937_64 random(5);
    while (x.size() < (1 << 12)) {
      x.push_back(
          static_cast<T>(std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 + 0.5, int(random() % 40) - 20)));
    }
    for (const double e : {0.5, -0.5, 1.5}) {
      const std::vector<T> y(x.size(), static_cast<T>(e));
      const auto got = compute<T>(x, y, [&](Ir& ir, llvm::Value* a, llvm::Value* b) {
        return math::pow(ir, a, llvm::ConstantFP::get(b->getType(), e));
      });
      check_power(x, y, got, 1.6);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::signbit(got[i]) && got[i] == 0, false) << x[i];
    }
  };
  check(float{});
  check(double{});
}

TEST_P(MathTest, ArcTangentKnowsTheQuadrants) {
  std::vector<double> values{0.0, -0.0, 1.0, -1.0, 0.3, -7.5, INFINITY, -INFINITY, 1e300, -1e-300};
  std::vector<double> y;
  std::vector<double> x;
  for (double a : values) {
    for (double b : values) {
      y.push_back(a);
      x.push_back(b);
    }
  }
  while (y.size() % 16 != 0) {
    y.push_back(1);
    x.push_back(2);
  }
  auto got = compute<double>(y, x, [](Ir& ir, llvm::Value* a, llvm::Value* b) { return math::atan2(ir, a, b); });
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_LE(ulps(got[i], std::atan2(static_cast<Wide>(y[i]), static_cast<Wide>(x[i]))), 4) << y[i] << ", " << x[i];
    EXPECT_EQ(std::signbit(got[i]), std::signbit(y[i])) << y[i] << ", " << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MathTest, ::testing::Values("", "-avx512f", "-sse3"));

}  // namespace
}  // namespace collet::codegen
