// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string folder() {
  const char* build = std::getenv("COLLET_BUILD_DIR");
  return build ? build : "";
}

struct Ran {
  int code = -1;
  std::string out;
};

Ran run_line(const std::string& line) {
  Ran ran;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.c_str(), "r"), [](std::FILE*) { return 0; });
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe.get())) > 0;) ran.out.append(block, n);
  ran.code = pclose(pipe.get());
  return ran;
}

// Runs cases against a fault, or a program. Queue cases need a backend with queues; for cases of a lost device the option that loses
// it is set.
Ran conform(const std::string& fault, const std::string& cases, const std::string& seconds = "3",
            const std::string& lose_after = "14", const std::string& program = "") {
  const std::string lib = folder() + "/lib/collet/";
  const bool loss = cases.find("loss") != std::string::npos;
  const std::string inner = cases.find("queue") == std::string::npos && !loss
                                ? "backends/libcollet_backend_interpreter.so"
                                : "test_backends/libcollet_backend_queued.so";
  const bool older = fault.starts_with("older_");
  const std::string line = (older ? "COLLET_TEST_ABI_MINOR_0=1 " : "") + folder() + "/bin/collet conform --timeout " +
                           seconds + " --backend " + lib +
                           "test_backends/libcollet_backend_faulty.so --option fault=" + fault +
                           " --option backend=" + lib + inner + (loss ? " --option lose_after=" + lose_after : "") +
                           (program.empty() ? "" : " --from " + program) + " --filter '" + cases + "' 2>/dev/null";
  return run_line(line);
}

struct FaultCase {
  const char* name;
  const char* cases;
};

class Faults : public ::testing::TestWithParam<FaultCase> {};

TEST_P(Faults, AreNoticed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (std::string_view(GetParam().name).find("leak") != std::string_view::npos)
    GTEST_SKIP() << "a sanitizer's heap cannot be measured";
#endif
  const Ran ran = conform(GetParam().name, GetParam().cases);
  ASSERT_TRUE(WIFEXITED(ran.code));
  EXPECT_EQ(WEXITSTATUS(ran.code), 1) << ran.out;
  EXPECT_NE(ran.out.find(": does not conform"), std::string::npos) << ran.out;
}

constexpr FaultCase kFaults[] = {
#define COLLET_FAULT(name, cases) {#name, cases},
#include "conformance/mutants/faults.def"
};

constexpr FaultCase kLegal[] = {
#define COLLET_LEGAL(name, cases) {#name, cases},
#include "conformance/mutants/faults.def"
};

class LegalVariants : public ::testing::TestWithParam<FaultCase> {};

TEST_P(LegalVariants, AreNotAccused) {
  const Ran ran = conform(GetParam().name, GetParam().cases);
  ASSERT_TRUE(WIFEXITED(ran.code));
  EXPECT_EQ(WEXITSTATUS(ran.code), 0) << ran.out;
}

// By default every fourth fault is tested, and always those listed here; all of them take more than a minute.
constexpr std::string_view kAlways[] = {"copy_ignores_from_offset",
                                        "copy_ignores_host_offset",
                                        "copy_first_region_only",
                                        "alloc_ignores_alignment",
                                        "fusion_subtracts",
                                        "select_ignores_scalar",
                                        "result_before_argument_read",
                                        "result_before_argument_read_whole"};

std::vector<FaultCase> chosen(bool sample) {
  std::vector<FaultCase> out;
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    if (std::string_view(kFaults[i].name) == "copies_hang") continue;  // it has a test of its own
    const bool always = std::find(std::begin(kAlways), std::end(kAlways), kFaults[i].name) != std::end(kAlways);
    if ((always || i % 4 == 0) == sample) out.push_back(kFaults[i]);
  }
  return out;
}

std::string name_of(const ::testing::TestParamInfo<FaultCase>& instance) {
  return instance.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, LegalVariants, ::testing::ValuesIn(kLegal), name_of);
INSTANTIATE_TEST_SUITE_P(Sample, Faults, ::testing::ValuesIn(chosen(true)), name_of);
INSTANTIATE_TEST_SUITE_P(Rest, Faults, ::testing::ValuesIn(chosen(false)), name_of);

// The two cases differ by their values only, so that the second one runs the executable of the first.
TEST(Faulty, CasesOfOneProgramShareItsExecutable) {
  const Ran shared = conform("stops_after_three_runs", "ceil/f32/129/*");
  EXPECT_NE(shared.out.find("1 of 2 cases passed, 1 fail"), std::string::npos) << shared.out;
  EXPECT_NE(
      shared.out.find("it passes with an executable of its own, and not with that which had run ceil/f32/129/unit"),
      std::string::npos)
      << shared.out;
  const Ran right = conform("none", "ceil/f32/129/*");
  EXPECT_NE(right.out.find("2 of 2 cases passed"), std::string::npos) << right.out;
}

// One of 64 integers is wrong, and no float decides it.
TEST(Faulty, IntegersOfAProgramAreExact) {
  const std::string path = ::testing::TempDir() + "/integers.hlo";
  std::ofstream(path) << "HloModule m\n\nless {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n"
                         "  ROOT r = pred[] compare(a, b), direction=LT\n}\n\n"
                         "ENTRY main {\n  x = s32[64] parameter(0)\n  y = s32[64] parameter(1)\n"
                         "  m = s32[64] multiply(x, y)\n  s = s32[64] sort(m), dimensions={0}, to_apply=less\n"
                         "  ROOT r = s32[64] subtract(s, x)\n}\n";
  const Ran wrong = conform("three_ops_spoil_an_element", "*", "3", "14", path);
  EXPECT_NE(wrong.out.find("does not run these programs"), std::string::npos) << wrong.out;
  const Ran right = conform("none", "*", "3", "14", path);
  EXPECT_NE(right.out.find(": runs these programs"), std::string::npos) << right.out;
}

// What a claim is about must have run on the device.
TEST(Faulty, ClaimsNeedACaseThatRan) {
  // A device without collectives. Those of one participant are copies, which the SDK makes.
  const Ran ran = run_line(folder() + "/bin/collet conform --backend " + folder() +
                           "/lib/collet/backends/libcollet_backend_cpu.so --no-fallback --filter 'all-reduce/f32/*' "
                           "--filter contract/collective/all_reduce --claim collectives 2>/dev/null");
  EXPECT_NE(ran.out.find(": does not conform"), std::string::npos) << ran.out;
}

TEST(Faulty, RunEndsAfterEightHangs) {
  const Ran ran = conform("copies_hang", "contract/copy/*", "1");
  EXPECT_EQ(WEXITSTATUS(ran.code), 1) << ran.out;
  EXPECT_NE(ran.out.find("ended early: 8 cases gave no answer in time"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("no answer in time; backend.h: "), std::string::npos) << ran.out;
}

TEST(Faulty, ConformsWithoutAFault) {
  const Ran ran = conform("none", "contract/*");
  EXPECT_EQ(WEXITSTATUS(ran.code), 0) << ran.out;
  const Ran lost = conform("none", "contract/loss/*");
  EXPECT_EQ(WEXITSTATUS(lost.code), 0) << lost.out;
  EXPECT_NE(lost.out.find("7 of 7 cases passed"), std::string::npos) << lost.out;
  // If the device is lost during the set-up of a case, the case counts as not tested, not as failed.
  const Ran early = conform("none", "contract/loss/*", "3", "0");
  EXPECT_NE(early.out.find("2 of 7 cases passed, 5 unsupported"), std::string::npos) << early.out;
  const Ran queues = conform("none", "contract/queue/*");
  EXPECT_EQ(WEXITSTATUS(queues.code), 0) << queues.out;
}

}  // namespace
