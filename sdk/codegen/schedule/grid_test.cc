// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/grid.h"

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sdk/codegen/schedule/grid_sort.h"
#include "sdk/codegen/schedule/pack_factor.h"

namespace collet::codegen {
namespace {

GridLimits limits() {
  GridLimits out;
  out.warp = 32;
  out.processors = 100;
  return out;
}

/// Parses a kernel and returns its schedule as text.
std::string schedule_of(const std::string& text) {
  Kernel kernel;
  const Status parsed = parse_kernel(text, kernel);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  const Status verified = verify_kernel(kernel);
  EXPECT_TRUE(verified.ok()) << verified.message();
  return print_schedule(schedule_grid(kernel, limits()).schedule);
}

TEST(GridSchedule, ElementwiseKernel_TakesAThreadForEachPoint) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 1000\n"
                        "  %0 = load f32 b0[i0]\n"
                        "  %1 = negate f32 %0\n"
                        "  store b1[i0], %1\n"
                        "}\n"),
            "a thread for each point of loops 0, 1 blocks of 256 threads");
}

TEST(GridSchedule, LargeElementwiseKernel_HasNoMoreBlocksThanTheMachineTakes) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 100000000\n"
                        "  %0 = load f32 b0[i0]\n"
                        "  store b1[i0], %0\n"
                        "}\n"),
            "a thread for each point of loops 0, 3200 blocks of 256 threads");
}

TEST(GridSchedule, Neighbours_AreReadTogetherWhereTheyAreAligned) {
  const auto lanes_of = [](const std::string& index) {
    Kernel kernel;
    const Status parsed = parse_kernel("kernel (2 buffers) {\n  outer i0: 10\n  outer i1: 64\n  %0 = load f16 b0[" +
                                           index + "]\n  store b1[64*i0 + i1], %0\n}\n",
                                       kernel);
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    return schedule_grid(kernel, limits()).kernel.lanes;
  };
  EXPECT_EQ(lanes_of("64*i0 + i1"), 8);
  EXPECT_EQ(lanes_of("66*i0 + i1"), 2);
  EXPECT_EQ(lanes_of("64*i0 + i1 + 4"), 4);
  EXPECT_EQ(lanes_of("64*i0 + i1 + 1"), 1);
  EXPECT_EQ(lanes_of("i0 + 10*i1"), 1);
  EXPECT_EQ(lanes_of("i0"), 8);
}

TEST(GridSchedule, ShortRows_TakeAWarpEach) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 4096\n"
                        "  inner i1: 100\n"
                        "  %0 = load f32 b0[100*i0 + i1]\n"
                        "  %1 = constant f32 0\n"
                        "  r0 = reduce add f32 %0 init %1\n"
                        "  %2 = reduced f32 r0 result 0\n"
                        "  store b1[i0], %2\n"
                        "}\n"),
            "rows, 32 threads each with 2 iterations, 1024 blocks of 128 threads");
}

TEST(GridSchedule, LongerRows_TakeABlockEachAndStayInRegisters) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 4096\n"
                        "  inner i1: 768\n"
                        "  %0 = load f32 b0[768*i0 + i1]\n"
                        "  %1 = constant f32 0\n"
                        "  r0 = reduce add f32 %0 init %1\n"
                        "  %2 = reduced f32 r0 result 0\n"
                        "  store b1[i0], %2\n"
                        "}\n"),
            "rows, 64 threads each with 3 iterations, 3200 blocks of 64 threads");
}

TEST(GridSchedule, Rows_AreReadInVectorsIfAllAccessesAreAligned) {
  const auto lanes_of = [](const std::string& type, const std::string& index) {
    Kernel kernel;
    const Status parsed = parse_kernel(
        "kernel (3 buffers) {\n"
        "  outer i0: 4096\n"
        "  inner i1: 1024\n"
        "  %0 = load " +
            type + " b0[" + index +
            "]\n"
            "  %1 = constant " +
            type +
            " 0\n"
            "  r0 = reduce maximum " +
            type +
            " %0 init %1\n"
            "  %2 = reduced " +
            type +
            " r0 result 0\n"
            "  %3 = subtract " +
            type +
            " %0, %2\n"
            "  store b1[1024*i0 + i1], %3\n"
            "  store b2[i0], %2\n"
            "}\n",
        kernel);
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    const GridKernel made = schedule_grid(kernel, limits());
    EXPECT_EQ(made.schedule.form, GridSchedule::Form::kRows);
    return made.kernel.lanes;
  };
  EXPECT_EQ(lanes_of("f32", "1024*i0 + i1"), 4);
  EXPECT_EQ(lanes_of("bf16", "1024*i0 + i1"), 8);
  EXPECT_EQ(lanes_of("f32", "1026*i0 + i1"), 2);
  EXPECT_EQ(lanes_of("f32", "1024*i0 + i1 + 1"), 1);
}

TEST(GridSchedule, LongRows_TakeABlockEach) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 64\n"
                        "  inner i1: 50000\n"
                        "  %0 = load f32 b0[50000*i0 + i1]\n"
                        "  %1 = constant f32 0\n"
                        "  r0 = reduce add f32 %0 init %1\n"
                        "  %2 = reduced f32 r0 result 0\n"
                        "  store b1[i0], %2\n"
                        "}\n"),
            "rows, 1024 threads each, 64 blocks of 1024 threads");
}

TEST(GridSchedule, ManyColumns_TakeAThreadEach) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 100000\n"
                        "  inner i1: 64\n"
                        "  %0 = load f32 b0[i0 + 100000*i1]\n"
                        "  %1 = constant f32 0\n"
                        "  r0 = reduce add f32 %0 init %1\n"
                        "  %2 = reduced f32 r0 result 0\n"
                        "  store b1[i0], %2\n"
                        "}\n"),
            "a thread for each point of loops 0, 98 blocks of 256 threads");
}

TEST(GridSchedule, SumOfProducts_IsComputedInTiles) {
  EXPECT_EQ(
      schedule_of("kernel (3 buffers) {\n"
                  "  outer i0: 12\n"
                  "  outer i1: 128\n"
                  "  outer i2: 130\n"
                  "  inner i3: 64\n"
                  "  %0 = load f32 b0[8192*i0 + 64*i1 + i3]\n"
                  "  %1 = load f32 b1[8320*i0 + 64*i2 + i3]\n"
                  "  %2 = multiply f32 %0, %1\n"
                  "  %3 = constant f32 0\n"
                  "  r0 = reduce add f32 %2 init %3 contract\n"
                  "  %4 = reduced f32 r0 result 0\n"
                  "  store b2[16640*i0 + 130*i1 + i2], %4\n"
                  "}\n"),
      "tiles 64 x 64 of 12 products 128 x 130 x 64, computed and computed 2 rounds of 16, 72 blocks of 256 threads");
}

TEST(GridSchedule, ProductsOfHalves_TakeMatrixInstructions) {
  EXPECT_EQ(
      schedule_of("kernel (3 buffers) {\n"
                  "  outer i0: 64\n"
                  "  outer i1: 64\n"
                  "  inner i2: 64\n"
                  "  %0 = load bf16 b0[64*i0 + i2]\n"
                  "  %1 = load bf16 b1[i1 + 64*i2]\n"
                  "  %2 = convert f32 %0\n"
                  "  %3 = convert f32 %1\n"
                  "  %4 = multiply f32 %2, %3\n"
                  "  %5 = constant f32 0\n"
                  "  r0 = reduce add f32 %4 init %5 contract\n"
                  "  %6 = reduced f32 r0 result 0\n"
                  "  %7 = convert bf16 %6\n"
                  "  store b2[64*i0 + i1], %7\n"
                  "}\n"),
      "tiles 64 x 64 of 1 products 64 x 64 x 64, copied and copied 4 rounds of 32, matrix instructions, 1 blocks of "
      "128 threads");
}

TEST(GridSchedule, Transpose_IsComputedInTiles) {
  EXPECT_EQ(schedule_of("kernel (2 buffers) {\n"
                        "  outer i0: 12\n"
                        "  outer i1: 100\n"
                        "  outer i2: 300\n"
                        "  %0 = load f32 b0[30000*i0 + i1 + 100*i2]\n"
                        "  store b1[30000*i0 + 300*i1 + i2], %0\n"
                        "}\n"),
            "transposed tiles of the last loop and loop 1, 480 blocks of 256 threads");
}

/// Returns a scatter as kernel text: it updates row by row, in the order of its indices.
std::string scatter(const std::string& index, const std::string& start = "b0[i0]") {
  return "kernel (3 buffers) sequential {\n"
         "  outer i0: 1000\n"
         "  outer i1: 768\n"
         "  %0 = load s32 " +
         start +
         "\n"
         "  %1 = start %0 limit 99\n"
         "  %2 = load f32 b1[768*i0 + i1]\n"
         "  update add b2 [" +
         index +
         "] f32 %2\n"
         "}\n";
}

TEST(GridSchedule, Scatter_TakesThreadsAlongWhatItsIndicesDoNotMove) {
  EXPECT_EQ(schedule_of(scatter("768*%1 + i1")), "a thread for each point of loops 1, 3 blocks of 256 threads");
}

TEST(GridSchedule, Updates_AreGroupedByWhatMeets) {
  const auto grouped = [](const std::string& text) {
    Kernel kernel;
    const Status parsed = parse_kernel(text, kernel);
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    UpdateSchedule updates;
    if (!choose_updates(kernel, updates)) return std::string("no");
    updates.part = UpdateSchedule::Part::kUpdates;
    return print_schedule(schedule_updates(kernel, updates, GridLimits{}).schedule);
  };
  // Rows have 768 elements, and all elements of a row are updated together, so only the row's number matters.
  EXPECT_EQ(grouped(scatter("768*%1 + i1")),
            "grouped updates of 1000 points and 768 beside, 3000 blocks of 256 threads");
  EXPECT_EQ(grouped(scatter("100*%1 + i1")),
            "grouped updates of 768000 points and 1 beside, 3000 blocks of 256 threads");
  // A start index that depends on no loop shifts all updates by the same distance.
  EXPECT_EQ(grouped(scatter("768*i0 + 768*%1 + i1", "b0[5]")), "no");
  EXPECT_EQ(schedule_of(scatter("768*i0 + 768*%1 + i1", "b0[5]")),
            "a thread for each point of loops 0, 1, 3000 blocks of 256 threads");
}

Kernel product(const std::string& type, int64_t rows, int64_t columns, int64_t depth, bool across) {
  const auto n = [](int64_t x) { return std::to_string(x); };
  const std::string b = across ? "i1 + " + n(columns) + "*i2" : n(depth) + "*i1 + i2";
  Kernel kernel;
  const Status parsed = parse_kernel(
      "kernel (3 buffers) {\n outer i0: " + n(rows) + "\n outer i1: " + n(columns) + "\n inner i2: " + n(depth) +
          "\n %0 = load " + type + " b0[" + n(depth) + "*i0 + i2]\n %1 = load " + type + " b1[" + b +
          "]\n %2 = convert f32 %0\n %3 = convert f32 %1\n %4 = multiply f32 %2, %3\n r0 = reduce add "
          "f32 %4 init identity tf32\n %5 = reduced f32 r0 result 0\n store b2[" +
          n(columns) + "*i0 + i1], %5\n}\n",
      kernel);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  return kernel;
}

TEST(GridSchedule, FewColumns_AreReducedInParts) {
  Kernel kernel;
  ASSERT_TRUE(parse_kernel("kernel (2 buffers) {\n outer i0: 32768\n inner i1: 4096\n %0 = load f32 b0[i0 + "
                           "32768*i1]\n r0 = reduce add f32 %0 init identity\n %1 = reduced f32 r0 result 0\n store "
                           "b1[i0], %1\n}\n",
                           kernel)
                  .ok());
  EXPECT_EQ(split_limits(kernel, limits()).parts, 8) << "100 * 2048 / 2 threads for 8192 times 4 columns";
  kernel.loops[1].size = 64;
  EXPECT_EQ(split_limits(kernel, limits()).parts, 4) << "of at least 16 terms";
}

TEST(GridSchedule, DepthOfFewTiles_IsSplit) {
  EXPECT_EQ(split_limits(product("f16", 128, 128, 4096, false), limits()).parts, 16);
  EXPECT_EQ(split_limits(product("f16", 2048, 2048, 4096, false), limits()).parts, 0);
  GridLimits with = limits();
  with.warpgroups = true;
  with.block_shared_bytes = 227 << 10;
  EXPECT_GT(split_limits(product("f16", 256, 128, 16384, false), with).parts, 1);
  EXPECT_EQ(split_limits(product("f16", 2048, 2048, 4096, false), with).parts, 0);
}

TEST(GridSchedule, FactorThatCannotBeCopied_IsPackedIfItIsMultipliedOften) {
  GridLimits with = limits();
  with.warpgroups = true;
  with.block_shared_bytes = 227 << 10;
  // Returns the dimensions of the arrays that are packed, one after the other.
  const auto packed = [&](const Kernel& kernel) {
    std::vector<Dims> out;
    KernelPlan plan, pack;
    plan.kernel = kernel;
    plan.buffers = {0, 1, 2};
    const MakeValue make = [&](uint32_t, Dims of) {
      out.push_back(std::move(of));
      return static_cast<ValueId>(2 + out.size());
    };
    while (pack_factor(plan, with, make, pack)) {
      EXPECT_TRUE(verify_kernel(pack.kernel).ok()) << print_kernel(pack.kernel);
      pack = {};
    }
    EXPECT_TRUE(verify_kernel(plan.kernel).ok());
    if (!out.empty()) {
      EXPECT_EQ(schedule_grid(plan.kernel, with).schedule.form, GridSchedule::Form::kWarpgroups);
    }
    return out;
  };
  EXPECT_EQ(packed(product("f32", 512, 384, 1024, true)), (std::vector<Dims>{{384, 1024}}));
  EXPECT_EQ(packed(product("f32", 512, 384, 1022, true)), (std::vector<Dims>{{512, 1024}, {384, 1024}}))
      << "rows are padded to 16 bytes";
  EXPECT_TRUE(packed(product("f32", 512, 384, 1024, false)).empty()) << "both can be copied";
  EXPECT_TRUE(packed(product("f16", 512, 384, 1024, true)).empty()) << "both can be copied";
  EXPECT_TRUE(packed(product("f32", 128, 384, 1024, true)).empty()) << "128 multiplications of each element";
}

/// Sorts a row by the launches of a grid's sort, simulating one pair after the other.
std::vector<int> sorted_by_network(std::vector<int> row) {
  const GridSort sort = schedule_sort({}, 1, static_cast<int64_t>(row.size()), 1, limits());
  const size_t pairs = size_t{1} << (sort.log_length - 1);
  const auto exchange = [&](size_t low, size_t high) {
    if (high < row.size() && row[high] < row[low]) std::swap(row[low], row[high]);
  };
  const auto mirror = [&](int power) {
    const size_t half = size_t{1} << (power - 1);
    for (size_t p = 0; p < pairs; ++p) {
      const size_t start = p / half * 2 * half;
      exchange(start + p % half, start + 2 * half - 1 - p % half);
    }
  };
  const auto distance = [&](int power) {
    const size_t apart = size_t{1} << power;
    for (size_t p = 0; p < pairs; ++p)
      exchange(p / apart * 2 * apart + p % apart, p / apart * 2 * apart + p % apart + apart);
  };
  for (const GridSortLaunch& launch : launches_of_sort(sort)) {
    switch (launch.part) {
      case GridSort::Part::kSegments:
        for (int power = 1; power <= sort.log_segment; ++power) {
          mirror(power);
          for (int d = power - 2; d >= 0; --d) distance(d);
        }
        break;
      case GridSort::Part::kMirror:
        mirror(static_cast<int>(launch.power));
        for (int i = 2; i <= launch.levels; ++i) distance(static_cast<int>(launch.power) - i);
        break;
      case GridSort::Part::kDistance:
        for (int i = 0; i < launch.levels; ++i) distance(static_cast<int>(launch.power) - i);
        break;
      case GridSort::Part::kMerge:
        for (int d = sort.log_segment - 1; d >= 0; --d) distance(d);
        break;
    }
  }
  return row;
}

TEST(GridSort, Launches_SortRowsOfAnyLength) {
  std::mt19937 random(1);
  for (const size_t length : {2, 3, 4, 5, 1023, 1024, 1025, 2047, 2049, 5000, 70000, 300000}) {
    std::vector<int> row(length);
    for (int& x : row) x = static_cast<int>(random() % 1000);
    std::vector<int> expected = row;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(sorted_by_network(row), expected) << length;
  }
}

}  // namespace
}  // namespace collet::codegen
