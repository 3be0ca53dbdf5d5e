// SPDX-License-Identifier: Apache-2.0
// Runs a data-parallel program over four processes in networks that are slow and lose packets.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sdk/tool/tests/command.h"
#include "sdk/tool/tests/slow_network.h"

namespace collet::tool::testing {
namespace {

constexpr int kProcesses = 4;
constexpr double kLoss = 0.01;

// Runs process `number` in the background of a shell; it writes its outputs to `folder`.
std::string member(int number, const std::string& folder) {
  return "'" + build_dir() + "/bin/collet' run sdk/tool/tests/data_parallel.hlo --backend interpreter --processes " +
         std::to_string(kProcesses) + " --process " + std::to_string(number) + " --store " + folder +
         "/store --output " + folder + "/out >" + folder + "/log." + std::to_string(number) + " 2>&1 &";
}

// Runs all processes and returns the outputs one after another. `before`: what stands before each command.
template <typename Before>
std::string run_all(const std::string& folder, const Before& before) {
  std::filesystem::create_directories(folder + "/store");
  std::string line;
  for (int p = 0; p < kProcesses; ++p) line += before(p) + " " + member(p, folder) + " ";
  EXPECT_EQ(std::system(("COLLET_EXCHANGE_TIMEOUT=10; export COLLET_EXCHANGE_TIMEOUT; " + line + "wait").c_str()), 0);
  std::string out;
  for (int p = 0; p < kProcesses; ++p) {
    const std::string one = contents(folder + "/out." + std::to_string(p) + "/output_0.bin");
    EXPECT_EQ(one.size(), 256u * 64 * 4) << contents(folder + "/log." + std::to_string(p));
    out += one;
  }
  return out;
}

TEST(SlowNetwork, GivesTheSameResults) {
  const Folder folder;
  const std::string expected = run_all(folder / "near", [](int) { return std::string(); });
  for (const auto delay : {std::chrono::milliseconds(1), std::chrono::milliseconds(10)}) {
    std::string why;
    const auto network = SlowNetwork::make(kProcesses, delay, kLoss, why);
    if (!network) GTEST_SKIP() << why;
    const auto start = std::chrono::steady_clock::now();
    const std::string got = run_all(folder / std::to_string(delay.count()), [&](int p) {
      return "COLLET_TRANSPORT_ADDRESS=" + SlowNetwork::address(p) + " " + network->before(p);
    });
    EXPECT_EQ(got == expected, true) << delay.count() << " ms";
    // At least a way to and fro in each step.
    EXPECT_GT(std::chrono::steady_clock::now() - start, 8 * 2 * delay);
  }
}

}  // namespace
}  // namespace collet::tool::testing
