// SPDX-License-Identifier: Apache-2.0
// Tests vectorised loops whose tests of indices are false at the edges of arrays only: generated code must leave the
// same memory as the evaluator of kernels, for all parts of a row.

#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include "sdk/codegen/kernel/passes.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class Interior : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, Interior, ::testing::Values(128, 256, 512));

/// Returns a kernel that reduces windows of `size` positions along rows of `columns` elements, `low` of them before a
/// row.
Kernel windows_of(const std::string& type, const std::string& combine, int64_t rows, int64_t columns, int64_t size,
                  int64_t low, int64_t stride) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  const int64_t results = (columns + stride - 1) / stride;
  const std::string init = combine == "maximum" ? "0xff800000" : "0";
  const std::string index = (stride == 1 ? "i1" : text(stride) + "*i1") + " + i2 - " + text(low);
  const std::string source =
      "kernel (2 buffers) {\nouter i0: " + text(rows) + "\nouter i1: " + text(results) + "\ninner i2: " + text(size) +
      "\n%0 = in_range (" + index + ") below " + text(columns) + "\n%1 = load " + type + " b0[" + text(columns) +
      "*i0 + " + index + "] if %0\n%2 = constant " + type + " " + init + "\nr0 = reduce " + combine + " " + type +
      " %1 init %2 if %0\n%3 = reduced " + type + " r0 result 0\nstore b1[" + text(results) + "*i0 + i1], %3\n}";
  Kernel kernel;
  const Status read = parse_kernel(source, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << "\n" << source;
  return kernel;
}

Kernel kernel_of(const std::string& text) {
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message() << "\n" << text;
  return kernel;
}

/// Returns a kernel that reduces windows of 3 by 3 positions of a `rows` by `columns` image with `channels` channels, which
/// are the lanes. The results lie `stride` positions apart.
Kernel depthwise(int64_t rows, int64_t columns, int64_t channels, int64_t stride) {
  const auto text = [](int64_t x) { return std::to_string(x); };
  const int64_t row = columns * channels;
  const int64_t results = (columns + stride - 1) / stride;
  const auto index = [&](const char* outer, const char* inner) {
    return (stride == 1 ? outer : text(stride) + "*" + outer) + " + " + inner + " - 1";
  };
  return kernel_of(
      "kernel (3 buffers) {\nouter i0: " + text((rows + stride - 1) / stride) + "\nouter i1: " + text(results) +
      "\nouter i2: " + text(channels) + "\ninner i3: 3\ninner i4: 3\n%0 = in_range (" + index("i0", "i3") + ") below " +
      text(rows) + "\n%1 = in_range (" + index("i1", "i4") + ") below " + text(columns) +
      "\n%2 = and pred %0, %1\n%3 = load f32 b0[" + text(stride * row) + "*i0 + " + text(stride * channels) +
      "*i1 + i2 + " + text(row) + "*i3 + " + text(channels) + "*i4 - " + text(row + channels) +
      "] if %2\n%4 = load f32 b1[i2 + " + text(3 * channels) + "*i3 + " + text(channels) +
      "*i4]\n%5 = multiply f32 %3, %4\n%6 = constant f32 0\nr0 = reduce add f32 %5 init %6 contract" +
      "\n%7 = reduced f32 r0 result 0\nstore b2[" + text(results * channels) + "*i0 + " + text(channels) +
      "*i1 + i2], %7\n}");
}

void compare(int vector_bits, std::vector<std::pair<std::string, Kernel>> kernels) {
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  std::vector<KernelCase> cases;
  for (auto& [name, kernel] : kernels) {
    choose_lanes(kernel, machine_of(vector_bits));
    cases.push_back({name, std::move(kernel), Fill::kSmall, {}});
  }
  compare_with_evaluator(*jit, cases);
}

TEST_P(Interior, OfWindows_HasTheSameResults) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const int64_t columns : {1, 15, 16, 33, 64, 79, 127, 128, 129, 200}) {
    for (const int64_t size : {2, 3, 5, 20}) {
      for (const int64_t low : {int64_t{0}, int64_t{1}, size - 1}) {
        for (const int64_t stride : {1, 2}) {
          const std::string name = std::to_string(columns) + " by " + std::to_string(size) + " from -" +
                                   std::to_string(low) + ", stride " + std::to_string(stride);
          kernels.emplace_back("sum " + name, windows_of("s32", "add", 3, columns, size, low, stride));
          kernels.emplace_back("maximum " + name, windows_of("f32", "maximum", 1, columns, size, low, stride));
        }
      }
    }
  }
  compare(GetParam(), std::move(kernels));
}

TEST_P(Interior, OfInterleavedRows_HasTheSameResults) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const int64_t rows : {3, 5, 8, 24}) {
    for (const int64_t columns : {3, 6, 7, 32}) {
      for (const int64_t channels : {16, 21}) {
        for (const int64_t stride : {1, 2}) {
          const std::string name =
              std::to_string(rows) + "x" + std::to_string(columns) + "x" + std::to_string(channels);
          kernels.emplace_back(name + " by " + std::to_string(stride), depthwise(rows, columns, channels, stride));
        }
      }
    }
  }
  if (GetParam() > 128) {
    std::unique_ptr<Jit> jit;
    ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](auto kernel) {
      choose_lanes(kernel.second, machine_of(GetParam()));
      schedule_for(kernel.second, jit->target());
      const KernelPasses passes(kernel.second);
      return passes.row_unroll() > 1 && passes.side_unroll() > 1;
    }));
  }
  compare(GetParam(), std::move(kernels));
}

TEST_P(Interior, OfOtherIndices_HasTheSameResults) {
  compare(GetParam(), {{"reversed", kernel_of(R"(kernel (2 buffers) {
outer i0: 5
outer i1: 203
%0 = in_range (- i1 + 200) below 198
%1 = load f32 b0[198*i0 - i1 + 200] if %0
store b1[203*i0 + i1], %1
})")},
                       {"of two loops", kernel_of(R"(kernel (2 buffers) {
outer i0: 4
outer i1: 300
%0 = in_range (3*i0 + i1 - 5) below 290
%1 = load f32 b0[3*i0 + i1 - 5] if %0
store b1[300*i0 + i1], %1
})")},
                       {"concatenation", kernel_of(R"(kernel (3 buffers) {
outer i0: 4
outer i1: 400
%0 = in_range (i1) below 30
%1 = in_range (i1 - 30) below 370
%2 = load f32 b0[30*i0 + i1] if %0
%3 = load f32 b1[370*i0 + i1 - 30] if %1
%4 = select f32 %0, %2, %3
store b2[400*i0 + i1], %4
})")}});
}

}  // namespace
}  // namespace collet::codegen
