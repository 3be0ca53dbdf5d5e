// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace collet::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ArrayType* type(uint32_t element, std::vector<int64_t> dims) {
  return *array_type(element, dims);
}

collet_layout layout(std::vector<uint32_t> order, uint64_t bytes) {
  collet_layout out{};
  out.bytes = bytes;
  out.rank = static_cast<uint32_t>(order.size());
  std::copy(order.begin(), order.end(), out.order);
  return out;
}

std::vector<int32_t> placed(const Layout& l, const std::vector<int32_t>& dense) {
  std::vector<int32_t> out(l.bytes() / 4, -1);
  to_layout(l, dense.data(), out.data());
  std::vector<int32_t> back(dense.size(), -1);
  from_layout(l, out.data(), back.data());
  EXPECT_EQ(back, dense);
  return out;
}

TEST(Layout, OfZerosIsDense) {
  EXPECT_EQ(*intern_layout(type(COLLET_TYPE_S32, {2, 3}), {}), nullptr);
}

TEST(Layout, EqualOnesAreOneObject) {
  const ArrayType* t = type(COLLET_TYPE_S32, {2, 3});
  EXPECT_EQ(*intern_layout(t, layout({1, 0}, 24)), *intern_layout(t, layout({1, 0}, 24)));
  EXPECT_NE(*intern_layout(t, layout({1, 0}, 24)), *intern_layout(t, layout({0, 1}, 24)));
}

TEST(Layout, PermutesDimensions) {
  const Layout* l = *intern_layout(type(COLLET_TYPE_S32, {2, 3}), layout({1, 0}, 24));
  EXPECT_EQ(l->to_string(), "{0,1}");
  EXPECT_THAT(placed(*l, {0, 1, 2, 3, 4, 5}), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Layout, TilesAndPads) {
  collet_layout c = layout({0, 1}, 2 * 2 * 2 * 2 * 4);
  c.tile_rank[0] = 2;
  c.tile[0][0] = c.tile[0][1] = 2;
  const Layout* l = *intern_layout(type(COLLET_TYPE_S32, {3, 3}), c);
  EXPECT_EQ(l->to_string(), "{1,0:T(2,2)}");
  EXPECT_THAT(placed(*l, {0, 1, 2, 3, 4, 5, 6, 7, 8}), ElementsAre(0, 1, 3, 4, 2, 0, 5, 0, 6, 7, 0, 0, 8, 0, 0, 0));
}

// A layout that some machines use for bf16: within a tile, the elements of two rows alternate.
TEST(Layout, TilesOfTiles) {
  collet_layout c = layout({0, 1}, 4 * 4 * 4);
  c.tile_rank[0] = c.tile_rank[1] = 2;
  c.tile[0][0] = 4, c.tile[0][1] = 4;
  c.tile[1][0] = 2, c.tile[1][1] = 1;
  const Layout* l = *intern_layout(type(COLLET_TYPE_S32, {4, 4}), c);
  EXPECT_EQ(l->to_string(), "{1,0:T(4,4)(2,1)}");
  std::vector<int32_t> dense(16);
  std::iota(dense.begin(), dense.end(), 0);
  EXPECT_THAT(placed(*l, dense), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
}

TEST(Layout, PacksNarrowElements) {
  collet_layout c = layout({0}, 3);
  c.element_bits = 4;
  const Layout* l = *intern_layout(type(COLLET_TYPE_S4, {5}), c);
  EXPECT_EQ(l->to_string(), "{0:E(4)}");
  const std::vector<int8_t> dense = {1, -2, 7, -8, 3};
  std::vector<uint8_t> out(3);
  to_layout(*l, dense.data(), out.data());
  EXPECT_THAT(out, ElementsAre(0xE1, 0x87, 0x03));
  std::vector<int8_t> back(5);
  from_layout(*l, out.data(), back.data());
  EXPECT_EQ(back, dense);
}

TEST(Layout, WhatCannotBeIsRefused) {
  const ArrayType* t = type(COLLET_TYPE_S32, {2, 3});
  const auto complaint = [&](const collet_layout& c) { return intern_layout(t, c).status().message(); };
  EXPECT_THAT(complaint(layout({0}, 24)), HasSubstr("rank"));
  EXPECT_THAT(complaint(layout({0, 0}, 24)), HasSubstr("no permutation"));
  EXPECT_THAT(complaint(layout({0, 1}, 23)), HasSubstr("too few"));
  collet_layout c = layout({0, 1}, 24);
  c.element_bits = 4;
  EXPECT_THAT(complaint(c), HasSubstr("another width"));
  c = layout({0, 1}, 1000);
  c.tile_rank[0] = 3;
  EXPECT_THAT(complaint(c), HasSubstr("too many dimensions"));
  c.tile_rank[0] = 1;
  EXPECT_THAT(complaint(c), HasSubstr("empty tile"));
  c.tile[0][0] = 3;
  c.tile_rank[1] = 1;
  c.tile[1][0] = 2;
  EXPECT_THAT(complaint(c), HasSubstr("second tile does not divide"));
  c = layout({0, 1}, 24);
  c.reserved[0] = 1;
  EXPECT_THAT(complaint(c), HasSubstr("reserved"));
}

}  // namespace
}  // namespace collet::runtime
