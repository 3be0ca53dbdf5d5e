// SPDX-License-Identifier: Apache-2.0
// Tests the option `subnormals`, on all threads.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "reference_backends/cpu/tests/plugin.h"

namespace collet::cpu::testing {
namespace {

/// Returns x + x for a million subnormal numbers, with the option; empty for its default.
std::vector<float> doubled(const char* option) {
  constexpr int64_t kCount = 1 << 20;
  setenv("COLLET_CPU_SUBNORMALS", option, 1);
  Plugin plugin;
  unsetenv("COLLET_CPU_SUBNORMALS");
  ProgramBuilder b;
  const Handle x = b.entry().argument(kF32, {kCount});
  b.entry().results({b.entry().binary(COLLET_OP_ADD, x, x)});
  Compiled c(plugin, b.finish());
  EXPECT_EQ(c.status, COLLET_OK) << c.error.message;
  const std::vector<float> in(kCount, std::numeric_limits<float>::denorm_min());
  return elements_of<float>(c.run({bytes_of(in)})[0]);
}

/// Returns how many elements are other than a number.
int64_t others(const std::vector<float>& all, float number) {
  return static_cast<int64_t>(all.size()) - std::count(all.begin(), all.end(), number);
}

TEST(Subnormals, AreKeptOrFlushed) {
  const float exact = 2 * std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(others(doubled(""), exact), 0);
  EXPECT_EQ(others(doubled("keep"), exact), 0);
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(others(doubled("flush"), 0), 0);
#endif
  volatile float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(least + least, exact) << "the mode of the calling thread is restored";
}

TEST(Subnormals, FlushIsDeclared) {
  for (const char* option : {"keep", "flush"}) {
    setenv("COLLET_CPU_SUBNORMALS", option, 1);
    Plugin plugin;
    unsetenv("COLLET_CPU_SUBNORMALS");
    collet_device_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(plugin.table->device_info(plugin.instance, 0, &info, &plugin.error), COLLET_OK);
    EXPECT_EQ((info.traits & COLLET_TRAIT_FLUSHES_DENORMALS) != 0, std::string(option) == "flush");
  }
}

}  // namespace
}  // namespace collet::cpu::testing
