// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include <cstring>
#include <sstream>
#include <vector>

#include "sdk/runtime/testing/programs.h"
#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

using collet::testing::combiner;

// Compares a text with a golden file, or writes the file if COLLET_UPDATE_GOLDENS is 1.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = "sdk/tool/tests/golden/" + name;
  const char* update = std::getenv("COLLET_UPDATE_GOLDENS");
  if (update != nullptr && std::string_view(update) == "1") {
    write(path, text);
    return;
  }
  EXPECT_EQ(text, contents(path)) << path << " (COLLET_UPDATE_GOLDENS=1 writes it anew)";
}

TEST(Run, CompilesForATargetThatIsNotThere) {
  const Folder folder;
  const std::string file = folder / "a.hlo";
  write(file, "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] add(x, x)\n}\n");
  const std::string queued = build_dir() + "/lib/collet/test_backends/libcollet_backend_queued.so";
  const Ran ran = collet("run " + file + " --backend " + queued + " --no-fallback --target queued --explain");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "100.0 % of the estimated computing time on the device")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "nothing was run: queued is a virtual device")) << ran.out;
  EXPECT_EQ(collet("run " + file + " --backend " + queued + " --target other").code, 4);
  EXPECT_EQ(collet("run " + file + " --backend " + queued + " --target queued --compare interpreter").code, 2);
}

// A layer of quantized StableHLO is one op of a device that has kernels for such layers alone, and is as the interpreter
// has it.
TEST(Run, ExplainsAQuantizedLayer) {
  const Folder folder;
  const std::string file = folder / "layer.mlir";
  write(file, R"(
func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>> {
  %w = "stablehlo.constant"() <{value = dense<[[1,-2],[5,6],[9,10]]> : tensor<3x2xi8>}> : () -> tensor<3x2x!quant.uniform<i8:f32, 0.25>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<2x3x!quant.uniform<i8:f32, 0.5:-3>>, tensor<3x2x!quant.uniform<i8:f32, 0.25>>) -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
  return %0 : tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
}
)");
  const std::string npu = build_dir() + "/lib/collet/test_backends/libcollet_backend_npu.so";
  const Ran ran = collet("run " + file + " --backend " + npu + " --explain --compare interpreter");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "1 ops on the device, 0 on the fallback")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "call 'integer_dot'")) << ran.out;
  EXPECT_TRUE(contains(ran.out + ran.err, "agrees with interpreter")) << ran.out << ran.err;
}

// --explain says which groups were not offered to a device because it does not read all of their attributes. The largest of the
// groups that end behind one product counts.
TEST(Run, ExplainsWhichGroupsWereNotOffered) {
  const Folder folder;
  const std::string file = folder / "a.mlir";
  write(file, R"(
func.func @main(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5>>, %w: tensor<3x2x!quant.uniform<i8:f32:1, {0.25,0.5}>>)
    -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<2x3x!quant.uniform<i8:f32, 0.5>>, tensor<3x2x!quant.uniform<i8:f32:1, {0.25,0.5}>>) -> tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
  return %0 : tensor<2x2x!quant.uniform<i8:f32, 3.5:5>>
}
)");
  const std::string run = "run " + file + " --backend " + build_dir() +
                          "/lib/collet/test_backends/libcollet_backend_npu.so --explain --compare interpreter";
  const std::string said =
      "patterns that npu declined:\n  'integer_dot' of s8, once (not offered: it needs COLLET_FEATURE_CHANNELS)\n";
  const Ran without = collet(run + " --option features=4");
  EXPECT_EQ(without.code, 0) << without.out << without.err;
  EXPECT_TRUE(contains(without.out, said)) << without.out;
  const Ran with = collet(run + " --option features=1");
  EXPECT_EQ(with.code, 0) << with.out << with.err;
  EXPECT_FALSE(contains(with.out, "not offered")) << with.out;
  EXPECT_TRUE(contains(with.out, "1 ops on the device, 0 on the fallback")) << with.out;
}

// The environment variables must produce the plan and the stages of every program that the process compiles.
TEST(Run, ExplainsAndDumpsWhereTheEnvironmentSaysSo) {
  const Folder folder;
  const std::string file = folder / "a.hlo", plan = folder / "plan.txt";
  write(file, "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT r = f32[8] add(x, x)\n}\n");
  const std::string environment = "COLLET_EXPLAIN=" + plan + " COLLET_DUMP=" + folder.path() + "/dump";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(collet("run " + file + " --backend interpreter", environment).code, 0);
  const std::string text = contents(plan);
  EXPECT_NE(text.find("plan for 'm' on interpreter"), text.rfind("plan for 'm' on interpreter"));
  size_t dumps = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/dump"))
    dumps += std::filesystem::exists(entry.path() / "000.read.hlo");
  EXPECT_EQ(dumps, 2u);
  EXPECT_NE(collet("run " + file + " --backend interpreter", "COLLET_EXPLAIN=/none/plan.txt").code, 0);
}

// --explain names fusions and patterns that a backend takes, and those that it declines, with the reason.
TEST(Run, ExplainsFusionsAndPatterns) {
  const Folder folder;
  const std::string file = folder / "a.hlo", plan = folder / "plan.json";
  const std::string backend = " --backend " + build_dir() + "/lib/collet/test_backends/libcollet_backend_kernels.so";
  const auto program =
      [](int columns) {
        const std::string t = "f32[8," + std::to_string(columns) + "]";
        return "HloModule m\n" + combiner("most", "maximum", "f32") + combiner("sum", "add", "f32") + R"(ENTRY e {
  x = )" + t + R"( parameter(0)
  y = )" + t + R"( parameter(1)
  low = f32[] constant(-inf)
  m = f32[8] reduce(x, low), dimensions={1}, to_apply=most
  mb = )" + t + R"( broadcast(m), dimensions={0}
  d = )" + t + R"( subtract(x, mb)
  p = )" + t + R"( exponential(d)
  zero = f32[] constant(0)
  s = f32[8] reduce(p, zero), dimensions={1}, to_apply=sum
  sb = )" + t + R"( broadcast(s), dimensions={0}
  soft = )" + t +
               R"( divide(p, sb)
  u = )" + t + R"( add(x, y)
  v = )" + t + R"( maximum(u, x)
  k = f32[9] slice(f32[16] parameter(2)), slice={[3:12]}
  l = f32[9] reverse(k), dimensions={0}
  g = f32[9] multiply(l, l)
  n = f32[9] subtract(g, l)
  o = f32[9] negate(n)
  ROOT r = ()" +
               t + ", " + t + R"(, f32[9]) tuple(soft, v, o)
}
)";
      };
  write(file, program(16));
  EXPECT_EQ(collet("run " + file + backend + " --explain --json " + plan).code, 0);
  const Ran ran = collet("run " + file + backend + " --explain");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "fusion add+maximum '")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "patterns that kernels declined:\n  'softmax' of f32, once (only rows of at most 4)"))
      << ran.out;
  EXPECT_TRUE(contains(ran.out, "fusions that kernels declined:\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "multiply subtract negate' of f32, ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(only max(x + y, z))")) << ran.out;
  EXPECT_TRUE(contains(contents(plan), R"("kind": "pattern")")) << contents(plan);
  EXPECT_TRUE(contains(contents(plan), R"("reason": "only rows of at most 4")"));
  const Ran offered = collet("opt " + file + backend);
  ASSERT_EQ(offered.code, 0) << offered.err;
  EXPECT_TRUE(contains(offered.out, "fusion(")) << offered.out;
  EXPECT_FALSE(contains(offered.out, "softmax")) << offered.out;
  write(file, program(4));
  EXPECT_TRUE(contains(collet("opt " + file + backend).out, "softmax"));
  EXPECT_NE(collet("opt " + file + " --backend nowhere").code, 0);
}

TEST(Command, HelpSaysWhatThereIs) {
  for (const std::string verb : {"run", "opt", "info", "diff", "reduce", "conform", "bench", "estimate", "accuracy",
                                 "cache", "new", "quantize", "completion", "manual"}) {
    const Ran ran = collet(verb + " --help");
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_TRUE(contains(ran.out, "Examples:")) << verb;
    EXPECT_EQ(ran.err, "") << verb;
    expect_golden("help_" + verb + ".txt", ran.out);
  }
  const Ran all = collet("--help");
  EXPECT_EQ(all.code, 0);
  for (const char* part : {"run", "opt", "info", "conform", "Exit codes: 0 done"})
    EXPECT_TRUE(contains(all.out, part)) << part;
}

TEST(Command, HelpFitsAPlainTerminal) {
  for (const std::string verb : {"", "run", "opt", "info", "diff", "reduce", "conform", "bench", "estimate", "accuracy",
                                 "cache", "new", "quantize", "completion", "manual"}) {
    std::istringstream lines(collet(verb + " --help").out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << verb << ": " << line;
  }
}

TEST(Command, Version) {
  const Ran ran = collet("--version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("collet 0.")) << ran.out;
}

TEST(Command, FoldersOfTheInstallation) {
  const Ran prefix = collet("--prefix"), cmake = collet("--cmake-dir");
  ASSERT_EQ(prefix.code, 0) << prefix.err;
  ASSERT_EQ(cmake.code, 0) << cmake.err;
  const auto line = [](const std::string& out) { return out.substr(0, out.find('\n')); };
  EXPECT_TRUE(std::filesystem::exists(line(prefix.out) + "/bin/collet")) << prefix.out;
  EXPECT_TRUE(std::filesystem::exists(line(cmake.out) + "/ColletConfig.cmake")) << cmake.out;
  EXPECT_EQ(collet("--prefix --cmake-dir").code, 2);
  EXPECT_EQ(collet("--prefix run sdk/tool/tests/data/add.hlo").code, 2);
}

TEST(Run, WritesOutputsAndTheirManifest) {
  const Folder folder;
  const float x[] = {1, 2, 3}, y[] = {0.5, -2, 10};
  write(folder / "x.bin", {reinterpret_cast<const char*>(x), sizeof x});
  write(folder / "y.bin", {reinterpret_cast<const char*>(y), sizeof y});
  const Ran ran = collet("run sdk/tool/tests/data/add.hlo --backend interpreter --inputs " + (folder / "x.bin") + " " +
                         (folder / "y.bin") + " --output " + (folder / "results"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_golden("manifest.json", contents(folder / "results/manifest.json"));
  const std::string sum = contents(folder / "results/output_0.bin"),
                    product = contents(folder / "results/output_1.bin");
  const float sums[] = {1.5, 0, 13}, products[] = {3, 0, 26};
  ASSERT_EQ(sum.size(), sizeof sums);
  EXPECT_EQ(std::memcmp(sum.data(), sums, sizeof sums), 0);
  EXPECT_EQ(std::memcmp(product.data(), products, sizeof products), 0);
  EXPECT_TRUE(contains(ran.out, "output 0: f32[3]  min 0, max 13")) << ran.out;
}

TEST(Run, InputsByRuleComeFromTheCaseBesideTheProgram) {
  const Folder folder;
  write(folder / "program.hlo", "HloModule m\nENTRY e {\n  ROOT x = s32[4] parameter(0)\n}\n");
  const std::string line = "run " + (folder / "program.hlo") + " --backend interpreter";
  const Ran by_type = collet(line);
  ASSERT_EQ(by_type.code, 0) << by_type.err;
  write(folder / "case.json", R"({"inputs": [{"shape": "s32[4]", "rule": "integer", "modulo": 1, "low": 77}]})");
  const Ran by_case = collet(line);
  ASSERT_EQ(by_case.code, 0) << by_case.err;
  EXPECT_TRUE(contains(by_case.out, "[77, 77, 77, 77]")) << by_case.out;
  EXPECT_FALSE(contains(by_type.out, "[77, 77, 77, 77]"));
  EXPECT_TRUE(contains(collet(line + " --inputs zeros").out, "[0, 0, 0, 0]"));
  EXPECT_TRUE(
      contains(collet("run --backend interpreter --inputs zeros " + (folder / "program.hlo")).out, "[0, 0, 0, 0]"));
  EXPECT_EQ(collet(line + " --inputs random:1").out.substr(0, 60),
            collet(line + " --inputs random:1").out.substr(0, 60));
}

TEST(Run, FillsConstantsThatTheTextLeavesOut) {
  const Folder folder;
  write(folder / "elided.hlo", "HloModule m\nENTRY e {\n  ROOT c = s32[4] constant({...})\n}\n");
  const std::string line = "run " + (folder / "elided.hlo") + " --backend interpreter --elided ";
  const Ran refused = collet(line + "refuse");
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(contains(refused.err, "elided.hlo:3:")) << refused.err;
  EXPECT_EQ(collet("run " + (folder / "elided.hlo") + " --backend interpreter").code, 3);
  EXPECT_TRUE(contains(collet(line + "zeros").out, "[0, 0, 0, 0]"));
  EXPECT_TRUE(contains(collet(line + "counter").out, "[0, 1, 2, 3]"));
  const auto drawn = [&](const std::string& seed) {
    const Ran ran = collet(line + "random:" + seed + " --json - --output " + (folder / ("out" + seed)));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return contents(folder / ("out" + seed + "/output_0.bin"));
  };
  EXPECT_EQ(drawn("1"), drawn("1"));
  EXPECT_NE(drawn("1"), drawn("2"));
  for (const std::string how : {"random", "random:", "random:-1", "random:1x", "ones", "''"})
    EXPECT_EQ(collet(line + how).code, 2) << how;
}

TEST(Run, SaysOnWhatItCrashed) {
  const std::string lib = build_dir() + "/lib/collet/";
  const Ran ran = collet("run sdk/tool/tests/data/add.hlo --backend " + lib +
                         "test_backends/libcollet_backend_mutant.so --no-fallback --option mutant=crash --option "
                         "op=add --option backend=" +
                         lib + "backends/libcollet_backend_interpreter.so");
  EXPECT_GE(ran.code, 128) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, " while running 'sdk/tool/tests/data/add.hlo' on ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "libcollet_backend_mutant.so")) << ran.err;
}

// However a backend ends the process, and in whichever of its functions, the tool names both.
TEST(Run, SaysInWhatTheBackendEndedTheProcess) {
  const std::string library = build_dir() + "/lib/collet/test_backends/libcollet_backend_hostile.so";
  for (const std::string function :
       {"entry", "open", "device_info", "alloc", "copy", "supports", "compile", "execute", "free", "release", "close"})
    for (const std::string how : {"crash", "abort", "exit", "_exit", "quick_exit", "overflow"}) {
      if (function != "free" && function != "close" && how == "abort") continue;
      SCOPED_TRACE(function + " " + how);
      const Ran ran = collet("run sdk/tool/tests/data/add.hlo --no-fallback --backend " + library,
                             "COLLET_HOSTILE_END='" + function + " " + how + "'");
      const bool exits = how.ends_with("exit");
      EXPECT_TRUE(exits ? ran.code == 4 : ran.code >= 128) << ran.code;
      EXPECT_TRUE(contains(ran.err, function + "' of the backend library '" + library + "' while ")) << ran.err;
      EXPECT_TRUE(contains(ran.err, how == "abort" ? "collet: abort in '"
                                    : how == "crash" || how == "overflow"
                                        ? "collet: segmentation fault in '"
                                        : "collet: a call of exit ended the process in '"))
          << ran.err;
    }
  // A destructor of the library runs when the tool has ended its work.
  for (const std::string how : {"crash", "abort", "_exit"}) {
    const Ran ran = collet("run sdk/tool/tests/data/add.hlo --no-fallback --backend " + library,
                           "COLLET_HOSTILE_END='unload " + how + "'");
    EXPECT_TRUE(how == "_exit" ? ran.code == 4 : ran.code >= 128) << ran.code;
    EXPECT_TRUE(contains(ran.err, " while ending the process")) << ran.err;
  }
  // Other verbs say it too, and what was printed before still comes.
  const Ran info = collet("info --backend " + library, "COLLET_HOSTILE_END='close exit'");
  EXPECT_EQ(info.code, 4);
  EXPECT_TRUE(contains(info.err, "in 'close' of the backend library")) << info.err;
}

TEST(Run, HandsOptionsToTheBackend) {
  const std::string line = "run sdk/tool/tests/data/add.hlo --backend interpreter --option ";
  EXPECT_EQ(collet(line + "max_steps=1000 --option max_seconds=10").code, 0);
  EXPECT_EQ(collet(line + "max_steps=1").code, 4);
  const Ran unknown = collet(line + "no_such_option=1");
  EXPECT_EQ(unknown.code, 2) << unknown.err;
  EXPECT_TRUE(contains(unknown.err, "no_such_option")) << unknown.err;
  EXPECT_EQ(collet(line + "max_steps").code, 2);
  EXPECT_EQ(collet(line + "=1").code, 2);
  for (const char* value : {"max_seconds=inf", "max_seconds=nan", "max_seconds=-1", "max_seconds=1x",
                            "max_seconds=", "max_steps=-1", "max_steps=1e3", "max_value_bytes=99999999999999999999"})
    EXPECT_EQ(collet(line + value).code, 2) << value;
  EXPECT_EQ(collet(line + "max_seconds=1e300").code, 0);
}

// Only ratios are shown, because a time does not transfer to another machine.
TEST(Run, AppliesSchedulesByHand) {
  const Folder folder;
  const std::string file = folder / "a.hlo", schedule = folder / "a.schedule", dump = folder.path() + "/dump";
  write(file,
        "HloModule m\n" + combiner("sum", "add", "f32") +
            "ENTRY e {\n  x = f32[64,1000] parameter(0)\n  z = f32[] constant(0)\n  ROOT r = f32[64] reduce(x, z), "
            "dimensions={1}, to_apply=sum\n}\n");
  const std::string run = "run " + file + " --backend cpu --inputs random:1 --compare interpreter --dump-to " + dump;
  const auto kernels = [&] {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(dump)) {
      if (entry.path().string().ends_with("kernels.txt")) text = contents(entry.path());
    }
    std::filesystem::remove_all(dump);
    return text;
  };
  EXPECT_EQ(collet(run).code, 0);
  EXPECT_TRUE(contains(kernels(), "//   widen: applied\n"));
  write(schedule, "kernel0: lanes i1 4; pass 0 lanes 8 together 1\n");
  const Ran ran = collet(run + " --schedule " + schedule);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string changed = kernels();
  EXPECT_TRUE(contains(changed, "//   scheduled by hand\n")) << changed;
  EXPECT_TRUE(contains(changed, "//   schedule: lanes i1 4; pass 0 lanes 8 together 1; pass 1 lanes 4 together 1\n"))
      << changed;
  write(schedule, "kernel0: lanes i1 6\n");
  const Ran refused = collet(run + " --schedule " + schedule);
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(contains(refused.err, "the schedule of kernel0: kernel: lanes: their number is no power of two"))
      << refused.err;
  write(schedule, "kernel7: lanes i1 4\n");
  EXPECT_TRUE(contains(collet(run + " --schedule " + schedule).err, "this program has no 'kernel7'"));
  EXPECT_NE(collet(run + " --schedule " + folder.path() + "/none").code, 0);
}

TEST(Run, TakesNumbersOfRules) {
  const Folder folder;
  const std::string file = folder / "a.hlo", dump = folder.path() + "/dump";
  write(file, "HloModule m\nENTRY e {\n  x = f32[4096] parameter(0)\n  ROOT r = f32[4096] exponential(x)\n}\n");
  const auto schedule = [&](const std::string& option) {
    const Ran ran = collet("run " + file + " --backend cpu --compare interpreter --dump-to " + dump + option);
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(dump)) {
      if (entry.path().string().ends_with("kernels.txt")) text = contents(entry.path());
    }
    std::filesystem::remove_all(dump);
    return text;
  };
  EXPECT_FALSE(contains(schedule(" --option tune.most_together=1"), "//   together: applied\n"));
  EXPECT_TRUE(contains(schedule(" --option tune.latency_bits=4096"), "together 4"));
  const Ran unknown = collet("run " + file + " --backend cpu --option tune.nothing=1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "there is no number 'nothing'")) << unknown.err;
  for (const char* number : {"-1", "0"})
    EXPECT_EQ(collet("run " + file + " --backend cpu --option tune.most_together=" + number).code, 2);
  EXPECT_EQ(collet("run " + file + " --backend cpu --option tune.most_together=x").code, 2);
}

TEST(Bench, ShowsRatiosAndKeepsTimesInJson) {
  const Folder folder;
  const Ran ran = collet("bench --backend interpreter --filter mnist --repeat 1 --json " + (folder / "bench.json"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "of limit")) << ran.out;
  for (const char* unit : {" us", " ms", " s\n"}) EXPECT_FALSE(contains(ran.out, unit)) << ran.out;
  EXPECT_TRUE(contains(contents(folder / "bench.json"), "\"median_ns\": "));
}

TEST(Run, ReadsStdinAndWritesJson) {
  const Ran often = collet("run - --backend interpreter --repeat 20 <sdk/tool/tests/data/add.hlo");
  EXPECT_TRUE(contains(often.out, "90 % in ")) << often.out;
  EXPECT_TRUE(contains(often.out, "99 % in ")) << often.out;
  const Ran ran = collet("run - --backend interpreter --repeat 3 --json - <sdk/tool/tests/data/add.hlo");
  EXPECT_TRUE(contains(ran.out, "\"percentiles\"")) << ran.out;
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* part :
       {"\"backend\": \"interpreter\"", "\"median_seconds\": ", "\"shape\": \"f32[3]\"", "\"fallback_ops\": 0"}) {
    EXPECT_TRUE(contains(ran.out, part)) << part << "\n" << ran.out;
  }
  EXPECT_TRUE(ran.out.starts_with("{")) << ran.out;
}

TEST(Run, ComparesTheOutputsOfAllRuns) {
  const std::string lib = build_dir() + "/lib/collet/";
  const Ran ran =
      collet("run sdk/tool/tests/data/add.hlo --no-fallback --repeat 5 --compare interpreter --backend " + lib +
             "test_backends/libcollet_backend_mutation.so --option mutant=third_run_off:add --option backend=" + lib +
             "backends/libcollet_backend_interpreter.so");
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "differs from interpreter: in run 3, output 0: ")) << ran.out;
}

TEST(Run, ComparesBackends) {
  const Ran ran = collet("run sdk/tool/tests/data/add.hlo --backend interpreter --compare interpreter");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "agrees with interpreter")) << ran.out;
}

TEST(Run, WritesATrace) {
  const Ran ran = collet("run sdk/tool/tests/data/add.hlo --backend interpreter --json - --trace /dev/stderr");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* category : {"compile", "run", "launch"})
    EXPECT_TRUE(contains(ran.err, std::string("\"cat\": \"") + category + "\"")) << ran.err;
}

// Collectives of several partitions are kept.
TEST(Opt, KnowsHowManyTakePart) {
  const Folder folder;
  const std::string file = folder / "two.hlo";
  write(file, "HloModule two, num_partitions=2\n" + combiner("add", "add", "f32") + R"(ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
}
)");
  EXPECT_TRUE(contains(collet("opt " + file + " --pipeline prepare").out, "all-reduce"));
  EXPECT_TRUE(contains(collet("opt " + file + " --passes partition_spmd").out, "f32[2]"));
}

TEST(Opt, PrintsWhatItReads) {
  const std::string rows = "sdk/tool/tests/data/lengths.hlo";
  EXPECT_TRUE(contains(collet("opt " + rows + " --pipeline prepare,fuse").out, "fusion")) << rows;
  EXPECT_TRUE(contains(collet("opt " + rows + " --pipeline prepare,fus").err, "there is no pipeline 'fus'"));
  const Ran ran = collet("opt sdk/tool/tests/data/add.hlo");
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_golden("add_read.hlo", ran.out);
}

TEST(Opt, EmitsEveryFormAndReadsItAgain) {
  const Folder folder;
  for (const std::string form : {"hlo", "hlo-proto", "stablehlo", "artifact"}) {
    const std::string file = folder / ("program." + form);
    const Ran wrote = collet("opt sdk/tool/tests/data/add.hlo --emit " + form + " -o " + file);
    ASSERT_EQ(wrote.code, 0) << wrote.err;
    const Ran ran = collet("run " + file + " --backend interpreter");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(contains(collet("opt " + file).out, "add(")) << form;
    EXPECT_EQ(collet("info " + file).code, 0) << form;
  }
  // A binary message contains every layout, so it is compared with itself; the text is compared without layouts.
  const std::string proto = folder / "program.hlo-proto";
  EXPECT_EQ(collet("opt " + proto + " --emit hlo-proto").out, contents(proto));
  EXPECT_EQ(collet("diff sdk/tool/tests/data/add.hlo " + proto + " --ignore layouts").code, 0);
}

TEST(Opt, DrawsPrograms) {
  const Folder folder;
  write(folder / "net.hlo",
        "HloModule net\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n"
        "fused {\n  x = f32[4,8] parameter(0)\n  e = f32[4,8] exponential(x)\n  ROOT n = f32[4,8] negate(e)\n}\n"
        "ENTRY main {\n  x = f32[4,8]{0,1} parameter(0)\n  zero = f32[] constant(0)\n"
        "  f = f32[4,8] fusion(x), kind=kLoop, calls=fused\n"
        "  ROOT r = f32[4] reduce(f, zero), dimensions={1}, to_apply=sum\n}\n");
  const Ran dot = collet("opt " + (folder / "net.hlo") + " --emit dot");
  ASSERT_EQ(dot.code, 0) << dot.err;
  for (const char* part : {"digraph \"net\"", "subgraph cluster_1", "ltail=cluster_1", "label=\"fused\"",
                           "f32[4,8]{0,1}", "main (entry)", "by add", "operand 1 = 0", "dimensions={1}"})
    EXPECT_TRUE(contains(dot.out, part)) << part;
  // Strings must be escaped: attributes begin a new line after one that ends in a backslash.
  write(
      folder / "call.hlo",
      "HloModule m\nENTRY e {\n  ROOT c = f32[] custom-call(), custom_call_target=\"a\\\\\", "
      "custom_call_has_side_effect=true, output_to_operand_aliasing={}, api_version=API_VERSION_STATUS_RETURNING\n}\n");
  const Ran call = collet("opt " + (folder / "call.hlo") + " --emit dot");
  ASSERT_EQ(call.code, 0) << call.err;
  EXPECT_TRUE(contains(call.out, "\\ncustom_call_has_side_effect=true\\n")) << call.out;
  EXPECT_EQ(collet("opt " + (folder / "net.hlo") + " --emit sgv").code, 2);
  EXPECT_EQ(collet("opt " + (folder / "net.hlo") + " --emit svg=2").code, 2);
}

TEST(Opt, LetsGraphvizDraw) {
  if (std::system("command -v dot >/dev/null") != 0) GTEST_SKIP() << "needs Graphviz";
  const Folder folder;
  const Ran drawn = collet("opt sdk/tool/tests/data/add.hlo --emit svg -o " + (folder / "add.svg"));
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_TRUE(contains(contents(folder / "add.svg"), "<svg ")) << contents(folder / "add.svg");
}

TEST(Opt, WritesTheGraphWhereThereIsNoGraphviz) {
  const Folder folder;
  const std::string line = "opt sdk/tool/tests/data/add.hlo --emit svg -o ";
  // PATH is an empty folder, so that `dot` is not found.
  const Ran ran = collet(line + (folder / "none.svg"), "PATH=" + folder.path());
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_TRUE(contains(ran.err, "dot cannot be run") && contains(ran.err, "none.dot")) << ran.err;
  EXPECT_TRUE(contains(contents(folder / "none.dot"), "digraph"));
  EXPECT_FALSE(std::filesystem::exists(folder / "none.svg"));
  write(folder / "none.dot", "mine");
  EXPECT_EQ(collet(line + (folder / "none.svg"), "PATH=" + folder.path()).code, 4);
  EXPECT_EQ(contents(folder / "none.dot"), "mine");
  const Ran piped = collet("opt sdk/tool/tests/data/add.hlo --emit svg", "PATH=" + folder.path());
  EXPECT_EQ(piped.code, 4) << piped.err;
  EXPECT_TRUE(contains(piped.err, "--emit dot") && piped.out.empty()) << piped.err;
}

TEST(Opt, SaysWhereTheVerifierComplains) {
  const Folder folder;
  write(folder / "wrong.hlo", "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n\tROOT r = f32[3] negate(p)\n}\n");
  for (const std::string verb : {"opt ", "info "}) {
    const Ran ran = collet(verb + (folder / "wrong.hlo"));
    EXPECT_EQ(ran.code, 3);
    EXPECT_TRUE(contains(ran.err, "wrong.hlo:4:2: error: ")) << ran.err;
    EXPECT_TRUE(contains(ran.err, "  \tROOT r = f32[3] negate(p)\n  \t^")) << ran.err;
  }
}

TEST(Opt, RunsPassesInOrderAndShowsThem) {
  const Folder folder;
  const Ran ran = collet(
      "opt sdk/tool/tests/data/add.hlo --passes simplify,eliminate_dead --print-before simplify --print-after all "
      "-o " +
      (folder / "out.hlo"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(contains(ran.err, "// before simplify\n"));
  EXPECT_TRUE(contains(ran.err, "// after eliminate_dead"));
  EXPECT_FALSE(contains(ran.err, "// before eliminate_dead"));
  EXPECT_EQ(collet("opt " + (folder / "out.hlo")).out, contents(folder / "out.hlo"));
}

TEST(Opt, ListsPasses) {
  const Ran ran = collet("opt --list-passes");
  EXPECT_EQ(ran.code, 0);
  for (const char* part : {"inline_calls", "eliminate_dead", "Pipelines:", "prepare"})
    EXPECT_TRUE(contains(ran.out, part)) << part;
  EXPECT_TRUE(contains(collet("opt --list-passes --json -").out, "\"name\": \"inline_calls\""));
}

TEST(Info, CountsAProgram) {
  const Ran ran = collet("info sdk/tool/tests/data/add.hlo");
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_golden("info_add.txt", ran.out);
}

TEST(Info, ShowsTheOpTableInEachForm) {
  EXPECT_TRUE(contains(collet("info --ops").out, "convolution"));
  EXPECT_TRUE(contains(collet("info --ops --format md").out, "| dot | core | 2 |"));
  EXPECT_TRUE(contains(collet("info --ops --format json").out, "\"op\": \"dot\""));
  EXPECT_TRUE(contains(collet("info --ops --format c").out, "case COLLET_OP_DOT:"));
}

TEST(Info, FindsBackends) {
  const Ran all = collet("info --backends");
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(contains(all.out, "interpreter")) << all.out;
  EXPECT_TRUE(contains(collet("info --backend interpreter --json -").out, "\"name\": \"interpreter\""));
}

TEST(Info, NamesEachPlaceOnce) {
  const Ran ran = collet("info --backend nonesuch");
  const size_t first = ran.err.find("libcollet_backend_nonesuch.so");
  ASSERT_NE(first, std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("libcollet_backend_nonesuch.so", first + 1), std::string::npos) << ran.err;
}

TEST(Completion, KnowsVerbsAndOptions) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = collet("completion " + shell);
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (const char* part : {"conform", "no-fallback", "list-passes"})
      EXPECT_TRUE(contains(ran.out, part)) << shell << ": " << part;
  }
}

// Words as the shell passes them, and the completions of the last one.
struct Offer {
  const char* words;
  const char* offered;
};

TEST(Completion, OffersInBash) {
  const Folder folder;
  write(folder / "script", collet("completion bash").out);
  const std::vector<Offer> offers = {
      {"collet con", "conform"},
      {"collet run --exp", "--explain"},
      {"collet new acme --style ''", "kernels lists codegen source c"},
      {"collet new --style = k", "kernels"},
      {"collet new --style =", "kernels lists codegen source c"},
      {"collet completion b", "bash"},
      {"collet info --ops --format j", "json"},
      {"collet run --explain mod", ""},  // a file name
      {"collet run --backend ''", ""},
      {"collet run --backend -", ""},
      {"collet conform --worker", ""},
  };
  for (const Offer& offer : offers) {
    const std::string words = offer.words;
    std::string test = "COMP_WORDS=(" + words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _collet; ";
    write(folder / "test", "source '" + (folder / "script") + "'; " + test + "printf '%s' \"${COMPREPLY[*]}\"");
    ASSERT_EQ(std::system(("bash '" + (folder / "test") + "' >'" + (folder / "out") + "'").c_str()), 0) << words;
    EXPECT_EQ(contents(folder / "out"), offer.offered) << words;
  }
}

// The scripts must be valid, as far as the installed shells can check.
TEST(Completion, IsWellFormed) {
  const Folder folder;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    write(folder / "script", collet("completion " + shell).out);
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    EXPECT_EQ(std::system((shell + " -n '" + (folder / "script") + "'").c_str()), 0) << shell;
  }
}

// Manual pages are made from the tables from which --help is made, so each option of the help is in the page.
TEST(Manual, HasAPageForEachVerbWithAllItsOptions) {
  const Folder folder;
  ASSERT_EQ(collet("manual --output '" + (folder / "man") + "'").code, 0);
  int pages = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "man")) {
    ++pages;
    const std::string name = file.path().stem().string(), page = contents(file.path().string());
    EXPECT_TRUE(page.starts_with(".TH COLLET")) << name;
    for (const char* part : {".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n"})
      EXPECT_TRUE(contains(page, part)) << name;
    const std::string verb = name == "collet" ? "" : name.substr(7);
    std::istringstream help(collet(verb + " --help").out);
    int options = 0;
    for (std::string line; std::getline(help, line);) {
      const size_t start = line.find("--");
      if (!line.starts_with("  -") || start > 6) continue;
      std::string option = line.substr(start, line.find_first_of(" ,", start) - start);
      for (size_t at = 0; (at = option.find('-', at)) != std::string::npos; at += 2) option.insert(at, "\\");
      EXPECT_TRUE(contains(page, option)) << name << " lacks " << option;
      ++options;
    }
    EXPECT_GT(options, 0) << name;
    if (std::system("command -v man >/dev/null && command -v groff >/dev/null") != 0) continue;
    const std::string warnings = folder / "warnings";
    EXPECT_EQ(std::system(("MANWIDTH=80 man --warnings -l '" + file.path().string() + "' >'" + (folder / "page") +
                           "' 2>'" + warnings + "'")
                              .c_str()),
              0);
    EXPECT_EQ(contents(warnings), "") << name;
    EXPECT_TRUE(contains(contents(folder / "page"), "SYNOPSIS")) << name;
  }
  EXPECT_GE(pages, 14);
  EXPECT_EQ(collet("manual run").out, contents(folder / "man/collet-run.1"));
  EXPECT_TRUE(contains(collet("manual --format md").out, "\n## collet run\n"));
  EXPECT_EQ(collet("manual nothing").code, 2);
  EXPECT_EQ(collet("manual run --output '" + (folder / "man") + "'").code, 2);
  EXPECT_EQ(collet("manual run --format md").code, 2);
}

TEST(Cache, IsShownTrimmedAndCleaned) {
  const Folder folder;
  const std::string kept = folder / "kept", with = "COLLET_CACHE_DIR='" + kept + "'";
  const std::string program = "run sdk/tool/tests/data/add.hlo --backend interpreter";
  ASSERT_EQ(collet(program, with).code, 0);
  const std::string stale = std::string(64, 'a') + ".bin.999999999.0";
  write(kept + "/" + stale, "x");
  write(kept + "/notes.txt", "mine");
  EXPECT_TRUE(contains(collet("cache", with).out, "1 entries"));
  EXPECT_TRUE(contains(collet("cache", with).out, "1, 1 B: files that ended processes left"));
  const Ran trimmed = collet("cache --trim 1 --json - --folder '" + kept + "'");
  EXPECT_EQ(trimmed.code, 0) << trimmed.err;
  EXPECT_TRUE(contains(trimmed.out, "\"name\": \"" + stale)) << trimmed.out;
  EXPECT_TRUE(contains(trimmed.out, "\"kind\": \"entry\"")) << trimmed.out;
  EXPECT_TRUE(contains(collet("cache --clean", with).out, "1 files removed"));
  EXPECT_TRUE(contains(collet("cache", with).out, "0 entries"));
  EXPECT_EQ(contents(kept + "/notes.txt"), "mine");
}

}  // namespace
}  // namespace collet::tool::testing
