// SPDX-License-Identifier: Apache-2.0
// Tests that patterns that a device declares as text are found where their ops stand, and nowhere else, and that bad texts are
// refused with the line.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/patterns/declared_pattern.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo::patterns {
namespace {

using Pattern = std::shared_ptr<const DeclaredPattern>;

// The inverse of the root of the mean of squares, and what it scales: two results that share a reduction.
constexpr const char* kScale = R"(HloModule acme.scale
where $T in {f32, bf16}, $N % 8 == 0, $eps > 0, $eps < 0.01

add {
  a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT c = $T[] add(a, b)
}

ENTRY main {
  x = $T[$B...,$N] parameter(0)
  w = $T[$N] parameter(1)
  squares = $T[$B...,$N] multiply(x, x)
  zero = $T[] constant(0)
  sum = $T[$B...] reduce(squares, zero), dimensions={${#B}}, to_apply=add
  eps = $T[] constant($eps)
  epss = $T[$B...] broadcast(eps), dimensions={}
  more = $T[$B...] add(sum, epss)
  scale = $T[$B...] rsqrt(more)
  scales = $T[$B...,$N] broadcast(scale), dimensions={${@B}}
  ws = $T[$B...,$N] broadcast(w), dimensions={${#B}}
  scaled = $T[$B...,$N] multiply(x, scales)
  y = $T[$B...,$N] multiply(scaled, ws)
  ROOT both = ($T[$B...,$N], $T[$B...]) tuple(y, scale)
}
)";

constexpr const char* kPool = R"(HloModule acme.pool
where $T in {f32, s8}, $K in {2, 3}, $H >= $K, $W >= $K

most {
  a = $T[] parameter(0)
  b = $T[] parameter(1)
  ROOT c = $T[] maximum(a, b)
}

ENTRY main {
  x = $T[$N,$H,$W,$C] parameter(0)
  low = $T[] constant(0)
  lows = $T[$N,$H,$W,$C] broadcast(low), dimensions={}
  relu = $T[$N,$H,$W,$C] maximum(x, lows)
  ROOT y = $T[$N,${($H-$K)/2+1},${(W-K)/2+1},$C] reduce-window(relu, low), window={size=1x${K}x${K}x1 stride=1x2x2x1}, to_apply=most
}
)";

// Two forms of x * a + b, as an accumulator and as a sum of products, for one product of vectors.
constexpr const char* kForms = R"(
// scaled differences
HloModule acme.difference
where $T in {f32}
ENTRY a {
  x = $T[$N] parameter(0)
  y = $T[$N] parameter(1)
  d = $T[$N] subtract(x, y)
  ROOT r = $T[$N] multiply(d, d)
}

HloModule acme.difference.power
where $T in {f32}
ENTRY a {
  x = $T[$N] parameter(0)
  y = $T[$N] parameter(1)
  d = $T[$N] subtract(x, y)
  a = $T[$N] abs(d)
  ROOT r = $T[$N] multiply(d, a)
}
)";

Pattern pattern_of(const std::string& text) {
  auto pattern = DeclaredPattern::read(text);
  EXPECT_TRUE(pattern.ok()) << pattern.status().to_string();
  return pattern.ok() ? *pattern : nullptr;
}

struct Found {
  std::vector<std::string> names, attributes;
  size_t others = 0;  ///< ops beside groups, parameters, tuples and their elements
  std::string text;
};

// Groups the ops of a program, and compares the results before and after.
Found find(const std::string& text, const std::vector<Pattern>& patterns) {
  Found out;
  const auto plain = parse_module(text), grouped = parse_module(text);
  EXPECT_TRUE(plain.ok()) << plain.status().to_string();
  if (!plain.ok()) return out;
  PassContext context;
  context.keep_composite = [](const Module&, InstrId) { return true; };
  context.wants_pattern = [](std::string_view, uint32_t) { return false; };
  context.declared_patterns.assign(patterns.begin(), patterns.end());
  const auto ran = prepare_patterns(**grouped, context);
  EXPECT_TRUE(ran.ok()) << ran.status().to_string();
  EXPECT_TRUE(run_passes(**grouped, context, std::array{std::string_view("eliminate_dead")}).ok());
  const Module& m = **grouped;
  const Status sound = verify_module(m);
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  out.text = print_module(m);
  for (InstrId id : m.entry_computation().order) {
    if (m[id].op == Op::CALL && m[id].as<CallAttrs>().is_composite) {
      out.names.emplace_back(std::string_view(m[id].as<CallAttrs>().name));
      out.attributes.emplace_back(std::string_view(m[id].as<CallAttrs>().attributes));
    } else if (m[id].op != Op::PARAMETER && m[id].op != Op::TUPLE && m[id].op != Op::GET_TUPLE_ELEMENT) {
      ++out.others;
    }
  }
  const std::vector<Literal> inputs = testing::entry_inputs(**plain);
  const auto expected = Evaluator(**plain).run(inputs), got = Evaluator(m).run(inputs);
  EXPECT_TRUE(expected.ok() && got.ok()) << expected.status().to_string() << got.status().to_string();
  if (!expected.ok() || !got.ok()) return out;
  EXPECT_EQ(testing::difference(*expected, *got), "") << out.text;
  return out;
}

std::string module_of(const std::string& entry, const std::string& type = "f32") {
  return "HloModule m\nadd {\n  a = " + type + "[] parameter(0)\n  b = " + type +
         "[] parameter(1)\n  ROOT c = " + type + "[] add(a, b)\n}\nENTRY main {\n" + entry + "}\n";
}

constexpr const char* kScaleOps = R"(
  x = f32[3,4,16] parameter(0)
  w = f32[16] parameter(1)
  squares = f32[3,4,16] multiply(x, x)
  zero = f32[] constant(0)
  sum = f32[3,4] reduce(squares, zero), dimensions={2}, to_apply=add
  eps = f32[] constant(1e-5)
  epss = f32[3,4] broadcast(eps), dimensions={}
  more = f32[3,4] add(epss, sum)
  scale = f32[3,4] rsqrt(more)
  scales = f32[3,4,16] broadcast(scale), dimensions={0,1}
  ws = f32[3,4,16] broadcast(w), dimensions={2}
)";

// x * (y + x * (y + ... )), with `steps` products.
std::string nested_products(int steps, const std::string& type, const std::string& name) {
  std::string out =
      "HloModule " + name + "\n\nENTRY main {\n  x = " + type + " parameter(0)\n  y = " + type + " parameter(1)\n";
  std::string last = "y";
  for (int i = 0; i < steps; ++i) {
    const std::string n = std::to_string(i);
    out += "  product" + n + " = " + type + " multiply(x, " + last + ")\n";
    out += (i + 1 == steps ? "  ROOT sum" : "  sum") + n + " = " + type + " add(y, product" + n + ")\n";
    last = "sum" + n;
  }
  return out + "}\n";
}

TEST(DeclaredPatterns, groups_of_many_ops_are_found) {
  const Found found =
      find(nested_products(200, "f32[8]", "program"), {pattern_of(nested_products(200, "f32[$N]", "nest"))});
  EXPECT_EQ(found.names, std::vector<std::string>{"nest"});
  EXPECT_EQ(found.others, 0u);
}

TEST(DeclaredPatterns, a_pattern_with_too_many_ops_is_refused) {
  const auto read = DeclaredPattern::read(nested_products(600, "f32[$N]", "nest"));
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().to_string().find("1200 ops"), std::string::npos) << read.status().to_string();
}

TEST(DeclaredPatterns, a_group_with_two_results) {
  const Found found = find(module_of(std::string(kScaleOps) + R"(
  scaled = f32[3,4,16] multiply(scales, x)
  y = f32[3,4,16] multiply(ws, scaled)
  more_y = f32[3,4,16] negate(y)
  less = f32[3,4] negate(scale)
  ROOT r = (f32[3,4,16], f32[3,4]) tuple(more_y, less)
)"),
                           {pattern_of(kScale)});
  EXPECT_EQ(found.names, std::vector<std::string>{"acme.scale"}) << found.text;
  EXPECT_EQ(found.attributes, std::vector<std::string>{"{eps = 1e-05 : f64}"});
  EXPECT_EQ(found.others, 2u);
}

// Each x - exp(x) reads its value twice; the search for the second result sees each value once.
TEST(DeclaredPatterns, a_second_result_behind_values_that_are_read_twice) {
  std::string body = "  x0 = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n";
  for (int i = 0; i < 28; ++i) {
    const std::string at = std::to_string(i), next = std::to_string(i + 1);
    body += "  e" + at + " = f32[8] exponential(x" + at + ")\n  x" + next + " = f32[8] subtract(x" + at + ", e" + at +
            ")\n";
  }
  body +=
      "  s = f32[8] sine(y)\n  t = f32[8] tanh(s)\n  m = f32[8] multiply(x28, s)\n  ROOT r = (f32[8], f32[8]) tuple(t, "
      "m)\n";
  const Found found = find(module_of(body), {pattern_of("HloModule acme.two\nENTRY e {\n" + body + "}\n")});
  EXPECT_EQ(found.names, std::vector<std::string>{"acme.two"}) << found.text;
}

TEST(DeclaredPatterns, users_of_one_result_may_come_before_the_other) {
  const Found found = find(module_of(std::string(kScaleOps) + R"(
  less = f32[3,4] negate(scale)
  scaled = f32[3,4,16] multiply(scales, x)
  y = f32[3,4,16] multiply(ws, scaled)
  ROOT r = (f32[3,4,16], f32[3,4]) tuple(y, less)
)"),
                           {pattern_of(kScale)});
  EXPECT_EQ(found.names.size(), 1u) << found.text;
}

TEST(DeclaredPatterns, an_operand_that_depends_on_a_result_is_refused) {
  // w is computed from the scale, which the group would return.
  const Found found = find(module_of(R"(
  x = f32[4,16] parameter(0)
  squares = f32[4,16] multiply(x, x)
  zero = f32[] constant(0)
  sum = f32[4] reduce(squares, zero), dimensions={1}, to_apply=add
  eps = f32[] constant(1e-5)
  epss = f32[4] broadcast(eps), dimensions={}
  more = f32[4] add(sum, epss)
  scale = f32[4] rsqrt(more)
  w = f32[16] concatenate(scale, scale, scale, scale), dimensions={0}
  scales = f32[4,16] broadcast(scale), dimensions={0}
  ws = f32[4,16] broadcast(w), dimensions={1}
  scaled = f32[4,16] multiply(x, scales)
  y = f32[4,16] multiply(scaled, ws)
  ROOT r = (f32[4,16], f32[4]) tuple(y, scale)
)"),
                           {pattern_of(kScale)});
  EXPECT_TRUE(found.names.empty()) << found.text;
}

TEST(DeclaredPatterns, what_differs_is_no_group) {
  const Pattern pattern = pattern_of(kScale);
  const std::string rest = R"(
  scaled = f32[3,4,16] multiply(x, scales)
  y = f32[3,4,16] multiply(scaled, ws)
  ROOT r = (f32[3,4,16], f32[3,4]) tuple(y, scale)
)";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = module_of(kScaleOps + rest);
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return find(text, {pattern}).names.size();
  };
  EXPECT_EQ(with("1e-5", "1e-4"), 1u);
  EXPECT_EQ(with("1e-5", "1"), 0u) << "eps < 0.01";
  EXPECT_EQ(with("constant(0)", "constant(2)"), 0u) << "the initial value";

  EXPECT_EQ(with("f32", "f64"), 0u) << "T";
  EXPECT_EQ(with("f32", "bf16"), 1u);
  EXPECT_EQ(with("rsqrt", "sqrt"), 0u);
  EXPECT_EQ(with("c = f32[] add(a, b)", "c = f32[] maximum(a, b)"), 0u) << "the reduction";
}

TEST(DeclaredPatterns, an_inner_value_with_other_users_stays) {
  const Found found = find(module_of(std::string(kScaleOps) + R"(
  scaled = f32[3,4,16] multiply(x, scales)
  y = f32[3,4,16] multiply(scaled, ws)
  ROOT r = (f32[3,4,16], f32[3,4], f32[3,4,16]) tuple(y, scale, scaled)
)"),
                           {pattern_of(kScale)});
  EXPECT_TRUE(found.names.empty()) << found.text;
}

TEST(DeclaredPatterns, choices_stand_in_attributes) {
  const std::string text = R"(HloModule m
most {
  a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT c = s8[] maximum(a, b)
}
ENTRY main {
  x = s8[1,9,7,4] parameter(0)
  low = s8[] constant(0)
  lows = s8[1,9,7,4] broadcast(low), dimensions={}
  relu = s8[1,9,7,4] maximum(lows, x)
  ROOT y = s8[1,4,3,4] reduce-window(relu, low), window={size=1x3x3x1 stride=1x2x2x1}, to_apply=most
}
)";
  const Found found = find(text, {pattern_of(kPool)});
  EXPECT_EQ(found.names.size(), 1u) << found.text;
  EXPECT_EQ(found.attributes[0], "{K = 3 : i64}");
}

TEST(DeclaredPatterns, several_forms) {
  const std::string ops = "  x = f32[9] parameter(0)\n  y = f32[9] parameter(1)\n  d = f32[9] subtract(x, y)\n";
  const Pattern pattern = pattern_of(kForms);
  EXPECT_EQ(find(module_of(ops + "  ROOT r = f32[9] multiply(d, d)\n"), {pattern}).names.size(), 1u);
  const Found other = find(module_of(ops + "  a = f32[9] abs(d)\n  ROOT r = f32[9] multiply(a, d)\n"), {pattern});
  ASSERT_EQ(other.names.size(), 1u);
  EXPECT_EQ(other.names[0], "acme.difference");
}

TEST(DeclaredPatterns, earlier_patterns_come_first) {
  const Pattern square = pattern_of(
      "HloModule square\nwhere $T in {f32}\nENTRY e {\n  x = $T[$N] parameter(0)\n  ROOT y = $T[$N] multiply(x, "
      "x)\n}\n");
  const std::string text = module_of(
      "  x = f32[9] parameter(0)\n  y = f32[9] parameter(1)\n  d = f32[9] subtract(x, y)\n  ROOT r = f32[9] "
      "multiply(d, d)\n");
  EXPECT_EQ(find(text, {square, pattern_of(kForms)}).names, std::vector<std::string>{"square"});
  EXPECT_EQ(find(text, {pattern_of(kForms), square}).names, std::vector<std::string>{"acme.difference"});
}

TEST(DeclaredPatterns, instances_are_found) {
  for (const char* text : {kScale, kPool, kForms}) {
    const Pattern pattern = pattern_of(text);
    const auto instances = pattern->instances(7, 24);
    ASSERT_TRUE(instances.ok()) << instances.status().to_string();
    EXPECT_GE(instances->size(), 8u);
    for (const DeclaredPattern::Instance& one : *instances) {
      const Found found = find(one.text, {pattern});
      EXPECT_EQ(found.names.size(), 1u) << one.values << "\n" << found.text;
      EXPECT_EQ(found.others, 0u) << one.values << "\n" << found.text;
    }
    const auto again = pattern->instances(7, 24);
    EXPECT_EQ((*again)[3].text, (*instances)[3].text);
  }
}

TEST(DeclaredPatterns, a_near_miss_says_what_differs) {
  const auto module =
      parse_module(module_of("  x = f32[9] parameter(0)\n  y = f32[9] parameter(1)\n  d = f32[9] add(x, y)\n  ROOT r = "
                             "f32[9] multiply(d, d)\n"));
  ASSERT_TRUE(module.ok());
  NearestMiss miss;
  const Graph graph(**module, (*module)->entry());
  EXPECT_FALSE(pattern_of(kForms)->match(graph, (*module)->entry_computation().root, &miss));
  EXPECT_NE(miss.why.find("add 'd', f32[9], is another op: the pattern has subtract"), std::string::npos) << miss.why;
}

TEST(DeclaredPatterns, bad_texts_are_refused_with_the_line) {
  const std::string head = "HloModule p\n",
                    entry = "ENTRY e {\n  x = f32[$N] parameter(0)\n  ROOT y = f32[$N] negate(x)\n}\n";
  const auto error = [](const std::string& text) {
    const auto pattern = DeclaredPattern::read(text);
    return pattern.ok() ? std::string("no error") : pattern.status().message();
  };
  const auto holds = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(error(text).find(part), std::string::npos) << text << "\n" << error(text);
  };
  holds("", "there is no 'HloModule NAME'");
  holds("ENTRY e {}\n", "line 1: a pattern begins with 'HloModule NAME'");
  holds("HloModule\n", "line 1: the name after HloModule is missing");
  EXPECT_EQ(error(head + entry), "no error");
  holds(head + "where $M > 1\n" + entry, "line 2: $M does not occur");
  holds(head + "where $N >\n" + entry, "line 2: '$N >'");
  holds(head + "where $N\n" + entry, "is no condition");
  holds(head + "where $N > 4, $N < 4\n" + entry, "no values were found that meet the conditions");
  holds(head + "where $N in {1, 2}\n" + entry, "$N has a list; only types and attributes have one");
  holds(head + "ENTRY e {\n  x = $T[4] parameter(0)\n  ROOT y = $T[4] negate(x)\n}\n", "line 3: $T needs a list");
  holds(head + "where $T in {f33}\nENTRY e {\n  x = $T[4] parameter(0)\n  ROOT y = $T[4] negate(x)\n}\n",
        "line 4: 'f33', in the list of $T, is no element type");
  holds(head + "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[$M,4] broadcast(x), dimensions={1}\n}\n",
        "line 4: $M has no value: it must stand in the shape of a parameter");
  holds(head + "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[${M},4] broadcast(x), dimensions={1}\n}\n",
        "line 4: $M needs a list of what it may be");
  holds(head + "ENTRY e {\n  x = f32[$N+1] parameter(0)\n  ROOT y = f32[$N+1] negate(x)\n}\n",
        "line 3: '$N+1' is no size");
  holds(head + "ENTRY e {\n  x = f32[$A...,$B...] parameter(0)\n  ROOT y = f32[$A...,$B...] negate(x)\n}\n",
        "line 3: a shape has one list of sizes at most");
  holds(head + "ENTRY e {\n  x = f32[$N] parameter(0)\n  ROOT y = f32[${N+}] negate(x)\n}\n", "line 4: ${N+}");
  holds(head + "ENTRY e {\n  x = f32[$N] parameter(0)\n  ROOT y = f32[$N] nogate(x)\n}\n", "4:");
  holds(head + "ENTRY e {\n  x = f32[$N] parameter(0)\n  y = f32[$N] parameter(1)\n  ROOT z = f32[$N] negate(x)\n}\n",
        "parameter 'y' is not used");
  holds(head +
            "ENTRY e {\n  x = f32[$N] parameter(0)\n  c = f32[] constant($c)\n  d = f32[] constant(2)\n  s = f32[] "
            "multiply(c, d)\n"
            "  b = f32[$N] broadcast(s), dimensions={}\n  ROOT z = f32[$N] multiply(x, b)\n}\n",
        "the constant $c is not there once the module is simplified");
  holds(head + "ENTRY e {\n  ROOT x = f32[$N] parameter(0)\n}\n", "a result is a parameter");
  holds(
      head + entry +
          "HloModule q\nENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n",
      "line 6: all forms of a pattern have the same number of parameters");
}

}  // namespace
}  // namespace collet::hlo::patterns
