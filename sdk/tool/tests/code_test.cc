// SPDX-License-Identifier: Apache-2.0
// Programs that were compiled wrongly once: the machine code of the cpu backend, the driver emulator's, and that of a C compiler compute what
// the interpreter does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

void compare(const std::string& backend, const std::string& program) {
  const Ran ran = collet("run sdk/tool/tests/data/" + program +
                         " --no-fallback --inputs random:1 --compare interpreter --backend " + backend);
  EXPECT_EQ(ran.code, 0) << program << "\n" << ran.out << ran.err;
}

// Compares all programs of a folder; there are at least so many.
void compare_all(const std::string& backend, const std::string& folder, size_t least) {
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("sdk/tool/tests/data/" + folder)) {
    compare(backend, folder + "/" + entry.path().filename().string());
    ++programs;
  }
  EXPECT_GE(programs, least);
}

std::string test_backend(const std::string& name) {
  return build_dir() + "/lib/collet/test_backends/libcollet_backend_" + name + ".so";
}

class Code : public ::testing::TestWithParam<const char*> {};

TEST_P(Code, ComputesWhatTheInterpreterDoes) {
  const std::string backend = GetParam();
  if (backend == "source" && std::getenv("COLLET_TEST_EMULATED"))
    GTEST_SKIP() << "its compiler is that of this machine";
  compare_all(backend == "source" ? test_backend("example_source") : backend, "code", 10);
}

INSTANTIATE_TEST_SUITE_P(Backends, Code, ::testing::Values("cpu", "gpu --option driver=emulator", "source"),
                         [](const auto& instance) { return std::string(instance.param).substr(0, 3); });

// Ops that were expanded or evaluated wrongly once, on a device that compiles most of them and on one that has kernels of few.
TEST(Expansions, ComputeWhatTheInterpreterDoes) {
  compare_all("cpu", "expansions", 6);
  // Those whose types this device holds.
  for (const char* name : {"map_of_scalar", "map_of_first_scalar", "complex_to_pred"})
    compare(test_backend("kernels"), std::string("expansions/") + name + ".hlo");
}

}  // namespace
}  // namespace collet::tool::testing
