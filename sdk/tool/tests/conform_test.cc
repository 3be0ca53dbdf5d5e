// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>
#include <sstream>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

// Returns the value of each `"key": "value"` in a JSON text, in order.
std::vector<std::string> values_of(const std::string& json, const std::string& key) {
  std::vector<std::string> values;
  const std::string start = "\"" + key + "\": \"";
  for (size_t at = 0; (at = json.find(start, at)) != std::string::npos;) {
    at += start.size();
    values.push_back(json.substr(at, json.find('"', at) - at));
  }
  return values;
}

// The ops and the statuses of the cases that did not pass.
struct Bad {
  std::set<std::string> ops, statuses;
  size_t passed = 0;
};

Bad bad_cases(const std::string& json) {
  const std::string cases = json.substr(json.find("\"cases\": [\n    {"));
  const std::vector<std::string> names = values_of(cases, "name"), statuses = values_of(cases, "status");
  Bad bad;
  for (size_t i = 0; i < names.size() && i < statuses.size(); ++i) {
    if (statuses[i] == "pass") {
      ++bad.passed;
      continue;
    }
    bad.ops.insert(names[i].substr(0, names[i].find('/')));
    bad.statuses.insert(statuses[i]);
  }
  return bad;
}

// Runs the command, which must exit with this code and print these texts.
Ran expect_outcome(int code, const std::string& arguments, std::initializer_list<const char*> texts) {
  const Ran ran = collet(arguments);
  EXPECT_EQ(ran.code, code) << ran.out;
  for (const char* text : texts) EXPECT_TRUE(contains(ran.out, text)) << text << "\n" << ran.out;
  return ran;
}

TEST(Conform, TheInterpreterConforms) {
  expect_outcome(0,
                 "conform --backend interpreter --no-fallback --jobs 2 --filter 'add/*' --filter 'dot/f32/*' --filter "
                 "'reduce/*/add_*'",
                 {": conforms"});
}

TEST(Conform, CpuConforms) {
  if (!has_backend("cpu")) GTEST_SKIP() << "there is no cpu backend in this build";
  const Ran ran = collet(
      "conform --backend cpu --no-fallback --jobs 2 --filter 'multiply/*' --filter 'dot/bf16/*' --filter "
      "'reduce/f32/*'");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

TEST(Conform, ListsShardsThatMakeUpTheWhole) {
  const std::string all = collet("conform --list --filter 'add/*'").out;
  std::multiset<std::string> whole, parts;
  const auto lines = [](const std::string& text, std::multiset<std::string>& into) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) into.insert(line);
  };
  lines(all, whole);
  for (const char* shard : {"0/3", "1/3", "2/3"})
    lines(collet(std::string("conform --list --filter 'add/*' --shard ") + shard).out, parts);
  EXPECT_GT(whole.size(), 50u);
  EXPECT_EQ(whole, parts);
}

TEST(Conform, WritesJUnit) {
  const Folder folder;
  const Ran ran =
      collet("conform --backend interpreter --filter 'negate/f32/*' --json - --junit " + (folder / "report.xml"));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "\"verdict\": \"conforms\"")) << ran.out;
  const std::string xml = contents(folder / "report.xml");
  EXPECT_TRUE(contains(xml, "<testsuite name=\"negate\"")) << xml;
  EXPECT_TRUE(contains(xml, "<testcase classname=\"negate\" name=\"negate/f32/17/unit\"")) << xml;
}

// Each failure names a shell command that runs its case again. Reports contain it, with all characters escaped.
TEST(Conform, FailuresNameTheLineThatRunsThemAgain) {
  const Folder folder;
  const std::string lib = build_dir() + "/lib/collet/";
  const Ran ran = collet(
      "conform --no-fallback --backend " + lib +
      "test_backends/libcollet_backend_mutant.so --option mutant=one-element --option backend=" + lib +
      "backends/libcollet_backend_interpreter.so --filter 'dot/f32/1*' --failures 1 --html " + (folder / "page.html"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  const size_t start = ran.out.find(build_dir() + "/bin/collet conform");
  ASSERT_NE(start, std::string::npos) << ran.out;
  const std::string line = ran.out.substr(start, ran.out.find('\n', start) - start);
  EXPECT_EQ(WEXITSTATUS(std::system((line + " >" + (folder / "again")).c_str())), 1) << line;
  EXPECT_TRUE(contains(contents(folder / "again"), ": 0 of 1 cases passed, 1 fail")) << contents(folder / "again");
  const std::string page = contents(folder / "page.html");
  for (const char* part : {"<!DOCTYPE html>", "It does not conform.", "<code>dot</code>", "--option mutant=one-element",
                           "<td class=\"f\"><a href=\"#cases:dot/f32", "<details id=\"dot/f32/1", ">Profiles</h2>"})
    EXPECT_TRUE(contains(page, part)) << part;
}

// If no array can be copied to the device, that is reported once, not for each of ten thousand cases.
TEST(Conform, EndsWhereAllFailsAlike) {
  const std::string lib = build_dir() + "/lib/collet/";
  const Ran ran =
      collet("conform --backend " + lib +
             "test_backends/libcollet_backend_faulty.so --option fault=uploads_fail --option backend=" + lib +
             "backends/libcollet_backend_interpreter.so --failures 2");
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.out, "ended early: 50 cases in a row failed alike: ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "the link to the device is down")) << ran.out;
  EXPECT_TRUE(contains(ran.out, " not run in ")) << ran.out;
  // The first failures are printed immediately.
  EXPECT_TRUE(contains(ran.err, "fail ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "further failures stand in the report")) << ran.err;
}

TEST(Conform, SaysOnceThatNoCaseMatches) {
  const Ran ran = collet("conform --backend interpreter --filter no_such_case");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "collet: no case matches --filter no_such_case; see --list\n");
}

TEST(Conform, ShowsWhatContractCasesDo) {
  const Ran ran = collet("conform --show --filter contract/copy/host_offset --filter contract/alias/add");
  EXPECT_EQ(ran.code, 0);
  for (const char* part : {"contract/copy/host_offset\nCopies from and to host memory with an offset",
                           "backend.h: \"bytes from the start of either\"", "ROOT r = f32[300] add(x, w)"})
    EXPECT_TRUE(contains(ran.out, part)) << ran.out;
}

// The report names ops that the device accepts and never runs.
TEST(Conform, NamesWhatNeverRan) {
  const std::string lib = build_dir() + "/lib/collet/";
  const Ran ran = collet("conform --json - --backend " + lib +
                         "test_backends/libcollet_backend_faulty.so --option fault=none --option backend=" + lib +
                         "backends/libcollet_backend_interpreter.so --filter 'softmax/f32/4x8/*' --filter "
                         "'contract/compile/supports_is_pure'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const size_t start = ran.out.find("\"silent\"");
  ASSERT_NE(start, std::string::npos) << ran.out;
  const std::string silent = ran.out.substr(start, ran.out.find("\"cases\"", start) - start);
  // Ops that the device accepted although no program that ran contains them.
  EXPECT_TRUE(contains(silent, "accepted, and run in no case")) << silent;
  EXPECT_TRUE(contains(silent, "\"name\": \"sort\"")) << silent;
  // Patterns that the device named but that none of the chosen cases contains. Patterns that it took are not listed.
  EXPECT_TRUE(contains(silent, "named, and in no case")) << silent;
  EXPECT_TRUE(contains(silent, "\"name\": \"attention\"")) << silent;
  EXPECT_FALSE(contains(silent, "\"name\": \"softmax\"")) << silent;
}

struct MutantCase {
  const char* mutant;
  const char* op;
  const char* status;
};

class Mutants : public ::testing::TestWithParam<MutantCase> {};

// Each fault must be found, attributed to the op that is wrong, and must not affect other cases, nor those in one program with it.
TEST_P(Mutants, AreKilled) {
  const MutantCase& mutant = GetParam();
  const std::string lib = build_dir() + "/lib/collet/";
  for (const std::string behind : {"interpreter", "cpu", "interpreter --batch 9"}) {
    if (behind == "cpu" && !has_backend(behind)) continue;
    const std::string name = behind.substr(0, behind.find(' '));
    const Ran ran = collet(
        "conform --no-fallback --jobs 2 --timeout 4 --json - --backend " + lib +
        "test_backends/libcollet_backend_mutant.so --option mutant=" + mutant.mutant + " --option backend=" + lib +
        "backends/libcollet_backend_" + name + ".so" + behind.substr(name.size()) +
        " --filter 'subtract/f32/*' --filter 'transpose/f32/*' --filter 'dot/f32/1*' --filter 'sort/f32/GT_17_*' "
        "--filter 'reverse/f32/17/*' --filter 'maximum/f32/*'");
    EXPECT_EQ(ran.code, 1) << ran.err;
    const Bad bad = bad_cases(ran.out);
    EXPECT_EQ(bad.ops, std::set<std::string>{mutant.op}) << behind;
    EXPECT_EQ(bad.statuses, std::set<std::string>{mutant.status}) << behind;
    EXPECT_GT(bad.passed, 40u) << behind;
    EXPECT_TRUE(contains(ran.out, std::string("--option mutant=") + mutant.mutant)) << "no reproducer";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutants,
    ::testing::Values(MutantCase{"vector-tail", "subtract", "fail"},
                      MutantCase{"attribute-ignored", "transpose", "fail"}, MutantCase{"one-element", "dot", "fail"},
                      MutantCase{"crash", "sort", "crash"}, MutantCase{"hang", "reverse", "timeout"},
                      MutantCase{"hang-in-compile", "reverse", "timeout"}, MutantCase{"compile-refuses", "dot", "fail"},
                      MutantCase{"execute-refuses", "dot", "fail"},
                      // A process with a lost device is replaced before the next case.
                      MutantCase{"lost", "reverse", "fail"}),
    [](const auto& instance) {
      std::string name = instance.param.mutant;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

// A device that is wrong only for several results shows it in a program of several cases.
TEST(ConformBatch, NamesCasesThatAreWrongOnlyTogether) {
  const std::string lib = build_dir() + "/lib/collet/";
  const std::string line = "conform --backend " + lib +
                           "test_backends/libcollet_backend_faulty.so --option backend=" + lib +
                           "backends/libcollet_backend_interpreter.so --option fault=second_result_is_first " +
                           "--filter 'add/f32/129/unit' --filter 'subtract/f32/129/unit'";
  expect_outcome(0, line, {"2 of 2 cases passed"});
  const char* const failure = "it passes as a program of its own, and not in one program (--batch) of";
  expect_outcome(1, line + " --batch 2", {"subtract/f32/129/unit", failure});
  // The results that a run has kept have it, also if the run was ended before it judged them.
  const Folder folder;
  const std::string kept = folder / "kept", again = line + " --batch 2 --resume " + kept;
  expect_outcome(1, again, {failure});
  std::string lines = contents(kept);
  const size_t last = lines.find(failure);
  ASSERT_NE(last, std::string::npos) << lines;
  lines.erase(lines.rfind('\n', last) + 1);
  write(kept, lines);
  expect_outcome(1, again, {failure});
}

// Returns the command line that runs a mutant on the interpreter.
std::string mutant_line(const std::string& mutant) {
  const std::string lib = build_dir() + "/lib/collet/";
  return "conform --backend " + lib + "test_backends/libcollet_backend_mutant.so --option mutant=" + mutant +
         " --option backend=" + lib + "backends/libcollet_backend_interpreter.so";
}

// An interrupted run continues where it stopped, but only with the same options.
TEST(Resume, GoesOnFromWhatIsKept) {
  const Folder folder;
  const std::string line =
      "conform --backend interpreter --no-fallback --filter 'negate/*' --json - --resume " + (folder / "kept");
  const Ran whole = collet(line);
  EXPECT_EQ(whole.code, 0) << whole.err;
  std::string kept = contents(folder / "kept");
  const size_t count = static_cast<size_t>(std::count(kept.begin(), kept.end(), '\n'));
  EXPECT_GT(count, 20u);
  // The end of the file is cut off in the middle of a line, and a stored result is changed to a failure.
  kept.resize(kept.size() - kept.size() / 3);
  const std::string passed = "status=pass";
  const size_t first = kept.find(passed);
  ASSERT_NE(first, std::string::npos);
  kept.replace(first, passed.size(), "status=fail");
  write(folder / "kept", kept);
  const Ran again = collet(line);
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_TRUE(contains(again.out, "\"fail\": 1,")) << again.out;
  const std::string full = contents(folder / "kept");
  EXPECT_EQ(static_cast<size_t>(std::count(full.begin(), full.end(), '\n')), count);
  const Ran other = collet(line + " --seed 7");
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_TRUE(contains(other.err, "is of another run")) << other.err;
}

// A disk that is full is told, and the report is there all the same.
TEST(Resume, SaysThatResultsCannotBeKept) {
  const Folder folder;
  const std::string line =
      "conform --backend interpreter --no-fallback --filter 'negate/*' --resume " + (folder / "kept");
  const Ran full = collet(line, "ulimit -f 4; trap '' XFSZ;");
  EXPECT_EQ(full.code, 4) << full.err;
  EXPECT_TRUE(contains(full.err, "kept cannot be written: File too large")) << full.err;
  const Ran again = collet(line);
  EXPECT_EQ(again.code, 0) << again.err;
  const Ran device = collet("conform --backend interpreter --filter 'negate/*' --resume /dev/zero", "timeout 60");
  EXPECT_EQ(device.code, 2) << device.err;
  EXPECT_TRUE(contains(device.err, "/dev/zero is a device")) << device.err;
}

// Cases of a claimed profile must run on the device.
TEST(Profiles, ClaimsAreHeld) {
  const std::string lib = build_dir() + "/lib/collet/test_backends/libcollet_backend_memory_only.so";
  const std::string line =
      "conform --backend " + lib + " --profile core --filter 'sort/f32/*' --filter 'dot/f32/1*' --filter 'add/f32/*'";
  const Ran unclaimed = collet(line);
  EXPECT_EQ(unclaimed.code, 0) << unclaimed.out;
  EXPECT_TRUE(contains(unclaimed.out, "profiles:\n")) << unclaimed.out;
  const Ran claimed = collet(line + " --claim core");
  EXPECT_EQ(claimed.code, 1) << claimed.out;
  EXPECT_TRUE(contains(claimed.out, "profile core is claimed, and the device did not take it")) << claimed.out;
  EXPECT_EQ(collet("conform --profile no_such").code, 2);
  EXPECT_EQ(collet("conform --claim quick").code, 2);
}

// A device that has nothing but fused layers is judged by those.
TEST(Profiles, QuantizedLayersRunAsOneOp) {
  const std::string line = "conform --claim quantized --backend " + build_dir() +
                           "/lib/collet/test_backends/libcollet_backend_npu.so --filter 'requantize/[su]8/*' --filter "
                           "'quantize/[su]8/*' --filter 'integer_dot/[su]8/*' --filter ";
  const Ran layers = collet(line + "'integer_convolution/*'");
  EXPECT_EQ(layers.code, 0) << layers.out;
  EXPECT_TRUE(contains(layers.out, " on the device, claimed\n")) << layers.out;
  const Ran more = collet(line + "'scaled_convolution/s8/relu_layer/*'");
  EXPECT_EQ(more.code, 1) << more.out;
  // The device has no single ops, and is judged by layers of arrays that a scratchpad does not hold.
  const Ran tiled = collet("conform --no-fallback --claim tiled-layers --backend " + build_dir() +
                           "/lib/collet/test_backends/libcollet_backend_npu.so --filter 'integer_*/s8/tiled.*'");
  EXPECT_EQ(tiled.code, 0) << tiled.out;
  EXPECT_TRUE(contains(tiled.out, "  tiled-layers        8 of      8 on the device, claimed\n")) << tiled.out;
}

TEST(Profiles, QuickIsAPartOfAllWithEveryOp) {
  const auto lines = [](const std::string& arguments) {
    std::istringstream in(collet("conform --list " + arguments).out);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  };
  const auto ops = [](const std::vector<std::string>& names) {
    std::set<std::string> out;
    for (const std::string& name : names) out.insert(name.substr(0, name.find('/')));
    return out;
  };
  const auto quick = lines("--profile quick"), all = lines("");
  EXPECT_GT(quick.size(), all.size() / 8);
  EXPECT_LT(quick.size(), all.size() / 3);
  EXPECT_EQ(ops(quick), ops(all));
}

// Compares two runs of which one has a failure.
TEST(Diff, SaysWhatFailsNow) {
  const Folder folder;
  const std::string cases = " --no-fallback --filter 'dot/f32/1*' --filter 'add/f32/*' --json ";
  const std::string good = folder / "good.json", bad = folder / "bad.json";
  EXPECT_EQ(collet("conform --backend interpreter" + cases + good).code, 0);
  const std::string lib = build_dir() + "/lib/collet/";
  EXPECT_EQ(
      collet("conform --backend " + lib + "test_backends/libcollet_backend_mutant.so --option mutant=one-element " +
             "--option backend=" + lib + "backends/libcollet_backend_interpreter.so" + cases + bad)
          .code,
      1);
  const Ran worse = collet("conform --diff " + good + " " + bad);
  EXPECT_EQ(worse.code, 1);
  EXPECT_TRUE(contains(worse.out, "fails now: ")) << worse.out;
  EXPECT_TRUE(contains(worse.out, "  fail        dot/f32/1")) << worse.out;
  EXPECT_FALSE(contains(worse.out, "add/")) << worse.out;
  const Ran better = collet("conform --diff " + bad + " " + good);
  EXPECT_EQ(better.code, 0);
  EXPECT_TRUE(contains(better.out, "fails no more: ")) << better.out;
  const Ran same = collet("conform --diff " + good + " " + good);
  EXPECT_EQ(same.code, 0);
  EXPECT_TRUE(contains(same.out, "no case differs")) << same.out;
  const Ran no_report = collet("conform --diff " + good + " sdk/tool/tests/data/add.hlo");
  EXPECT_EQ(no_report.code, 2);
  EXPECT_TRUE(contains(no_report.err, "add.hlo is no report")) << no_report.err;
}

// Random programs run for the given time. A backend that exchanges or corrupts the result of an op must be found, and
// the command line that the report prints must find it again.
TEST(Fuzz, FindsWhatIsWrongAndNothingElse) {
  const Ran good = collet("conform --backend interpreter --no-fallback --fuzz 3 --seed 5 --json -");
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_TRUE(contains(good.out, "\"name\": \"random/program/seed_5\"")) << good.out;
  const std::string lib = build_dir() + "/lib/collet/";
  const std::string wrong =
      "conform --no-fallback --backend " + lib +
      "test_backends/libcollet_backend_mutation.so --option mutant=operands_swapped:subtract --option backend=" + lib +
      "backends/libcollet_backend_interpreter.so ";
  const Ran bad = collet(wrong + "--fuzz 4 --json -");
  EXPECT_EQ(bad.code, 1) << bad.out;
  const size_t at = bad.out.find("\"status\": \"fail\"");
  ASSERT_NE(at, std::string::npos) << bad.out;
  const size_t name = bad.out.rfind("random/program/seed_", at);
  const std::string found = bad.out.substr(name, bad.out.find('"', name) - name);
  EXPECT_EQ(collet(wrong + "--filter " + found).code, 1) << found;
  EXPECT_TRUE(contains(collet("conform --show --filter " + found).out, "ENTRY ")) << found;
}

// The suite must find its mutants, and must not accuse correct variants of a backend. --mutants without a filter takes
// minutes.
TEST(SelfTest, SeesASampleOfMutants) {
  const Folder folder;
  const std::string json = folder / "mutants.json";
  expect_outcome(0,
                 "conform --mutants --jobs 2 --filter '*:shift-left' --filter 'last_bit_other:sine' --filter "
                 "'nan_bits_other:add' --json " +
                     json,
                 {"2 legal variants, 0 of them accused", " mutants killed"});
  const std::string text = contents(json);
  EXPECT_TRUE(contains(text, "\"good\": true")) << text;
  EXPECT_TRUE(
      contains(text, "\"name\": \"last_bit_other:sine\",\n      \"group\": \"legal\",\n      \"legal\": true\n"))
      << text;
  EXPECT_TRUE(contains(text, "\"killed_by\": \"shift-left/")) << text;
  EXPECT_EQ(collet("conform --mutants --html x.html").code, 2);
}

// An op that supports accepts must compile, even if a fallback could run it.
TEST(Claims, FallbackDoesNotHideWhatCompileRefuses) {
  expect_outcome(1, mutant_line("compile-refuses") + " --filter 'dot/f32/1*' --filter 'add/f32/*'",
                 {"not compiled: ", "supports had said yes"});
}

// Declining an op is no failure, but a backend that declines everything does not conform.
TEST(Claims, BackendThatDeclinesAllDoesNotConform) {
  const Ran all =
      expect_outcome(1, mutant_line("declines-all") + " --no-fallback --shard 0/200", {"it has declined all"});
  EXPECT_FALSE(contains(all.out, " fail in ")) << all.out;
}

// If many cases crash, the run ends early instead of starting a process for each case.
TEST(Claims, CrashesEndARunEarly) {
  expect_outcome(1, mutant_line("frees-twice") + " --filter 'add/*'", {"ended early: ", " cases crashed"});
}

// A backend that hangs, in whatever call, is reported and abandoned.
TEST(Hangs, HaveAnEnd) {
  const Folder folder;
  write(folder / "reverse.hlo",
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] reverse(x), dimensions={0}\n}\n");
  const std::string lib = build_dir() + "/lib/collet/";
  const std::string backend = " --no-fallback --backend " + lib +
                              "test_backends/libcollet_backend_mutant.so --option " + "backend=" + lib +
                              "backends/libcollet_backend_interpreter.so --option mutant=";
  const struct {
    const char* mutant;
    const char* where;
  } hangs[] = {{"hang", "running '"}, {"hang-in-compile", "compiling '"}, {"hang-in-open", "opening "}};
  for (const auto& hang : hangs) {
    const Ran ran = collet("run " + (folder / "reverse.hlo") + " --timeout 0.5" + backend + hang.mutant);
    EXPECT_EQ(ran.code, 5) << hang.mutant << "\n" << ran.err;
    EXPECT_TRUE(contains(ran.err, std::string("no answer within 0.5 s: ") + hang.where)) << ran.err;
    EXPECT_TRUE(contains(ran.err, "libcollet_backend_mutant.so")) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const Ran well = collet("run " + (folder / "reverse.hlo") + " --timeout 60 --backend interpreter");
  EXPECT_EQ(well.code, 0) << well.err;
  const Ran never = collet("conform --timeout 0.5 --filter 'add/f32/1/*'" + backend + "hang-in-open");
  EXPECT_EQ(never.code, 4) << never.err;
  EXPECT_TRUE(contains(never.err, "the backend cannot be opened: no answer in time")) << never.err;
}

// A corpus of the user: each way in which an entry passes or fails.
TEST(Corpus, ListsEveryEntryOnce) {
  const Folder folder;
  std::filesystem::create_directory(folder / "some");
  write(folder / "some/good.hlo",
        "HloModule m\nENTRY e {\n  x = s32[2] parameter(0)\n  ROOT y = s32[2] negate(x)\n}\n");
  write(folder / "some/refused.hlo",
        "HloModule m\nENTRY e {\n  x = s32[2] parameter(0)\n  ROOT y = s32[2] negat(x)\n}\n");
  for (const char* copy : {"wrong", "read", "not_refused"}) {
    std::filesystem::copy_file(folder / "some/good.hlo", folder / ("some/" + std::string(copy) + ".hlo"));
  }
  std::filesystem::copy_file(folder / "some/refused.hlo", folder / "some/elsewhere.hlo");
  const std::string result = R"("xla": "read", "inputs": ["s32[2]"], "outputs": ["s32[2]"], "bytes": 8, "offset": )";
  write(folder / "some.jsonl", R"({"file": "good.hlo", )" + result + "0}\n" + R"({"file": "wrong.hlo", )" + result +
                                   "8}\n" + R"({"file": "read.hlo", "xla": "read"})" + "\n" +
                                   R"({"file": "refused.hlo", "xla": "refused", "line": 4, "column": 20})" + "\n" +
                                   R"({"file": "elsewhere.hlo", "xla": "refused", "line": 12, "column": 1})" + "\n" +
                                   R"({"file": "not_refused.hlo", "xla": "refused", "line": 3, "column": 1})" + "\n" +
                                   R"({"file": "missing.hlo", "xla": "read"})" + "\n");
  // The rule gives {0, 1} for the first parameter of type s32[2], so the second line of results, {5, 5}, is wrong.
  const int32_t values[] = {0, -1, 5, 5};
  write(folder / "some.expected.bin", {reinterpret_cast<const char*>(values), sizeof values});
  const Ran ran = collet("conform --backend interpreter --jobs 2 --json - --corpus " + (folder / "some.jsonl"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  const std::vector<std::string> names = values_of(ran.out, "name"), expects = values_of(ran.out, "expect"),
                                 statuses = values_of(ran.out, "status");
  EXPECT_EQ(names, (std::vector<std::string>{"good.hlo", "wrong.hlo", "read.hlo", "refused.hlo", "elsewhere.hlo",
                                             "not_refused.hlo", "missing.hlo"}));
  EXPECT_EQ(expects, (std::vector<std::string>{"result", "result", "read", "refuse", "refuse", "refuse", "read"}));
  EXPECT_EQ(statuses, (std::vector<std::string>{"pass", "fail", "pass", "pass", "fail", "fail", "fail"})) << ran.out;
}

TEST(Corpus, SomeModelsRun) {
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (corpus == nullptr) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    ASSERT_FALSE(required != nullptr && std::string_view(required) == "1")
        << "the corpus is required; COLLET_CORPUS_DIR does not name it";
    GTEST_SKIP() << "without COLLET_CORPUS_DIR 4 models were not run";
  }
  const Ran ran =
      collet(std::string("conform --backend interpreter --no-fallback --jobs 2 --corpus ") + corpus +
             "/models --filter softmax --filter mnist_softmax_train --filter attention --filter switch_cond");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "result   4 of 4 passed")) << ran.out;
}

// How workers end is part of the verdict: what a backend does when it is closed.
TEST(Conform, BackendThatEndsBadlyWhenClosed_DoesNotConform) {
  const std::string library = build_dir() + "/lib/collet/test_backends/libcollet_backend_hostile.so";
  // Everything runs on the fallback, so the cases themselves pass.
  const std::string line = "conform --timeout 2 --filter 'negate/f32/17/*' --backend " + library;
  const std::string before = "COLLET_HOSTILE=declines COLLET_HOSTILE_END=";
  EXPECT_EQ(collet(line, before + "none").code, 0);
  for (const std::string how : {"crash", "abort", "exit", "_exit", "overflow", "hang"}) {
    SCOPED_TRACE(how);
    const Ran ran = collet(line, before + "'close " + how + "'");
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, "after this case the backend was closed, and ")) << ran.out;
    EXPECT_TRUE(contains(ran.out, how == "hang" ? "did not end in time" : "in 'close' of the backend library"))
        << ran.out;
  }
  // The limit holds for opening, too.
  const Ran opening = collet(line, "timeout 20 env COLLET_HOSTILE_END='open hang'");
  EXPECT_EQ(opening.code, 4) << opening.out << opening.err;
  EXPECT_TRUE(contains(opening.err, "cannot be opened: no answer in time, 2 s, from '" + library)) << opening.err;
}

constexpr char kAdd[] = "sdk/tool/tests/data/add.hlo";

TEST(ConformFrom, RunsTheOpsOfAProgramAndTheWhole) {
  expect_outcome(0, std::string("conform --backend interpreter --beside cpu --from ") + kAdd,
                 {"add: ", "as a whole: pass: ", "on the device: ", "runs these programs", "the slowest ops"});
}

TEST(ConformFrom, NamesTheOpThatIsWrong) {
  const Folder folder;
  const std::string lib = build_dir() + "/lib/collet/", program = folder / "subtracts.hlo";
  const std::string wrong =
      "conform --no-fallback --backend " + lib +
      "test_backends/libcollet_backend_mutation.so --option mutant=last_is_first:subtract --option "
      "backend=" +
      lib + "backends/libcollet_backend_interpreter.so --from ";
  write(program,
        "HloModule s\nENTRY e {\n  x = f32[40] parameter(0)\n  y = f32[40] parameter(1)\n  d = f32[40] subtract(x, y)\n"
        "  ROOT r = f32[] dot(d, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n");
  expect_outcome(
      1, wrong + program,
      {"subtract/f32/subtracts.", "wrong with this program's values: subtract", "does not run these programs"});
  expect_outcome(0, wrong + kAdd, {"runs these programs"});
}

// Two computations may each have an instruction of one name.
TEST(ConformFrom, NamesTwoOpsOfOneNameApart) {
  const Folder folder;
  const std::string program = folder / "m.hlo";
  write(program, R"(HloModule m
cond {
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  r = f32[4] multiply(x, x)
  ROOT t = (s32[], s32[], f32[4]) tuple(j, n, r)
}
ENTRY e {
  a = f32[8] parameter(0)
  x = f32[4] parameter(1)
  n = s32[] parameter(2)
  zero = s32[] constant(0)
  s = (s32[], s32[], f32[4]) tuple(zero, n, x)
  w = (s32[], s32[], f32[4]) while(s), condition=cond, body=body
  y = f32[4] get-tuple-element(w), index=2
  r = f32[8] multiply(a, a)
  ROOT t = (f32[8], f32[4]) tuple(r, y)
})");
  const Ran ran = collet("conform --backend interpreter --list --from " + program);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "multiply/f32/m.r/unit\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "multiply/f32/m.r.2/unit\n")) << ran.out;
}

// A result that was kept is that of the same case: another program, or a changed one, runs.
TEST(ConformFrom, WhatIsKeptIsOfTheSameProgram) {
  const Folder folder;
  const std::string program = folder / "m.hlo", lib = build_dir() + "/lib/collet/";
  const auto text = [](const std::string& op) {
    return "HloModule m\nENTRY e {\n  x = f32[40] parameter(0)\n  y = f32[40] parameter(1)\n  ROOT r = f32[40] " + op +
           "(x, y)\n}\n";
  };
  const std::string line =
      "conform --no-fallback --backend " + lib +
      "test_backends/libcollet_backend_mutation.so --option mutant=last_is_first:subtract --option "
      "backend=" +
      lib + "backends/libcollet_backend_interpreter.so --resume " + (folder / "kept") + " --from " + program;
  write(program, text("add"));
  EXPECT_EQ(collet(line).code, 0);
  EXPECT_EQ(collet(line).code, 0);
  write(program, text("subtract"));
  expect_outcome(1, line, {"program/m"});
}

// Nothing is declined where a program has no op.
TEST(ConformFrom, TakesAProgramWithoutOps) {
  const Folder folder;
  const std::string program = folder / "nothing.hlo";
  write(program, "HloModule n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n");
  for (const char* how : {"", "--no-fallback "})
    expect_outcome(0, std::string("conform --backend interpreter ") + how + "--from " + program,
                   {"as a whole: pass: ", "runs these programs"});
}

// Runs of one executable must not depend on each other, nor on the places of their arguments.
TEST(ConformFrom, FindsRunsThatDependOnOthers) {
  const std::string lib = build_dir() + "/lib/collet/";
  const auto expect_found = [&](const std::string& fault, std::initializer_list<const char*> texts) {
    expect_outcome(1,
                   "conform --no-fallback --backend " + lib +
                       "test_backends/libcollet_backend_faulty.so --option fault=" + fault +
                       " --option backend=" + lib + "backends/libcollet_backend_interpreter.so --from " + kAdd,
                   texts);
  };
  expect_found("every_sixteenth_run_missing", {"as a whole: fail: in execution 16 of one executable"});
  expect_found("first_buffers_kept", {"as a whole: fail: ", "a run depends on one before it"});
}

TEST(ConformFrom, KeepsTheCasesInAFile) {
  const Folder folder;
  const std::string file = folder / "cases", from = "conform --backend interpreter --from ";
  const Ran first = collet(from + kAdd + " --save-cases " + file + " --list");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(contains(first.out, "program/add\n")) << first.out;
  EXPECT_EQ("program/add\n" + collet(from + file + " --list").out, first.out);
  expect_outcome(0, from + file, {"runs these programs"});
}

// A worker that hangs, and is killed, cannot remove its temporary files.
TEST(ConformFrom, LeavesNoTemporaryFiles) {
  const Folder folder;
  const std::string lib = build_dir() + "/lib/collet/", program = folder / "constant.hlo", temporary = folder / "tmp";
  std::string numbers = "0";
  for (int i = 1; i < 2000; ++i) numbers += ", " + std::to_string(i % 7);
  // The constant is copied to the device while the program is compiled.
  write(program, "HloModule constant\nENTRY e {\n  x = f32[2000] parameter(0)\n  c = f32[2000] constant({" + numbers +
                     "})\n  ROOT r = f32[2000] add(x, c)\n}\n");
  std::filesystem::create_directory(temporary);
  const Ran ran =
      collet("conform --timeout 1 --backend " + lib +
                 "test_backends/libcollet_backend_faulty.so --option fault=copies_hang --option backend=" + lib +
                 "backends/libcollet_backend_interpreter.so --from " + program,
             "env TMPDIR=" + temporary);
  EXPECT_TRUE(contains(ran.out, "no answer in time")) << ran.out << ran.err;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST(ConformInterrupted, RemovesItsTemporaryFiles) {
  const Folder folder;
  const std::string temporary = folder / "tmp";
  std::filesystem::create_directory(temporary);
  const Ran ran = collet("conform --backend interpreter --soak 60",
                         "env TMPDIR=" + temporary + " timeout --preserve-status -s INT 2");
  EXPECT_EQ(ran.code, 128 + SIGINT) << ran.out << ran.err;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

// Dots are wrong once a sine has run, which stands in a fused group. The report says so, and accuses no op that is right.
TEST(From, SaysAfterWhichOpsAnotherIsWrong) {
  const Folder folder;
  const std::string program = folder / "model.hlo";
  write(program,
        "HloModule m\nENTRY e {\n  x = f32[8,8] parameter(0)\n  c = f32[8,8] cosine(x)\n  s = f32[8,8] sine(x)\n"
        "  a = f32[8,8] add(c, s)\n  ROOT d = f32[8,8] dot(a, x), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n}\n");
  const Ran ran = collet(mutant_line("after-another") + " --no-fallback --from " + program);
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(
      ran.out, "wrong only after other ops ran: alone in a new process it is right, and wrong after fusion 'fusion'"))
      << ran.out;
  EXPECT_TRUE(contains(
      ran.out,
      "wrong only after other ops ran: alone in a new process it is right, and wrong after fusion/f32/model.fusion/"))
      << ran.out;
  EXPECT_FALSE(contains(ran.out, "fail     fusion")) << ran.out;
}

// The command that runs a failure again has the options that it needs: of several programs the one that has it.
TEST(From, ACommandThatRunsACaseAgainHasWhatItNeeds) {
  const Folder folder;
  write(folder / "first.hlo", "HloModule m\nENTRY e {\n  x = f32[64] parameter(0)\n  ROOT c = f32[64] cosine(x)\n}\n");
  write(folder / "second.hlo",
        "HloModule m\nENTRY e {\n  x = f32[64] parameter(0)\n  ROOT s = f32[64] subtract(x, x)\n}\n");
  write(folder / "third.hlo",
        "HloModule m\nENTRY e {\n  x = f32[65] parameter(0)\n  y = f32[65] parameter(1)\n  ROOT s = f32[65] "
        "subtract(x, y)\n}\n");
  const std::string from =
      " --from " + (folder / "first.hlo") + " --from " + (folder / "third.hlo") + " --from " + (folder / "second.hlo");
  const Ran ran = collet(mutant_line("vector-tail") + " --seed 3 --timeout 30 --jobs 2" + from);
  EXPECT_EQ(ran.code, 1) << ran.err;
  const std::string again = " --seed 3 --from " + (folder / "third.hlo") + " --filter subtract/f32/third.s/unit";
  EXPECT_TRUE(contains(ran.out, again + "\n")) << ran.out;
}

// Names of files are not those of cases: they may have line breaks, and characters of globs.
TEST(From, TakesFilesOfAnyName) {
  const Folder folder;
  for (const char* name : {"a\nb", "c*[d]?", "e: f", "<g>&'h\"", "\xff\xfe", "\x1b[31m"}) {
    write(folder / (std::string(name) + ".hlo"),
          "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT s = f32[4] sine(x)\n}\n");
  }
  const Ran ran =
      collet("conform --backend interpreter --from " + (folder / "") + " --json " + (folder / "report.json"));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "runs these programs")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "\x1b")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "e_ f: 1 ops, 3 cases\n  as a whole: pass")) << ran.out;
}

// The state of random numbers goes on from run to run, so that no run of the evaluator has the device's.
TEST(ConformFrom, DoesNotCompareRandomNumbers) {
  const Folder folder;
  const std::string program = folder / "random.hlo";
  write(program,
        "HloModule r\nENTRY e {\n  x = f32[2] parameter(0)\n  s = u64[2] rng-get-and-update-state(), delta=4\n"
        "  c = f32[2] convert(s)\n  ROOT r = f32[2] add(c, x)\n}\n");
  expect_outcome(0, "conform --backend cpu --from " + program, {"as a whole: pass: ", "runs these programs"});
}

// What a factor is when the matrix is not positive definite, and where a sort puts elements that its comparator does not order, is
// left open.
TEST(ConformFrom, AcceptsWhatAnOpLeavesOpen) {
  const Folder folder;
  const std::string factor = folder / "factor.hlo", sort = folder / "sort.hlo";
  write(factor,
        "HloModule factor\nENTRY e {\n  x = f32[6,6] parameter(0)\n  t = f32[6,6] transpose(x), dimensions={1,0}\n"
        "  s = f32[6,6] add(x, t)\n  ROOT l = f32[6,6] cholesky(s), lower=true\n}\n");
  write(sort,
        "HloModule sort\nc {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  i = s32[] parameter(2)\n"
        "  j = s32[] parameter(3)\n  ROOT le = pred[] compare(a, b), direction=LE\n}\nENTRY e {\n"
        "  x = s32[300] parameter(0)\n  two = s32[] constant(2)\n  twos = s32[300] broadcast(two), dimensions={}\n"
        "  keys = s32[300] remainder(x, twos)\n  i = s32[300] iota(), iota_dimension=0\n"
        "  s = (s32[300], s32[300]) sort(keys, i), dimensions={0}, is_stable=true, to_apply=c\n"
        "  ROOT p = s32[300] get-tuple-element(s), index=1\n}\n");
  for (const std::string backend : {"cpu", "interpreter"}) {
    const std::string from = "conform --backend " + backend + " --from ";
    expect_outcome(0, from + factor, {"as a whole: pass: 1 runs of single ops compared, 1 not", "runs these programs"});
    expect_outcome(0, from + sort, {"as a whole: pass: 2 runs of single ops compared, 1 not", "runs these programs"});
  }
}

TEST(ConformFrom, SaysWhatCannotBeRead) {
  const auto expect_error = [](const std::string& arguments, const char* text) {
    const Ran ran = collet(arguments);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_TRUE(contains(ran.err, text)) << ran.err;
  };
  expect_error("conform --from /nowhere/model.hlo", "there is no such file");
  expect_error("conform --save-cases x", "--save-cases is about --from");
  expect_error(std::string("conform --full --from ") + kAdd, "about the suite's");
  // A file that is no program is no failure of the device.
  const std::string broken = "conform --backend interpreter --from sdk/tool/tests/data/broken.hlo";
  const Ran alone = collet(broken);
  EXPECT_EQ(alone.code, 3) << alone.out << alone.err;
  EXPECT_TRUE(contains(alone.err, "broken.hlo:")) << alone.err;
  expect_outcome(3, broken + " --from " + kAdd,
                 {"not read: ", "broken.hlo:", "runs these programs; 1 file was not read"});
}

TEST(Soak, PassesABackendThatKeepsNothingAndNamesWhatGrows) {
  const std::string lib = build_dir() + "/lib/collet/";
  expect_outcome(0, "conform --backend interpreter --soak 2",
                 {"soak/rounds/seed_0: ", "after round 1: ", "passes the soak test"});
  expect_outcome(1,
                 "conform --soak 4 --seed 5 --backend " + lib +
                     "test_backends/libcollet_backend_faulty.so --option fault=files_leak "
                     "--option backend=" +
                     lib + "backends/libcollet_backend_interpreter.so",
                 {"files stay open after a client was closed", " --seed 5", "fails the soak test"});
}

}  // namespace
}  // namespace collet::tool::testing
