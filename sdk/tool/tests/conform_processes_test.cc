// SPDX-License-Identifier: Apache-2.0
// Tests collet conform --processes: what passes, and what must not.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

std::string library(const std::string& path) {
  return build_dir() + "/lib/collet/" + path;
}

// Runs conform over several processes; `environment` stands before the command.
Ran conform(const std::string& arguments, const std::string& environment = "") {
  return collet("conform --json - --processes " + arguments, environment);
}

std::string with_fault(const std::string& fault) {
  return "COLLET_FAULTY_TRANSPORT=" + fault +
         " COLLET_FAULTY_TRANSPORT_OF=" + library("transports/libcollet_transport_gloo.so") +
         " COLLET_TRANSPORT=" + library("test_transports/libcollet_transport_faulty.so");
}

// The names and details of the cases of a status.
std::string with_status(const json::value& report, std::string_view status) {
  std::string out;
  for (const json::value& one : report.at("cases").as_array())
    if (one.at("status").as_string() == status)
      out += std::string(one.at("name").as_string()) + ": " +
             (one.as_object().contains("detail") ? std::string(one.at("detail").as_string()) : "") + "\n";
  return out;
}

void expect_good(const std::string& arguments, size_t least) {
  const Ran ran = conform(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err << ran.out.substr(0, 4000);
  if (ran.code != 0) return;
  const json::value report = json::parse(ran.out);
  EXPECT_EQ(report.at("verdict").as_string(), "conforms");
  EXPECT_GE(report.at("cases").as_array().size(), least);
  EXPECT_EQ(with_status(report, "unsupported"), "");
}

TEST(ConformProcesses, TheInterpreterConformsOverTwoProcesses) {
  expect_good(
      "2 --devices 2 --backend interpreter --jobs 2 --filter '*.all*' --filter '*/s32/*' --filter "
      "'contract/processes/*'",
      80);
}

TEST(ConformProcesses, ADeviceThatOnlyHasMemoryConformsOverThreeProcesses) {
  expect_good("3 --backend " + library("test_backends/libcollet_backend_memory_only.so") +
                  " --filter '*/f32/small*' --filter '*/s32/*' --filter contract/processes/killed",
              30);
}

TEST(ConformProcesses, TheCpuConformsOverTwoProcesses) {
  if (!has_backend("cpu")) GTEST_SKIP() << "the cpu backend was not built";
  expect_good("2 --devices 2 --backend cpu --profile collectives --filter '*/f32/small*' --filter '*/s32/in_a_loop/*'",
              20);
}

TEST(ConformProcesses, OneProcessOfSeveralDevicesConforms) {
  expect_good("1 --devices 4 --backend interpreter --filter '*/f32/small*'", 20);
}

// A part that is not added, and parts that change places, are found; the failures name processes.
TEST(ConformProcesses, WrongPartsAreFound) {
  for (const char* fault : {"lose_part", "swap_parts"}) {
    const Ran ran = conform("3 --backend interpreter --filter 'all-*/f32/large.all*' --filter 'all-*/f32/small.all*'",
                            with_fault(fault));
    ASSERT_EQ(ran.code, 1) << ran.err;
    const json::value report = json::parse(ran.out);
    const std::string failed = with_status(report, "fail");
    for (const char* what : {"all-reduce/f32/large.all/whole", "all-gather/f32/large.all.dim0/whole",
                             "all-to-all/f32/large.all.dim0/whole"})
      EXPECT_TRUE(contains(failed, what)) << fault << ": " << failed;
    EXPECT_TRUE(contains(failed, ": process 0: result 0 of participant 0:")) << failed;
    EXPECT_TRUE(contains(failed, "; process 1: ")) << failed;
  }
}

// Rows, and arrays that are sent, which do not arrive are found.
TEST(ConformProcesses, LostRowsAndTransfersAreFound) {
  const Ran ran = conform("3 --backend interpreter --filter 'ragged-all-to-all/f32/*' --filter 'send/f32/*'",
                          with_fault("lose_part"));
  ASSERT_EQ(ran.code, 1) << ran.err;
  const json::value report = json::parse(ran.out);
  const std::string failed = with_status(report, "fail"), good = with_status(report, "pass");
  for (const char* what : {"ragged-all-to-all/f32/large.all/whole", "send/f32/large.ring/whole"})
    EXPECT_TRUE(contains(failed, what)) << failed;
  for (const char* what : {"ragged-all-to-all/f32/small.all/whole", "send/f32/small.ring/whole"})
    EXPECT_TRUE(contains(good, what)) << good;
}

TEST(ConformProcesses, WrongReportsOfALostProcessAreFound) {
  const Ran wrong = conform("3 --backend interpreter --filter contract/processes/killed", with_fault("wrong_process"));
  EXPECT_EQ(wrong.code, 1) << wrong.err;
  EXPECT_TRUE(contains(wrong.out, "the message does not name process")) << wrong.out;
  const Ran late =
      conform("2 --backend interpreter --filter contract/processes/killed", with_fault("waits_for_the_lost"));
  EXPECT_EQ(late.code, 1) << late.err;
  EXPECT_TRUE(contains(late.out, "DEADLINE_EXCEEDED instead of UNAVAILABLE")) << late.out;
}

// A process that dies or hangs costs one case; the others run in another group.
TEST(ConformProcesses, AProcessThatDiesOrHangsCostsItsCase) {
  for (const auto& [fault, status, text] :
       {std::tuple("dies", "crash", "process 1 was killed: Aborted"),
        std::tuple("hangs", "timeout", "no answer in time from process 1; process 0: DEADLINE_EXCEEDED")}) {
    const Ran ran = conform(
        "2 --backend interpreter --timeout 4 --filter 'all-reduce/s32/*.maximum/*' --filter "
        "'all-reduce/s32/*.minimum/*'",
        with_fault(fault));
    ASSERT_EQ(ran.code, 1) << ran.err;
    const json::value report = json::parse(ran.out);
    const std::string bad = with_status(report, status), good = with_status(report, "pass");
    for (const char* how : {"maximum", "minimum"}) {
      EXPECT_TRUE(contains(bad, std::string("all-reduce/s32/20000.") + how + "/whole: " + text)) << bad;
      EXPECT_TRUE(contains(good, std::string("all-reduce/s32/5.") + how)) << good << bad;
    }
  }
}

TEST(ConformProcesses, WrongUseIsTold) {
  for (const auto& [arguments, text] :
       {std::pair("--devices 2", "--devices is about --processes"),
        std::pair("--processes 2 --fuzz 1", "--processes runs cases of its own"),
        std::pair("--processes 2 --process 1 --store /tmp", "no --process"), std::pair("--processes 0", "--processes"),
        std::pair("--processes 2 --filter nothing", "no case matches")}) {
    const Ran ran = collet(std::string("conform --backend interpreter ") + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << ran.err;
    EXPECT_TRUE(contains(ran.err, text)) << ran.err;
  }
  const Ran missing = conform("2 --backend interpreter", "COLLET_TRANSPORT=no_such");
  EXPECT_EQ(missing.code, 4) << missing.err;
  EXPECT_TRUE(contains(missing.err, "there is no transport 'no_such'")) << missing.err;
}

}  // namespace
}  // namespace collet::tool::testing
