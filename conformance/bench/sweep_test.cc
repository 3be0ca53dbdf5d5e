// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/sweep.h"

#include <gmock/gmock.h>

#include "hlo/formats/formats.h"

namespace collet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A family with one parameter, whose programs have these costs.
SweepSeries with_costs(const std::vector<double>& costs) {
  SweepSeries series;
  series.family = "f";
  std::vector<size_t> order;
  for (size_t i = 0; i < costs.size(); ++i) {
    SweepPoint point;
    point.parameter = "n";
    point.value = std::to_string(i);
    point.ns = costs[i];
    point.least_ns = 1;
    point.bytes = 1 << 24;
    order.push_back(i);
    series.points.push_back(std::move(point));
  }
  series.parameters.emplace_back("n", order);
  return series;
}

std::vector<std::string> texts(const SweepSeries& series) {
  std::vector<std::string> out;
  for (const SweepFinding& finding : find_jumps(series)) out.push_back(to_string(finding));
  return out;
}

TEST(Sweep, JumpsOfCost_AreFoundBetweenNeighboursAndAgainstTheMedian) {
  EXPECT_THAT(texts(with_costs({1, 1, 2, 5, 2, 1})), ElementsAre());
  EXPECT_THAT(texts(with_costs({1, 1, 1, 3.5, 1})), ElementsAre("f n=3: 3.5 times the cost of n=2"));
  EXPECT_THAT(texts(with_costs({1, 1, 1, 1, 2.9, 6})), ElementsAre("f n=5: 6.0 times the cost of the family's median"));
}

TEST(Sweep, JumpsOfMemory_CountAboveAQuarterOfTheArraysOnly) {
  SweepSeries series = with_costs({1, 1, 1, 1});
  series.points[1].temporary_bytes = 5 << 20;
  EXPECT_THAT(texts(series), ElementsAre());
  series.points[1].temporary_bytes = 100 << 20;
  EXPECT_THAT(texts(series), ElementsAre(HasSubstr("n=1: 23.3 times the temporary memory of")));
}

TEST(Sweep, JumpsOfTheFixedPart_AreLarger) {
  EXPECT_TRUE(find_jumps(with_costs({1, 1, 1, 5.5, 1}), kFixedJump).empty());
  EXPECT_FALSE(find_jumps(with_costs({1, 1, 1, 6.5, 1}), kFixedJump).empty());
}

TEST(Sweep, ProgramThatDidNotRun_IsAFinding) {
  SweepSeries series = with_costs({1, 1, 1});
  series.points[2].error = "no";
  series.points[2].ns = 0;
  EXPECT_THAT(texts(series), ElementsAre("f n=2: did not run"));
}

TEST(Sweep, EveryProgramOfTheTable_IsValid) {
  size_t programs = 0;
  for (const SweepFamily& family : sweep_families()) {
    const SweepChoice usual(family.parameters);
    ASSERT_TRUE(family.make(usual)) << family.name;
    for (size_t p = 0; p < family.parameters.size(); ++p)
      for (const std::string& value : family.parameters[p].values) {
        SweepChoice choice = usual;
        choice.set(p, value);
        const auto program = family.make(choice);
        if (!program) continue;
        ++programs;
        Diagnostics diagnostics("sweep", 20);
        const auto module = hlo::read_verified_module(program->text, {}, diagnostics);
        EXPECT_TRUE(module.ok()) << family.name << " " << family.parameters[p].name << "=" << value << "\n"
                                 << diagnostics.to_string() << program->text;
      }
  }
  EXPECT_GT(programs, 500u);
}

TEST(Sweep, UnknownFamily_IsRefused) {
  SweepRequest request;
  request.families = {"dots"};
  EXPECT_THAT(sweep(request).status().message(), HasSubstr("no family 'dots'"));
}

}  // namespace
}  // namespace collet::bench
