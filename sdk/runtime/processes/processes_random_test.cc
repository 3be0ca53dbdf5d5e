// SPDX-License-Identifier: Apache-2.0
// Kills, stops or delays one of three processes at random moments: at the start, while programs are compiled, or in a collective.
// The others must end soon, with results that are right or an error that names the process, and can form a new group.
#include <gmock/gmock.h>

#include <array>
#include <random>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

enum class Event { Killed, Stopped, Delayed };
constexpr std::array kEventNames{"killed", "stopped", "delayed"};

constexpr uint32_t kProcesses = 3;
/// For each wait for another process: where one is lost, and where all are to go on, however busy the machine is.
constexpr uint32_t kLimitMs = 3000, kLongLimitMs = 30000;
constexpr uint32_t kDelayMs = 300;
constexpr int kPrograms = 5;
constexpr int kLaunches = 40;
constexpr int64_t kElements = 3 * 20000;

std::string numbered_program(int which) {
  const char* const entries[kPrograms] = {
      "ROOT y = s32[60000] all-reduce(x), replica_groups={}, to_apply=sum",
      "ROOT y = s32[60000] all-to-all(x), replica_groups={{0,1,2}}, dimensions={0}",
      "g = s32[180000] all-gather(x), replica_groups={}, dimensions={0}\n  ROOT y = s32[60000] slice(g), "
      "slice={[60000:120000]}",
      "ROOT y = s32[60000] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,0}}",
      // The collective runs beside the rest.
      "r = s32[60000] all-reduce(x), replica_groups={}, to_apply=sum\n  c = s32[] constant(255)\n"
      "  b = s32[60000] broadcast(c), dimensions={}\n  m = s32[60000] and(x, b)\n  ROOT y = s32[60000] add(r, m)"};
  return "HloModule m" + std::to_string(which) + ", replica_count=3\n" + combiner("sum", "add", "s32") +
         "ENTRY e {\n  x = s32[60000] parameter(0)\n  " + entries[which] + "\n}";
}

/// Element i of the result of participant p, where that of the argument of q is `100 (q + launch) + i`.
int32_t expected(int which, uint32_t p, int launch, int64_t i) {
  const auto argument = [&](uint32_t q, int64_t at) {
    return 100 * static_cast<int32_t>(q + static_cast<uint32_t>(launch)) + static_cast<int32_t>(at);
  };
  switch (which) {
    case 0:
      return argument(0, i) + argument(1, i) + argument(2, i);
    case 4:
      return argument(0, i) + argument(1, i) + argument(2, i) + (argument(p, i) & 255);
    case 1:
      return argument(static_cast<uint32_t>(i / (kElements / 3)), p * (kElements / 3) + i % (kElements / 3));
    case 2:
      return argument(1, i);
    default:
      return argument((p + 2) % 3, i);
  }
}

/// Launches programs of all collectives until one fails. True if all ran.
bool launch_all(Member& member, uint32_t limit_ms) {
  const ClientPtr client = member.join("interpreter", 1, limit_ms);
  if (!client) return false;
  std::vector<ExecutablePtr> programs;
  for (int which = 0; which < kPrograms; ++which) {
    programs.push_back(member.compile(client.get(), numbered_program(which)));
    if (!programs.back()) return false;
  }
  for (int launch = 0; launch < kLaunches; ++launch) {
    const int which = launch % kPrograms;
    const auto out =
        member.results(programs[static_cast<size_t>(which)].get(),
                       member.arguments(client.get(), 1, member.rank + static_cast<uint32_t>(launch), kElements));
    if (out.size() != 1) return false;
    for (int64_t i = 0; i < kElements; ++i)
      if (out[0][static_cast<size_t>(i)] != expected(which, member.rank, launch, i)) {
        ADD_FAILURE() << "program " << which << ", launch " << launch << ", element " << i << ": "
                      << out[0][static_cast<size_t>(i)] << " is wrong";
        return true;
      }
  }
  return true;
}

class RandomFaults : public ProcessesTest {
 protected:
  void run(unsigned first, unsigned count) {
    for (unsigned seed = first; seed < first + count && !HasFailure(); ++seed) run_one(seed);
  }

 private:
  void run_one(unsigned seed) {
    std::mt19937 random(seed);
    const auto event = static_cast<Event>(seed % kEventNames.size());
    const uint32_t victim = static_cast<uint32_t>(random() % kProcesses);
    const auto moment = std::chrono::microseconds(random() % 400000);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": process " + std::to_string(victim) + " is " +
                 kEventNames[static_cast<size_t>(event)] + " after " + std::to_string(moment.count()) + " us");
    const std::string folder = folder_ + "/" + std::to_string(seed), again = folder + "_again";
    std::filesystem::create_directory(folder);
    std::filesystem::create_directory(again);
    start(kProcesses, [&](Member& started) {
      Member member(folder, started.rank, kProcesses);
      const bool done = launch_all(member, event == Event::Delayed ? kLongLimitMs : kLimitMs);
      if (event == Event::Delayed) {
        EXPECT_TRUE(done) << member.failure.message;
        return;
      }
      if (!done) {
        EXPECT_THAT(member.failure.message, HasSubstr("process " + std::to_string(victim)));
      }
      if (member.rank == victim) return;
      // Those that are left form a group of their own.
      Member left(again, member.rank - (member.rank > victim ? 1 : 0), kProcesses - 1);
      const ClientPtr client = left.join("interpreter", 1, 20000);
      ASSERT_TRUE(client) << left.failure.message;
      const ExecutablePtr e =
          left.compile(client.get(), "HloModule left, replica_count=2\n" + combiner("sum", "add", "s32") +
                                         "ENTRY e {\n  x = s32[8] parameter(0)\n"
                                         "  ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum\n}");
      ASSERT_TRUE(e) << left.failure.message;
      const auto out = left.results(e.get(), left.arguments(client.get(), 1, left.rank));
      ASSERT_EQ(out.size(), 1u) << left.failure.message;
      EXPECT_EQ(out[0][3], 106);
    });
    std::this_thread::sleep_for(moment);
    const pid_t process = processes_[victim];
    kill(process, event == Event::Killed ? SIGKILL : SIGSTOP);
    if (event == Event::Delayed) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kDelayMs));
      kill(process, SIGCONT);
    }
    for (uint32_t rank = 0; rank < kProcesses; ++rank)
      if (rank != victim || event == Event::Delayed) expect_good(rank);
    if (event != Event::Delayed) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    processes_.clear();
  }
};

TEST_F(RandomFaults, OfAFewRuns) {
  run(0, 9);
}
class RandomFaultsLong : public RandomFaults {};
TEST_F(RandomFaultsLong, OfAHundredRuns) {
  run(100, 100);
}

}  // namespace
}  // namespace collet::testing
