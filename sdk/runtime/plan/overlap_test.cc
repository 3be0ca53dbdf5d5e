// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace collet::runtime {
namespace {

constexpr double kLong = 1e6;
const OverlapCosts kCosts{1000, 1, 0};

OverlapCluster device(std::vector<uint32_t> members) {
  return {std::move(members), true, 0};
}
OverlapCluster collective(uint32_t member, double exchange_ns = kLong) {
  return {{member}, false, exchange_ns};
}
std::vector<std::vector<uint32_t>> members_of(const std::vector<OverlapCluster>& clusters) {
  std::vector<std::vector<uint32_t>> out;
  for (const OverlapCluster& one : clusters) out.push_back(one.members);
  return out;
}
using Order = std::vector<std::vector<uint32_t>>;

// 0 is needed by the collective 2; 1 is not; 3 needs both.
TEST(Overlap, WorkThatTheCollectiveDoesNotNeedFollowsIt) {
  const std::vector<OverlapNode> nodes = {{{}, 0, kLong, 8}, {{}, 0, kLong, 8}, {{0}, 0, 0, 8}, {{1, 2}, 0, kLong, 8}};
  EXPECT_EQ(members_of(overlap(nodes, {device({0, 1}), collective(2), device({3})}, kCosts)),
            (Order{{0}, {2}, {1}, {3}}));
}

TEST(Overlap, ClusterOfWhichNothingIsNeededMovesAsAWhole) {
  const std::vector<OverlapNode> nodes = {{{}, 0, 1, 8}, {{0}, 0, 1, 8}, {{}, 0, 0, 8}};
  EXPECT_EQ(members_of(overlap(nodes, {device({0, 1}), collective(2)}, kCosts)), (Order{{2}, {0, 1}}));
}

TEST(Overlap, SmallWorkIsNotSplitOff) {
  for (const double launch_ns : {0.0, 50'000.0}) {
    const OverlapCosts costs{launch_ns, 1, 0};
    const double least = std::max(kLeastBesideNs, 2 * (launch_ns + 2 * 8));
    for (const bool enough : {false, true}) {
      const std::vector<OverlapNode> nodes = {
          {{}, 0, kLong, 8}, {{0}, 0, enough ? least + 1 : least - 1, 8}, {{0}, 0, 0, 8}};
      const Order whole{{0, 1}, {2}}, split{{0}, {2}, {1}};
      EXPECT_EQ(members_of(overlap(nodes, {device({0, 1}), collective(2)}, costs)), enough ? split : whole);
    }
  }
}

// A value that leaves the cluster is written and read once more.
TEST(Overlap, LargeValuesBetweenThePartsKeepThemTogether) {
  for (const double bytes : {8.0, kLong}) {
    const std::vector<OverlapNode> nodes = {{{}, 0, kLong, bytes}, {{0}, 0, kLong, 8}, {{0}, 0, 0, 8}};
    EXPECT_EQ(members_of(overlap(nodes, {device({0, 1}), collective(2)}, kCosts)).size(), bytes == 8 ? 3u : 2u);
  }
}

// What one collective does not need may be needed by the next one: 0 and 2 by the first (3), 1 by the second (4), 5 by neither. The
// second one is long enough to hide 6 and 5.
TEST(Overlap, EachCollectiveStartsAsSoonAsItsOperandsAreThere) {
  const std::vector<OverlapNode> nodes = {{{}, 0, kLong, 8},  {{0}, 0, kLong, 8}, {{0}, 0, kLong, 8},
                                          {{2}, 0, 0, 8},     {{1, 3}, 0, 0, 8},  {{1}, 0, kLong, 8},
                                          {{3}, 0, kLong, 8}, {{4}, 0, kLong, 8}};
  const auto order = [&](double second_ns) {
    return members_of(overlap(
        nodes, {device({0, 1, 2, 5}), collective(3), device({6}), collective(4, second_ns), device({7})}, kCosts));
  };
  EXPECT_EQ(order(2 * kLong), (Order{{0, 2}, {3}, {1}, {4}, {5}, {6}, {7}}));
  EXPECT_EQ(order(kLong), (Order{{0, 2}, {3}, {1, 5}, {4}, {6}, {7}}));
}

TEST(Overlap, GroupsStayTogether) {
  const std::vector<OverlapNode> nodes = {
      {{}, 0, kLong, 8}, {{0}, 7, kLong, 8}, {{0}, 7, kLong, 8}, {{0}, 0, kLong, 8}, {{2}, 0, 0, 8}};
  EXPECT_EQ(members_of(overlap(nodes, {device({0, 1, 2, 3}), collective(4)}, kCosts)), (Order{{0, 1, 2}, {4}, {3}}));
}

TEST(Overlap, PartsAreAsLargeAsTheDeviceRequires) {
  const OverlapCosts costs{1000, 1, 2};
  const std::vector<OverlapNode> nodes = {{{}, 0, kLong, 8}, {{}, 0, kLong, 8}, {{0}, 0, 0, 8}};
  EXPECT_EQ(members_of(overlap(nodes, {device({0, 1}), collective(2)}, costs)), (Order{{0, 1}, {2}}));
}

// A cluster that may not move, such as a loop, keeps what it needs before it, and its place.
TEST(Overlap, OtherClustersKeepTheirOrder) {
  const std::vector<OverlapNode> nodes = {{{}, 0, kLong, 8}, {{0}, 0, kLong, 8}, {{}, 0, 0, 8}};
  EXPECT_EQ(members_of(overlap(nodes, {device({0}), {{1}, false, 0}, collective(2)}, kCosts)), (Order{{0}, {1}, {2}}));
}

}  // namespace
}  // namespace collet::runtime
