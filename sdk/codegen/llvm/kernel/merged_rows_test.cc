// SPDX-License-Identifier: Apache-2.0
// Tests kernels whose short rows are merged: the generated code of the merged kernel and of the one for the rest must
// leave the same memory as the evaluator of the original kernel.

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_transform.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include "sdk/codegen/lower/merge_rows.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/processor.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

class MergedRows : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Widths, MergedRows, ::testing::Values(128, 256, 512));

/// Merges the rows of a kernel, runs the kernels that this makes, and compares. Returns whether the rows were merged.
/// Arrays of u16 have elements of type `stored`, if given.
bool compare(int vector_bits, const std::string& text, uint32_t stored = 0) {
  SCOPED_TRACE(text);
  Kernel kernel;
  const Status read = parse_kernel(text, kernel);
  EXPECT_TRUE(read.ok()) << read.message();
  collapse_loops(kernel);
  const Extents extents = extents_of(kernel);
  Graph graph;
  KernelPlan plan;
  plan.kernel = kernel;
  for (uint32_t i = 0; i < kernel.buffers; ++i)
    plan.buffers.push_back(graph.add_value(make_type(
        extents.types[i] == COLLET_TYPE_U16 && stored != 0 ? stored : extents.types[i], {extents.elements[i]})));
  KernelPlan rest;
  const bool merged = merge_rows(graph, plan, machine_of(vector_bits), rest);
  std::vector<FunctionSource> sources;
  std::vector<const KernelPlan*> plans;
  for (KernelPlan* p : {&plan, &rest}) {
    if (p->kernel.loops.empty()) continue;
    choose_lanes(p->kernel, machine_of(vector_bits));
    schedule_for(p->kernel, machine_of(vector_bits));
    const Status verified = verify_kernel(p->kernel);
    EXPECT_TRUE(verified.ok()) << verified.message() << "\n" << print_kernel(p->kernel);
    FunctionSource& f = sources.emplace_back();
    f.name = "kernel" + std::to_string(sources.size());
    f.body = p->kernel;
    plans.push_back(p);
  }
  std::unique_ptr<Jit> jit;
  EXPECT_TRUE(Jit::create(machine_of(vector_bits), jit).ok());
  std::unique_ptr<LoadedCode> code;
  const Status compiled = jit->compile(sources, false, code);
  EXPECT_TRUE(compiled.ok()) << compiled.message();
  Buffers expected = make_buffers(extents, Fill::kSmall, 3);
  Buffers actual = make_buffers(extents, Fill::kSmall, 3);
  EXPECT_TRUE(evaluate_kernel(kernel, expected.spans()).ok());
  for (size_t p = 0; p < plans.size(); ++p) {
    std::vector<char*> addresses;
    for (ValueId v : plans[p]->buffers) addresses.push_back(actual.addresses()[v]);
    auto* f = reinterpret_cast<KernelFunction>(code->find(sources[p].name));
    const int64_t iterations = plans[p]->kernel.loops[0].size;
    const int64_t middle = iterations / 2 / plans[p]->kernel.lanes * plans[p]->kernel.lanes;
    f(addresses.data(), 0, middle, 0);
    f(addresses.data(), middle, iterations, 0);
  }
  EXPECT_TRUE(actual.are_guards_unchanged());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(actual[i], expected[i])) << "buffer " << i << "\n" << print_kernel(plan.kernel);
  return merged;
}

std::string number(int64_t x) {
  return std::to_string(x);
}

TEST_P(MergedRows, InReverseOrder_OfAllLengths) {
  for (const char* type : {"f32", "u8", "bf16", "pred"}) {
    for (int64_t row = 2; row < 40; ++row) {
      const bool merged =
          compare(GetParam(), "kernel (2 buffers) {\nouter i0: 3\nouter i1: 401\nouter i2: " + number(row) +
                                  "\n%0 = load " + type + " b0[" + number(401 * row) + "*i0 - " + number(row) +
                                  "*i1 + i2 + " + number(400 * row) + "]\nstore b1[" + number(401 * row) + "*i0 + " +
                                  number(row) + "*i1 + i2], %0\n}");
      EXPECT_TRUE(merged || row != 3 || GetParam() == 128) << type;
    }
  }
}

TEST_P(MergedRows, OfRepeatedElements) {
  for (int64_t times : {2, 3, 5, 6, 7, 12}) {
    const std::string text = "kernel (2 buffers) {\nouter i0: 91\nouter i1: " + number(35 * times) +
                             "\n%0 = quotient (i1) by " + number(times) + "\n%1 = load s32 b0[35*i0 + %0]\nstore b1[" +
                             number(35 * times) + "*i0 + i1], %1\n}";
    EXPECT_TRUE(compare(GetParam(), text) || GetParam() < 512 || times == 12);
  }
}

TEST_P(MergedRows, WithValuesOfEachColumnAndRow) {
  const bool merged = compare(GetParam(), R"(kernel (5 buffers) {
    outer i0: 700
    outer i1: 3
    %0 = load u8 b0[3*i0 + i1]
    %1 = convert f32 %0
    %2 = load f32 b1[i1]
    %3 = load f32 b2[i0]
    %4 = subtract f32 %1, %2
    %5 = multiply f32 %4, %3
    %6 = index i0
    %7 = convert s32 %6
    %8 = load s32 b3[0]
    %9 = compare pred %7, %8 gt signed
    %10 = select f32 %9, %5, %1
    store b4[3*i0 + i1], %10
  })");
  EXPECT_TRUE(merged || GetParam() < 256);
}

/// Elements that are only moved are integers of the same width.
TEST_P(MergedRows, ThatAreMovedAsIntegers) {
  const bool merged = compare(GetParam(), R"(kernel (3 buffers) {
    outer i0: 700
    outer i1: 3
    %0 = load pred b0[3*i0 + i1]
    %1 = load u16 b1[i0]
    %2 = constant u16 0
    %3 = select u16 %0, %1, %2
    store b2[3*i0 + i1], %3
  })",
                              COLLET_TYPE_BF16);
  EXPECT_TRUE(merged || GetParam() < 256);
}

TEST_P(MergedRows, OfColumnsThatAreFarApart) {
  for (const char* type : {"f32", "u8", "bf16"}) {
    const bool merged =
        compare(GetParam(), std::string("kernel (2 buffers) {\nouter i0: 517\nouter i1: 3\n%0 = load ") + type +
                                " b0[i0 + 600*i1]\nstore b1[3*i0 + i1], %0\n}");
    EXPECT_TRUE(merged || GetParam() < 256);
  }
}

TEST_P(MergedRows, ThatAreStridedOrFarApart) {
  for (int64_t apart : {4, 9, 1000}) {
    for (const char* step : {"+ 1*i1", "+ 2*i1", "- 1*i1"}) {
      compare(GetParam(), "kernel (2 buffers) {\nouter i0: 517\nouter i1: 3\n%0 = load f32 b0[" + number(apart) +
                              "*i0 " + step + " + 2]\nstore b1[3*i0 + i1], %0\n}");
    }
  }
}

}  // namespace
}  // namespace collet::codegen
