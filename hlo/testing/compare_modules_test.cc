// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/compare_modules.h"

#include <gtest/gtest.h>

#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"

namespace collet::hlo::testing {
namespace {

using Kind = Difference::Kind;

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? *std::move(module) : std::make_unique<Module>();
}

std::vector<Difference> compared(const std::string& a, const std::string& b, const CompareOptions& options = {}) {
  return compare_modules(*parsed(a), *parsed(b), options);
}

std::string body(const std::string& lines, const std::string& header = "HloModule m") {
  return header + "\nadd { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q)\n}\nENTRY e {\n" +
         " x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n zero = f32[] constant(0)\n" + lines + "}\n";
}

TEST(Compare, NamesAndOrderPlayNoPart) {
  const std::string a = body(" s = f32[4] add(x, y)\n t = f32[4] negate(x)\n ROOT u = f32[4] multiply(s, t)\n");
  const std::string b = body(" a = f32[4] negate(x)\n b = f32[4] add(x, y)\n ROOT c = f32[4] multiply(b, a)\n");
  EXPECT_TRUE(compared(a, b).empty());
}

TEST(Compare, AChangedOpIsOneDifference) {
  const std::string rest = " t = f32[4] exponential(s)\n u = f32[4] negate(t)\n ROOT v = f32[4] add(u, t)\n";
  const auto found = compared(body(" s = f32[4] add(x, y)\n" + rest), body(" s = f32[4] subtract(x, y)\n" + rest));
  // Different ops on the same operands are not matched with each other; their user is reported as changed.
  size_t changed = 0, only_a = 0, only_b = 0;
  for (const Difference& d : found) {
    changed += d.kind == Kind::Changed;
    only_a += d.kind == Kind::OnlyA;
    only_b += d.kind == Kind::OnlyB;
  }
  EXPECT_EQ(only_a, 1u);
  EXPECT_EQ(only_b, 1u);
  EXPECT_EQ(changed, 1u);
}

TEST(Compare, AnAttributeIsNamed) {
  const auto found = compared(body(" ROOT r = f32[4,4] broadcast(x), dimensions={0}\n"),
                              body(" ROOT r = f32[4,4] broadcast(x), dimensions={1}\n"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::Changed);
  ASSERT_EQ(found[0].details.size(), 1u);
  EXPECT_EQ(found[0].details[0].what, "dimensions");
}

TEST(Compare, SwappedOperandsDiffer) {
  const auto found = compared(body(" ROOT r = f32[4] subtract(x, y)\n"), body(" ROOT r = f32[4] subtract(y, x)\n"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].details.size(), 2u);
}

TEST(Compare, AnInsertedOpLeavesTheRestMatched) {
  const auto found = compared(body(" s = f32[4] add(x, y)\n ROOT r = f32[4] tanh(s)\n"),
                              body(" s = f32[4] add(x, y)\n n = f32[4] negate(s)\n ROOT r = f32[4] tanh(n)\n"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, Kind::Changed);
  EXPECT_EQ(found[0].details[0].what, "operand 0");
  EXPECT_EQ(found[1].kind, Kind::OnlyB);
}

TEST(Compare, TwiceTheSameIsNotOnce) {
  const auto found = compared(body(" s = f32[4] negate(x)\n t = f32[4] negate(x)\n ROOT r = f32[4] add(s, t)\n"),
                              body(" s = f32[4] negate(x)\n ROOT r = f32[4] add(s, s)\n"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::OnlyA);
}

TEST(Compare, BodiesAreComparedWhereTheyAreCalled) {
  const std::string a = body(" ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n");
  std::string b = a;
  b.replace(b.find("add(p, q)"), 9, "maximum(p, q)");
  const auto found = compared(a, b);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::Changed);
  EXPECT_EQ(found[0].details[0].what, "op");
}

TEST(Compare, WhatIsIgnoredDoesNotCount) {
  const std::string a = body(" ROOT r = f32[4,4]{1,0} broadcast(x), dimensions={0}, sharding={replicated}\n");
  const std::string b = body(" ROOT r = f32[4,4]{0,1} broadcast(x), dimensions={0}\n");
  EXPECT_EQ(compared(a, b).size(), 1u);
  EXPECT_EQ(compared(a, b)[0].details.size(), 2u);
  EXPECT_TRUE(compared(a, b, {.layouts = false, .shardings = false}).empty());
  const std::string one = body(" c = f32[] constant(1)\n ROOT r = f32[] add(c, zero)\n");
  const std::string two = body(" c = f32[] constant(2)\n ROOT r = f32[] add(c, zero)\n");
  EXPECT_EQ(compared(one, two).size(), 1u);
  EXPECT_TRUE(compared(one, two, {.literals = false}).empty());
}

TEST(Compare, HeadersCount) {
  const std::string line = " ROOT r = f32[4] add(x, y)\n";
  const auto found = compared(body(line, "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }"), body(line));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::Header);
  EXPECT_EQ(found[0].details[0].what, "input_output_alias");
}

TEST(Compare, ModulesAreThemselvesAndNoOthers) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = random_module(seed);
    EXPECT_TRUE(compared(text, text).empty()) << seed;
    EXPECT_FALSE(compared(text, random_module(seed + 1)).empty()) << seed;
  }
}

// All changes in wide and deep modules are found, in time that grows about linearly with the size.
TEST(Compare, LargeModules) {
  std::string lines = " v0 = f32[4] add(x, y)\n";
  for (int i = 1; i < 20000; ++i)
    lines += " v" + std::to_string(i) + " = f32[4] " + (i % 3 ? "add" : "multiply") + "(v" + std::to_string(i - 1) +
             ", v" + std::to_string(i / 2) + ")\n";
  const std::string a = body(lines + " ROOT r = f32[4] negate(v19999)\n");
  std::string b = a;
  const std::string at = "v10000 = f32[4] add(v9999, v5000)";
  ASSERT_NE(b.find(at), std::string::npos);
  b.replace(b.find(at), at.size(), "v10000 = f32[4] add(v9999, v5001)");
  const auto found = compared(a, b);
  EXPECT_EQ(found.size(), 1u);
}

}  // namespace
}  // namespace collet::hlo::testing
