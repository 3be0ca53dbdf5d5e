// SPDX-License-Identifier: Apache-2.0
// Compares the stages that docs/code_generation.md prints for a softmax with the stages that the compiler makes.
#include <collet/program.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

PlannedProgram planned_softmax() {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {6, 20});
  const Handle lowest = entry.scalar(COLLET_TYPE_F32, -std::numeric_limits<float>::infinity());
  const Handle m = entry.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, lowest, {1});
  const Handle d = entry.binary(COLLET_OP_SUBTRACT, x, entry.broadcast(m, {6, 20}, {0}));
  const Handle e = entry.unary(COLLET_OP_EXPONENTIAL, d);
  const Handle zero = entry.scalar(COLLET_TYPE_F32, 0.0f);
  const Handle s = entry.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, e, zero, {1});
  entry.results({entry.binary(COLLET_OP_DIVIDE, e, entry.broadcast(s, {6, 20}, {0}))});
  Target target;
  target.vector_bits = 256;
  CompileOptions options;
  options.keep_artifacts = true;
  options.verify = true;
  PlannedProgram planned;
  const Status status = plan_program(program.finish(), target, options, planned);
  EXPECT_TRUE(status.ok()) << status.message();
  return planned;
}

TEST(Stages, OfASoftmax_AreAsTheGuideShowsThem) {
  const PlannedProgram planned = planned_softmax();
  std::ifstream file("docs/code_generation.md");
  const std::string guide(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(planned.stages.size(), 4u);
  for (const auto& [name, text] : planned.stages) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("//")) continue;  // the name of the kernel, which the guide leaves out
      EXPECT_NE(guide.find(line), std::string::npos) << name << ": " << line;
    }
  }
}

std::string kernels_of(ProgramBuilder& program) {
  Target target;
  target.vector_bits = 256;
  CompileOptions options;
  options.keep_artifacts = true;
  PlannedProgram planned;
  EXPECT_TRUE(plan_program(program.finish(), target, options, planned).ok());
  for (const auto& [name, text] : planned.stages) {
    if (name == "kernels.txt") return text;
  }
  return {};
}

TEST(Stages, OfAKernel_NameTheStepsThatChangedIt) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {64, 3});
  entry.results({entry.unary(COLLET_OP_NEGATE, x)});
  const std::string text = kernels_of(program);
  EXPECT_TRUE(text.starts_with("// pipeline: processor\n")) << text;
  EXPECT_NE(text.find("//   steps: collapse_loops, choose_lanes\n"), std::string::npos) << text;
}

TEST(Stages, OfASumOfProducts_SayWhyNoMicroKernelComputesIt) {
  const auto text_of = [](int64_t rows, int64_t depth, int64_t columns) {
    ProgramBuilder program;
    RegionBuilder& entry = program.entry();
    const Handle a = entry.argument(COLLET_TYPE_F32, {rows, depth});
    const Handle b = entry.argument(COLLET_TYPE_F32, {depth, columns});
    collet_dot_attrs dot{};
    dot.lhs_contracting = program.list({1});
    dot.rhs_contracting = program.list({0});
    entry.results({entry.op(COLLET_OP_DOT, COLLET_TYPE_F32, {rows, columns}, {a, b}, dot)});
    return kernels_of(program);
  };
  EXPECT_NE(text_of(40, 40, 1).find("//   no micro-kernel: it has one row, and its other factor would be packed\n"),
            std::string::npos);
  EXPECT_NE(text_of(40, 2, 40).find("//   no micro-kernel: its depth is small\n"), std::string::npos);
  EXPECT_EQ(text_of(128, 128, 128).find("no micro-kernel"), std::string::npos);
  for (const int64_t columns : {2, 3}) EXPECT_EQ(text_of(400, 112, columns).find("no micro-kernel"), std::string::npos);
}

/// As argmax, of which only the place is used.
TEST(Stages, OfAReductionWithAnUnusedResult_DoNotStoreIt) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {64, 5});
  const Handle places = entry.argument(COLLET_TYPE_S32, {64, 5});
  RegionBuilder& body = program.region();
  const Handle a = body.argument(COLLET_TYPE_F32), i = body.argument(COLLET_TYPE_S32);
  const Handle b = body.argument(COLLET_TYPE_F32), j = body.argument(COLLET_TYPE_S32);
  body.results({body.binary(COLLET_OP_MAXIMUM, a, b), body.binary(COLLET_OP_MINIMUM, i, j)});
  collet_dimensions_attrs attrs{};
  attrs.dimensions = program.list({1});
  const std::vector<Handle> both =
      entry.ops(COLLET_OP_REDUCE, {{COLLET_TYPE_F32, {64}}, {COLLET_TYPE_S32, {64}}},
                {x, places, entry.scalar(COLLET_TYPE_F32, 0.0F), entry.scalar(COLLET_TYPE_S32, 0)}, attrs, {&body});
  entry.results({both[1]});
  const std::string text = kernels_of(program);
  EXPECT_NE(text.find("\n  store "), std::string::npos) << text;
  EXPECT_EQ(text.find("\n  store "), text.rfind("\n  store ")) << text;
  EXPECT_NE(text.find("kernel (3 buffers)"), std::string::npos) << text;
}

TEST(Stages, AreNotKeptUnlessAskedFor) {
  ProgramBuilder program;
  RegionBuilder& entry = program.entry();
  const Handle x = entry.argument(COLLET_TYPE_F32, {4});
  entry.results({entry.unary(COLLET_OP_NEGATE, x)});
  PlannedProgram planned;
  ASSERT_TRUE(plan_program(program.finish(), Target(), CompileOptions(), planned).ok());
  EXPECT_TRUE(planned.stages.empty());
  ASSERT_EQ(planned.sources.size(), 1u);
  EXPECT_EQ(planned.plan.functions[0], planned.sources[0].name);
}

}  // namespace
}  // namespace collet::codegen
