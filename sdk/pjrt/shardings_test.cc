// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/shardings.h"

#include <gtest/gtest.h>

namespace collet::pjrt {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out.push_back(static_cast<char>(v));
  return out;
}

// Compares the fields of the message: 1 is the kind, 3 the dimensions of the tile assignment, 4 the devices, 6 and 8
// the meaning of the last dimensions.
TEST(PjrtShardings, AreMessages) {
  EXPECT_EQ(write_op_sharding("{replicated}"), "");
  EXPECT_EQ(write_op_sharding("{unreduced}"), bytes({8, 6}));
  EXPECT_EQ(write_op_sharding("{devices=[2,1]1,0}"), bytes({8, 3, 0x1A, 2, 2, 1, 0x22, 2, 1, 0}));
  EXPECT_EQ(write_op_sharding("{devices=[2,2]0,2,1,3 last_tile_dim_replicate}"),
            bytes({8, 3, 0x1A, 2, 2, 2, 0x22, 4, 0, 2, 1, 3, 0x30, 1}));
  EXPECT_EQ(write_op_sharding("{devices=[1,2]0,1 last_tile_dims={unreduced}}"),
            bytes({8, 3, 0x1A, 2, 1, 2, 0x22, 2, 0, 1, 0x42, 1, 6}));
  EXPECT_EQ(write_op_sharding("{devices=[1,2,2]0,1,2,3 last_tile_dims={unreduced, replicated}}"),
            bytes({8, 3, 0x1A, 3, 1, 2, 2, 0x22, 4, 0, 1, 2, 3, 0x42, 2, 6, 0}));
  for (const char* other : {"", "{", "{devices=[2", "{devices=[2]0,1 else}", "{manual}"})
    EXPECT_EQ(write_op_sharding(other), "") << other;
}

}  // namespace
}  // namespace collet::pjrt
