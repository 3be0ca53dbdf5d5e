// SPDX-License-Identifier: Apache-2.0
// Tests collet bench --cases: the user's own programs, and the comparison with an earlier run.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

namespace json = boost::json;

constexpr char kAdd[] = R"(HloModule add
ENTRY e {
  x = f32[256] parameter(0)
  n = s32[256] parameter(1)
  c = f32[256] convert(n)
  ROOT y = f32[256] add(x, c)
})";

constexpr char kStableHlo[] = R"(module @m {
  func.func @main(%x: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
    %y = stablehlo.multiply %x, %x : tensor<8x8xbf16>
    return %y : tensor<8x8xbf16>
  }
})";

// A folder with programs of three families: two by name, one by sub-folder.
class BenchCases : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "programs/inner");
    write(folder_ / "programs/add_256.hlo", kAdd);
    write(folder_ / "programs/add_again.hlo", kAdd);
    write(folder_ / "programs/square-8.mlir", kStableHlo);
    write(folder_ / "programs/inner/add.hlo", kAdd);
    write(folder_ / "programs/notes.txt", "no program");
  }

  std::string programs() const { return folder_ / "programs"; }
  Ran bench(const std::string& arguments) const {
    return collet("bench --backend interpreter --repeat 1 " + arguments);
  }

  Folder folder_;
};

const json::object& at(const json::value& list, size_t i) {
  return list.as_array().at(i).as_object();
}

TEST_F(BenchCases, TakesEveryProgramOfAFolder) {
  const Ran ran = bench("--cases " + programs() + " --json -");
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  const json::value report = json::parse(ran.out);
  const json::value& cases = report.at("cases");
  std::vector<std::string> names;
  for (const json::value& one : cases.as_array())
    names.push_back(std::string(one.at("name").as_string()) + " of " + std::string(one.at("family").as_string()));
  EXPECT_EQ(names, (std::vector<std::string>{"add_256 of add", "add_again of add", "inner/add of inner",
                                             "square-8 of square"}));
  EXPECT_GT(report.at("machine").at("gflops").as_double(), 0);
  EXPECT_EQ(at(cases, 0).at("read_bytes").as_int64(), 2 * 256 * 4);
  EXPECT_EQ(at(cases, 0).at("written_bytes").as_int64(), 256 * 4);
  EXPECT_GT(at(cases, 0).at("limit_ns").as_double(), 0);
  EXPECT_GT(at(cases, 0).at("fused").at("median_ns").as_double(), 0);
  EXPECT_GT(at(cases, 0).at("fused").at("compile_ns").as_int64(), 0);
  EXPECT_FALSE(at(cases, 0).contains("unfused")) << "measured only with --unfused";
  EXPECT_EQ(report.at("families").as_array().size(), 3u);
  EXPECT_EQ(at(report.at("families"), 0).at("cases").as_int64(), 2);
}

TEST_F(BenchCases, ListsAndFiltersByName) {
  const Ran list = bench("--list --cases " + programs());
  EXPECT_EQ(list.code, 0);
  EXPECT_TRUE(contains(list.out, "inner/add ")) << list.out;
  const Ran some = bench("--filter square --unfused --cases " + programs());
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_TRUE(contains(some.out, "square-8")) << some.out;
  EXPECT_TRUE(contains(some.out, "vs unfused")) << some.out;
  EXPECT_FALSE(contains(some.out, "add_256")) << some.out;
}

TEST_F(BenchCases, StatedLimitsTakeThePlaceOfMeasuredOnes) {
  const Ran ran = bench("--cases " + programs() + "/add_256.hlo --peak 1000 --bandwidth 0.5 --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json::value report = json::parse(ran.out);
  EXPECT_EQ(report.at("machine").at("gflops").to_number<double>(), 1000);
  EXPECT_DOUBLE_EQ(at(report.at("cases"), 0).at("limit_ns").to_number<double>(), 3 * 256 * 4 / 0.5);
}

TEST(Bench, MeasuresTheMachinesLimitsAlone) {
  const Ran ran = collet("bench --limits --option threads=1 --json -");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json::value limits = json::parse(ran.out);
  EXPECT_EQ(limits.at("threads").as_int64(), 1);
  EXPECT_GT(limits.at("gflops").to_number<double>(), 0);
  const json::array& sizes = limits.at("bandwidth").as_array();
  ASSERT_GE(sizes.size(), 4u);
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_GT(sizes[i].at("gbytes").to_number<double>(), 0);
    EXPECT_GT(sizes[i].at("bytes").as_int64(), i == 0 ? 0 : sizes[i - 1].at("bytes").as_int64());
  }
}

TEST_F(BenchCases, AProgramThatDoesNotRunFailsAlone) {
  write(folder_ / "programs/broken_1.hlo", "HloModule broken\nENTRY e {\n  ROOT x = f32[2] nonsense()\n}\n");
  const Ran ran = bench("--cases " + programs() + " --json " + (folder_ / "now.json"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.out, "did not run")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "broken_1.hlo:3:")) << ran.out;
  const json::value report = json::parse(contents(folder_ / "now.json"));
  EXPECT_EQ(report.at("cases").as_array().size(), 5u);
}

TEST_F(BenchCases, InputsOfAnotherShapeAreRefused) {
  write(
      folder_ / "programs/inner/case.json",
      R"({"inputs": [{"shape": "f32[2]", "rule": "unit", "scale": 1, "offset": 0}, {"shape": "s32[2]", "rule": "unit", "scale": 1, "offset": 0}]})");
  const Ran ran = bench("--cases " + (folder_ / "programs/inner"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.out, "input 0 is f32[2]; the program wants f32[256]")) << ran.out << ran.err;
}

TEST_F(BenchCases, ComparesWithAnEarlierRun) {
  const std::string before = folder_ / "before.json";
  ASSERT_EQ(bench("--cases " + programs() + " --json " + before).code, 0);
  const Ran same = bench("--cases " + programs() + " --slower 1000 --compare " + before);
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_TRUE(contains(same.out, "over 4 cases")) << same.out;
  // An earlier run with times of zero, so that everything is slower now.
  json::value fast = json::parse(contents(before));
  for (json::value& one : fast.as_object().at("cases").as_array())
    one.as_object().at("fused").as_object()["median_ns"] = 1e-3;
  write(before, json::serialize(fast));
  const Ran slower = bench("--cases " + programs() + " --compare " + before);
  EXPECT_EQ(slower.code, 1) << slower.out;
  EXPECT_TRUE(contains(slower.out, "4 slower by more than a factor of 1.2")) << slower.out;
  // An earlier run without any of these cases cannot be compared, which is a failure, too.
  fast.as_object().at("cases").as_array().clear();
  write(before, json::serialize(fast));
  const Ran none = bench("--cases " + programs() + " --compare " + before);
  EXPECT_EQ(none.code, 1) << none.out;
  EXPECT_TRUE(contains(none.out, "has none of these cases")) << none.out;
}

TEST_F(BenchCases, SweepMeasuresTheProgramsOfAFamily) {
  const Ran ran = bench("--sweep transpose --fixed --json -");
  ASSERT_TRUE(ran.code == 0 || ran.code == 1) << ran.err << ran.out;
  const json::value report = json::parse(ran.out);
  const json::value& points = at(report.at("families"), 0).at("points");
  EXPECT_EQ(points.as_array().size(), 6u);
  EXPECT_EQ(at(points, 0).at("parameter"), "");
  EXPECT_EQ(at(points, 1).at("parameter"), "order");
  EXPECT_GT(at(points, 1).at("cost").as_double(), 0);
  EXPECT_GT(at(points, 1).at("bytes").to_number<int64_t>(), 1 << 20);
  const Ran list = bench("--sweep --list");
  EXPECT_EQ(list.code, 0);
  EXPECT_TRUE(contains(list.out, "convolution_depthwise")) << list.out;
}

TEST_F(BenchCases, WhatCannotBeUsedIsRefusedBeforeAnythingRuns) {
  const std::string nothing = folder_ / "empty";
  std::filesystem::create_directories(nothing);
  write(folder_ / "text.json", "[1, 2]");
  write(folder_ / "add_256.hlo", kAdd);
  const std::string cases = "--cases " + programs();
  const std::vector<std::pair<std::string, std::string>> uses = {
      {"--cases no/such/folder", "no/such/folder"},
      {"--cases " + nothing, "has no .hlo"},
      {"--cases " + programs() + " " + (folder_ / "add_256.hlo"), "two programs named add_256"},
      {cases + " --compare no_such.json", "no_such.json"},
      {cases + " --compare " + (folder_ / "text.json"), "nothing that collet bench --json has written"},
      {cases + " --slower 0.5", "--slower"},
      {cases + " --peak -1", "--peak"},
      {cases + " --bandwidth x", "--bandwidth"},
      {cases + " --elided maybe", "--elided"},
      {"--cases ''", "--cases"},
      {"--sweep dots", "no family 'dots'"},
      {"--fixed", "--sweep"},
  };
  for (const auto& [line, says] : uses) {
    const Ran ran = bench(line);
    EXPECT_TRUE(ran.code == 2 || ran.code == 3) << line << " " << ran.code;
    EXPECT_TRUE(contains(ran.err, says)) << line << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << line;
  }
}

}  // namespace
}  // namespace collet::tool::testing
