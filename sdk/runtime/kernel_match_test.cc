// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_match.hpp>
#include <collet/kernel_quantized.hpp>

#include <gtest/gtest.h>

#include "hlo/program/write.h"
#include "hlo/text/parser.h"

namespace collet::kernel {
namespace {

// Matches an expression pattern against the fusion of a program.
class Matching : public ::testing::Test {
 protected:
  // `body` is the computation that the fusion calls, with parameters of these types; `result` is its type.
  static Matched find(const std::string& body, const std::vector<std::string>& types, const std::string& result,
                      const std::function<Matched(const Op&)>& match) {
    std::string text = "HloModule m\n";
    for (const char* op : {"maximum", "add"}) {
      text += std::string(op) + "_of {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] " + op +
              "(a, b)\n}\n";
    }
    std::string entry = "ENTRY e {\n", operands;
    text += "f {\n";
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string line = " = " + types[i] + " parameter(" + std::to_string(i) + ")\n";
      text += " x" + std::to_string(i) + line;
      entry += " p" + std::to_string(i) + line;
      operands += (i ? ", p" : "p") + std::to_string(i);
    }
    text += body + "}\n" + entry + " ROOT r = " + result + " fusion(" + operands + "), kind=kLoop, calls=f\n}\n";
    const auto module = hlo::parse_module(text);
    EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
    if (!module.ok()) return {};
    const auto program = hlo::write_program(**module);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    if (!program.ok()) return {};
    const collet_program* p = program->get();
    Matched out;
    RegionGraph::for_each_op(p, [&](const collet_op* op) {
      if (op->opcode != COLLET_OP_FUSION) return;
      const std::vector<Array> arrays = RegionGraph(p).arrays(op);
      out = match(Op(p, op, arrays.data()));
    });
    return out;
  }
};

TEST_F(Matching, MultiplyAddInAnyOrder) {
  const std::vector<std::string> types(3, "f32[5]");
  Matched found =
      find(" m = f32[5] multiply(x2, x0)\n ROOT s = f32[5] add(x1, m)\n", types, "f32[5]", match_multiply_add);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.operand(2), 1u);
  EXPECT_EQ(found.operand(0) + found.operand(1), 2u);
  found = find(" m = f32[5] multiply(x0, x0)\n ROOT s = f32[5] add(m, x0)\n", {"f32[5]"}, "f32[5]", match_multiply_add);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.operand(1), 0u);
  EXPECT_FALSE(
      find(" m = f32[5] multiply(x2, x0)\n ROOT s = f32[5] subtract(m, x1)\n", types, "f32[5]", match_multiply_add));
  EXPECT_FALSE(
      find(" a = f32[5] add(x2, x0)\n ROOT s = f32[5] multiply(a, x1)\n", types, "f32[5]", match_multiply_add));
  const std::string more =
      " m = f32[5] multiply(x2, x0)\n n = f32[5] negate(m)\n a = f32[5] add(m, n)\n ROOT s = f32[5] add(a, x1)\n";
  EXPECT_FALSE(find(more, types, "f32[5]", match_multiply_add));
}

TEST_F(Matching, InputsThatStandTwiceAreTheSame) {
  using namespace shape;
  const Shape what = add(multiply(input(0), input(1)), input(1));
  const auto look = [&](const Op& op) { return match(op, what); };
  // The pattern matches only with the operands of the product swapped.
  const Matched found =
      find(" m = f32[5] multiply(x1, x0)\n ROOT s = f32[5] add(m, x1)\n", {"f32[5]", "f32[5]"}, "f32[5]", look);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.operand(0), 0u);
  EXPECT_EQ(found.operand(1), 1u);
  EXPECT_FALSE(find(" m = f32[5] multiply(x1, x0)\n ROOT s = f32[5] add(m, x2)\n", {"f32[5]", "f32[5]", "f32[5]"},
                    "f32[5]", look));
}

TEST_F(Matching, Softmax) {
  const auto body = [](const std::string& least, const std::string& dims, const std::string& last) {
    return " low = f32[] constant(" + least +
           ")\n most = f32[4] reduce(x0, low), dimensions={1}, to_apply=maximum_of\n" +
           " mosts = f32[4,4] broadcast(most), dimensions={" + dims + "}\n d = f32[4,4] subtract(x0, mosts)\n" +
           " e = f32[4,4] exponential(d)\n zero = f32[] constant(0)\n" +
           " sum = f32[4] reduce(e, zero), dimensions={1}, to_apply=add_of\n" +
           " sums = f32[4,4] broadcast(sum), dimensions={0}\n ROOT r = f32[4,4] " + last + "(e, sums)\n";
  };
  EXPECT_TRUE(find(body("-inf", "0", "divide"), {"f32[4,4]"}, "f32[4,4]", match_softmax));
  EXPECT_FALSE(find(body("0", "0", "divide"), {"f32[4,4]"}, "f32[4,4]", match_softmax)) << "max(x, 0)";
  EXPECT_FALSE(find(body("-inf", "1", "divide"), {"f32[4,4]"}, "f32[4,4]", match_softmax)) << "another dimension";
  EXPECT_FALSE(find(body("-inf", "0", "multiply"), {"f32[4,4]"}, "f32[4,4]", match_softmax));
}

TEST_F(Matching, Gelu) {
  const auto body = [](const std::string& half_text) {
    return " h = f32[] constant(" + half_text + ")\n hs = f32[8] broadcast(h), dimensions={}\n" +
           " c = f32[] constant(0.044715)\n cs = f32[8] broadcast(c), dimensions={}\n" +
           " k = f32[] constant(0.797884583)\n ks = f32[8] broadcast(k), dimensions={}\n" +
           " one = f32[] constant(1)\n ones = f32[8] broadcast(one), dimensions={}\n" +
           " x2 = f32[8] multiply(x0, x0)\n x3 = f32[8] multiply(x2, x0)\n cx = f32[8] multiply(x3, cs)\n" +
           " in = f32[8] add(x0, cx)\n kin = f32[8] multiply(in, ks)\n t = f32[8] tanh(kin)\n" +
           " p = f32[8] add(t, ones)\n hp = f32[8] multiply(hs, p)\n ROOT r = f32[8] multiply(x0, hp)\n";
  };
  EXPECT_TRUE(find(body("0.5"), {"f32[8]"}, "f32[8]", match_gelu));
  EXPECT_FALSE(find(body("0.25"), {"f32[8]"}, "f32[8]", match_gelu));
}

TEST_F(Matching, NumbersToThePrecisionOfTheirTypes) {
  using namespace shape;
  // The product of x0 with a constant of type `from` that is converted to `to`, unless this is the same.
  const auto matches = [](double wanted, const std::string& from, const std::string& text, std::string to = {}) {
    if (to.empty()) to = from;
    std::string body = " c = " + from + "[] constant(" + text + ")\n";
    if (to != from) body += " d = " + to + "[] convert(c)\n";
    body += " s = " + to + "[8] broadcast(" + (to != from ? "d" : "c") + "), dimensions={}\n ROOT r = " + to +
            "[8] multiply(x0, s)\n";
    const auto look = [&](const Op& op) { return match(op, multiply(input(0), number(wanted))); };
    return static_cast<bool>(find(body, {to + "[8]"}, to + "[8]", look));
  };
  constexpr double kRoot = 0.7978845608;  // sqrt(2 / pi)
  for (const char* const text : {"0.7978845608028654", "0.797884583", "0.7978846", "0.79788456"}) {
    EXPECT_TRUE(matches(kRoot, "f32", text)) << text;
    EXPECT_TRUE(matches(kRoot, "f64", text)) << text;
    EXPECT_TRUE(matches(kRoot, "f16", text)) << text;
    EXPECT_TRUE(matches(kRoot, "bf16", text)) << text;
  }
  for (const char* const type : {"f32", "f64"}) {
    for (const char* const text : {"0.8", "0.7978", "0.80078125", "0.79"})
      EXPECT_FALSE(matches(kRoot, type, text)) << text;
    EXPECT_FALSE(matches(1, type, "1.004"));
    EXPECT_FALSE(matches(1, type, "0.99609375")) << "the next number of bf16";
    EXPECT_FALSE(matches(3, type, "3.01"));
    EXPECT_TRUE(matches(kRoot, type, "0.796875")) << "rounded to bf16";
    EXPECT_TRUE(matches(kRoot, type, "0.7978515625")) << "rounded to f16";
    EXPECT_FALSE(matches(1e-12, type, "0"));
    EXPECT_FALSE(matches(1e-7, type, "1.1920929e-07")) << "rounded to f16, but far off";
    EXPECT_FALSE(matches(1e6, type, "inf"));
  }
  EXPECT_FALSE(matches(kRoot, "f16", "0.799"));
  EXPECT_FALSE(matches(1, "bf16", "1.0078125"));
  EXPECT_TRUE(matches(0.044715, "f16", "0.0447"));
  EXPECT_TRUE(matches(0.044715, "bf16", "0.0447"));
  // Conversions round.
  EXPECT_TRUE(matches(kRoot, "bf16", "0.797", "f32"));
  EXPECT_FALSE(matches(kRoot, "bf16", "0.803", "f32"));
  EXPECT_TRUE(matches(kRoot, "f32", "0.7978846", "bf16"));
  EXPECT_TRUE(matches(kRoot, "f32", "0.7978846", "f16"));
  EXPECT_TRUE(matches(3, "s32", "3", "f32"));
  EXPECT_FALSE(matches(3, "s32", "4", "f32"));
  EXPECT_TRUE(matches(2, "f32", "2.5", "s32"));
  EXPECT_FALSE(matches(2.5, "f32", "2.5", "s32"));
}

TEST_F(Matching, LayerNorm) {
  const std::string body =
      " zero = f32[] constant(0)\n sum = f32[4] reduce(x0, zero), dimensions={1}, to_apply=add_of\n"
      " n = f32[] constant(8)\n ns = f32[4] broadcast(n), dimensions={}\n mean = f32[4] divide(sum, ns)\n"
      " means = f32[4,8] broadcast(mean), dimensions={0}\n d = f32[4,8] subtract(x0, means)\n"
      " dd = f32[4,8] multiply(d, d)\n dsum = f32[4] reduce(dd, zero), dimensions={1}, to_apply=add_of\n"
      " var = f32[4] divide(dsum, ns)\n eps = f32[] constant(1e-05)\n es = f32[4] broadcast(eps), dimensions={}\n"
      " safe = f32[4] add(es, var)\n root = f32[4] rsqrt(safe)\n roots = f32[4,8] broadcast(root), dimensions={0}\n"
      " dn = f32[4,8] multiply(d, roots)\n g = f32[4,8] broadcast(x2), dimensions={1}\n gd = f32[4,8] multiply(g, dn)\n"
      " b = f32[4,8] broadcast(x1), dimensions={1}\n ROOT r = f32[4,8] add(gd, b)\n";
  const Matched found = find(body, {"f32[4,8]", "f32[8]", "f32[8]"}, "f32[4,8]", match_layer_norm);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.operand(1), 2u) << "scale";
  EXPECT_EQ(found.operand(2), 1u) << "shift";
  EXPECT_EQ(found.number(0), 8);
  EXPECT_NEAR(found.number(1), 1e-5, 1e-9);
}

TEST_F(Matching, QuantizedDot) {
  const std::string body =
      " w = f32[8,3] convert(x1)\n d = f32[4,3] dot(x0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " s = f32[4,3] broadcast(x2), dimensions={1}\n ROOT r = f32[4,3] multiply(s, d)\n";
  const Matched found = find(body, {"f32[4,8]", "s8[8,3]", "f32[3]"}, "f32[4,3]", match_quantized_dot);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.operand(1), 1u);
}

// Calls `check` with the call of a composite with these attributes.
void with_composite(const std::string& attributes, const std::function<void(const Op&)>& check) {
  const auto module = hlo::parse_module(
      "HloModule m\nf {\n x = s32[2,3] parameter(0)\n b = s32[3] parameter(1)\n ROOT y = s8[2,3] convert(x)\n}\nENTRY "
      "e {\n"
      " x = s32[2,3] parameter(0)\n b = s32[3] parameter(1)\n ROOT r = s8[2,3] call(x, b), is_composite=true, "
      "to_apply=f, "
      "frontend_attributes={composite.attributes={" +
      attributes + "},composite.name=\"requantize\",composite.version=\"0\"}\n}\n");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const auto program = hlo::write_program(**module);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const collet_program* p = program->get();
  int calls = 0;
  RegionGraph::for_each_op(p, [&](const collet_op* op) {
    if (op->opcode != COLLET_OP_CALL) return;
    ++calls;
    const std::vector<Array> arrays = RegionGraph(p).arrays(op);
    check(Op(p, op, arrays.data()));
  });
  EXPECT_EQ(calls, 1);
}

TEST(Quantized, GroupComputesWhatItsAttributesSay) {
  const std::string common =
      R"(operands = "x,bias", bias_dims = array<i64: 1>, bias_type = "integer", factor = 0.5 : f64, )"
      R"(low = -100 : i64, high = 90 : i64, zero_point = 3 : i64, activation = "none", )";
  const auto value = [](const Op& op, int32_t sum) {
    return QuantizedGroup(op).result(op, sum, 5, [](const Array& array, uint64_t i) {
      return array.rank == 1 ? static_cast<double>(10 * i) : 0.0;  // the bias of element 5 = [1, 2] is 20
    });
  };
  // (sum + 20) / 2 = 2.5: with the zero point 5.5, whose even neighbour is 6; before the zero point 2.
  with_composite(common + R"(zero_point_added = "before_rounding", rounding = "even")", [&](const Op& op) {
    EXPECT_EQ(value(op, -15), 6);
    EXPECT_EQ(value(op, 100000), 90);
    EXPECT_EQ(value(op, -100000), -100);
  });
  with_composite(common + R"(zero_point_added = "after_rounding", rounding = "even")",
                 [&](const Op& op) { EXPECT_EQ(value(op, -15), 5); });
  with_composite(common + R"(zero_point_added = "after_rounding", rounding = "away")",
                 [&](const Op& op) { EXPECT_EQ(value(op, -15), 6); });
}

TEST(Quantized, GroupThatDoesNotNameItsOperandsIsRefused) {
  for (const std::string attributes : {"", R"(operands = "x")", R"(operands = "x,bias,scale")"})
    with_composite(attributes, [&](const Op& op) { EXPECT_THROW(QuantizedGroup{op}, Error) << attributes; });
}

}  // namespace
}  // namespace collet::kernel
