// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace collet::hlo {
namespace {

std::unique_ptr<Module> read(std::string_view text, const ParseOptions& options = {}) {
  auto module = parse_module(text, "test", options);
  EXPECT_TRUE(module.ok()) << module.status().message();
  if (!module.ok()) throw std::runtime_error("not read");
  return *std::move(module);
}

const Instruction& find(const Module& module, std::string_view name) {
  static const Instruction none;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].name == name) return module[id];
  ADD_FAILURE() << "no instruction " << name;
  return none;
}

const Instruction& root(const Module& module) {
  return module[module.entry_computation().root];
}

// Returns the literal of "ENTRY e { c = <text> }".
Literal constant(const std::string& text, const ParseOptions& options = {}) {
  const auto module = read("ENTRY e { c = " + text + " }", options);
  return module->entry() == CompId::None ? Literal() : module->literal(root(*module));
}

TEST(Parser, ReadsASmallModule) {
  const auto m = read(R"(HloModule small, is_scheduled=true
%f (x: f32[2], y: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %y = f32[2]{0} parameter(1)
  ROOT %z = f32[2]{0} add(f32[2]{0} %x, f32[2]{0} %y)
}
ENTRY main {
  a = f32[2] parameter(0)
  ROOT r = f32[2] call(a, a), to_apply=f
})");
  EXPECT_EQ(m->name(), "small");
  EXPECT_TRUE(m->header().is_scheduled);
  EXPECT_EQ(m->entry_computation().name, "main");
  EXPECT_EQ(root(*m).op, Op::CALL);
  EXPECT_EQ((*m)[root(*m).called[0]].name, "f");
  EXPECT_EQ(find(*m, "z").operands.size(), 2u);
  EXPECT_EQ(find(*m, "z").line, 5u);
}

TEST(Parser, TakesTheLastComputationAndInstructionWhereNoneIsMarked) {
  const auto m = read("HloModule m\na { x = f32[] constant(1) }\nb { y = f32[] constant(2)\n z = f32[] negate(y) }");
  EXPECT_EQ(m->entry_computation().name, "b");
  EXPECT_EQ(root(*m).name, "z");
  EXPECT_EQ(read("ENTRY e { x = f32[] constant(1) }")->name(), "module_e");
  const auto n =
      read("HloModule m\nENTRY a { ROOT x = f32[] constant(1)\n y = f32[] constant(2) }\nb { y = f32[] constant(2) }");
  EXPECT_EQ(n->entry_computation().name, "a");
  EXPECT_EQ(root(*n).name, "x");
}

TEST(Parser, ReadsSingleInstructions) {
  const auto m = read("foo = f32[10] add(f32[10] %p, f32[10])");
  EXPECT_EQ(root(*m).op, Op::ADD);
  ASSERT_EQ(m->entry_computation().parameters.size(), 2u);
  EXPECT_EQ((*m)[m->entry_computation().parameters[0]].name, "p");
  EXPECT_EQ(read("f32[2] parameter(0)")->entry_computation().parameters.size(), 1u);
}

TEST(Parser, ReadsNestedOperandsAndInlineComputations) {
  const auto m = read(R"(ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[] reduce(f32[4] multiply(p, negate(p)), f32[] constant(0)), dimensions={0},
    to_apply={ a = f32[] parameter(0)
               b = f32[] parameter(1)
               ROOT c = add(a, b) }
})");
  EXPECT_EQ((*m)[root(*m).operands[0]].op, Op::MULTIPLY);
  EXPECT_EQ((*m)[root(*m).operands[0]].name, "multiply.anon");
  EXPECT_EQ((*m)[(*m)[root(*m).called[0]].root].shape.to_string(), "f32[]");
  EXPECT_EQ(m->computations().back(), m->entry());
}

TEST(Parser, InfersShapesThatAreNotWritten) {
  const auto m = read(R"(ENTRY e {
  p = f32[4,8] parameter(0)
  t = transpose(p), dimensions={1,0}
  d = dot(p, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT u = tuple(d, t)
})");
  EXPECT_EQ(root(*m).shape.to_string(), "(f32[4,4], f32[8,4])");
}

TEST(Parser, ReadsShapes) {
  for (const char* text : {"f32[]", "s4[2,3]{0,1}", "(f32[2]{0}, (s32[], token[]), ())", "bf16[<=4,?]", "b(f32[2]{0})",
                           "f32[8,128]{1,0:T(8,128)(2,1)L(4)E(4)S(5)M(1024)}", "f32[]{:T(128)}",
                           "f32[2,2]{1,0:D(D,C+~)#(u32)*(u64)}", "s32[4]{0:T(*)SC(0:1,2)}"}) {
    const auto shape = parse_shape(text);
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    EXPECT_EQ(shape->to_string(true), text);
  }
  EXPECT_EQ(parse_shape("f32 [ 2 , /*c*/ 3 ] { 1 , 0 }")->to_string(true), "f32[2,3]{1,0}");
  for (const char* text : {"f32", "f32[2", "f32[-1]", "f32[2]{0,1}", "(f32[2,2]{0,0})", "(f32[2]{0:T()})", "f33[2]",
                           "(f32[]", "f32[2]{0:P(f32[2])}", "f32[99999999999999999999]", "f32[] x", "b(token[])"})
    EXPECT_FALSE(parse_shape(text).ok()) << text;
}

TEST(Parser, ReadsFloatsExactly) {
  EXPECT_EQ(constant("f32[] constant(0.1)").data<float>()[0], 0.1f);
  EXPECT_EQ(constant("f64[] constant(1e-310)").data<double>()[0], 1e-310);
  EXPECT_TRUE(std::signbit(constant("f32[] constant(-0)").data<float>()[0]));
  EXPECT_EQ(constant("f64[] constant(18446744073709551615)").data<double>()[0], 18446744073709551616.0);
  const Literal nan = constant("f32[3] constant({nan, -nan(0x7f), -inf})");
  EXPECT_EQ(nan.data<uint32_t>()[0], 0x7FC00000u);
  EXPECT_EQ(nan.data<uint32_t>()[1], 0xFF80007Fu);
  EXPECT_EQ(nan.data<uint32_t>()[2], 0xFF800000u);
  EXPECT_EQ(constant("f8e4m3fn[2] constant({448, 1.0625})").bytes()[0], 0x7E);
  EXPECT_EQ(constant("bf16[] constant(1.00390625)").data<uint16_t>()[0], 0x3F80);  // a tie is rounded to even
  EXPECT_EQ(constant("f4e2m1fn[] constant(100)").as_double(0), 6);
  EXPECT_EQ(constant("c64[1] constant({(1.5, -2)})").imaginary(0), -2);
}

TEST(Parser, ReadsIntegersOfAllWidths) {
  EXPECT_EQ(constant("s4[2] constant({-8, 7})").as_int(0), -8);
  EXPECT_EQ(constant("u64[] constant(18446744073709551615)").data<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(constant("pred[3] constant({2, false, true})").bytes()[2], 1);
  EXPECT_EQ(constant("s32[2,0] constant({{}, {}})").element_count(), 0);
  EXPECT_EQ(constant("s32[2,2] constant({ {1 2} {3, 4} })").as_int(3), 4);  // commas between numbers are optional
  const Literal tuple = constant("(s32[2], (pred[])) constant(({1, 2}, (true)))");
  EXPECT_EQ(tuple.element(0).as_int(1), 2);
  EXPECT_EQ(tuple.element(1).element(0).as_int(0), 1);
}

TEST(Parser, ReadsOneNumberAsTheFirstElementOfAnArray) {
  const Literal value = constant("s32[2,2] constant(7)");
  EXPECT_EQ(value.as_int(0), 7);
  EXPECT_EQ(value.as_int(3), 0);
}

TEST(Parser, FillsElidedConstantsAsChosen) {
  ParseOptions options;
  EXPECT_EQ(constant("s32[2,2] constant({...})", options).as_int(3), 3);
  EXPECT_EQ(constant("pred[8] constant({...})", options).as_int(4), 1);
  options.elided = ElidedConstants::Zeros;
  EXPECT_EQ(constant("s32[4] constant({...})", options).as_int(3), 0);
  options.elided = ElidedConstants::Random;
  const Literal a = constant("f32[4] constant({...})", options);
  EXPECT_EQ(a, constant("f32[4] constant({...})", options));
  options.seed = 1;
  EXPECT_FALSE(a == constant("f32[4] constant({...})", options));
  EXPECT_LT(std::fabs(a.as_double(0)), 1);
  options.elided = ElidedConstants::Refuse;
  EXPECT_FALSE(parse_module("ENTRY e { c = f32[4] constant({...}) }", "", options).ok());
  options.elided = ElidedConstants::Zeros;
  options.elided_limit = 20;
  EXPECT_FALSE(parse_module("ENTRY e { c = f32[4] constant({...})\n d = f32[4] constant({...}) }", "", options).ok());
}

TEST(Parser, WidensFloats) {
  ParseOptions options;
  options.floats_as_f64 = true;
  const auto m = read(R"(HloModule m, entry_computation_layout={(f32[2]{0})->(c128[], f8e5m2[])}
ENTRY e {
  p = f32[2] parameter(0)
  h = bf16[] constant(0.1)
  c = c64[] constant((0.1, 2))
  k = f8e5m2[] constant(1)
  ROOT r = (c64[], f8e5m2[]) tuple(c, k)
})",
                      options);
  EXPECT_EQ(m->header().entry_parameters[0].type(), Type::F64);
  EXPECT_EQ(m->literal(find(*m, "h")).data<double>()[0], 0.1);
  EXPECT_EQ(m->literal(find(*m, "c")).as_double(0), 0.1);
  EXPECT_EQ(root(*m).shape.to_string(), "(c128[], f8e5m2[])");
}

TEST(Parser, ReadsAttributesOfOps) {
  const auto m = read(R"(ENTRY e {
  p = f32[1,8,8,3] parameter(0)
  k = f32[3,3,3,2] parameter(1)
  c = f32[1,4,4,2] convolution(p, k), window={size=3x3 pad=1_0x0_1 stride=2x2 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, operand_precision={HIGHEST,default}
  z = f32[] constant(0)
  d = f32[1,9,8,3] pad(p, z), padding=0_0x-1_2x0_0_1x0_0
  s = f32[1,4,8,3] slice(p), slice={[0:1], [0:8:2], [0:8], [0:3]}
  x = pred[1,8,8,3] compare(p, p), direction=LT, type=TOTALORDER
  t = (f32[1,8,8,2], s32[1,8,8,2]) topk(p), k=2, largest=false
  i = f32[2] reshape(z), inferred_dimension=0
})");
  const auto& conv = find(*m, "c").as<ConvolutionAttrs>();
  EXPECT_EQ(conv.window.low_at(0), 1);
  EXPECT_EQ(conv.window.stride_at(1), 2);
  EXPECT_TRUE(conv.window.reversed_at(0));
  EXPECT_EQ(conv.labels.kernel_output_feature, 3);
  EXPECT_EQ(conv.feature_groups, 1);
  EXPECT_EQ(conv.precision[0], 2);
  EXPECT_EQ(find(*m, "d").as<PadAttrs>().padding.low[1], -1);
  EXPECT_EQ(find(*m, "d").as<PadAttrs>().padding.interior[2], 1);
  EXPECT_EQ(find(*m, "s").as<SliceAttrs>().slice.stride[1], 2);
  EXPECT_EQ(find(*m, "x").as<CompareAttrs>().type, CompareType::TOTALORDER);
  EXPECT_TRUE(find(*m, "t").as<TopKAttrs>().smallest);
  EXPECT_EQ(find(*m, "i").as<ReshapeAttrs>().inferred_dimension, 1);
}

TEST(Parser, AScalarIsPaddedByNothing) {
  const auto m = read(
      "ENTRY e {\n a = f32[] parameter(0)\n b = f32[] pad(a, a), padding=\n c = f32[] pad(b, a), padding=, "
      "metadata={op_name=\"x\"}\n ROOT d = f32[] pad(c, a)\n}\n");
  for (const char* name : {"b", "c", "d"}) EXPECT_TRUE(find(*m, name).as<PadAttrs>().padding.low.empty()) << name;
}

TEST(Parser, OrdersCalledComputations) {
  const auto m = read(R"(HloModule m
cond { p = s32[] parameter(0)
  ROOT c = pred[] constant(false) }
body { ROOT p = s32[] parameter(0) }
ENTRY e { i = s32[] parameter(0)
  ROOT w = s32[] while(i), body=body, condition=cond })");
  EXPECT_EQ((*m)[root(*m).called[0]].name, "cond");
  EXPECT_EQ((*m)[root(*m).called[1]].name, "body");
}

TEST(Parser, ExpandsReplicaGroups) {
  const auto groups = [](const std::string& text) {
    const auto m =
        read("ENTRY e { p = f32[] parameter(0)\n ROOT r = f32[] all-to-all(p), replica_groups=" + text + " }");
    std::string out;
    for (const Dims& group : root(*m).as<AllToAllAttrs>().groups.groups) {
      for (int64_t id : group) out += std::to_string(id) + " ";
      out += "; ";
    }
    return out;
  };
  EXPECT_EQ(groups("{{0,1},{2,3}}"), "0 1 ; 2 3 ; ");
  EXPECT_EQ(groups("{}"), "");
  EXPECT_EQ(groups("[2,2]<=[4]"), "0 1 ; 2 3 ; ");
  EXPECT_EQ(groups("[2,4]<=[4,2]T(1,0)"), "0 2 4 6 ; 1 3 5 7 ; ");
  EXPECT_EQ(groups("mesh['a'=2,'b'=4] {'a'}"), "0 4 ; 1 5 ; 2 6 ; 3 7 ; ");
  EXPECT_EQ(groups("mesh[a=2,b=4] {b,a}"), "0 4 1 5 2 6 3 7 ; ");
  EXPECT_EQ(groups("mesh['b'=4] {'b':(1)2}"), "0 2 ; 1 3 ; ");
  EXPECT_EQ(groups("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}"), "0 2 ; 1 3 ; ");
  EXPECT_EQ(groups("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}"), "3 2 ; 1 0 ; ");
}

TEST(Parser, ReadsAttributesOfAnyInstruction) {
  const auto m = read(R"(ENTRY e {
  p = f32[4] parameter(0), parameter_replication={true}, sharding={devices=[4]<=[2,2]T(1,0)}
  q = f32[4] negate(p), metadata={op_type="Neg", op_name="a\"b" source_line=7 stack_frame_id=3}
  ROOT r = f32[4] sine(q), control-predecessors={p, %q}, backend_config={"x": "}"}, frontend_attributes={a="1",b={"c": 2}}, statistics={visualizing_index=0,x=1.5}, result_accuracy={mode=highest}, origin={{"o" {1}}}
})");
  EXPECT_TRUE(find(*m, "p").extras->sharding->iota);
  EXPECT_EQ(find(*m, "q").extras->metadata->op_name, "a\"b");
  EXPECT_EQ(find(*m, "q").extras->metadata->stack_frame_id, 3);
  const Extras& extras = *root(*m).extras;
  EXPECT_EQ(extras.control_predecessors.size(), 2u);
  EXPECT_EQ(extras.backend_config, R"({"x": "}"})");
  EXPECT_TRUE(extras.backend_config_is_json);
  EXPECT_EQ(extras.frontend_attributes[1].value, R"({"c": 2})");
  EXPECT_EQ(extras.result_accuracy->mode, "highest");
}

TEST(Parser, UnfoldsAsyncSugar) {
  const auto m = read(R"(ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) custom-call-start(p), custom_call_target="f", async_execution_thread="host"
  u = ((f32[4]), f32[4], u32[]) custom-call-update(s)
  ROOT d = f32[4] custom-call-done(u)
})");
  const Instruction& start = find(*m, "s");
  EXPECT_EQ(start.op, Op::ASYNC_START);
  const Computation& wrapped = (*m)[start.called[0]];
  EXPECT_EQ((*m)[wrapped.root].op, Op::CUSTOM_CALL);
  EXPECT_EQ((*m)[wrapped.root].as<CustomCallAttrs>().target, "f");
  EXPECT_EQ(wrapped.execution_thread, "host");
  EXPECT_EQ(root(*m).called[0], start.called[0]);
}

TEST(Parser, ReadsTheSeedOfTheFuzzer) {
  std::ifstream in("hlo/text/seeds/everything.hlo");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ASSERT_FALSE(text.empty());
  const auto m = read(text);
  EXPECT_EQ(m->header().aliases.size(), 2u);
  EXPECT_TRUE(m->header().aliases[0].must);
  EXPECT_EQ(m->header().donors.size(), 1u);
  EXPECT_TRUE(m->header().verbatim.starts_with("FileNames"));
  EXPECT_TRUE(m->header().verbatim.ends_with("parent_frame_id=1}"));
  EXPECT_EQ(m->header().num_partitions, 4);
}

}  // namespace
}  // namespace collet::hlo
