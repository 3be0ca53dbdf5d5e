// SPDX-License-Identifier: Apache-2.0
// `collet tune`: what it finds is kept, applied and gone on from, whatever happens between.

#include <gtest/gtest.h>

#include <string>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

constexpr char kProgram[] = R"(HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[96,40] parameter(0)
  w = f32[40,64] parameter(1)
  p = f32[96,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[96,64] exponential(p)
  z = f32[] constant(0)
  ROOT r = f32[96] reduce(t, z), dimensions={1}, to_apply=sum
}
)";

class Tune : public ::testing::Test {
 protected:
  Tune() { write(program_, kProgram); }

  Ran tune(const std::string& options = {}) {
    return collet("tune " + program_ + " --backend cpu --measure 0.001 --output " + output_ + " " + options);
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
  }

  const Folder folder_;
  const std::string program_ = folder_ / "a.hlo", output_ = folder_ / "tuned.txt";
};

TEST_F(Tune, MeasuresAllNeighboursAndGoesOnFromTheJournal) {
  const Ran first = tune("--time 60 --least 90 --json " + (folder_ / "a.json"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(contains(first.out, "none left near the best")) << first.out;
  EXPECT_FALSE(contains(first.out, " wrong")) << first.out;
  const std::string json = contents(folder_ / "a.json");
  EXPECT_TRUE(contains(json, "\"exhausted\": true")) << json;
  const std::string journal = contents(output_ + ".journal");
  EXPECT_TRUE(journal.starts_with("target ")) << journal;
  EXPECT_GT(count(journal, "\nend\t"), 20U) << journal;
  EXPECT_GT(count(journal, "\ttile "), 5U) << journal;  // of the product
  // Everything is known: a line that the end of a process cut short is measured again, and nothing else.
  const size_t last = journal.rfind("end\t");
  write(output_ + ".journal", journal.substr(0, last + 10));
  const Ran again = tune("--time 60 --least 90");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.out, "1 schedules measured")) << again.out;
}

TEST_F(Tune, WhatEndedTheProcessTwice_IsNotTriedAgain) {
  ASSERT_EQ(tune("--time 60 --least 90").code, 0);
  const std::string journal = contents(output_ + ".journal");
  const size_t end = journal.rfind("end\t");
  const size_t ratio = journal.rfind('\t');
  const std::string what = journal.substr(end + 4, ratio - end - 4);
  write(output_ + ".journal", journal.substr(0, end) + "begin\t" + what + "\n");
  const Ran ran = tune("--time 60 --least 90");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "0 schedules measured, 1 that crash")) << ran.out;
}

TEST_F(Tune, ResultsWithItsFileAreRight_AndOtherMachinesKeepTheirs) {
  write(output_, "# mine\ntarget elsewhere,128,32\n@0123456789abcdef: lanes i0 4  # faster there\n");
  ASSERT_EQ(tune("--time 3 --least 1").code, 0);
  EXPECT_TRUE(contains(contents(output_), "target elsewhere,128,32\n@0123456789abcdef: lanes i0 4  # faster there\n"));
  const std::string run = "run " + program_ + " --backend cpu --inputs random:3 --compare interpreter";
  const Ran ran = collet(run + " --option tuning=" + output_);
  EXPECT_EQ(ran.code, 0) << ran.err;
  // A schedule that is not legal is an error, on the machine that it is for.
  const std::string journal = contents(output_ + ".journal");
  const size_t key = journal.find('@');
  const std::string line = journal.substr(key, 17) + ": strip i0 3; unordered\n";
  write(output_, journal.substr(0, journal.find('\n') + 1) + line);
  EXPECT_NE(collet(run + " --option tuning=" + output_).code, 0);
  write(output_, "target elsewhere,128,32\n" + line);
  EXPECT_EQ(collet(run + " --option tuning=" + output_).code, 0);
  write(output_, "kernel0: lanes i0 4\n");
  const Ran refused = collet(run + " --option tuning=" + output_);
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(contains(refused.err, "'kernel0' is no key of a kernel")) << refused.err;
}

TEST_F(Tune, RefusesWhatItCannotTune) {
  const Ran other = collet("tune " + program_ + " --backend interpreter --output " + output_);
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(contains(other.err, "interpreter")) << other.err;
  EXPECT_EQ(collet("tune").code, 2);
  EXPECT_EQ(collet("tune " + program_ + " --least 0").code, 2);
  EXPECT_NE(collet("tune " + (folder_ / "none.hlo") + " --output " + output_).code, 0);
  EXPECT_NE(collet("tune " + program_ + " --output " + (folder_ / "none") + "/tuned.txt").code, 0);
}

}  // namespace
}  // namespace collet::tool::testing
