// SPDX-License-Identifier: Apache-2.0
// Tests that divisions of vectors by one number have the bits of divisions, for dividends and divisors of all magnitudes.

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Quotient : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Quotient, ::testing::Values(128, 256, 512));

constexpr size_t kCount = 1 << 16;

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// Compiles a kernel of `kCount` elements and runs it; `buffers` are its arrays.
void run(Jit& jit, const std::string& body, int lanes, std::vector<char*> buffers) {
  const std::string text = "kernel (" + std::to_string(buffers.size()) +
                           " buffers) {\nouter i0: " + std::to_string(kCount) + " lanes " + std::to_string(lanes) +
                           "\n" + body + "\n}";
  FunctionSource f;
  f.name = "kernel";
  Kernel kernel;
  const Status parsed = parse_kernel(text, kernel);
  ASSERT_TRUE(parsed.ok()) << parsed.message() << "\n" << text;
  f.body = kernel;
  std::unique_ptr<LoadedCode> code;
  const Status compiled = jit.compile({f}, false, code);
  ASSERT_TRUE(compiled.ok()) << compiled.message() << "\n" << text;
  reinterpret_cast<KernelFunction>(code->find("kernel"))(buffers.data(), 0, kCount, 0);
}

/// Quotients of any float type with all kinds of dividends.
template <typename T>
void check(int vector_bits, const std::string& type, const std::vector<T>& divisors) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  const int lanes = vector_bits / 8 / static_cast<int>(sizeof(T));
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(7);
  std::vector<T> wild(kCount), tame(kCount), out(kCount);
  for (T& x : wild) x = std::bit_cast<T>(static_cast<BitsOf<T>>(random()));
  for (T& x : tame) x = static_cast<T>(static_cast<int64_t>(random() % 2000001) - 1000000) / 1024;
  const T special[] = {T{0},          -T{0},         Limits::infinity(),   -Limits::infinity(), Limits::quiet_NaN(),
                       Limits::min(), Limits::max(), Limits::denorm_min(), -Limits::max()};
  for (size_t i = 0; i < std::size(special); ++i) wild[1000 * i] = tame[1000 * i] = special[i];
  std::vector<uint8_t> whole(kCount);
  for (uint8_t& x : whole) x = static_cast<uint8_t>(random());
  for (const T y : divisors) {
    std::ostringstream constant_text;
    constant_text << "%1 = constant " << type << " 0x" << std::hex << std::bit_cast<BitsOf<T>>(y);
    const std::string constant = constant_text.str();
    const auto compare = [&](const auto& x, const char* form) {
      for (size_t i = 0; i < kCount; ++i) {
        const T expected = static_cast<T>(x[i]) / y;
        const bool same = std::bit_cast<BitsOf<T>>(expected) == std::bit_cast<BitsOf<T>>(out[i]);
        ASSERT_TRUE(same || (expected != expected && out[i] != out[i]))
            << form << ": " << +x[i] << " / " << y << " = " << expected << ", not " << out[i];
      }
    };
    for (std::vector<T>* x : {&wild, &tame}) {
      char* const from = reinterpret_cast<char*>(x->data());
      char* const to = reinterpret_cast<char*>(out.data());
      run(*jit, "%0 = load " + type + " b0[i0]\n" + constant + "\n%2 = divide " + type + " %0, %1\nstore b1[i0], %2",
          lanes, {from, to});
      compare(*x, "by a constant");
      T divisor = y;
      run(*jit,
          "%0 = load " + type + " b0[i0]\n%1 = load " + type + " b1[0]\n%2 = divide " + type +
              " %0, %1\nstore b2[i0], %2",
          lanes, {from, reinterpret_cast<char*>(&divisor), to});
      compare(*x, "by a loaded number");
    }
    run(*jit,
        "%0 = load u8 b0[i0]\n" + constant + "\n%2 = convert " + type + " %0\n%3 = divide " + type +
            " %2, %1\nstore b1[i0], %3",
        lanes, {reinterpret_cast<char*>(whole.data()), reinterpret_cast<char*>(out.data())});
    compare(whole, "integers by a constant");
  }
}

template <typename T>
std::vector<T> divisors(int drawn) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> out{3,
                     255,
                     static_cast<T>(0.22),
                     static_cast<T>(127.5),
                     6,
                     -7,
                     1000003,
                     static_cast<T>(1e-20),
                     static_cast<T>(1e20),
                     2 - Limits::epsilon(),
                     1 + Limits::epsilon(),
                     Limits::min(),
                     Limits::denorm_min(),
                     Limits::max(),
                     Limits::infinity(),
                     0,
                     -T{0},
                     Limits::quiet_NaN()};
  std::mt19937_64 random(11);
  for (int i = 0; i < drawn; ++i) {
    constexpr BitsOf<T> kMantissa = (BitsOf<T>{1} << (Limits::digits - 1)) - 1;
    const T mantissa =
        std::bit_cast<T>((static_cast<BitsOf<T>>(random()) & kMantissa) | std::bit_cast<BitsOf<T>>(T{1}));
    out.push_back(std::ldexp(mantissa, static_cast<int>(random() % 40) - 20));
  }
  return out;
}

TEST_P(Quotient, HasTheBitsOfADivision) {
  check<float>(GetParam(), "f32", divisors<float>(12));
  check<double>(GetParam(), "f64", divisors<double>(12));
}

}  // namespace
}  // namespace collet::codegen
