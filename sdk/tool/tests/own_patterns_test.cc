// SPDX-License-Identifier: Apache-2.0
// Tests the patterns that a backend declares itself as a user meets them: in a plan, in a run, in conform, and by
// `collet opt --pattern`.
#include <gtest/gtest.h>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

constexpr const char* kProgram = R"(HloModule layers
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY main {
  x = f32[2,9,7,8] parameter(0)
  y = f32[2,9,7,8] parameter(1)
  w = f32[8] parameter(2)
  least = f32[] constant(-inf)
  both = f32[2,9,7,8] add(y, x)
  pooled = f32[2,4,3,8] reduce-window(both, least), window={size=1x3x3x1 stride=1x2x2x1}, to_apply=max
  squares = f32[2,4,3,8] multiply(pooled, pooled)
  zero = f32[] constant(0)
  total = f32[2,4,3] reduce(squares, zero), dimensions={3}, to_apply=sum
  eps = f32[] constant(1e-6)
  epss = f32[2,4,3] broadcast(eps), dimensions={}
  more = f32[2,4,3] add(epss, total)
  scale = f32[2,4,3] rsqrt(more)
  scales = f32[2,4,3,8] broadcast(scale), dimensions={0,1,2}
  ws = f32[2,4,3,8] broadcast(w), dimensions={3}
  scaled = f32[2,4,3,8] multiply(scales, pooled)
  out = f32[2,4,3,8] multiply(ws, scaled)
  ROOT r = (f32[2,4,3,8], f32[2,4,3]) tuple(out, scale)
}
)";

constexpr const char* kSquares = R"(HloModule squares
where $T in {f32, f64}
ENTRY e {
  x = $T[$S...] parameter(0)
  ROOT y = $T[$S...] multiply(x, x)
}
)";

std::string backend() {
  return build_dir() + "/lib/collet/test_backends/libcollet_backend_own_patterns.so";
}

TEST(OwnPatterns, ARunIsAllOnTheDevice) {
  const Folder folder;
  write(folder / "p.hlo", kProgram);
  const Ran ran = collet("run " + folder / "p.hlo" +
                         " --no-fallback --inputs random:3 --compare interpreter --explain --backend " + backend());
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "call 'own.scale'")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "call 'own.pool'")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "2 kernels")) << ran.out;
  // Rows state 100 ns and one for each element.
  EXPECT_TRUE(contains(ran.out, "estimated 1400 ns")) << ran.out;
  const Ran wrong =
      collet("run " + folder / "p.hlo" +
             " --no-fallback --inputs random:3 --compare interpreter --option wrong=pool --backend " + backend());
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
}

TEST(OwnPatterns, ConformHasCasesOfThem) {
  const std::string command =
      "conform --no-fallback --jobs 2 --profile own-patterns --claim own-patterns --backend " + backend();
  const Ran right = collet(command);
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_TRUE(contains(right.out, ": conforms")) << right.out;
  for (const char* wrong : {"scale", "pool"}) {
    const Ran ran = collet(command + " --option wrong=" + wrong);
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, std::string("own.") + wrong + "/f32/")) << ran.out;
  }
}

TEST(OwnPatterns, ABadTextIsNamed) {
  const Ran contract = collet("conform --filter contract/tables/patterns --option wrong=name --backend " + backend());
  EXPECT_NE(contract.code, 0) << contract.out << contract.err;
  EXPECT_TRUE(contains(contract.out, "the text of pattern 'own.pool' has another name"))
      << contract.out << contract.err;
  const Ran unreadable = collet("conform --filter contract/tables/patterns --option wrong=text --backend " + backend());
  EXPECT_NE(unreadable.code, 0);
  EXPECT_TRUE(contains(unreadable.out + unreadable.err, "'own.pool'")) << unreadable.out << unreadable.err;
  EXPECT_TRUE(contains(unreadable.out + unreadable.err, "line 3: $T needs a list")) << unreadable.out << unreadable.err;
  // A run goes on without the pattern, with a warning.
  const Folder folder;
  write(folder / "p.hlo", kProgram);
  const Ran ran =
      collet("run " + folder / "p.hlo" + " --inputs random:3 --explain --option wrong=text --backend " + backend());
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "line 3: $T needs a list")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "call 'own.scale'")) << ran.out;
}

TEST(OwnPatterns, OptTriesAText) {
  const Folder folder;
  write(folder / "p.hlo", kProgram);
  write(folder / "squares.hlo", kSquares);
  const Ran found = collet("opt " + folder / "p.hlo" + " --pattern " + folder / "squares.hlo");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_TRUE(contains(found.err, "pattern 'squares': 1 group")) << found.err;
  EXPECT_TRUE(contains(found.out, "composite.name=\"squares\"")) << found.out;
  write(folder / "other.hlo", R"(HloModule other
where $T in {f32}
ENTRY e {
  x = $T[$S...] parameter(0)
  a = $T[$S...] exponential(x)
  ROOT y = $T[$S...] multiply(a, a)
}
)");
  const Ran near = collet("opt " + folder / "p.hlo" + " --pattern " + folder / "other.hlo");
  EXPECT_EQ(near.code, 0) << near.err;
  EXPECT_TRUE(contains(near.err, "pattern 'other': 0 groups; the nearest one has 1 ops: ")) << near.err;
  write(folder / "bad.hlo", "HloModule bad\nENTRY e {\n  x = $T[2] parameter(0)\n  ROOT y = $T[2] negate(x)\n}\n");
  const Ran bad = collet("opt " + folder / "p.hlo" + " --pattern " + folder / "bad.hlo");
  EXPECT_NE(bad.code, 0);
  EXPECT_TRUE(contains(bad.err, "bad.hlo', line 3: $T needs a list")) << bad.err;
}

}  // namespace
}  // namespace collet::tool::testing
