// SPDX-License-Identifier: Apache-2.0
// Compares reduce-window and select-and-scatter with their definition, over windows of all kinds: small ones, ones that
// extend far beyond the array, and the windows as long as the array by which frontends express cumulative sums.
#include <algorithm>
#include <chrono>
#include <functional>

#include "hlo/eval/text_modules_test.h"

namespace collet::hlo {
namespace {

using testing::expect_value;

const char* const kBodies =
    "add {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] add(x, y)\n}\n"
    "multiply {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] multiply(x, y)\n}\n"
    "maximum {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] maximum(x, y)\n}\n"
    "minimum {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] minimum(x, y)\n}\n"
    "subtract {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] subtract(x, y)\n}\n"
    "second {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] copy(y)\n}\n"
    "mixed {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n t = s32[] constant(3)\n m = s32[] multiply(x, t)\n"
    " ROOT r = s32[] add(m, y)\n}\n"
    "addf {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n"
    "pair {\n a = s32[] parameter(0)\n i = s32[] parameter(1)\n b = s32[] parameter(2)\n j = s32[] parameter(3)\n"
    " m = s32[] maximum(a, b)\n s = s32[] add(i, j)\n ROOT r = (s32[], s32[]) tuple(m, s)\n}\n"
    "ge {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = pred[] compare(x, y), direction=GE\n}\n";

Literal run(const std::string& body) {
  auto got = testing::evaluate_text("HloModule m\n" + std::string(kBodies) + "\nENTRY e {\n" + body + "\n}\n");
  EXPECT_TRUE(got.ok()) << got.status().to_string();
  return got.ok() ? *got : Literal::zeros(Shape::array(Type::S32, {0}));
}

using Fold = std::function<int32_t(int32_t, int32_t)>;

const std::pair<const char*, Fold> kFolds[] = {
    {"add",
     [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }},
    {"multiply",
     [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)); }},
    {"maximum", [](int32_t a, int32_t b) { return std::max(a, b); }},
    {"minimum", [](int32_t a, int32_t b) { return std::min(a, b); }},
    {"subtract",
     [](int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)); }},
    {"second", [](int32_t, int32_t b) { return b; }},
    {"mixed", [](int32_t a,
                 int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) * 3 + static_cast<uint32_t>(b)); }},
};

struct Along {
  int64_t size = 1, stride = 1, low = 0, high = 0, base = 1, dilation = 1;
  int64_t places(int64_t n) const {
    const int64_t padded = (n > 0 ? (n - 1) * base + 1 : 0) + low + high, reach = (size - 1) * dilation + 1;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
  }
  int64_t at(int64_t n, int64_t place, int64_t tap) const {
    const int64_t p = place * stride + tap * dilation - low;
    return p >= 0 && p % base == 0 && p / base < n ? p / base : -1;
  }
};

int32_t element(int64_t i) {
  return static_cast<int32_t>((i * 2654435761u) % 2000003) - 1000000;
}

std::string window_text(const Along& a, const Along& b) {
  const auto both = [&](int64_t Along::* m, const char* join) {
    return std::to_string(a.*m) + join + std::to_string(b.*m);
  };
  return "{size=" + both(&Along::size, "x") + " stride=" + both(&Along::stride, "x") + " pad=" + std::to_string(a.low) +
         "_" + std::to_string(a.high) + "x" + std::to_string(b.low) + "_" + std::to_string(b.high) +
         " lhs_dilate=" + both(&Along::base, "x") + " rhs_dilate=" + both(&Along::dilation, "x") + "}";
}

/// Evaluates the window over an array of `rows` x `columns` by the definition and by the evaluator, and compares.
void check(int64_t rows, int64_t columns, const Along& a, const Along& b) {
  const std::string window = window_text(a, b);
  const int64_t down = a.places(rows), across = b.places(columns);
  std::string x = "x = s32[" + std::to_string(rows) + "," + std::to_string(columns) + "] constant({";
  for (int64_t i = 0; i < rows; ++i) {
    x += i ? ",{" : "{";
    for (int64_t j = 0; j < columns; ++j) x += (j ? "," : "") + std::to_string(element(i * columns + j));
    x += "}";
  }
  x += "})\nz = s32[] constant(7)\n";
  const std::string shape = "s32[" + std::to_string(down) + "," + std::to_string(across) + "]";
  for (const auto& [name, fold] : kFolds) {
    SCOPED_TRACE(window + " " + name + " over " + std::to_string(rows) + "x" + std::to_string(columns));
    const Literal got = run(x + "ROOT r = " + shape + " reduce-window(x, z), window=" + window + ", to_apply=" + name);
    ASSERT_EQ(got.element_count(), down * across);
    for (int64_t i = 0; i < down; ++i)
      for (int64_t j = 0; j < across; ++j) {
        int32_t sum = 7;
        for (int64_t k = 0; k < a.size; ++k)
          for (int64_t l = 0; l < b.size; ++l) {
            const int64_t r = a.at(rows, i, k), c = b.at(columns, j, l);
            if (r >= 0 && c >= 0) sum = fold(sum, element(r * columns + c));
          }
        ASSERT_EQ(got.as_int(i * across + j), sum) << "at " << i << ", " << j;
      }
  }
}

TEST(ReduceWindow, RunningFolds) {
  for (const int64_t n : {1, 3, 20, 40})
    for (const int64_t other : {int64_t{1}, int64_t{5}, 300 / n}) {
      const Along one, shifted{.size = 1, .stride = 2, .low = 1, .high = 2};
      for (const Along& w : {Along{.size = n, .low = n - 1},               // inclusive cumulative sum
                             Along{.size = n, .high = n - 1},              // cumulative sum from the end
                             Along{.size = n, .low = n, .high = -1},       // exclusive cumulative sum
                             Along{.size = n, .low = -1, .high = n},       // exclusive cumulative sum from the end
                             Along{.size = 50, .low = 49},                 // larger than the array
                             Along{.size = 50, .high = 60},                //
                             Along{.size = 64, .low = 80, .high = 10},     // results before and after the array
                             Along{.size = 64, .stride = 3, .low = 70},    // every third position
                             Along{.size = 64, .stride = 3, .high = 66},   //
                             Along{.size = 33, .low = 16, .high = 16},     // sliding window
                             Along{.size = 64, .low = 63, .dilation = 2},  //
                             Along{.size = 64, .low = 63, .base = 2}}) {   //
        check(n, other, w, one);
        check(other, n, one, w);
        check(other, n, shifted, w);
      }
    }
}

TEST(ReduceWindow, SeveralArraysRunToo) {
  std::string text =
      "x = s32[40] iota(), iota_dimension=0\nm = s32[] constant(17)\nb = s32[40] broadcast(m), dimensions={}\n"
      "y = s32[40] remainder(x, b)\nz = s32[] constant(0)\n"
      "w = (s32[40], s32[40]) reduce-window(y, x, z, z), window={size=40 pad=39_0}, to_apply=pair\n";
  const Literal most = run(text + "ROOT r = s32[40] get-tuple-element(w), index=0");
  const Literal sums = run(text + "ROOT r = s32[40] get-tuple-element(w), index=1");
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(most.as_int(i), std::min<int64_t>(i, 16));
    EXPECT_EQ(sums.as_int(i), i * (i + 1) / 2);
  }
}

// A sum of 2^20 values for each of 2^20 results would take days if each were computed separately.
TEST(ReduceWindow, RunningFoldsOfLongArraysTakeOneGo) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string n = std::to_string(1 << 20), rest = std::to_string((1 << 20) - 1);
  for (const std::string& padding : {rest + "_0", "0_" + rest, n + "_-1"})
    for (const char* body : {"add", "mixed"}) {
      // This body is not commutative, so its order must be kept.
      if (body == std::string("mixed") && padding.starts_with("0_")) continue;
      const Literal sums = run("x = s32[" + n + "] iota(), iota_dimension=0\nz = s32[] constant(0)\nROOT w = s32[" + n +
                               "] reduce-window(x, z), window={size=" + n + " pad=" + padding + "}, to_apply=" + body);
      if (body == std::string("add") && padding.ends_with("_0")) {
        EXPECT_EQ(sums.as_int(1000), 1000 * 1001 / 2);
      }
    }
  const Literal sums = run("x = f32[" + n + "] iota(), iota_dimension=0\nz = f32[] constant(0)\nROOT w = f32[" + n +
                           "] reduce-window(x, z), window={size=" + n + " pad=" + rest + "_0}, to_apply=addf");
  const double last = (1 << 20) - 1;
  EXPECT_NEAR(sums.as_double((1 << 20) - 1), last * (last + 1) / 2, 1e-7 * last * last);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 60);
}

TEST(ReduceWindow, WindowsFarLargerThanTheArray) {
  const std::string a = "a = s32[4] constant({1, 2, 3, 4})\nz = s32[] constant(0)\n";
  expect_value(a + "ROOT r = s32[4] reduce-window(a, z), window={size=1099511627776 pad=1099511627775_0}, to_apply=add",
               "s32[4]", "{1, 3, 6, 10}", kBodies);
  expect_value(
      a + "ROOT r = s32[4] reduce-window(a, z), window={size=1099511627776 pad=0_1099511627775}, to_apply=subtract",
      "s32[4]", "{-10, -9, -7, -4}", kBodies);
  expect_value(a + "ROOT r = s32[2] reduce-window(a, z), window={size=3 stride=1099511627776 pad=1099511627775_3}, "
                   "to_apply=add",
               "s32[2]", "{0, 9}", kBodies);
  expect_value(a + "ROOT r = s32[1] reduce-window(a, z), window={size=2 rhs_dilate=1099511627776 pad=1099511627774_0}, "
                   "to_apply=add",
               "s32[1]", "{3}", kBodies);
  expect_value(
      a + "ROOT r = s32[3] reduce-window(a, z), window={size=1099511627776 pad=1099511627778_-4}, to_apply=add",
      "s32[3]", "{0, 0, 0}", kBodies);
}

TEST(SelectAndScatter, WindowsFarLargerThanTheArray) {
  const std::string a =
      "a = s32[4] constant({2, 9, 3, 4})\ns = s32[4] constant({10, 20, 30, 40})\nz = s32[] constant(1)\n";
  expect_value(a + "ROOT r = s32[4] select-and-scatter(a, s, z), window={size=1099511627776 pad=1099511627775_0}, "
                   "select=ge, scatter=add",
               "s32[4]", "{11, 91, 1, 1}", kBodies);
  expect_value(a + "ROOT r = s32[4] select-and-scatter(a, s, z), window={size=1099511627776 pad=0_1099511627775}, "
                   "select=ge, scatter=add",
               "s32[4]", "{1, 31, 1, 71}", kBodies);
}

}  // namespace
}  // namespace collet::hlo
