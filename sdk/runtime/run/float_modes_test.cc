// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <collet/float_modes.hpp>

#include <cfenv>
#include <cmath>
#include <limits>

#include "sdk/runtime/testing/session.h"

// Tests that results do not depend on the modes of floating-point arithmetic that the application has set.

namespace collet::testing {
namespace {

using ::testing::Each;

/// Returns the double of the least subnormal number, computed by the calling thread.
float doubled() {
  volatile float least = std::numeric_limits<float>::denorm_min();
  return least + least;
}

/// Returns 1 + 2^-30 rounded as the calling thread rounds.
float rounded() {
  volatile float one = 1, little = 0x1p-30f;
  return one + little;
}

TEST(FloatModes, AreSetAndRestored) {
  const float exact = 2 * std::numeric_limits<float>::denorm_min();
  {
    const ScopedFloatModes flush(FloatModes::usual(Subnormals::kFlush));
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_EQ(doubled(), 0);
#endif
    {
      const ScopedFloatModes keep;
      EXPECT_EQ(doubled(), exact);
    }
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_EQ(doubled(), 0);
#endif
  }
  EXPECT_EQ(doubled(), exact);
  std::fesetround(FE_UPWARD);
  EXPECT_GT(rounded(), 1);
  {
    const ScopedFloatModes usual;
    EXPECT_EQ(rounded(), 1);
  }
  EXPECT_GT(rounded(), 1);
  std::fesetround(FE_TONEAREST);
}

class FloatModesOfCaller : public ::testing::TestWithParam<std::string>, public Session {};

TEST_P(FloatModesOfCaller, DoNotReachTheDevice) {
  const ScopedFloatModes own;
  FloatModes::usual(Subnormals::kFlush).set();
  std::fesetround(FE_UPWARD);
#if defined(__GLIBC__) && defined(__x86_64__)
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
#endif
  const ClientPtr client = open(GetParam() == "interpreter" ? GetParam() : test_backend(GetParam()));
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  one = f32[] constant(1)
  little = f32[] constant(9e-10)
  folded = f32[] add(one, little)
  all = f32[4] broadcast(folded), dimensions={}
  zero = f32[4] subtract(y, y)
  sum = f32[4] add(x, y)
  product = f32[4] multiply(sum, all)
  infinite = f32[4] divide(all, zero)
  ROOT t = (f32[4], f32[4]) tuple(product, infinite)
})");
  ASSERT_TRUE(e) << failure.message;
  const float least = std::numeric_limits<float>::denorm_min();
  std::vector<BufferPtr> in;
  for (int i = 0; i < 2; ++i)
    in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, std::vector<float>(4, least)));
  const std::vector<BufferPtr> out = run(e.get(), in);
  const FloatModes after = FloatModes::present();
  FloatModes::usual().set();
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_THAT(download<float>(out[0]), Each(0x1p-148f));
  EXPECT_THAT(download<float>(out[1]), Each(std::numeric_limits<float>::infinity()));
  after.set();
  EXPECT_GT(rounded(), 1) << "the caller's modes are not restored";
}

INSTANTIATE_TEST_SUITE_P(Backends, FloatModesOfCaller, ::testing::Values("interpreter", "kernels", "queued"));

}  // namespace
}  // namespace collet::testing
