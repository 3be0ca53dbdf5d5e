// SPDX-License-Identifier: Apache-2.0
// Tests updates: by maximum and minimum of NaN and of zeros of both signs, and in lanes that update the same elements.

#include <collet/codegen/kernel_evaluate.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sdk/codegen/schedule/lanes.h"
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
  for (const bool in_lanes : {false, true}) {
    const size_t lanes = static_cast<size_t>(vector_bits) / 8 / sizeof(T);
    const std::string count = std::to_string(in_lanes ? old.size() / lanes * lanes : old.size());
    const std::string text = "kernel (2 buffers) {\nouter i0: " + count +
                             (in_lanes ? " lanes " + std::to_string(lanes) : "\nno lanes") + "\n%0 = load " + type +
                             " b0[i0]\nupdate " + (maximum ? "maximum" : "minimum") + " b1[i0] " + type + " %0\n}";
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
    reinterpret_cast<KernelFunction>(code->find("kernel"))(buffers, 0, static_cast<int64_t>(points), 0);
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

constexpr int kElements = 40;
constexpr int kUpdates = 301;  // leaves a tail for every number of lanes

/// Returns places of updates: those outside of [0, kElements) do not exist.
std::vector<int32_t> places_of(const std::string& pattern) {
  std::vector<int32_t> out;
  std::minstd_rand random(7);
  for (int i = 0; i < kUpdates; ++i) {
    const int any = static_cast<int>(random() % (pattern == "some outside" ? 80 : kElements));
    const int place = pattern == "sorted" ? i / 50 : pattern == "one" ? 3 : pattern == "outside" ? -1 - any : any;
    out.push_back(place > 60 ? -place : place);
  }
  return out;
}

/// Returns numbers whose sums and products are exact in each type.
template <typename T>
std::vector<T> numbers_of(const std::string& combine, bool special, size_t count) {
  const std::vector<T> specials = special_values<T>();
  std::minstd_rand random(9);
  std::vector<T> out;
  for (size_t i = 0; i < count; ++i) {
    const int any = static_cast<int>(random() % 11) - 5;
    if (combine == "multiply") {
      out.push_back(static_cast<T>(any < 0 ? -1 : 1));
    } else {
      out.push_back(special && i % 3 == 0 ? specials[random() % specials.size()] : static_cast<T>(any));
    }
  }
  return out;
}

template <typename T>
void check_in_order(int vector_bits, const std::string& type, const std::vector<std::string>& combinations) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  for (const std::string& combine : combinations) {
    const std::string text = "kernel (3 buffers) sequential {\nouter i0: " + std::to_string(kUpdates) +
                             "\n%0 = load s32 b0[i0]\n%1 = convert s64 %0\n%2 = in_range (%1) below " +
                             std::to_string(kElements) + "\n%3 = load " + type + " b1[i0]\nupdate " + combine +
                             " b2 [%1] " + type + " %3 if %2\n}";
    FunctionSource f;
    f.name = "kernel";
    Kernel kernel;
    ASSERT_TRUE(parse_kernel(text, kernel).ok()) << text;
    choose_lanes(kernel, jit->target());
    EXPECT_GT(kernel.lanes, 1) << text;
    schedule_for(kernel, jit->target());
    const Status verified = verify_kernel(kernel);
    ASSERT_TRUE(verified.ok()) << verified.message() << text;
    f.body = kernel;
    std::unique_ptr<LoadedCode> code;
    const Status compiled = jit->compile({f}, false, code);
    ASSERT_TRUE(compiled.ok()) << compiled.message() << "\n" << text;
    for (const std::string pattern : {"any", "sorted", "one", "some outside", "outside"}) {
      for (const bool special : {false, true}) {
        if (special && combine != "maximum" && combine != "minimum") continue;
        std::vector<int32_t> places = places_of(pattern);
        std::vector<T> x = numbers_of<T>(combine, special, kUpdates);
        std::vector<T> result = numbers_of<T>(combine, special, kElements);
        std::vector<T> expected = result;
        const std::span<std::byte> buffers[] = {std::as_writable_bytes(std::span(places)),
                                                std::as_writable_bytes(std::span(x)),
                                                std::as_writable_bytes(std::span(expected))};
        ASSERT_TRUE(evaluate_kernel(kernel, buffers).ok());
        char* addresses[] = {reinterpret_cast<char*>(places.data()), reinterpret_cast<char*>(x.data()),
                             reinterpret_cast<char*>(result.data())};
        reinterpret_cast<KernelFunction>(code->find("kernel"))(addresses, 0, kUpdates, 0);
        for (size_t i = 0; i < kElements; ++i) {
          const auto as_double = [](T v) { return static_cast<double>(v); };
          const bool same = std::isnan(as_double(expected[i]))
                                ? std::isnan(as_double(result[i]))
                                : expected[i] == result[i] &&
                                      std::signbit(as_double(expected[i])) == std::signbit(as_double(result[i]));
          EXPECT_TRUE(same) << text << "\n"
                            << pattern << ", element " << i << ": " << as_double(result[i]) << " is not "
                            << as_double(expected[i]);
        }
      }
    }
  }
}

TEST_P(Update, LanesOfTheSameElement_AreUpdatedInOrder) {
  const std::vector<std::string> numbers = {"add", "multiply", "maximum", "minimum", "second", "first"};
  std::vector<std::string> integers = numbers;
  integers.insert(integers.end(), {"and", "or", "xor"});
  check_in_order<float>(GetParam(), "f32", numbers);
  check_in_order<double>(GetParam(), "f64", numbers);
  check_in_order<int8_t>(GetParam(), "s8", integers);
  check_in_order<uint32_t>(GetParam(), "u32", integers);
  check_in_order<int64_t>(GetParam(), "s64", integers);
}

}  // namespace
}  // namespace collet::codegen
