// SPDX-License-Identifier: Apache-2.0
// Tests which loops of a launch plan become one function, and which steps stay in the plan.
#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/launch/print.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

/// Writes a program with a loop over arrays of size * size elements. Each iteration applies the elementwise op
/// `opcode`, behind a matrix product if `dot`.
void write_loop(ProgramBuilder& b, int64_t size, bool dot, uint32_t opcode) {
  RegionBuilder& e = b.entry();
  Handle count = e.argument(COLLET_TYPE_S32);
  Handle x = e.argument(COLLET_TYPE_F32, {size, size});
  RegionBuilder& condition = b.region();
  Handle left = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_F32, {size, size});
  Handle zero = condition.scalar(COLLET_TYPE_S32, 0);
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {left, zero},
                                  collet_compare_attrs{COLLET_DIRECTION_GT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  Handle n = body.argument(COLLET_TYPE_S32);
  Handle y = body.argument(COLLET_TYPE_F32, {size, size});
  if (dot) {
    collet_dot_attrs a{};
    a.lhs_contracting = b.list({1});
    a.rhs_contracting = b.list({0});
    y = body.op(COLLET_OP_DOT, COLLET_TYPE_F32, {size, size}, {y, y}, a);
  }
  body.results({body.binary(COLLET_OP_SUBTRACT, n, body.scalar(COLLET_TYPE_S32, 1)), body.unary(opcode, y)});
  const auto out = e.ops(COLLET_OP_WHILE, {count, x}, {count, x}, collet_while_attrs{}, {&condition, &body});
  e.results({e.unary(COLLET_OP_NEGATE, out[1])});
}

PlannedProgram planned(int64_t size, bool dot, int vector_bits = 0, uint32_t opcode = COLLET_OP_COSINE) {
  ProgramBuilder b;
  write_loop(b, size, dot, opcode);
  Target target;
  if (vector_bits != 0) target.vector_bits = vector_bits;
  PlannedProgram program;
  const Status status = plan_program(b.finish(), target, CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  join_loops(program, Tuning());
  EXPECT_EQ(program.plan.functions.size(), program.sources.size());
  for (size_t i = 0; i < program.sources.size(); ++i) EXPECT_EQ(program.plan.functions[i], program.sources[i].name);
  return program;
}

const Step* loop_of(const StepList& steps) {
  for (const Step& s : steps) {
    if (s.kind == StepKind::kWhile) return &s;
  }
  return nullptr;
}

TEST(JoinLoops, OfShortTurns_BecomeAFunction) {
  const PlannedProgram program = planned(4, false);
  const Step* loop = loop_of(program.plan.steps);
  ASSERT_NE(loop, nullptr);
  ASSERT_NE(loop->loop, kNoFunction);
  EXPECT_TRUE(loop->children.empty());
  const auto* source = std::get_if<LoopSource>(&program.sources[loop->loop].body);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(program.sources.size(), 2U) << "the loop and what follows it; all else is in the loop";
  EXPECT_FALSE(source->functions.empty());
  EXPECT_NE(print_launch_plan(program.plan).find(" as loop"), std::string::npos);
  std::set<std::pair<uint32_t, uint64_t>> begins;
  for (const LoopSource::Region& r : source->regions) {
    EXPECT_LT(r.begin, r.end);
    EXPECT_EQ(r.written, r.slot >= program.plan.arguments && r.slot <= workspace_slot(program.plan));
    begins.insert({r.slot, r.begin});
  }
  EXPECT_EQ(begins.size(), source->regions.size());
  for (const LoopSource::Region& r : source->regions) {
    for (const LoopSource::Region& q : source->regions) {
      EXPECT_TRUE(&r == &q || r.slot != q.slot || r.end <= q.begin || q.end <= r.begin);
    }
  }
}

TEST(JoinLoops, KernelsOfShortArrays_HaveVectorsOfTheirLength) {
  struct Case {
    int64_t size;
    uint32_t opcode;
    int lanes;
  };
  // A few elements are negated one by one, because that is cheap.
  for (const Case& c : {Case{1, COLLET_OP_COSINE, 1}, Case{2, COLLET_OP_COSINE, 4}, Case{3, COLLET_OP_COSINE, 16},
                        Case{5, COLLET_OP_COSINE, 16}, Case{2, COLLET_OP_NEGATE, 1}, Case{3, COLLET_OP_NEGATE, 16}}) {
    const PlannedProgram program = planned(c.size, false, 512, c.opcode);
    const Step* loop = loop_of(program.plan.steps);
    ASSERT_NE(loop, nullptr);
    ASSERT_NE(loop->loop, kNoFunction);
    int widest = 1;
    for (const auto& [id, kernel] : std::get<LoopSource>(program.sources[loop->loop].body).functions) {
      widest = std::max(widest, kernel.lanes);
    }
    EXPECT_EQ(widest, c.lanes) << c.size;
  }
}

/// Writes a loop over arrays of 2 x `columns` and `columns` x 2 elements. Each iteration negates and transposes both.
void write_transposing_loop(ProgramBuilder& b, int64_t columns) {
  const Dims wide{2, columns};
  const Dims high{columns, 2};
  RegionBuilder& e = b.entry();
  const std::vector<Handle> state{e.argument(COLLET_TYPE_S32), e.argument(COLLET_TYPE_S32, wide),
                                  e.argument(COLLET_TYPE_S32, high)};
  RegionBuilder& condition = b.region();
  Handle left = condition.argument(COLLET_TYPE_S32);
  condition.argument(COLLET_TYPE_S32, wide);
  condition.argument(COLLET_TYPE_S32, high);
  Handle zero = condition.scalar(COLLET_TYPE_S32, 0);
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {left, zero},
                                  collet_compare_attrs{COLLET_DIRECTION_GT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& body = b.region();
  Handle n = body.argument(COLLET_TYPE_S32);
  Handle x = body.argument(COLLET_TYPE_S32, wide);
  Handle y = body.argument(COLLET_TYPE_S32, high);
  const auto turned = [&](Handle from, const Dims& dims) {
    return body.unary(COLLET_OP_NEGATE, body.op(COLLET_OP_TRANSPOSE, COLLET_TYPE_S32, dims, {from},
                                                collet_dimensions_attrs{b.list({1, 0})}));
  };
  body.results({body.binary(COLLET_OP_SUBTRACT, n, body.scalar(COLLET_TYPE_S32, 1)), turned(y, wide), turned(x, high)});
  const auto out = e.ops(COLLET_OP_WHILE, state, state, collet_while_attrs{}, {&condition, &body});
  e.results({out[1], out[2]});
}

TEST(JoinLoops, SquaresOfFewLanes_AreValidKernels) {
  bool squares = false;
  std::string kernels;
  for (const int64_t columns : {1, 2, 3, 10, 20, 40, 100}) {
    ProgramBuilder b;
    write_transposing_loop(b, columns);
    Target target;
    target.vector_bits = 512;
    PlannedProgram program;
    ASSERT_TRUE(plan_program(b.finish(), target, CompileOptions(), program).ok());
    join_loops(program, Tuning());
    for (const FunctionSource& f : program.sources) {
      const auto* loop = std::get_if<LoopSource>(&f.body);
      if (!loop) continue;
      for (const auto& [id, kernel] : loop->functions) {
        const Status verified = verify_kernel(kernel);
        EXPECT_TRUE(verified.ok()) << verified.message() << "\n" << print_kernel(kernel);
        kernels += "\n" + print_kernel(kernel);
        squares = squares || (kernel.lanes == 2 && kernel.loops.back().kind == LoopKind::kTranspose);
      }
    }
  }
  EXPECT_TRUE(squares) << "no kernel has squares of 2 x 2:" << kernels;
}

TEST(JoinLoops, OfLongTurnsOrProducts_AreLeft) {
  for (const auto& [size, dot] : {std::pair{int64_t{400}, false}, {int64_t{64}, true}}) {
    const PlannedProgram program = planned(size, dot);
    const Step* loop = loop_of(program.plan.steps);
    ASSERT_NE(loop, nullptr);
    EXPECT_EQ(loop->loop, kNoFunction);
    EXPECT_EQ(loop->children.size(), 2U);
    for (const FunctionSource& f : program.sources) EXPECT_FALSE(std::holds_alternative<LoopSource>(f.body));
  }
}

}  // namespace
}  // namespace collet::codegen
