// SPDX-License-Identifier: Apache-2.0
#include "hlo/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

Status verify_text(std::string_view text, const VerifyOptions& options = {}) {
  Expected<std::unique_ptr<Module>> module = parse_module(text);
  if (!module.ok()) return module.status().with_prefix("not read: ");
  return verify_module(**module, options);
}

// A module, and a part of the expected error message; null if the module is valid.
struct ModuleCase {
  const char* text;
  const char* error;
};

void check(std::span<const ModuleCase> cases) {
  for (const ModuleCase& c : cases) {
    SCOPED_TRACE(c.text);
    const Status status = verify_text(c.text);
    if (c.error)
      EXPECT_THAT(status.message(), HasSubstr(c.error));
    else
      EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(VerifyModule, EachComplaintHasItsLine) {
  Expected<std::unique_ptr<Module>> module = parse_module(R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[3] add(x, x)
  z = f32[2] add(x, x)
  ROOT t = (f32[2]) tuple(y)
})");
  ASSERT_TRUE(module.ok()) << module.status().message();
  Diagnostics diagnostics("m.hlo");
  verify_module(**module, {}, diagnostics);
  ASSERT_EQ(diagnostics.list().size(), 2u);
  EXPECT_EQ(diagnostics.list()[0].line, 4u);
  EXPECT_THAT(diagnostics.list()[0].message, HasSubstr("y: add: the declared shape is f32[3]"));
  EXPECT_EQ(diagnostics.list()[1].line, 6u);
}

TEST(VerifyModule, ComplaintsStopAtTheLimit) {
  std::string text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n";
  for (int i = 0; i < 100; ++i) text += "  y" + std::to_string(i) + " = f32[3] add(x, x)\n";
  Expected<std::unique_ptr<Module>> module = parse_module(text + "}\n");
  ASSERT_TRUE(module.ok()) << module.status().message();
  Diagnostics diagnostics("m", 5);
  verify_module(**module, {}, diagnostics);
  EXPECT_EQ(diagnostics.list().size(), 5u);
}

TEST(VerifyModule, WholeModulesVerify) {
  for (const char* path : {"hlo/verify/testdata/network.hlo", "hlo/verify/testdata/devices.hlo"}) {
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Status status = verify_text(text);
    EXPECT_TRUE(status.ok()) << path << ": " << status.message();
  }
}

// --- structure: modules built by hand, because no reader of text accepts them ---

class StructureTest : public ::testing::Test {
 protected:
  StructureTest() {
    main_ = module_.add_computation("main");
    x_ = module_.append_parameter(main_, 0, shape_, "x");
    const InstrId operands[] = {x_, x_};
    sum_ = module_.append(main_, Op::ADD, shape_, operands, nullptr, {}, "sum");
    module_[main_].root = sum_;
    module_.set_entry(main_);
  }
  std::string error() { return verify_module(module_).message(); }

  Module module_;
  const Shape shape_ = Shape::array(Type::F32, {2});
  CompId main_;
  InstrId x_, sum_;
};

TEST_F(StructureTest, SoundModuleVerifies) {
  EXPECT_EQ(error(), "");
}

TEST_F(StructureTest, ModuleNeedsAnEntry) {
  module_.set_entry(CompId::None);
  EXPECT_THAT(error(), HasSubstr("the module has no entry computation"));
}

TEST_F(StructureTest, RootIsAnInstruction) {
  module_[main_].root = InstrId::None;
  EXPECT_THAT(error(), HasSubstr("computation main: the root is not one of its instructions"));
}

TEST_F(StructureTest, OperandsComeFirst) {
  std::swap(module_[main_].order[0], module_[main_].order[1]);
  EXPECT_THAT(error(), HasSubstr("sum: operand 0, x, does not come before it"));
}

TEST_F(StructureTest, OperandsStandInTheirComputation) {
  const CompId other = module_.add_computation("other");
  module_[other].root = module_.append(other, Op::NEGATE, shape_, {&x_, 1}, nullptr, {}, "n");
  EXPECT_THAT(error(), HasSubstr("n: operand 0, x, stands in computation main"));
}

TEST_F(StructureTest, ErasedOperandsAreFound) {
  module_[main_].order.erase(module_[main_].order.begin());
  EXPECT_THAT(error(), HasSubstr("stands in no computation"));
}

TEST_F(StructureTest, InstructionsOccurOnce) {
  module_[main_].order.push_back(sum_);
  EXPECT_THAT(error(), HasSubstr("does not exist or occurs twice"));
}

TEST_F(StructureTest, IdsExist) {
  module_[main_].order.push_back(static_cast<InstrId>(999));
  EXPECT_THAT(error(), HasSubstr("does not exist or occurs twice"));
}

TEST_F(StructureTest, NamesOccurOnce) {
  module_[main_].root = module_.append(main_, Op::NEGATE, shape_, {&sum_, 1}, nullptr, {}, "x");
  EXPECT_THAT(error(), HasSubstr("x: the name occurs twice"));
}

TEST_F(StructureTest, ParameterNumbersAreDense) {
  module_.append_parameter(main_, 2, shape_, "z");
  EXPECT_THAT(error(), HasSubstr("there is no parameter 1"));
}

TEST_F(StructureTest, ParameterNumbersOccurOnce) {
  auto* attrs = module_.make<ParameterAttrs>();
  module_.append(main_, Op::PARAMETER, shape_, {}, attrs, {}, "again");
  EXPECT_THAT(error(), HasSubstr("again: parameter number 0 occurs twice"));
}

TEST_F(StructureTest, CalleesComeFirstAndNeverTheEntry) {
  const CompId late = module_.add_computation("late");
  module_[late].root = module_.append_parameter(late, 0, shape_);
  module_[main_].root = module_.append(main_, Op::CALL, shape_, {&sum_, 1}, nullptr, {&late, 1}, "c");
  EXPECT_THAT(error(), HasSubstr("c: calls late, which does not come before main"));
  module_.computations() = {late, main_};
  EXPECT_EQ(error(), "");
  module_[late].root = module_.append(late, Op::CALL, shape_, {&module_[late].parameters[0], 1}, nullptr, {&main_, 1});
  EXPECT_THAT(error(), HasSubstr("calls main, the entry computation"));
}

TEST_F(StructureTest, ControlEdgesCloseNoCircle) {
  const InstrId n = module_.append(main_, Op::NEGATE, shape_, {&sum_, 1}, nullptr, {}, "n");
  module_[main_].root = n;
  Extras extras;
  extras.control_predecessors = module_.arena().list(std::vector<InstrId>{n});
  module_[x_].extras = module_.arena().make<Extras>(extras);
  EXPECT_THAT(error(), HasSubstr("control edges and operands form a circle"));
}

TEST_F(StructureTest, AttributesAndOpcodesExist) {
  module_[sum_].op = static_cast<Op>(250);
  EXPECT_THAT(error(), HasSubstr("sum: no such opcode: 250"));
  module_[sum_].op = Op::COMPARE;
  EXPECT_THAT(error(), HasSubstr("sum: has no attributes"));
}

// --- calls ---

constexpr const char* kNegate = "f { x = f32[2] parameter(0)  ROOT r = f32[2] negate(x) }\n";

TEST(VerifyCalls, FusedComputations) {
  const std::string twice = std::string("HloModule m\n") + kNegate + R"(ENTRY e {
  p = f32[2] parameter(0)
  a = f32[2] fusion(p), kind=kLoop, calls=f
  ROOT b = f32[2] fusion(a), kind=kLoop, calls=f
})";
  const ModuleCase cases[] = {
      {twice.c_str(), "b: calls f, which a calls too"},
      {R"(HloModule m
f { x = f32[2] parameter(0)  y = f32[2] parameter(1)  ROOT r = f32[2] negate(x) }
ENTRY e { p = f32[2] parameter(0)  ROOT a = f32[2] fusion(p, p), kind=kLoop, calls=f })",
       "y: is not the root of fused computation f and has no users"},
      {R"(HloModule m
f { x = f32[2] parameter(0)  ROOT r = f32[2] negate(x)  s = f32[2] negate(r) }
ENTRY e { p = f32[2] parameter(0)  ROOT a = f32[2] fusion(p), kind=kLoop, calls=f })",
       "r: the root of fused computation f has users"},
  };
  check(cases);
}

TEST(VerifyCalls, ThreadsAgree) {
  const ModuleCase cases[] = {
      {R"(HloModule m
f { x = f32[2] parameter(0)  ROOT r = f32[2] negate(x) }, execution_thread="other"
ENTRY e { p = f32[2] parameter(0)  ROOT a = f32[2] call(p), to_apply=f })",
       "a: runs on thread main, but calls f, which runs on other"},
  };
  check(cases);
}

TEST(VerifyCalls, AsynchronousComputationsHoldOneInstruction) {
  const ModuleCase cases[] = {
      {R"(HloModule m
f { x = f32[2] parameter(0)  y = f32[2] negate(x)  ROOT r = f32[2] negate(y) }
ENTRY e {
  p = f32[2] parameter(0)
  s = ((f32[2]), f32[2], u32[]) async-start(p), calls=f
  ROOT d = f32[2] async-done(s)
})",
       "y: async-start C1: asynchronous computation f may hold only parameters and the root"},
  };
  check(cases);
}

// --- pairs ---

TEST(VerifyPairs, StartAndDone) {
  const ModuleCase cases[] = {
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  s = ((f32[2]), f32[2], u32[]) negate-start(p)
  u = ((f32[2]), f32[2], u32[]) negate-update(s)
  ROOT d = f32[2] negate-done(u)
})",
       nullptr},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  s = (f32[2], f32[2], u32[]) copy-start(p)
  d = f32[2] copy-done(s)
  ROOT t = (f32[2], (f32[2], f32[2], u32[])) tuple(d, s)
})",
       "s: copy-start: needs one user, copy-done, but has 2"},
      {R"(HloModule m
ENTRY e {
  p = (f32[2], f32[2], u32[]) parameter(0)
  ROOT d = f32[2] copy-done(p)
})",
       "d: copy-done: its operand must be copy-start, but is parameter"},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  s = (f32[2], f32[2]) collective-permute-start(p), source_target_pairs={{0,1}}
  ROOT t = ((f32[2], f32[2])) tuple(s)
})",
       "s: collective-permute-start: its user must be collective-permute-done, but is tuple"},
  };
  check(cases);
}

TEST(VerifyPairs, SendAndReceive) {
  const ModuleCase cases[] = {
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=1
  ROOT d = token[] send-done(s), channel_id=1
})",
       nullptr},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true
  ROOT d = token[] send-done(s), channel_id=1
})",
       "d: send-done: is_host_transfer differs from that of s"},
      {R"(HloModule m
ENTRY e {
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  d = (f32[2], token[]) recv-done(r), channel_id=1
  ROOT g = u32[] get-tuple-element(r), index=1
})",
       "r: recv: needs one user, recv-done or tuple, but has 2"},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true
  d = token[] send-done(s), channel_id=1, is_host_transfer=true
  r = (f32[2], u32[], token[]) recv(d), channel_id=1, is_host_transfer=true
  ROOT e = (f32[2], token[]) recv-done(r), channel_id=1, is_host_transfer=true
})",
       "r: recv: host transfers on channel 1 must be alike, but this one differs from s"},
  };
  check(cases);
}

// --- buffers ---

TEST(VerifyBuffers, OneWriterAndAPlace) {
  const ModuleCase cases[] = {
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  b = b(f32[2]) custom-call(p), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  ROOT u = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
})",
       nullptr},
      {"HloModule m\nENTRY e { ROOT p = b(f32[2]) parameter(0) }", "p: parameter: buffers are not allowed here"},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  b = b(f32[2]) custom-call(p), custom_call_target="Pin"
  ROOT u = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
})",
       "b: custom-call Pin: needs one output_to_operand_aliasing"},
      {R"(HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  b = b(f32[2]) custom-call(p), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  u = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
  v = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
  ROOT t = (f32[2], f32[2]) tuple(u, v)
})",
       "b: the buffer at {} has more than one writer"},
      {R"(HloModule m
ENTRY e {
  b = b(f32[2]) custom-call(), custom_call_target="CreateBuffer"
  ROOT c = f32[2] custom-call(b), custom_call_target="f"
})",
       "c: custom-call f: the buffer in operand 0 must come out once, but does 0 times"},
  };
  check(cases);
}

// --- annotations ---

TEST(VerifyAnnotations, PrecisionMeetsOnlyWhereAllowed) {
  constexpr const char* kMixed = R"(HloModule m
ENTRY e { x = f32[2] parameter(0)  y = bf16[2] parameter(1)  ROOT r = f32[2] add(x, y) })";
  EXPECT_THAT(verify_text(kMixed).message(), HasSubstr("r: add: floats of different precision meet: f32 and bf16"));
  EXPECT_TRUE(verify_text(kMixed, {.allow_mixed_precision = true}).ok());
  constexpr const char* kNarrowed = R"(HloModule m
ENTRY e { x = f32[2] parameter(0)  ROOT r = bf16[2] negate(x) })";
  EXPECT_FALSE(verify_text(kNarrowed).ok());
  EXPECT_TRUE(verify_text(kNarrowed, {.allow_mixed_precision = true}).ok());
}

TEST(VerifyAnnotations, UnknownSizesWhereAllowed) {
  constexpr const char* kUnknown = "HloModule m\nENTRY e { x = f32[?] parameter(0)  ROOT r = f32[?] negate(x) }";
  EXPECT_TRUE(verify_text(kUnknown).ok());
  EXPECT_THAT(verify_text(kUnknown, {.allow_unbounded = false}).message(), HasSubstr("unknown sizes are not allowed"));
}

TEST(VerifyAnnotations, LayoutsAndAccuracy) {
  const ModuleCase cases[] = {
      {"HloModule m\nENTRY e { ROOT x = s4[8]{0:E(4)} parameter(0) }", nullptr},
      {"HloModule m\nENTRY e { ROOT x = bf16[8]{0:E(4)} parameter(0) }", "x: element size E(4) does not fit bf16[8]"},
      {"HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] tanh(x), result_accuracy={mode=highest} }",
       nullptr},
  };
  check(cases);
}

TEST(VerifyAnnotations, Sharding) {
  const ModuleCase cases[] = {
      {"HloModule m\nENTRY e { ROOT x = f32[4,2] parameter(0), sharding={devices=[2,1]0,1} }", nullptr},
      {"HloModule m\nENTRY e { ROOT x = f32[4,2] parameter(0), sharding={devices=[2]0,1} }",
       "x: sharding tiles 1 dimensions, but the shape is f32[4,2]"},
      {"HloModule m, num_partitions=2\nENTRY e { ROOT x = f32[4] parameter(0), sharding={devices=[4]0,1,2,3} }",
       "sharding: there is no device 2"},
      {"HloModule m\nENTRY e { ROOT x = (f32[4], f32[4]) parameter(0), sharding={{replicated}} }",
       "sharding has 1 elements, but (f32[4], f32[4]) has 2 leaves"},
      {"HloModule m\nENTRY e { ROOT x = (f32[4], f32[4]) parameter(0), sharding={replicated} }", nullptr},
  };
  check(cases);
}

// --- header ---

TEST(VerifyHeader, LayoutAliasesDonors) {
  const ModuleCase cases[] = {
      {"HloModule m, entry_computation_layout={(f32[2])->f32[2]}\nENTRY e { ROOT x = f32[2] parameter(0) }", nullptr},
      {"HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { ROOT x = f32[2] parameter(0) }",
       nullptr},
  };
  check(cases);
}

TEST(VerifyHeader, BuiltAliases) {
  Expected<std::unique_ptr<Module>> module = parse_module(
      "HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[4] concatenate(x, x), dimensions={0} }");
  ASSERT_TRUE(module.ok());
  Module& m = **module;
  ModuleHeader& header = m.header();
  const auto error = [&] { return verify_module(m).message(); };
  header.aliases = {{{}, 1, {}, false}};
  EXPECT_THAT(error(), HasSubstr("input_output_alias names parameter 1 of 1"));
  header.aliases = {{{}, 0, m.dims({0}), false}};
  EXPECT_THAT(error(), HasSubstr("input_output_alias names {0} of parameter 0, where there is nothing"));
  header.aliases = {{m.dims({3}), 0, {}, false}};
  EXPECT_THAT(error(), HasSubstr("input_output_alias names {3} of the result f32[4]"));
  header.aliases = {{{}, 0, {}, false}};
  EXPECT_THAT(error(), HasSubstr("input_output_alias joins f32[2] and f32[4], which have different sizes"));
  header.aliases.clear();
  header.donors = {{0, {}}};
  EXPECT_EQ(error(), "");
  header.donors = {{7, {}}};
  EXPECT_THAT(error(), HasSubstr("buffer_donor names parameter 7 of 1"));
  header.donors.clear();
  header.entry_parameters = {Shape::array(Type::F32, {3})};
  header.has_entry_layout = true;
  EXPECT_THAT(error(), HasSubstr("entry_computation_layout says that parameter 0 is f32[3]"));
  header.entry_parameters.clear();
  EXPECT_THAT(error(), HasSubstr("entry_computation_layout has 0 parameters"));
  header.has_entry_layout = false;
  header.replica_count = 0;
  EXPECT_THAT(error(), HasSubstr("replica_count 0 is not positive"));
}

TEST(VerifyHeader, ComplaintsHaveTheirLines) {
  Expected<std::unique_ptr<Module>> module = parse_module(R"(
HloModule m, replica_count=0,
  input_output_alias={ {}: (0, {}),
    {}: (1, {}) }, buffer_donor={ (0, {1}),
    (2, {}) },
  entry_computation_layout={(f32[2])->f32[3]}
ENTRY e { p = f32[4] parameter(0)
  ROOT z = f32[2] slice(p), slice={[0:2]} })");
  ASSERT_TRUE(module.ok()) << module.status().message();
  Diagnostics diagnostics("m.hlo");
  verify_module(**module, {}, diagnostics);
  std::string lines;
  for (const Diagnostic& d : diagnostics.list()) lines += std::to_string(d.line) + " " + d.message.substr(0, 19) + "\n";
  EXPECT_EQ(lines,
            "2 replica_count 0 is \n6 entry_computation_l\n6 entry_computation_l\n3 input_output_alias \n"
            "4 buffer_donor names \n5 buffer_donor names \n");
}

}  // namespace
}  // namespace collet::hlo
