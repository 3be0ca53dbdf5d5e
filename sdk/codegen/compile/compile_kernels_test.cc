// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_contraction.h>
#include <collet/codegen/kernel_evaluate.h>
#include <collet/codegen/kernel_program.h>
#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

KernelProgram compiled(ProgramBuilder& program, const Target& target, const CompileOptions& options = {}) {
  KernelProgram out;
  const Status status = compile_kernels(program.finish(), target, options, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

// y = x - maximum of the rows of x, of 3 x 5 elements.
template <typename T>
void subtract_maximum(ProgramBuilder& program, uint32_t type) {
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(type, {3, 5});
  const Handle m = entry.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, entry.scalar(type, T(-1000)), {1});
  entry.results({entry.binary(COLLET_OP_SUBTRACT, x, entry.broadcast(m, {3, 5}, {0}))});
}

// Runs the kernels of a program of one argument and one result.
template <typename T>
std::vector<T> run(const KernelProgram& program, std::vector<T> x, size_t results) {
  std::vector<T> y(results);
  std::vector<std::byte> workspace(program.plan.workspace_bytes);
  std::vector<char> constants = program.plan.constants;
  const std::span<std::byte> slots[] = {std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y)),
                                        workspace, std::as_writable_bytes(std::span(constants))};
  for (const Step& step : program.plan.steps) {
    EXPECT_EQ(step.kind, StepKind::kKernel);
    const Kernel& kernel = program.kernels[step.kernel.function].kernel;
    std::vector<std::span<std::byte>> buffers;
    for (uint32_t i = 0; i < kernel.buffers; ++i) {
      const Place& place = program.plan.places[step.first_place + i];
      buffers.push_back(slots[place.slot].subspan(place.offset));
    }
    const Status status = evaluate_kernel(kernel, buffers);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return y;
}

// Registers that are narrower than an element hold one: a scalar machine computes f64, too.
TEST(CompileKernels, MakesRightKernelsForMachinesOfAnyWidth) {
  for (const int lanes : {1, 2, 4, 16}) {
    SCOPED_TRACE(lanes);
    ProgramBuilder floats, doubles;
    subtract_maximum<float>(floats, COLLET_TYPE_F32);
    subtract_maximum<double>(doubles, COLLET_TYPE_F64);
    for (ProgramBuilder* const one : {&floats, &doubles}) {
      const KernelProgram program = compiled(*one, vector_machine(lanes));
      ASSERT_FALSE(program.kernels.empty());
      for (const PlannedKernel& planned : program.kernels) {
        const Status status = verify_kernel(planned.kernel);
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_GE(planned.kernel.lanes, 1);
        EXPECT_LE(planned.kernel.lanes, lanes == 1 ? 1 : 64);
        EXPECT_FALSE(planned.name.empty());
        EXPECT_NE(planned.ops.find("reduce"), std::string::npos) << planned.ops;
        Kernel again;
        ASSERT_TRUE(parse_kernel(print_kernel(planned.kernel), again).ok());
        EXPECT_EQ(again, planned.kernel);
      }
      if (one == &floats) {
        const std::vector<float> y = run<float>(program, {1, 2, 3, 4, 5, 9, 8, 7, 6, 5, 0, 0, 1, 0, 0}, 15);
        EXPECT_EQ(y, (std::vector<float>{-4, -3, -2, -1, 0, 0, -1, -2, -3, -4, -1, -1, 0, -1, -1}));
      }
    }
  }
}

// A product of matrices is a kernel, whatever its size, and says what it sums.
TEST(CompileKernels, LeavesProductsAsKernels) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {256, 128});
  const Handle w = entry.argument(COLLET_TYPE_F32, {128, 64});
  collet_dot_attrs attributes{};
  attributes.lhs_contracting = program.list({1});
  attributes.rhs_contracting = program.list({0});
  entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {256, 64}, {x, w}, attributes)});
  const KernelProgram made = compiled(program, vector_machine(8));
  ASSERT_EQ(made.kernels.size(), 1u);
  const auto product = find_contraction(made.kernels[0].kernel);
  ASSERT_TRUE(product);
  EXPECT_NE(product->rows, 0u);
  EXPECT_NE(product->columns, 0u);
  EXPECT_NE(product->depth, 0u);
}

/// Runs loop `loop` from its end to its begin.
void reverse(Kernel& kernel, size_t loop) {
  const auto change = [&](Index& index) {
    const int64_t by = index.coefficient(loop);
    if (by == 0) return;
    index.constant += by * (kernel.loops[loop].size - 1);
    index.coefficients[loop] = -by;
  };
  for (Expr& e : kernel.exprs) change(e.index);
  for (Store& s : kernel.stores) change(s.index);
  for (Update& u : kernel.updates) change(u.index);
}

/// Compiles for a grid, and checks that the parallel loops of each kernel may run in another order.
KernelProgram compiled_for_grid(ProgramBuilder& program, std::vector<float> x, size_t results) {
  KernelProgram made = compiled(program, grid_machine(4, 32768));
  KernelProgram other = made;
  for (PlannedKernel& one : other.kernels) {
    EXPECT_TRUE(one.grid);
    if (!one.grid) return made;
    EXPECT_GE(one.grid->blocks, 1u);
    EXPECT_GE(one.grid->block_threads, 1u);
    EXPECT_LE(one.grid->block_threads, 256u);
    EXPECT_LE(one.kernel.lanes, 1);
    for (size_t l = 0; l < one.kernel.loops.size(); ++l) {
      if ((one.grid->parallel >> l & 1) == 0) continue;
      EXPECT_LT(l, one.kernel.outer);
      reverse(one.kernel, l);
    }
  }
  EXPECT_EQ(run<float>(made, x, results), run<float>(other, x, results));
  return made;
}

std::vector<float> numbers(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i * 37 % 101) / 16 - 3;
  return out;
}

TEST(CompileKernels, SaysWhatTheThreadsOfAGridShare_Rows) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {40, 600});
  const Handle m =
      entry.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, entry.scalar(COLLET_TYPE_F32, -1e9F), {1});
  entry.results({entry.binary(COLLET_OP_SUBTRACT, x, entry.broadcast(m, {40, 600}, {0}))});
  const KernelProgram made = compiled_for_grid(program, numbers(40 * 600), 40 * 600);
  ASSERT_EQ(made.kernels.size(), 1u);
  const KernelGrid& grid = *made.kernels[0].grid;
  EXPECT_EQ(grid.form, KernelGrid::Form::kRows);
  EXPECT_EQ(grid.parallel, 1u);
  EXPECT_GE(grid.group, 32);
  EXPECT_NE(print_grid(grid).find("rows of loops 0, "), std::string::npos) << print_grid(grid);
}

TEST(CompileKernels, SaysWhatTheThreadsOfAGridShare_Points) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {40, 60});
  entry.results({entry.unary(COLLET_OP_NEGATE, x)});
  const KernelProgram made = compiled_for_grid(program, numbers(40 * 60), 40 * 60);
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_EQ(made.kernels[0].grid->form, KernelGrid::Form::kPoints);
  EXPECT_EQ(made.kernels[0].grid->parallel, 1u);
}

TEST(CompileKernels, SaysWhatTheThreadsOfAGridShare_Tiles) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {192, 128});
  collet_dot_attrs attributes{};
  attributes.lhs_contracting = program.list({1});
  attributes.rhs_contracting = program.list({1});
  entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {192, 192}, {x, x}, attributes)});
  const KernelProgram made = compiled_for_grid(program, numbers(192 * 128), 192 * 192);
  for (const PlannedKernel& one : made.kernels) {
    if (one.grid->form != KernelGrid::Form::kTiles) continue;
    const KernelGrid::Product& product = one.grid->product;
    const auto contraction = find_contraction(one.kernel);
    ASSERT_TRUE(contraction);
    EXPECT_EQ(product.a.loops, contraction->rows);
    EXPECT_EQ(product.b.loops, contraction->columns);
    EXPECT_EQ(product.a.depth_loops, contraction->depth);
    EXPECT_EQ(product.rows / product.thread_rows * (product.columns / product.thread_columns),
              static_cast<int>(one.grid->block_threads));
    EXPECT_GT(product.round, 0);
    return;
  }
  ADD_FAILURE() << "no product has tiles";
}

TEST(CompileKernels, RefusesTargetsWhosePlansHaveOtherSteps) {
  KernelProgram out;
  for (const bool has_grid : {false, true}) {
    ProgramBuilder program;
    subtract_maximum<float>(program, COLLET_TYPE_F32);
    Target target = has_grid ? grid_machine(4, 32768) : vector_machine(8);
    target.routines = !has_grid;
    target.grid.neutral = false;
    const Status status = compile_kernels(program.finish(), target, {}, out);
    EXPECT_EQ(status.code(), has_grid ? COLLET_UNIMPLEMENTED : COLLET_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace collet::codegen
