// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <collet/collet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sdk/runtime/testing/session.h"

// Tests that backends load and compute which were built with the headers of other versions of the interface.

namespace collet::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The device computes the sum and the product, where it computes anything; the negation is the fallback's.
constexpr char kProgram[] = R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  s = f32[4] add(x, y)
  p = f32[4] multiply(s, y)
  n = f32[4] negate(s)
  ROOT r = (f32[4], f32[4]) tuple(p, n)
})";

struct Case {
  const char* backend;
  const char* name;
  uint32_t opset;
  uint32_t functions;  // of the core table, as far as this SDK knows it
  uint32_t device_ops;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.backend;
}

class OtherVersion : public ::testing::TestWithParam<Case>, public Session {};

TEST_P(OtherVersion, LoadsAndRuns) {
  const Case& one = GetParam();
  const ClientPtr client = open(test_backend(one.backend));
  ASSERT_TRUE(client) << failure.message;
  collet_client_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(collet_client_info_get(client.get(), &info, nullptr), COLLET_OK);
  EXPECT_STREQ(info.backend, one.name);
  EXPECT_EQ(info.opset, one.opset);
  EXPECT_EQ(info.functions, one.functions);
  const ExecutablePtr e = compile(client.get(), kProgram);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, one.device_ops) << explain(e.get());
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto results = run(e.get(), two_vectors(client.get()));
    ASSERT_EQ(results.size(), 2u) << failure.message;
    EXPECT_THAT(download<float>(results[0]), ElementsAre(110, 440, 990, 1760));
    EXPECT_THAT(download<float>(results[1]), ElementsAre(-11, -22, -33, -44));
  }
}

INSTANTIATE_TEST_SUITE_P(Abi, OtherVersion,
                         ::testing::Values(Case{"abi_1_0_memory_only", "memory_only", 1, 6, 0},
                                           Case{"abi_1_1_memory_only", "memory_only", 1, 6, 0},
                                           Case{"abi_next_minor_memory_only", "memory_only", 2, 6, 0},
                                           Case{"abi_1_0_c", "acme", 1, 10, 2}, Case{"abi_1_1_c", "acme", 1, 10, 2},
                                           Case{"abi_next_minor_c", "acme", 1, 10, 2},
                                           Case{"abi_1_0_cxx", "acme", 1, 11, 2}, Case{"abi_1_1_cxx", "acme", 1, 11, 2},
                                           Case{"abi_next_minor_cxx", "acme", 1, 11, 2},
                                           Case{"abi_1_0_queued", "acme_queued", 1, 11, 2},
                                           Case{"abi_1_1_queued", "acme_queued", 1, 11, 2},
                                           Case{"abi_next_minor_queued", "acme_queued", 1, 11, 2},
                                           Case{"abi_next_minor_future", "future", 2, 11, 2}),
                         [](const auto& test) { return std::string(test.param.backend); });

class Abi : public ::testing::Test, public Session {};

// The table is longer than the one that this SDK knows; what it knows of it is used.
TEST_F(Abi, TableWithMoreFunctions_IsUsed) {
  const ClientPtr client = open(test_backend("abi_next_minor_future"));
  ASSERT_TRUE(client) << failure.message;
  const std::vector<BufferPtr> buffers = two_vectors(client.get());
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(collet_client_device_info_get(client.get(), 0, &info, nullptr), COLLET_OK);
  EXPECT_GE(info.device_allocations, 1u);
  EXPECT_GE(info.device_bytes_in_use, 2 * 16u);
}

TEST_F(Abi, TypeThatTheSdkDoesNotKnow_HasNoFlags) {
  const ClientPtr client = open(test_backend("abi_next_minor_future"));
  ASSERT_TRUE(client) << failure.message;
  EXPECT_EQ(collet_client_type_flags(client.get(), 0, COLLET_TYPE_F32) & COLLET_MAY_COMPUTE,
            uint32_t{COLLET_MAY_COMPUTE});
  EXPECT_EQ(collet_client_type_flags(client.get(), 0, 63), 0u);
}

TEST_F(Abi, NextMajorVersionInTheTable_IsRefused) {
  EXPECT_FALSE(open(test_backend("abi_next_minor_future_major")));
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("libcollet_backend_abi_next_minor_future_major.so"),
                                     HasSubstr("was built for ABI 2, this is ABI 1")));
}

TEST_F(Abi, BackendThatRefusesTheHostsMajorVersion_IsRefused) {
  EXPECT_FALSE(open(test_backend("abi_next_major_memory_only")));
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("libcollet_backend_abi_next_major_memory_only.so"),
                                     HasSubstr("another ABI"), HasSubstr("ABI 1.1")));
}

}  // namespace
}  // namespace collet::testing
