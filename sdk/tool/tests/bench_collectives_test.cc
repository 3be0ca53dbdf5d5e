// SPDX-License-Identifier: Apache-2.0
// Tests collet bench --collectives.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

Ran bench(const std::string& arguments, const std::string& environment = "") {
  return collet("bench --backend interpreter --repeat 2 --collectives " + arguments, environment);
}

TEST(BenchCollectives, MeasuresSeveralProcessesBesideTheTransportAndTheLoopback) {
  const Ran ran = bench("--processes 2 --devices 2 --bytes 4 65536 --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json::value report = json::parse(ran.out);
  EXPECT_EQ(report.at("processes").as_int64(), 2);
  EXPECT_EQ(report.at("devices").as_int64(), 2);
  EXPECT_EQ(report.at("transport").as_string(), "gloo");
  EXPECT_EQ(report.at("limit").at("kind").as_string(), "loopback");
  EXPECT_GT(report.at("limit").at("latency_ns").as_double(), 0);
  EXPECT_GT(report.at("limit").at("gbytes").as_double(), 0);
  std::set<std::string> names, with_own;
  for (const json::value& one : report.at("collectives").as_array()) {
    const std::string name(one.at("name").as_string());
    names.insert(name);
    EXPECT_TRUE(one.at("right").as_bool()) << name;
    EXPECT_GE(one.at("bytes").as_int64(), 16) << "four participants have an element each";
    const double factor = name == "all-reduce" ? 1.5 : name.starts_with("collective") ? 1 : 0.75;
    EXPECT_EQ(one.at("bus_factor").to_number<double>(), factor) << name;
    const double ours = one.at("collet").at("median_ns").to_number<double>();
    EXPECT_GT(ours, 0);
    EXPECT_NEAR(one.at("collet").at("bus_gbytes").to_number<double>(),
                factor * one.at("bytes").to_number<double>() / ours, 1e-6);
    if (one.as_object().contains("transport")) with_own.insert(name);
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(with_own,
            (std::set<std::string>{"all-gather", "all-reduce", "all-to-all", "collective-broadcast", "reduce-scatter"}))
      << "Gloo has no permute";
}

TEST(BenchCollectives, MeasuresOneProcess) {
  const Ran ran = bench("--devices 2 --bytes 4096 4096 --filter all-reduce");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "1 process of 2 devices")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "all-reduce")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "all-gather ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "copies of memory")) << ran.out;
}

TEST(BenchCollectives, WrongUseIsTold) {
  for (const auto& [arguments, text] :
       {std::pair("--collectives --bytes 8 4", "the second is the larger one"),
        std::pair("--collectives --filter nothing", "no collective has 'nothing'"),
        std::pair("--processes 2", "--collectives"), std::pair("--collectives --sweep", "--sweep")}) {
    const Ran ran = collet(std::string("bench --backend interpreter ") + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << ran.err;
    EXPECT_TRUE(contains(ran.err, text)) << ran.err;
  }
  const Ran missing = bench("--processes 2", "COLLET_TRANSPORT=no_such");
  EXPECT_EQ(missing.code, 4) << missing.err;
  EXPECT_TRUE(contains(missing.err, "there is no transport 'no_such'")) << missing.err;
}

}  // namespace
}  // namespace collet::tool::testing
