// SPDX-License-Identifier: Apache-2.0
// Launch plans for grids, where they differ from those for processors.
#include <gtest/gtest.h>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/print.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

PlannedProgram planned(ProgramBuilder& b) {
  Target target;
  target.grid.warp = 32;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return program;
}

/// A loop that counts to ten, and says so where `is_known`.
std::string plan_of_loop(bool is_known) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle x = e.argument(COLLET_TYPE_F32, {100});
  const Handle zero = e.scalar(COLLET_TYPE_S32, 0);
  RegionBuilder& condition = b.region();
  const Handle at = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_F32, {100});
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {at, condition.scalar(COLLET_TYPE_S32, 10)},
                                  collet_compare_attrs{COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  const Handle i = body.argument(COLLET_TYPE_S32);
  const Handle y = body.argument(COLLET_TYPE_F32, {100});
  body.results({body.binary(COLLET_OP_ADD, i, body.scalar(COLLET_TYPE_S32, 1)), body.unary(COLLET_OP_COSINE, y)});
  collet_while_attrs attributes{};
  if (is_known) attributes = {11, 1, 0, 1};
  e.results({e.ops(COLLET_OP_WHILE, {zero, x}, {zero, x}, attributes, {&condition, &body})[1]});
  return print_launch_plan(planned(b).plan);
}

TEST(GridPlan, LoopWithKnownTrips_HasNoCondition) {
  const std::string known = plan_of_loop(true);
  EXPECT_NE(known.find("while 10 trips"), std::string::npos) << known;
  const std::string unknown = plan_of_loop(false);
  EXPECT_EQ(unknown.find("trips"), std::string::npos) << unknown;
  EXPECT_GT(unknown.size(), known.size()) << "the condition has a kernel";
}

TEST(GridPlan, LoopOverScalars_IsOneKernel) {
  ProgramBuilder b;
  RegionBuilder& e = b.entry();
  const Handle n = e.argument(COLLET_TYPE_S32);
  const Handle x = e.argument(COLLET_TYPE_F32);
  RegionBuilder& condition = b.region();
  const Handle left = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_F32);
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {left, condition.scalar(COLLET_TYPE_S32, 0)},
                                  collet_compare_attrs{COLLET_DIRECTION_GT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  const Handle i = body.argument(COLLET_TYPE_S32);
  const Handle y = body.argument(COLLET_TYPE_F32);
  body.results({body.binary(COLLET_OP_SUBTRACT, i, body.scalar(COLLET_TYPE_S32, 1)), body.unary(COLLET_OP_COSINE, y)});
  e.results({e.ops(COLLET_OP_WHILE, {n, x}, {n, x}, collet_while_attrs{}, {&condition, &body})[1]});
  const PlannedProgram program = planned(b);
  ASSERT_EQ(program.plan.steps.size(), 1U) << print_launch_plan(program.plan);
  EXPECT_EQ(program.plan.steps[0].kind, StepKind::kKernel);
}

}  // namespace
}  // namespace collet::codegen
