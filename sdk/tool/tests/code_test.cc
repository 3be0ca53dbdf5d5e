// SPDX-License-Identifier: Apache-2.0
// Programs whose code was wrong once: the machine code of the cpu backend, the driver emulator's, and that of a C compiler compute what
// the interpreter does.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

class Code : public ::testing::TestWithParam<const char*> {};

TEST_P(Code, ComputesWhatTheInterpreterDoes) {
  std::string backend = GetParam();
  if (backend == "source") backend = build_dir() + "/lib/collet/test_backends/libcollet_backend_example_source.so";
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("sdk/tool/tests/data/code")) {
    const Ran ran = collet("run " + entry.path().string() +
                           " --no-fallback --inputs random:1 --compare interpreter --backend " + backend);
    EXPECT_EQ(ran.code, 0) << entry.path() << "\n" << ran.out << ran.err;
    ++programs;
  }
  EXPECT_GE(programs, 5u);
}

INSTANTIATE_TEST_SUITE_P(Backends, Code, ::testing::Values("cpu", "gpu --option driver=emulator", "source"),
                         [](const auto& instance) { return std::string(instance.param).substr(0, 3); });

}  // namespace
}  // namespace collet::tool::testing
