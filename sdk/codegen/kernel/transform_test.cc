// SPDX-License-Identifier: Apache-2.0

#include <collet/codegen/kernel_evaluate.h>
#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_transform.h>
#include <collet/codegen/kernel_verify.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace collet::codegen {
namespace {

Kernel parsed(const std::string& text) {
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message();
  return kernel;
}

/// Returns the `size` floats that a kernel writes to buffer 1 if buffer 0 holds 0, 1, 2, ...
std::vector<float> result(const Kernel& kernel, size_t size) {
  std::vector<float> in(4096);
  std::iota(in.begin(), in.end(), 0.0f);
  std::vector<float> out(size, -1.0f);
  const std::array<std::span<std::byte>, 2> buffers = {std::as_writable_bytes(std::span(in)),
                                                       std::as_writable_bytes(std::span(out))};
  const Status ran = evaluate_kernel(kernel, buffers);
  EXPECT_TRUE(ran.ok()) << ran.message();
  return out;
}

/// Splits the loops of the kernel `text`. Checks that the kernel stays valid and that its first `size` results stay the
/// same. Returns the text of the new kernel.
std::string split(const std::string& text, int64_t least, size_t size) {
  Kernel kernel = parsed(text);
  const std::vector<float> before = result(kernel, size);
  split_loops(kernel, least, 16);
  const Status verified = verify_kernel(kernel);
  EXPECT_TRUE(verified.ok()) << verified.message();
  EXPECT_EQ(result(kernel, size), before);
  return print_kernel(kernel);
}

TEST(SplitLoops, QuotientAndRemainderBecomeLoops) {
  const std::string text = R"(kernel (2 buffers) {
  outer i0: 60
  outer i1: 32
  %0 = quotient (i1) by 8
  %1 = modulo (i1) by 8
  %2 = quotient (i0 + 60*%0) by 240
  %3 = modulo (i0 + 60*%0) by 240
  %4 = load f32 b0[8*%3 + %1 + %2]
  store b1[32*i0 + i1], %4
}
)";
  EXPECT_EQ(split(text, 8, 60 * 32), R"(kernel (2 buffers) {
  outer i0: 60
  outer i1: 4
  outer i2: 8
  %0 = load f32 b0[8*i0 + 480*i1 + i2]
  store b1[32*i0 + 8*i1 + i2], %0
}
)");
}

TEST(SplitLoops, AFewIterationsDoNotBecomeTheFirstLoop) {
  const std::string text = R"(kernel (2 buffers) {
  outer i0: 60
  outer i1: 5
  %0 = modulo (i0) by 30
  %1 = load f32 b0[5*%0 + i1]
  store b1[5*i0 + i1], %1
}
)";
  EXPECT_EQ(split(text, 8, 300), R"(kernel (2 buffers) {
  outer i0: 30
  outer i1: 2
  outer i2: 5
  %0 = load f32 b0[5*i0 + i2]
  store b1[5*i0 + 150*i1 + i2], %0
}
)");
}

// An index whose value the kernel computes with stays an expression.
TEST(SplitLoops, ValuesOfIndicesAreKept) {
  const std::string text = R"(kernel (2 buffers) {
  outer i0: 4
  outer i1: 32
  %0 = quotient (i1) by 16
  %1 = convert f32 %0
  store b1[32*i0 + i1], %1
}
)";
  EXPECT_EQ(split(text, 8, 128), R"(kernel (2 buffers) {
  outer i0: 4
  outer i1: 2
  outer i2: 16
  %0 = index i1
  %1 = convert f32 %0
  store b1[32*i0 + 16*i1 + i2], %1
}
)");
}

TEST(SplitLoops, OthersAreLeft) {
  for (const char* index : {"i1 + 1", "2*i1", "i0 + 5*i1"}) {
    for (const char* by : {"8", "4", "5", "12"}) {
      const std::string text = std::string("kernel (2 buffers) {\n  outer i0: 5\n  outer i1: 24\n  %0 = modulo (") +
                               index + ") by " + by + "\n  %1 = load f32 b0[i0 + %0]\n  store b1[24*i0 + i1], %1\n}\n";
      EXPECT_EQ(split(text, 8, 120), print_kernel(parsed(text))) << text;
    }
  }
  // The divisor is less than the least allowed size, or does not divide the loop's size.
  for (const char* by : {"6", "7"}) {
    const std::string text = std::string("kernel (2 buffers) {\n  outer i0: 24\n  %0 = modulo (i0) by ") + by +
                             "\n  %1 = load f32 b0[%0]\n  store b1[i0], %1\n}\n";
    EXPECT_EQ(split(text, 7, 24), print_kernel(parsed(text))) << text;
  }
}

// The loop of a scan cannot be split.
TEST(SplitLoops, ScansKeepTheirLoop) {
  const std::string text = R"(kernel (2 buffers) {
  outer i0: 3
  inner i1: 32
  %0 = modulo (i1) by 16
  %1 = load f32 b0[16*i0 + %0]
  %2 = constant f32 0
  scan add f32 %1 init %2
  %3 = scanned f32 result 0
  store b1[32*i0 + i1], %3
}
)";
  EXPECT_EQ(split(text, 8, 96), print_kernel(parsed(text)));
}

constexpr const char* kMaskedRows = R"(kernel (2 buffers) {
  outer i0: 3
  outer i1: 2
  outer i2: 12
  inner i3: 5
  %0 = index i0 + 2*i2
  %1 = index i3
  %2 = compare pred %0, %1 ge signed
  %3 = load f32 b0[120*i0 + 60*i1 + 5*i2 + i3]
  %4 = constant f32 1
  %5 = select f32 %2, %3, %4
  %6 = constant f32 0
  r0 = reduce add f32 %5 init %6
  %7 = reduced f32 r0 result 0
  %8 = subtract f32 %5, %7
  store b1[120*i0 + 60*i1 + 5*i2 + i3], %8
}
)";

TEST(SplitRows, MergedBlocks_KeepTheResults) {
  Kernel kernel = parsed(kMaskedRows);
  const std::vector<float> before = result(kernel, 360);
  ASSERT_EQ(split_rows(kernel, 72, 4), 3u);
  merge_first_loops(kernel, 3);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_EQ(result(kernel, 360), before);
  EXPECT_EQ(print_kernel(kernel), R"(kernel (2 buffers) {
  outer i0: 18
  outer i1: 4
  inner i2: 5
  %0 = modulo (i0) by 3
  %1 = quotient (i0) by 6
  %2 = index 2*i1 + 8*%0 + %1
  %3 = index i2
  %4 = compare pred %2, %3 ge signed
  %5 = load f32 b0[20*i0 + 5*i1 + i2]
  %6 = constant f32 1
  %7 = select f32 %4, %5, %6
  %8 = constant f32 0
  r0 = reduce add f32 %7 init %8
  %9 = reduced f32 r0 result 0
  %10 = subtract f32 %7, %9
  store b1[20*i0 + 5*i1 + i2], %10
}
)");
}

TEST(SplitRows, BlocksOfAllRowsOfALoop_KeepTheResults) {
  Kernel kernel = parsed(kMaskedRows);
  const std::vector<float> before = result(kernel, 360);
  ASSERT_EQ(split_rows(kernel, 72, 12), 3u);
  merge_first_loops(kernel, 3);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_EQ(kernel.loops[0].size, 6);
  EXPECT_EQ(kernel.loops[1].size, 12);
  EXPECT_EQ(result(kernel, 360), before);
}

TEST(SplitRows, OtherNumbersOfRows_ChangeNothing) {
  for (const auto& [rows, block] : {std::pair{36, 4}, std::pair{72, 5}, std::pair{360, 4}, std::pair{71, 1}}) {
    Kernel kernel = parsed(kMaskedRows);
    EXPECT_EQ(split_rows(kernel, rows, block), 0u) << rows;
    EXPECT_EQ(print_kernel(kernel), kMaskedRows);
  }
}

TEST(ReorderLoops, OtherOrder_KeepsTheResults) {
  Kernel kernel = parsed(kMaskedRows);
  const std::vector<float> before = result(kernel, 360);
  reorder_loops(kernel, {2, 0, 1, 3});
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_EQ(kernel.loops[0].size, 12);
  EXPECT_EQ(result(kernel, 360), before);
}

/// Returns the `size` bit patterns that a kernel writes to buffer 2, for rows of patterns in buffer 0 and an initial
/// value in buffer 1.
std::vector<uint16_t> reduced(const Kernel& kernel, std::vector<uint16_t> rows, uint16_t init, size_t size) {
  std::vector<uint16_t> inits = {init};
  std::vector<uint16_t> out(size, 0xa5a5);
  const std::array<std::span<std::byte>, 3> buffers = {std::as_writable_bytes(std::span(rows)),
                                                       std::as_writable_bytes(std::span(inits)),
                                                       std::as_writable_bytes(std::span(out))};
  const Status ran = evaluate_kernel(kernel, buffers);
  EXPECT_TRUE(ran.ok()) << ran.message();
  return out;
}

TEST(CompareAsIntegers, HasTheSameResults) {
  constexpr size_t kRows = 200;
  constexpr size_t kColumns = 70;
  std::mt19937 random(1);
  for (const char* type : {"f16", "bf16"}) {
    const uint16_t infinity = type[0] == 'f' ? 0x7c00 : 0x7f80;
    std::vector<uint16_t> rows;
    for (size_t row = 0; row < kRows; ++row) {
      const auto range = static_cast<uint16_t>(row % 4 == 0 ? infinity + 1 : row % 4 == 1 ? 2 : infinity);
      for (size_t i = 0; i < kColumns; ++i) {
        const auto sign = static_cast<uint16_t>(row % 3 == 0 ? 0 : row % 3 == 1 ? 0x8000 : random() % 2 << 15);
        rows.push_back(static_cast<uint16_t>((random() % range) | sign));
      }
      if (row % 7 == 6) rows.back() = static_cast<uint16_t>(infinity + 1 + random() % 9 + (random() % 2 << 15));
    }
    for (const char* combine : {"maximum", "minimum"}) {
      for (const char* init : {"identity", "%1"}) {
        const Kernel kernel =
            parsed(std::string("kernel (3 buffers) {\nouter i0: 200\ninner i1: 70\n%0 = load ") + type +
                   " b0[70*i0 + i1]\n%1 = load " + type + " b1[0]\nr0 = reduce " + combine + " " + type + " %0 init " +
                   init + "\n%2 = reduced " + type + " r0 result 0\n%3 = negate " + type + " %2\nstore b2[i0], %3\n}");
        Kernel changed = kernel;
        EXPECT_TRUE(compare_as_integers(changed, 64));
        EXPECT_TRUE(verify_kernel(changed).ok()) << print_kernel(changed);
        const std::vector<uint16_t> before = reduced(kernel, rows, 0x8000, kRows);
        const std::vector<uint16_t> after = reduced(changed, rows, 0x8000, kRows);
        for (size_t i = 0; i < kRows; ++i) {
          const auto is_nan = [&](uint16_t x) { return (x & 0x7fff) > infinity; };
          if (is_nan(before[i]) && is_nan(after[i])) continue;
          EXPECT_EQ(before[i], after[i]) << combine << " of " << type << ", row " << i;
        }
      }
    }
  }
}

TEST(CompareAsIntegers, OtherKernelsAreLeft) {
  const auto reduction = [](const std::string& load, const std::string& type, const std::string& combine) {
    return "kernel (2 buffers) {\n  outer i0: 20\n  inner i1: 70\n  %0 = load " + load +
           " b0[70*i0 + i1]\n  %1 = convert " + type + " %0\n  r0 = reduce " + combine + " " + type +
           (load == type ? " %0" : " %1") + " init identity\n  %2 = reduced " + type +
           " r0 result 0\n  store b1[i0], %2\n}\n";
  };
  for (const auto& text : {reduction("f16", "f32", "maximum"), reduction("f16", "f16", "add"),
                           reduction("f16", "f16", "maximum"), reduction("f32", "f32", "minimum")}) {
    Kernel kernel = parsed(text);
    const Kernel before = kernel;
    EXPECT_FALSE(compare_as_integers(kernel, 64)) << text;
    EXPECT_EQ(kernel, before);
  }
}

TEST(WidenProducts, ManyFactorsLoseNoDigits) {
  Kernel kernel = parsed(
      "kernel (4 buffers) {\nouter i0: 3\ninner i1: 10000\n%0 = load f32 b0[10000*i0 + i1]\n%1 = load f32 b1[0]\n"
      "r0 = reduce multiply f32 %0 init %1\nr1 = reduce add f32 %0 init identity\n%2 = reduced f32 r0 result 0\n"
      "%3 = negate f32 %2\nstore b2[i0], %3\n%4 = reduced f32 r1 result 0\nstore b3[i0], %4\n}");
  Kernel changed = kernel;
  ASSERT_TRUE(widen_products(changed));
  EXPECT_TRUE(verify_kernel(changed).ok()) << print_kernel(changed);
  EXPECT_EQ(changed.reductions[0].types[0], uint32_t{COLLET_TYPE_F64});
  EXPECT_EQ(changed.reductions[1].types[0], uint32_t{COLLET_TYPE_F32});
  EXPECT_FALSE(widen_products(changed)) << "a second time";
  std::vector<float> rows(30000, std::nextafterf(1, 2));
  std::vector<float> init = {-2};
  std::vector<float> products(3), sums(3);
  const std::array<std::span<std::byte>, 4> buffers = {
      std::as_writable_bytes(std::span(rows)), std::as_writable_bytes(std::span(init)),
      std::as_writable_bytes(std::span(products)), std::as_writable_bytes(std::span(sums))};
  const Status ran = evaluate_kernel(changed, buffers);
  ASSERT_TRUE(ran.ok()) << ran.message();
  for (const float x : products) EXPECT_FLOAT_EQ(x, static_cast<float>(2 * std::pow(double{rows[0]}, 10000)));
}

TEST(WidenProducts, OtherKernelsAreLeft) {
  const auto reduction = [](const std::string& size, const std::string& type, const std::string& combine) {
    return "kernel (2 buffers) {\n  inner i0: " + size + "\n  %0 = load " + type + " b0[i0]\n  r0 = reduce " + combine +
           " " + type + " %0 init identity\n  %1 = reduced " + type + " r0 result 0\n  store b1[0], %1\n}\n";
  };
  for (const auto& text : {reduction("2", "f32", "multiply"), reduction("65", "f64", "multiply"),
                           reduction("65", "s32", "multiply"), reduction("65", "f32", "add")}) {
    Kernel kernel = parsed(text);
    const Kernel before = kernel;
    EXPECT_FALSE(widen_products(kernel)) << text;
    EXPECT_EQ(kernel, before);
  }
  Kernel kernel = parsed(reduction("65", "c64", "multiply"));
  EXPECT_TRUE(widen_products(kernel));
  EXPECT_EQ(kernel.reductions[0].types[0], uint32_t{COLLET_TYPE_C128});
}

}  // namespace
}  // namespace collet::codegen
