// SPDX-License-Identifier: Apache-2.0
// Tests markers of manual computations: control flow inside of them, malformed markers, ops of one device, and the time
// that nested tuples and loops take.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#include "hlo/eval/evaluator.h"
#include "hlo/ir/shardy.h"
#include "hlo/passes/pipeline.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::unique_ptr<Module> read(const std::string& text) {
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? std::move(*module) : nullptr;
}

Status partition(Module& module) {
  PassContext context;
  context.partition_count = module.header().num_partitions;
  static constexpr std::string_view kPasses[] = {"flatten_tuples", "partition_spmd"};
  COLLET_TRY(run_passes(module, context, kPasses).status());
  return verify_module(module);
}

std::string complaint(const std::string& text) {
  const auto module = read(text);
  return module ? partition(*module).to_string() : "";
}

/// Runs four partitions on tiles of 0 ... 7; returns the results of all partitions, concatenated.
std::vector<double> run(const std::string& text, EvalOptions options = {}) {
  const auto module = read(text);
  if (!module) return {};
  const Status status = partition(*module);
  EXPECT_TRUE(status.ok()) << status.to_string();
  if (!status.ok()) return {};
  options.partitions = 4;
  std::vector<std::vector<Literal>> arguments(4);
  for (size_t p = 0; p < 4; ++p)
    for (InstrId id : module->entry_computation().parameters) {
      Literal x = Literal::zeros((*module)[id].shape);
      const auto n = x.element_count();
      for (int64_t i = 0; i < n; ++i) x.set_double(i, n == 2 ? static_cast<double>(p) * 2 + static_cast<double>(i) : 1);
      arguments[p].push_back(std::move(x));
    }
  const auto out = Evaluator(*module, options).run_all(arguments);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  std::vector<double> all;
  if (out.ok())
    for (const Literal& value : *out)
      for (const Literal& leaf : flatten(value))
        for (int64_t i = 0; i < leaf.element_count(); ++i) all.push_back(leaf.as_double(i));
  return all;
}

// A loop carries a manual value beside a replicated counter.
TEST(Markers, LoopOfManualValues_RunsOnEachPartition) {
  EXPECT_THAT(run(R"(HloModule m, num_partitions=4
body {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2] add(x, x)
  ROOT t = (s32[], f32[2]) tuple(j, y)
}
condition {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  m = f32[2] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  z = s32[] constant(0)
  t = (s32[], f32[2]) tuple(z, m)
  w = (s32[], f32[2]) while(t), condition=condition, body=body
  x = f32[2] get-tuple-element(w), index=1
  ROOT r = f32[8] custom-call(x), custom_call_target="SPMDShardToFullShape", sharding={devices=[4]<=[4]}
})"),
              ::testing::ElementsAre(0, 8, 16, 24, 32, 40, 48, 56));
}

// Each partition chooses its own branch; a split operand is replicated first.
TEST(Markers, BranchOfManualValues_IsChosenByEachPartition) {
  EXPECT_THAT(run(R"(HloModule m, num_partitions=4
negative {
  p = (f32[2], f32[8]) parameter(0)
  x = f32[2] get-tuple-element(p), index=0
  ROOT r = f32[2] negate(x)
}
sum {
  p = (f32[2], f32[8]) parameter(0)
  x = f32[2] get-tuple-element(p), index=0
  y = f32[8] get-tuple-element(p), index=1
  last = f32[2] slice(y), slice={[6:8]}
  ROOT r = f32[2] add(x, last)
}
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  m = f32[2] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  p = u32[] partition-id()
  one = u32[] constant(1)
  q = pred[] compare(p, one), direction=EQ
  t = (f32[2], f32[8]) tuple(m, a)
  y = f32[2] conditional(q, t, t), true_computation=negative, false_computation=sum
  ROOT r = f32[8] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={devices=[4]<=[4]}
})"),
              ::testing::ElementsAre(6, 8, -2, -3, 10, 12, 12, 14));
}

TEST(Markers, ResultThatDiffersByPartition_IsRefused) {
  EXPECT_THAT(complaint(R"(HloModule m, num_partitions=2
ENTRY e {
  a = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  p = u32[] partition-id()
  f = f32[] convert(p)
  b = f32[4] broadcast(f), dimensions={}
  ROOT r = f32[4] add(a, b)
})"),
              HasSubstr("in a way of its own"));
}

std::string with_mesh(const std::string& body) {
  return R"(HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"x\"=4]>}"}
ENTRY e {
)" + body +
         "}\n";
}

constexpr char kIn[] = R"(, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>",)"
                       R"(xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"})";
constexpr char kOutOfTwo[] =
    R"(, frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>, <@mesh, [{\"x\"}]>]>",)"
    R"(xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"})";

TEST(Markers, ResultsThatAreNotAsManyAsOperands_AreRefused) {
  EXPECT_THAT(complaint(with_mesh(R"(  a = f32[8] parameter(0)
  s = (f32[2], f32[2]) custom-call(a), custom_call_target="xla.sdy.GlobalToLocalShape")" +
                                  std::string(kIn) + R"(
  ROOT r = f32[2] get-tuple-element(s), index=1
)")),
              HasSubstr("2 results for 1 operands"));
  EXPECT_THAT(complaint(with_mesh(R"(  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  s = f32[8] custom-call(a, b), custom_call_target="xla.sdy.LocalToGlobalShape")" +
                                  std::string(kOutOfTwo) + R"(
  ROOT r = f32[8] negate(s)
)")),
              // The verifier, which builds with assertions run before each pass, has words of its own.
              AnyOf(HasSubstr("1 results for 2 operands"), HasSubstr("its result is f32[8]")));
}

TEST(Markers, ResultOfAnotherShapeThanTheTile_IsRefused) {
  for (const char* result : {"f32[4]", "f32[2,1]", "s32[2]", "f32[8]", "f32[]"})
    EXPECT_THAT(complaint(with_mesh("  a = f32[8] parameter(0)\n  ROOT s = " + std::string(result) +
                                    " custom-call(a), custom_call_target=\"xla.sdy.GlobalToLocalShape\"" + kIn + "\n")),
                HasSubstr("cannot be " + std::string(result)));
  for (const char* result : {"f32[16]", "f32[8,1]", "f32[7]"})
    EXPECT_THAT(complaint(with_mesh("  a = f32[8] parameter(0)\n  b = f32[2] slice(a), slice={[0:2]}\n  t = (" +
                                    std::string(result) +
                                    ", f32[8]) custom-call(b, b), custom_call_target=\"xla.sdy.LocalToGlobalShape\"" +
                                    kOutOfTwo + "\n  ROOT r = f32[8] get-tuple-element(t), index=1\n")),
                HasSubstr("result 0"));
  EXPECT_THAT(complaint(R"(HloModule m, num_partitions=4
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  s = f32[8,8] custom-call(a), custom_call_target="Sharding", sharding={devices=[2,2]<=[4]}
  ROOT r = f32[8,8] negate(s)
})"),
              HasSubstr("gives f32[8,8] of f32[8]"));
}

TEST(Markers, PlacementsAndControlDependencies_DoNothing) {
  EXPECT_EQ(complaint(R"(HloModule m, num_partitions=2
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  b = f32[8] negate(a)
  o = () custom-call(a, b), custom_call_target="control_dep", custom_call_has_side_effect=true
  ROOT p = f32[8] custom-call(b), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
})"),
            "OK");
}

TEST(Markers, ParameterWhoseShardingDoesNotFit_IsRefused) {
  const auto program = [](const char* shape, const char* sharding) {
    return complaint(with_mesh("  a = " + std::string(shape) +
                               " parameter(0), frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<" + sharding +
                               ">\"}\n  z = f32[] constant(0)\n  ROOT r = f32[] copy(z)\n"));
  };
  EXPECT_EQ(program("f32[8]", R"(@mesh, [{\"x\"}])"), "OK");
  EXPECT_THAT(program("f32[6]", R"(@mesh, [{\"x\"}])"), HasSubstr("does not split"));
  EXPECT_THAT(program("f32[8]", R"(@other, [{\"x\"}])"), HasSubstr("none for 4 partitions"));
  EXPECT_THAT(program("f32[8]", R"(@mesh, [{\"y\"}])"), HasSubstr("none for 4 partitions"));
  EXPECT_THAT(program("f32[<=8]", R"(@mesh, [{\"x\"}])"), HasSubstr("dynamic size"));
  EXPECT_THAT(complaint(R"(HloModule dy, num_partitions=2
ENTRY e {
  a = f32[<=8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT r = s32[] get-dimension-size(a), dimensions={0}
})"),
              HasSubstr("dynamic size"));
}

TEST(Markers, MeshThatNamesADeviceTwice_IsRefused) {
  EXPECT_TRUE(parse_mesh(R"(<["x"=4], device_ids=[3, 1, 0, 2]>)"));
  EXPECT_TRUE(parse_mesh(R"(<[], device_ids=[5]>)"));
  for (const char* ids : {"0, 0, 1, 1", "0, 1, 2, 4", "-1, 0, 1, 2", "0, 1, 2"})
    EXPECT_FALSE(parse_mesh(R"(<["x"=4], device_ids=[)" + std::string(ids) + "]>")) << ids;
  EXPECT_FALSE(parse_mesh("<[], device_ids=[-1]>"));
  EXPECT_TRUE(parse_axis_names(R"(#sdy<manual_axes{"x", "y"}>)"));
  for (const char* names : {R"({"x", 3})", R"({"x")", R"(#sdy<manual_axes{"x"})", R"({"x"} more)", ""})
    EXPECT_FALSE(parse_axis_names(names)) << names;
  EXPECT_TRUE(parse_sharding_list(R"(#sdy.sharding_per_value<[<@m, [{"x"}]>]>)"));
  EXPECT_TRUE(parse_sharding_list(R"([<@m, [{"x"}]>])"));
  EXPECT_FALSE(parse_sharding_list(R"(#sdy.sharding_per_value<[<@m, [{"x"}]>])"));
  EXPECT_FALSE(parse_sharding_list(R"([<@m, [{"x"}]>] and more)"));
}

// A call of one device runs once, and all partitions have its result.
TEST(Markers, CallOfOneDevice_RunsOnce) {
  std::atomic<int> calls = 0;
  EvalOptions options;
  options.custom_calls["twice"] = [&](const Module&, const Instruction& instr, std::span<const Literal> in) {
    ++calls;
    Literal out = Literal::zeros(instr.shape);
    for (int64_t i = 0; i < out.element_count(); ++i) out.set_double(i, 2 * in[0].as_double(i));
    return Expected<Literal>(out);
  };
  EXPECT_THAT(run(R"(HloModule m, num_partitions=4
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  c = f32[8] custom-call(a), custom_call_target="twice", custom_call_has_side_effect=true, sharding={maximal device=2}
  ROOT r = f32[8] copy(c), sharding={devices=[4]<=[4]}
})",
                  options),
              ::testing::ElementsAre(0, 2, 4, 6, 8, 10, 12, 14));
  EXPECT_EQ(calls, 1);
}

TEST(Markers, SideEffectWithoutADevice_IsRefused) {
  EXPECT_THAT(complaint(R"(HloModule m, num_partitions=4
ENTRY e {
  a = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT c = f32[8] custom-call(a), custom_call_target="print", custom_call_has_side_effect=true
})"),
              HasSubstr("which device"));
  EXPECT_THAT(complaint(R"(HloModule m, num_partitions=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(a), custom_call_target="print", sharding={maximal device=9}
})"),
              HasSubstr("device 9"));
}

double seconds(const std::string& text) {
  const auto module = read(text);
  if (!module) return 0;
  const std::clock_t start = std::clock();
  const Status status = partition(*module);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string wide(int size) {
  std::string type, list, text = "HloModule m, num_partitions=4\nENTRY e {\n";
  for (int i = 0; i < size; ++i) {
    text += "  p" + std::to_string(i) + " = f32[4] parameter(" + std::to_string(i) + "), sharding={devices=[4]<=[4]}\n";
    type += std::string(i ? ", " : "") + "f32[4]";
    list += (i ? ", p" : "p") + std::to_string(i);
  }
  text += "  t = (" + type + ") tuple(" + list + ")\n  b = (" + type + ") opt-barrier(t)\n";
  std::string results;
  for (int i = 0; i < size; ++i) {
    text += "  g" + std::to_string(i) + " = f32[4] get-tuple-element(b), index=" + std::to_string(i) + "\n";
    results += (i ? ", g" : "g") + std::to_string(i);
  }
  return text + "  ROOT r = (" + type + ") tuple(" + results + ")\n}\n";
}

TEST(Markers, WideTuples_TakeTimeByTheirSize) {
  (void)seconds(wide(100));
  const double small = seconds(wide(500)), large = seconds(wide(4000));
  EXPECT_LT(large, 25 * std::max(small, 0.005)) << "500 elements in " << small << " s, 4000 in " << large;
}

std::string nested(int depth) {
  std::string text = R"(HloModule m, num_partitions=4
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
)";
  for (int k = 0; k <= depth; ++k) {
    text += (k < depth ? "body" + std::to_string(k) : std::string("ENTRY e")) + " {\n";
    text += k < depth ? "  s = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
                        "  x = f32[8] get-tuple-element(s), index=1\n"
                      : "  i = s32[] constant(0)\n  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n";
    text += "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n";
    if (k == 0) {
      text += "  y = f32[8] add(x, x)\n";
    } else {
      text += "  t = (s32[], f32[8]) tuple(one, x)\n  w = (s32[], f32[8]) while(t), condition=condition, body=body" +
              std::to_string(k - 1) + "\n  y = f32[8] get-tuple-element(w), index=1\n";
    }
    text += k < depth ? "  ROOT r = (s32[], f32[8]) tuple(j, y)\n}\n" : "  ROOT r = f32[8] copy(y)\n}\n";
  }
  return text;
}

TEST(Markers, NestedLoops_TakeTimeByTheirDepth) {
  const double few = seconds(nested(8)), many = seconds(nested(64));
  EXPECT_LT(many, 40 * std::max(few, 0.005)) << "8 loops in " << few << " s, 64 in " << many;
  EXPECT_THAT(complaint(nested(5000)), HasSubstr("deep"));
}

TEST(Markers, CallsThatMultiply_AreRefused) {
  std::string text =
      "HloModule m, num_partitions=4\nlevel0 {\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] sine(x)\n}\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string below = "level" + std::to_string(k - 1);
    text += (k < 40 ? "level" + std::to_string(k) : std::string("ENTRY e")) + " {\n  x = f32[8] parameter(0)" +
            (k < 40 ? "" : ", sharding={devices=[4]<=[4]}") + "\n  y = f32[8] call(x), to_apply=" + below +
            "\n  ROOT r = f32[8] call(y), to_apply=" + below + "\n}\n";
  }
  EXPECT_THAT(complaint(text), HasSubstr("more than"));
}

}  // namespace
}  // namespace collet::hlo
