// SPDX-License-Identifier: Apache-2.0
// Tests that updates by maximum and minimum treat NaN, and zeros of both signs, as the ops do.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Update : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Update, ::testing::Values(128, 256, 512));

template <typename T>
T extremum(bool maximum, T x, T y) {
  if constexpr (std::numeric_limits<T>::is_integer) return maximum ? std::max(x, y) : std::min(x, y);
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
  if (x == 0 && y == 0) return std::signbit(x) == maximum ? y : x;
  return (x > y) == maximum ? x : y;
}

template <typename T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::is_integer) {
    return {0, 1, static_cast<T>(-1), Limits::lowest(), Limits::max()};
  } else {
    return {0,
            -T{0},
            1,
            -1,
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::max(),
            Limits::lowest(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            -Limits::quiet_NaN()};
  }
}

template <typename T>
void check(int vector_bits, const std::string& type, bool maximum) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  const std::vector<T> values = special_values<T>();
  std::vector<T> old, x;
  for (const T a : values) {
    for (const T b : values) {
      old.push_back(a);
      x.push_back(b);
    }
  }
  for (const std::string_view form : {"scalar", "lanes", "when changed"}) {
    const bool in_lanes = form == "lanes";
    const size_t lanes = static_cast<size_t>(vector_bits) / 8 / sizeof(T);
    const std::string count = std::to_string(in_lanes ? old.size() / lanes * lanes : old.size());
    const std::string text = "kernel (2 buffers) {\nouter i0: " + count +
                             (in_lanes ? " lanes " + std::to_string(lanes) : "\nno lanes") + "\n%0 = load " + type +
                             " b0[i0]\nupdate " + (maximum ? "maximum" : "minimum") + " b1[i0] " + type + " %0" +
                             (form == "when changed" ? " when changed\n}" : "\n}");
    FunctionSource f;
    f.name = "kernel";
    Kernel kernel;
    const Status parsed = parse_kernel(text, kernel);
    ASSERT_TRUE(parsed.ok()) << parsed.message() << "\n" << text;
    f.body = kernel;
    std::unique_ptr<LoadedCode> code;
    const Status compiled = jit->compile({f}, false, code);
    ASSERT_TRUE(compiled.ok()) << compiled.message() << "\n" << text;
    std::vector<T> result = old;
    char* buffers[] = {reinterpret_cast<char*>(x.data()), reinterpret_cast<char*>(result.data())};
    const auto points = static_cast<size_t>(kernel.loops[0].size);
    reinterpret_cast<KernelFunction>(code->find("kernel"))(buffers, 0, static_cast<int64_t>(points));
    for (size_t i = 0; i < points; ++i) {
      const T expected = extremum(maximum, old[i], x[i]);
      const bool same = std::isnan(expected)
                            ? std::isnan(result[i])
                            : expected == result[i] && std::signbit(expected) == std::signbit(result[i]);
      EXPECT_TRUE(same) << text << "\n" << old[i] << " and " << x[i] << " become " << result[i];
    }
  }
}

TEST_P(Update, ExtremaOfSpecialValues) {
  for (const bool maximum : {true, false}) {
    check<float>(GetParam(), "f32", maximum);
    check<double>(GetParam(), "f64", maximum);
    check<int8_t>(GetParam(), "s8", maximum);
    check<uint32_t>(GetParam(), "u32", maximum);
  }
}

}  // namespace
}  // namespace collet::codegen
