// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

// Returns "line:column message" for every error, one per line.
std::string errors(std::string_view text, const ParseOptions& options = {}) {
  Diagnostics diagnostics("test", 20);
  const auto module = parse_module(text, options, diagnostics);
  EXPECT_EQ(module == nullptr, !diagnostics.empty());
  std::string out;
  for (const Diagnostic& d : diagnostics.list())
    out += std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.message + "\n";
  return out;
}

// Returns the error for one instruction on line 3, after p = f32[4] and q = f32[2,2].
std::string error(const std::string& instruction) {
  return errors("HloModule m ENTRY e {\n p = f32[4] parameter(0) q = f32[2,2] parameter(1)\n" + instruction + "\n}");
}

TEST(Errors, OfShardingsOnMeshes) {
  const auto on_mesh = [](std::string_view sharding) {
    return error("x = f32[4] negate(p), sharding={" + std::string(sharding) + "}");
  };
  for (std::string_view good :
       {"mesh['x'=2,'y'=4], [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}", "mesh['x'=2] [{'x'}]", "mesh[], [{}, {}]",
        "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)), [{'x'}, {?}], unreduced={'y'}", "maximal_mesh[device_id=1]",
        "mesh['x'=2], device_ids=(1,0), [{'x'}], manual={}", "mesh['x'=2], [{'0'}]", "mesh[\"x\"=2], [{\"x\"}]",
        "mesh['x'=2], [{}], metadata={op_name=\"}\"}", "mesh['x'=2], replicated"})
    EXPECT_EQ(on_mesh(good), "") << good;
  for (std::string_view bad : {"mesh['x'=2,y=4], [{'x'}]",
                               "mesh[x=2], [{x}]",
                               "mesh['x'=2], [{'q'}]",
                               "mesh['x'=2], [{'1'}]",
                               "mesh['x'=2 'y'=4], [{'x'}]",
                               "mesh['x'=2,], [{'x'}]",
                               "mesh['x'=2,'y'=4], [{'x'} {'y'}]",
                               "mesh['x'=2,'x'=4], [{'x'}]",
                               "mesh['x'=0], [{'x'}]",
                               "mesh['x'=2], [{'x'}, {'x'}]",
                               "mesh['x'=2], [{?, 'x'}]",
                               "mesh['x'=2], [{'x':(1)3}]",
                               "mesh['x'=4], [{'x':(2)4}]",
                               "mesh['x'=2], bogus={'x'}",
                               "mesh['x'=2], [{'x'},]",
                               "mesh['x'=2], [{'x'}] replicated={}",
                               "mesh['x'=2], replicated={}, [{'x'}]",
                               "mesh['x'=2], [{'x'}], metadata=3",
                               "mesh['x'=2], device_ids=(1,0, [{'x'}]",
                               "maximal_mesh[device_id=-1]",
                               "maximal_mesh[device_id=1], []"})
    EXPECT_NE(on_mesh(bad), "") << bad;
}

TEST(Errors, NameTheNearestSpelling) {
  EXPECT_EQ(error("x = f32[4] nagate(p)"), "3:12 there is no opcode 'nagate'; did you mean 'negate'?\n");
  EXPECT_EQ(error("x = f33[4] negate(p)"), "3:5 there is no element type 'f33'; did you mean 'f32'?\n");
  EXPECT_EQ(error("x = float32[4] negate(p)"), "3:5 there is no element type 'float32'; did you mean 'f32'?\n");
  EXPECT_EQ(error("x = BF16[4] negate(p)"), "3:5 there is no element type 'BF16'; did you mean 'bf16'?\n");
  EXPECT_EQ(error("x = pred[4] compare(p, p), direction=lt"),
            "3:38 attribute 'direction' has no value 'lt'; did you mean 'LT'?\n");
  EXPECT_EQ(error("x = f32[4] negate(p), sharding={replicate}"),
            "3:33 there is no sharding 'replicate'; did you mean 'replicated'?\n");
  EXPECT_EQ(error("x = f32[2] slice(p), slices={[0:2]}"),
            "3:22 slice has no attribute 'slices'; did you mean 'slice'?\n");
  EXPECT_EQ(error("x = pred[4] compare(p, p), direction=EG"),
            "3:38 attribute 'direction' has no value 'EG'; did you mean 'EQ'?\n");
  EXPECT_EQ(error("x = f32[4] negate(pp)"), "3:19 instruction 'pp' is not defined before its use; did you mean 'p'?\n");
  EXPECT_EQ(error("x = f32[] call(), to_apply=f"), "3:28 computation 'f' is not defined before its use\n");
  EXPECT_EQ(error("x = f32[4] negate(p), metadata={op_nam=\"a\"}"),
            "3:33 metadata has no 'op_nam'; did you mean 'op_name'?\n");
  EXPECT_EQ(errors("HloModule m, is_schedulled=true\nENTRY e { x = f32[] constant(1) }"),
            "1:14 a module has no attribute 'is_schedulled'; did you mean 'is_scheduled'?\n");
}

TEST(Errors, SayWhatIsMissingOrTwice) {
  EXPECT_EQ(error("x = f32[4] negate(p, p)"), "3:18 negate expects 1 operand, but has 2\n");
  EXPECT_EQ(error("x = f32[] reduce(p, p), dimensions={0}"), "3:23 attribute 'to_apply' of reduce is missing\n");
  EXPECT_EQ(error("x = f32[4] transpose(p), dimensions={0}, dimensions={0}"),
            "3:42 attribute 'dimensions' is given twice\n");
  EXPECT_EQ(error("x = f32[4,2] broadcast(p)"),
            "4:1 attribute 'dimensions' of broadcast is missing; only a scalar needs none\n");
  EXPECT_EQ(error("p = f32[4] negate(p)"), "3:1 instruction 'p' is defined twice\n");
  EXPECT_EQ(error("x = f32[] parameter(1)"), "3:1 parameter number 1 is given twice\n");
  EXPECT_EQ(error("x = f32[] parameter(3)"), "4:1 computation has 3 parameters, so none may have number 3\n");
  EXPECT_EQ(error("x = slice(p), slice={[0:1]}"), "3:10 the shape of slice must be written before it\n");
  EXPECT_EQ(errors("HloModule m\na { x = f32[] constant(1) }\na { x = f32[] constant(1) }"),
            "3:1 computation 'a' is defined twice\n");
  EXPECT_EQ(errors("HloModule m\nENTRY a { x = f32[] constant(1) }\nENTRY b { x = f32[] constant(1) }"),
            "3:1 a module has only one ENTRY\n");
  EXPECT_EQ(error("ROOT x = f32[4] negate(p)\n ROOT y = f32[4] negate(p)"), "4:2 a computation has only one ROOT\n");
}

TEST(Errors, ConcernLiterals) {
  EXPECT_EQ(error("x = s4[] constant(8)"), "3:19 value 8 is out of range for s4, [-8, 7]\n");
  EXPECT_EQ(error("x = f16[] constant(65520)"), "3:20 value 65520 is out of range for f16, [-65504, 65504]\n");
  EXPECT_EQ(error("x = f32[] constant(1e999)"), "3:20 the number is too large for f64\n");
  EXPECT_EQ(error("x = f8e8m0fnu[] constant(0)"),
            "3:26 value 0 is out of range for f8e8m0fnu, [5.87747e-39, 1.70141e+38]\n");
  EXPECT_EQ(error("x = s32[2] constant({1, 2, 3})"), "3:28 dimension 0 of the literal has more than 2 elements\n");
  EXPECT_EQ(error("x = s32[2] constant({1})"), "3:23 dimension 0 of the literal has 2 elements, but 1 are written\n");
  EXPECT_EQ(error("x = s32[] constant({1})"), "3:20 expects an integer, as the literal's type is s32 but finds '{'\n");
  EXPECT_EQ(error("x = s32[2,1] constant({1, 2})"),
            "3:24 the literal has 2 dimensions, but its elements stand in 1 braces\n");
  EXPECT_EQ(error("x = f8e4m3fn[] constant(nan(0x1))"), "3:25 f8e4m3fn has no NaN with a payload\n");
  EXPECT_EQ(error("x = f16[] constant(nan(0x400))"), "3:20 the NaN payload is too large for f16\n");
  EXPECT_EQ(error("x = c64[] constant((1e99, 0))"),
            "3:21 real part 1e+99 is out of range for c64, [-3.40282e+38, 3.40282e+38]\n");
}

TEST(Errors, ConcernNames) {
  EXPECT_EQ(error("%f32 = f32[4] negate(p)"), "3:1 an instruction may not be called 'f32'\n");
  EXPECT_EQ(error("__x = f32[4] negate(p)"), "3:1 an instruction may not be called '__x'\n");
  EXPECT_EQ(error("%true = f32[4] negate(p) __xla_x = f32[4] negate(p)"), "");
}

TEST(Errors, ConcernShapesAndLayouts) {
  EXPECT_EQ(error("x = f32[2,2]{0} negate(q)"), "3:13 the shape has 2 dimensions, but its layout 1\n");
  EXPECT_EQ(error("x = f32[4] negate(f32[5] p)"), "3:26 operand is declared as f32[5], but 'p' is f32[4]\n");
  EXPECT_EQ(errors("HloModule m\nf (x: f32[]) -> f32[2] {\n x = f32[] parameter(0)\n}"),
            "2:17 computation 'f' declares the result f32[2], but its root 'x' is f32[]\n");
}

TEST(Errors, AreSeveralInOneRun) {
  EXPECT_EQ(errors(R"(HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] addd(a, a)
  c = f32[] negate(b)
  ROOT d = f32[] add(c, e)
}
ENTRY main {
  p = f32[4] parameter(0)
  q = f32[4] map(p), to_apply=f
  r = f32[4] nope(p)
  ROOT s = f32[4] add(q, r), foo=1
})"),
            "4:13 there is no opcode 'addd'; did you mean 'add'?\n"
            "11:14 there is no opcode 'nope'\n");
}

TEST(Errors, ComeWithSourceLineAndCaret) {
  const auto module = parse_module("HloModule m\nENTRY e {\n\tx = f32[] nagate(y)\n}", "file.hlo");
  EXPECT_EQ(module.status().message(),
            "file.hlo:3:12: error: there is no opcode 'nagate'; did you mean 'negate'?\n  \tx = f32[] nagate(y)\n"
            "  \t          ^");
}

TEST(Errors, CaretsStandUnderTheirCharacters) {
  Diagnostics diagnostics("test");
  parse_module("ENTRY e {\n\tp = f32[] parameter(0), metadata={op_name=\"größe→\"}, odd=1\n}", {}, diagnostics);
  EXPECT_NE(diagnostics.to_string().find("\n  \tp = f32[] parameter(0), metadata={op_name=\"größe→\"}, odd=1\n  \t" +
                                         std::string(53, ' ') + "^"),
            std::string::npos)
      << diagnostics.to_string();
}

TEST(Errors, StopAtTheLimit) {
  std::string text = "ENTRY e {\n";
  for (int i = 0; i < 100; ++i) text += "  x" + std::to_string(i) + " = f32[] nope()\n";
  ParseOptions options;
  options.max_errors = 3;
  const auto module = parse_module(text + "}", "f", options);
  const std::string message = module.status().message();
  size_t count = 0;
  for (size_t at = 0; (at = message.find("error:", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 3u);
}

TEST(Errors, NeverTakeMemoryThatTheTextDoesNotHold) {
  EXPECT_NE(error("x = s32[1000000000000] constant({1})"), "");
  EXPECT_NE(error("x = s32[1000000000000] constant(1)"), "");
  EXPECT_NE(error("x = s32[9223372036854775807,9223372036854775807] constant({...})"), "");
  EXPECT_NE(error("x = f32[] parameter(9223372036854775807)"), "");
  EXPECT_NE(error("x = f32[4] all-reduce(p), replica_groups=[1000000,1000000]<=[1000000000000]"), "");
}

TEST(Errors, StopDeepNesting) {
  const std::string open(100000, '(');
  EXPECT_NE(errors("HloModule m\nENTRY e { x = " + open), "");
  std::string nested = "x";
  for (int i = 0; i < 5000; ++i) nested = "f32[] negate(" + nested;
  EXPECT_NE(errors("HloModule m\nENTRY e { x = f32[] parameter(0)\n y = " + nested), "");
  std::string inlined;
  for (int i = 0; i < 5000; ++i) inlined += "x = f32[] call(), to_apply={";
  EXPECT_NE(errors("HloModule m\nENTRY e { " + inlined), "");
}

TEST(Errors, MeetTruncatedTextEverywhere) {
  const std::string text = R"(HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4]{0:T(128)} parameter(0), sharding={devices=[2,2]<=[4]}
  k = f32[2]{0} constant({1, 2.5})
  ROOT r = f32[4] all-reduce(p), to_apply=f, replica_groups={{0,1}}, metadata={op_name="x"}
})";
  EXPECT_EQ(errors(text), "");
  const size_t first_computation_ends = text.find("ENTRY");
  for (size_t n = 0; n < text.size(); ++n)
    if (n < first_computation_ends - 2 || n > first_computation_ends) {
      EXPECT_NE(errors(text.substr(0, n)), "") << n;
    }
}

TEST(Errors, AsyncChainsHoldTogether) {
  const std::string start = "s = ((f32[4]), f32[4], u32[]) custom-call-start(p), custom_call_target=\"f\"\n";
  EXPECT_EQ(error(start + "d = f32[4] add-done(s)"), "5:1 the async computation does custom-call, not add\n");
  EXPECT_EQ(error("d = f32[4] custom-call-done(p)"),
            "4:1 async-done expects one operand of the form ((operands), results, state...)\n");
  EXPECT_EQ(error(start + "d = f32[4] custom-call-done(s), async_execution_thread=\"x\""),
            "5:1 async_execution_thread is 'main', not 'x'\n");
  EXPECT_EQ(error("s = ((f32[4]), f32[4], u32[]) parameter-start(p)"), "3:31 parameter cannot be made asynchronous\n");
}

TEST(Errors, OfWordsThatAreNoNames) {
  EXPECT_EQ(error("z=f32[] constant(1)"), "3:1 a blank must stand between the name 'z' and its '='\n");
  EXPECT_EQ(error("ROOT z=f32[] constant(1)"), "3:6 a blank must stand between the name 'z' and its '='\n");
  EXPECT_EQ(error("%z=f32[] constant(1)"), "");
  EXPECT_EQ(error("z = f32[4] negate(p) metadata={}"), "3:22 a comma must stand before the attribute 'metadata='\n");
  EXPECT_EQ(error("z = f32[4] negate(p), metadata ={}"),
            "3:23 the '=' must stand right behind the attribute's name: metadata=\n");
  EXPECT_EQ(error("z = f32[4] negate(p), metadata={op_name = \"a\"}"),
            "3:33 the '=' must stand right behind the attribute's name: op_name=\n");
  EXPECT_EQ(error("z = f32[4] negate(p), control-predecessors={p=}"), "3:45 expects a name but finds 'p='\n");
  EXPECT_EQ(error("f32 = f32[] constant(1)"), "3:1 expects a name, which 'f32' is not: it is an element type\n");
  EXPECT_EQ(error("inf = f32[] constant(1)"), "3:1 expects a name, which 'inf' is not: the word is reserved\n");
  EXPECT_EQ(error("%5 = f32[] constant(1)"), "3:1 a name that begins with a letter or '_' must follow '%'\n");
  EXPECT_EQ(errors("HloModule m, is_scheduled = true\nENTRY e { x = f32[] constant(1) }"),
            "1:14 the '=' must stand right behind the attribute's name: is_scheduled=\n");
}

TEST(Errors, OfBytesThatAreNoText) {
  using namespace std::string_view_literals;
  EXPECT_EQ(errors(""), "1:1 the text is empty: there is no module in it\n");
  EXPECT_EQ(errors(" // only this\n"), "2:1 the text is empty: there is no module in it\n");
  EXPECT_EQ(errors("HloModule m\nENTRY e { x = f32[]\0 constant(1) }"sv), "2:20 NUL byte 0x00 in the text\n");
  EXPECT_EQ(errors("HloModule m\n// a\0b\nENTRY e { x = f32[] constant(1) }"sv), "2:5 NUL byte 0x00 in the text\n");
  EXPECT_EQ(errors("HloModule m\nENTRY e { x = f32[] \x1b constant(1) }"), "2:21 control byte 0x1b in the text\n");
  EXPECT_EQ(errors("\xef\xbb\xbfHloModule m\nENTRY e { x = f32[] constant(1) }"),
            "1:1 unexpected byte 0xef in the text\n");
  EXPECT_EQ(errors("HloModule m\nENTRY e { x = f32[] constant(1); }"), "2:32 unexpected ';'\n");
  EXPECT_EQ(errors("{\"inputs\": []}"),
            "1:1 expects 'HloModule name', a computation or an instruction but finds '{'\n");
  // Control bytes of the text must not reach the terminal that shows the message.
  const auto module = parse_module("HloModule m\nENTRY e { x = f32[] \x1b[2Jconstant(1) }", "f", {});
  EXPECT_EQ(module.status().message().find('\x1b'), std::string::npos);
  EXPECT_NE(module.status().message().find("x = f32[] ?[2Jconstant(1) }"), std::string::npos);
}

TEST(Errors, OfAliasesNameTheirLines) {
  const std::string entry = "ENTRY e { ROOT x = f32[4] parameter(0) }";
  EXPECT_EQ(errors("HloModule m,\n input_output_alias={\n  {}: (0, {}),\n  {1}: (0, {}) }\n" + entry),
            "4:3 an alias names an output that the result f32[4] does not have\n");
  EXPECT_EQ(errors("HloModule m,\n input_output_alias={ {}: (-1, {}) }\n" + entry),
            "2:23 an alias names a negative parameter number\n");
}

}  // namespace
}  // namespace collet::hlo
