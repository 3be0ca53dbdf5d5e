// SPDX-License-Identifier: Apache-2.0
// Tests loads that are transposed in registers or strided: generated code must leave the same memory as the evaluator
// of kernels, for all types, for full and partial squares, and for bodies that are unrolled or loops.

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_transform.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include <array>

#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Squares : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Squares, ::testing::Values(128, 256, 512));

Kernel kernel_of(const std::string& text) {
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << "\n" << text;
  return kernel;
}

/// Returns a kernel that computes y[j, i] = x[i, j] for `batches` matrices of `rows` times `columns` elements.
Kernel transpose_of(const std::string& type, int64_t batches, int64_t rows, int64_t columns) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  return kernel_of("kernel (2 buffers) {\nouter i0: " + text(batches) + "\nouter i1: " + text(columns) +
                   "\nouter i2: " + text(rows) + "\n%0 = load " + type + " b0[" + text(rows * columns) + "*i0 + i1 + " +
                   text(columns) + "*i2]\nstore b1[" + text(rows * columns) + "*i0 + " + text(rows) +
                   "*i1 + i2], %0\n}");
}

void compare(int vector_bits, std::vector<std::pair<std::string, Kernel>> kernels, size_t least) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  std::vector<KernelCase> cases;
  size_t transposing = 0;
  for (auto& [name, kernel] : kernels) {
    collapse_loops(kernel);
    choose_lanes(kernel, machine_of(vector_bits));
    const Status verified = verify_kernel(kernel);
    ASSERT_TRUE(verified.ok()) << verified.message() << "\n" << print_kernel(kernel);
    transposing += transposing_loop(kernel) < kernel.loops.size() ? 1 : 0;
    cases.push_back({name, std::move(kernel), Fill::kSmall, {}});
  }
  EXPECT_GE(transposing, least);
  compare_with_evaluator(*jit, cases);
}

TEST_P(Squares, OfAllTypes_AreTransposed) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    const std::string name = collet_type_name(type);
    Kernel kernel;
    if (!parse_kernel("kernel (1 buffer) {\n%0 = load " + name + " b0[0]\n}", kernel).ok()) continue;
    kernels.emplace_back(name, transpose_of(name, 1, 33, 70));
    kernels.emplace_back(name + ", moved", transpose_of(name, 1, 33, 70));
    move_as_integers(kernels.back().second);
  }
  compare(GetParam(), std::move(kernels), 30);
}

TEST_P(Squares, OfAllSizes_AreTransposed) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const char* type : {"u8", "f32", "f64"}) {
    for (int64_t rows : {16, 17, 64, 75}) {
      for (int64_t columns : {2, 3, 7, 16, 40, 65}) {
        for (int64_t batches : {1, 9}) kernels.emplace_back(type, transpose_of(type, batches, rows, columns));
      }
    }
  }
  compare(GetParam(), std::move(kernels), 140);
}

TEST_P(Squares, BesideOtherLoads_AreTransposed) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  kernels.emplace_back("with a load along the lanes, a start and a mask", kernel_of(R"(kernel (5 buffers) {
    outer i0: 9
    outer i1: 21
    outer i2: 35
    %0 = load s32 b0[i0]
    %1 = start %0 limit 5
    %2 = load f32 b1[800*i0 + 35*i1 + i2]
    %3 = load f32 b2[i1 + 21*i2 + 7*%1 + 3]
    %4 = in_range (i1 - i2) below 9
    %5 = load f32 b3[i1 + 40*i2] if %4
    %6 = add f32 %2, %3
    %7 = subtract f32 %6, %5
    store b4[735*i0 + 35*i1 + i2], %7 if %4
  })"));
  for (const int there : {70, 21, 1, 0}) {
    kernels.emplace_back("rows that are masked", kernel_of(R"(kernel (2 buffers) {
      outer i0: 2
      outer i1: 35
      outer i2: 50
      %0 = in_range (50*i0 + i2) below )" + std::to_string(there) +
                                                           R"(
      %1 = load f32 b0[1750*i0 + i1 + 35*i2] if %0
      store b1[1750*i0 + 50*i1 + i2], %1
    })"));
  }
  kernels.emplace_back("backwards", kernel_of(R"(kernel (2 buffers) {
    outer i0: 37
    outer i1: 50
    %0 = load s16 b0[i0 - 40*i1 + 2000]
    store b1[50*i0 + i1], %0
  })"));
  std::string text = "kernel (3 buffers) {\nouter i0: 37\nouter i1: 50\n%0 = load f32 b0[i0 + 37*i1]\n";
  text += "%1 = load f32 b1[50*i0 + i1]\n%2 = add f32 %0, %1\n";
  int last = 2;
  for (; last < 200; ++last) {
    const std::string next = "%" + std::to_string(last + 1);
    text += next + " = " + (last % 2 == 0 ? "subtract" : "add") + " f32 %" + std::to_string(last) + ", %" +
            std::to_string(last % 3 == 0 ? 0 : 1) + "\n";
  }
  text += "store b2[50*i0 + i1], %" + std::to_string(last) + "\n}";
  kernels.emplace_back("long", kernel_of(text));
  compare(GetParam(), std::move(kernels), 7);
}

TEST_P(Squares, LanesApart_AreReadAndWritten) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const char* type : {"u8", "s16", "bf16", "f32", "f64", "c64"}) {
    for (const int64_t step : {2, 3, 4, 5, 90}) {
      for (const char* mask : {"", " if %0"}) {
        for (const bool back : {false, true}) {
          const std::string n = std::to_string(step);
          const std::string read = back ? "-" + n + "*i0 + " + std::to_string(step * 76) : n + "*i0";
          const std::string head = "kernel (3 buffers) {\nouter i0: 77\n%0 = in_range (i0 - 3) below 70\n%1 = load ";
          kernels.emplace_back(
              type, kernel_of(head + type + " b0[" + read + "]" + mask + "\n%2 = load " + type + " b1[" + n +
                              "*i0 + 1]\n%3 = add " + type + " %1, %2\nstore b2[" + n + "*i0], %3" + mask + "\n}"));
        }
      }
    }
  }
  compare(GetParam(), std::move(kernels), 0);
}

TEST_P(Squares, OfRowsFarApart_AreTransposed) {
  compare(GetParam(),
          {{"few squares", transpose_of("f32", 1, 21, 1040)},
           {"squares that follow each other", transpose_of("f32", 1, 21, 2048)},
           {"of matrices", transpose_of("s16", 2, 37, 2560)}},
          3);
}

/// Returns a kernel that exchanges the first two of three dimensions, the second in reverse.
Kernel rotation_of(const std::string& type, int64_t rows, int64_t columns, int64_t channels) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  return kernel_of("kernel (2 buffers) {\nouter i0: " + text(columns) + "\nouter i1: " + text(rows) +
                   "\nouter i2: " + text(channels) + "\n%0 = load " + type + " b0[" + text(columns * channels) +
                   "*i1 - " + text(channels) + "*i0 + i2 + " + text((columns - 1) * channels) + "]\nstore b1[" +
                   text(rows * channels) + "*i0 + " + text(channels) + "*i1 + i2], %0\n}");
}

TEST_P(Squares, OfShortRows_AreTiled) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const char* type : {"f32", "u8", "bf16", "c64", "f64"}) {
    for (const auto& [rows, columns, channels] :
         {std::array<int64_t, 3>{64, 512, 3}, {100, 440, 3}, {70, 600, 2}, {65, 403, 3}, {64, 700, 5}}) {
      kernels.emplace_back(type, rotation_of(type, rows, columns, channels));
    }
  }
  compare(GetParam(), std::move(kernels), 0);
}

TEST(Squares, ShortRowsFarApart_AreTiled) {
  Kernel kernel = rotation_of("f32", 64, 512, 3);
  choose_lanes(kernel, machine_of(512));
  ASSERT_EQ(kernel.loops.size(), 4U) << print_kernel(kernel);
  EXPECT_EQ(kernel.loops[0].size, 64);
  EXPECT_EQ(kernel.loops[1].size, 64);
  EXPECT_EQ(kernel.loops[2].size, 8);
  EXPECT_EQ(kernel.lane_loop, 3U);
  EXPECT_EQ(kernel.lanes, 4);
}

TEST_P(Squares, OfGatheredColumns_ShareTheirPositions) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const char* type : {"f32", "u8", "bf16", "c64", "s64"}) {
    for (const int64_t rows : {16, 19, 33}) {
      for (const int64_t columns : {5, 16, 70}) {
        const std::string size = std::to_string(columns);
        kernels.emplace_back(
            type, kernel_of("kernel (3 buffers) {\nouter i0: " + std::to_string(rows) + "\nouter i1: " + size +
                            "\n%0 = load s32 b0[i1]\n%1 = start %0 limit 29\n%2 = load " + type +
                            " b1[30*i0 + %1]\nstore b2[" + size + "*i0 + i1], %2\n}"));
      }
    }
  }
  compare(GetParam(), std::move(kernels), 0);
}

TEST(Squares, LoopThatOthersCannotReplace_StaysFirst) {
  Kernel kernel = transpose_of("f32", 40, 64, 64);
  kernel.in_parts = true;
  choose_lanes(kernel, machine_of(256));
  EXPECT_EQ(kernel.loops[0].size, 40);
  EXPECT_EQ(transposing_loop(kernel), 3U);
}

// Consecutive iterations should write neighbouring results: the loop over lanes is inside the loop over the squares
// along the other side.
TEST(Squares, ThatFillASide_GoInTheOrderOfTheResults) {
  Kernel kernel = transpose_of("f32", 1, 96, 64);
  collapse_loops(kernel);
  choose_lanes(kernel, machine_of(256));
  ASSERT_EQ(kernel.loops.size(), 3U);
  EXPECT_EQ(kernel.loops[0].size * kernel.loops[2].size, kernel.loops[1].size == 64 ? 96 : 64);
  EXPECT_EQ(kernel.loops[2].size, kernel.lanes);
  EXPECT_EQ(kernel.lane_loop, 1U);
  EXPECT_EQ(kernel.stores[0].index.coefficient(1), 1);
  EXPECT_EQ(transposing_loop(kernel), 2U);
}

// If squares do not fill a side, the order of loops follows the rows that are read.
TEST(Squares, ThatDoNotFillASide_GoInTheOrderOfTheRows) {
  Kernel kernel = transpose_of("f32", 1, 65, 67);
  collapse_loops(kernel);
  choose_lanes(kernel, machine_of(256));
  EXPECT_EQ(kernel.loops.size(), 2U);
  EXPECT_EQ(kernel.lane_loop, 0U);
}

}  // namespace
}  // namespace collet::codegen
