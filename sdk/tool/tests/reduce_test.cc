// SPDX-License-Identifier: Apache-2.0
// Tests `collet diff` and `collet reduce`.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

constexpr char kProgram[] =
    "HloModule m\nENTRY e {\n  x = f32[8,4] parameter(0)\n  y = f32[8,4] parameter(1)\n  a = f32[8,4] add(x, y)\n"
    "  t = f32[4,8] transpose(a), dimensions={1,0}\n  s = f32[4,8] tanh(t)\n  d = f32[4,4] dot(s, y), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = f32[4,4] negate(d)\n}\n";

TEST(Diff, SameAndDifferent) {
  const Folder folder;
  const std::string a = folder / "a.hlo", b = folder / "b.hlo";
  write(a, kProgram);
  std::string changed = kProgram;
  changed.replace(changed.find("tanh"), 4, "sine");
  write(b, changed);
  const Ran same = collet("diff " + a + " " + a);
  EXPECT_EQ(same.code, 0);
  EXPECT_TRUE(contains(same.out, "are the same"));
  const Ran other = collet("diff " + a + " " + b);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(contains(other.out, "a.hlo:7: ")) << other.out;
  EXPECT_TRUE(contains(other.out, "tanh")) << other.out;
  EXPECT_TRUE(contains(other.out, "sine")) << other.out;
  const Ran json = collet("diff " + a + " " + b + " --json -");
  EXPECT_EQ(json.code, 1);
  EXPECT_TRUE(contains(json.out, "\"same\": false")) << json.out;
  EXPECT_TRUE(contains(json.out, "\"line\": 7")) << json.out;
  EXPECT_EQ(collet("diff " + a + " " + folder.path() + "/none.hlo").code, 3);
  EXPECT_EQ(collet("diff " + a).code, 2);
  EXPECT_EQ(collet("opt " + a + " | '" + build_dir() + "/bin/collet' diff " + a + " -").code, 0);
}

TEST(ReduceCommand, ACrashInABackend) {
  const Folder folder;
  const std::string file = folder / "a.hlo", out = folder / "small.hlo";
  write(file, kProgram);
  const std::string mutant = build_dir() + "/lib/collet/test_backends/libcollet_backend_mutant.so";
  const std::string environment = "COLLET_MUTANT_BACKEND='" + build_dir() +
                                  "/lib/collet/backends/libcollet_backend_interpreter.so' COLLET_MUTANT=crash "
                                  "COLLET_MUTANT_OP=tanh";
  const Ran ran = collet("reduce " + file + " -o " + out + " --json " + folder.path() + "/report.json -- '" +
                             build_dir() + "/bin/collet' run {} --backend " + mutant + " --no-fallback",
                         environment);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, "2 instructions of 7 are left")) << ran.err;
  const std::string result = contents(out);
  EXPECT_TRUE(contains(result, "tanh(")) << result;
  for (const char* gone : {"dot(", "negate(", "transpose(", "add("}) EXPECT_FALSE(contains(result, gone)) << result;
  EXPECT_TRUE(contains(contents(folder.path() + "/report.json"), "\"after\": 2"));
  EXPECT_TRUE(contains(ran.err, "on the device in the last failing run:\n  tanh '")) << ran.err;
  EXPECT_TRUE(contains(contents(folder.path() + "/report.json"), "\"device_ops\": [\n    \"tanh '"));
}

TEST(ReduceCommand, APatternInTheOutput) {
  const Folder folder;
  const std::string file = folder / "a.hlo", out = folder / "small.hlo";
  write(file, kProgram);
  const Ran ran = collet("reduce " + file + " -o " + out + " --match ' dot\\(.*contracting' --test 'cat {}'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(contents(out), "dot(")) << contents(out);
  EXPECT_FALSE(contains(contents(out), "tanh(")) << contents(out);
}

TEST(ReduceCommand, AHang) {
  const Folder folder;
  const std::string file = folder / "a.hlo", out = folder / "small.hlo";
  write(file, kProgram);
  const Ran ran =
      collet("reduce " + file + " -o " + out + " --hang --timeout 0.3 --test 'grep -q tanh {} && sleep 60; true'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, "2 instructions of 7 are left")) << ran.err;
}

TEST(ReduceCommand, KeepsTheBestWhenInterrupted) {
  const Folder folder;
  const std::string file = folder / "a.hlo", out = folder / "small.hlo", mark = folder / "tries";
  write(file, kProgram);
  // The command itself interrupts its parent at the fifth try.
  const Ran ran = collet("reduce " + file + " -o " + out + " --test 'echo x >>" + mark + "; [ $(wc -l <" + mark +
                         ") -eq 5 ] && kill -INT $PPID; grep -q tanh {} && exit 7; true'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, "interrupted")) << ran.err;
  EXPECT_TRUE(contains(contents(out), "tanh("));
}

// The interrupt comes before it is known whether the fault shows.
TEST(ReduceCommand, InterruptedAtTheFirstTry_SaysSo) {
  const Folder folder;
  const std::string file = folder / "a.hlo";
  write(file, kProgram);
  for (const char* signal : {"TERM", "INT"}) {
    const Ran ran = collet("reduce " + file + " --test ': {}; kill -" + signal + " $PPID; sleep 60'");
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_TRUE(contains(ran.err, "interrupted before it was known")) << ran.err;
  }
}

TEST(ReduceCommand, WrongUse) {
  const Folder folder;
  const std::string file = folder / "a.hlo";
  write(file, kProgram);
  EXPECT_EQ(collet("reduce " + file).code, 2);
  EXPECT_EQ(collet("reduce " + file + " --exit many --test false").code, 2);
  EXPECT_EQ(collet("reduce " + folder.path() + "/none.hlo --test false").code, 3);
  const Ran fine = collet("reduce " + file + " --test true");
  EXPECT_EQ(fine.code, 1);
  EXPECT_TRUE(contains(fine.err, "does not show")) << fine.err;
  EXPECT_EQ(collet("reduce " + file + " -- /no/such/command").code, 4);
}

}  // namespace
}  // namespace collet::tool::testing
