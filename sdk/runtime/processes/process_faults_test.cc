// SPDX-License-Identifier: Apache-2.0
// Tests what the processes of a group hear when one of them is lost, stops, fails, or runs something else.
#include <collet/error.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr char kTwo[] = "HloModule m, replica_count=2\n";

TEST_F(ProcessesTest, OtherProgramIsNamed) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string name = member.rank == 0 ? "HloModule first" : "HloModule second";
    const std::string entry = member.rank == 0 ? "z = s32[8] add(x, x)" : "z = s32[8] multiply(x, x)";
    const ExecutablePtr e = member.compile(
        client.get(), program(entry + "\n  ROOT y = s32[8] all-reduce(z), replica_groups={}, to_apply=sum",
                              name + ", replica_count=2\n"));
    ASSERT_TRUE(e) << member.failure.message;
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_NE(member.failure.code, COLLET_OK);
    EXPECT_THAT(member.failure.message, HasSubstr(member.rank == 0 ? "process 1" : "process 0"));
    EXPECT_THAT(member.failure.message, HasSubstr("'first'"));
    EXPECT_THAT(member.failure.message, HasSubstr("'second'"));
  });
}

TEST_F(ProcessesTest, OtherOrderOfDevicesIsNamed) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(
        program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", "HloModule m, replica_count=2\n"));
    const uint32_t assignment[] = {member.rank, 1 - member.rank};
    collet_compile_request request{};
    request.assignment = assignment;
    request.assignment_count = 2;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
    EXPECT_THAT(member.failure.message, HasSubstr("on the same devices"));
  });
}

// All processes hear of it, also those that a process which has given up has not told yet which program it runs; and can go on.
TEST_F(ProcessesTest, OtherProgramIsNamedInAllProcesses) {
  run_in(4, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr programs[2];
    for (int which = 0; which < 2; ++which) {
      programs[which] = member.compile(
          client.get(), "HloModule " + std::string(which ? "second" : "first") + ", replica_count=4\n" +
                            combiner("sum", "add", "s32") +
                            "ENTRY e {\n  x = s32[40000] parameter(0)\n  z = s32[40000] " +
                            (which ? "multiply" : "add") +
                            "(x, x)\n  ROOT y = s32[40000] all-reduce(z), replica_groups={}, to_apply=sum\n}");
      ASSERT_TRUE(programs[which]) << member.failure.message;
    }
    for (uint32_t round = 0; round < 40; ++round) {
      member.failure = {};
      member.results(programs[member.rank == round % 4 ? 1 : 0].get(),
                     member.arguments(client.get(), 1, member.rank, 40000));
      ASSERT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION) << round << ": " << member.failure.message;
      EXPECT_THAT(member.failure.message, HasSubstr("'first'"));
      EXPECT_THAT(member.failure.message, HasSubstr("'second'"));
    }
    member.failure = {};
    const auto out = member.results(programs[0].get(), member.arguments(client.get(), 1, member.rank, 40000));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 2 * (600 + 4 * 3));
  });
}

TEST_F(ProcessesTest, KilledProcessIsNamed) {
  start(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    ASSERT_EQ(member.results(e.get(), member.arguments(client.get(), 1, member.rank)).size(), 1u);
    if (member.rank == 1) raise(SIGKILL);
    const auto begin = Clock::now();
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("lost process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));  // at once, not after the limit
  });
  expect_good(0);
}

TEST_F(ProcessesTest, StoppedProcessIsNamedAfterTheLimit) {
  start(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 1000);
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGSTOP);
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
    EXPECT_THAT(member.failure.message, HasSubstr("from process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));  // fails at once
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
  });
  expect_good(0, 10);
}

// A store whose owner is stopped when it has stored where the transport reaches it: the others try to connect to it.
struct StoppingStore {
  explicit StoppingStore(const collet_store* inner) : inner_(inner), store{sizeof(collet_store), 0, this, put, get} {}
  static collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
    const collet_store* const inner = static_cast<StoppingStore*>(user)->inner_;
    const collet_status status = inner->put(inner->user, key, value, bytes, error);
    if (std::string(key).find("gloo") != std::string::npos) raise(SIGSTOP);
    return status;
  }
  static collet_status get(void* user, const char* key, uint32_t timeout_ms,
                           void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
    const collet_store* const inner = static_cast<StoppingStore*>(user)->inner_;
    return inner->get(inner->user, key, timeout_ms, take, out, error);
  }
  const collet_store* const inner_;
  const collet_store store;
};

// Which of two processes waits for the other's connection is drawn by their ports; so this is tried a few times.
TEST_F(ProcessesTest, ProcessThatStopsWhileConnectingIsNamedByAll) {
  constexpr uint32_t kLimitMs = 500;
  for (int round = 0; round < 4; ++round) {
    const std::string folder = folder_ + "/" + std::to_string(round);
    std::filesystem::create_directory(folder);
    start(3, [&](Member& started) {
      Member member(folder, started.rank, 3);
      StoppingStore stopping(member.store());
      const auto begin = Clock::now();
      EXPECT_FALSE(member.join("interpreter", 1, kLimitMs, member.rank == 1 ? &stopping.store : nullptr));
      EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
      // The limit, twice the time in which processes hear of each other's waits, and the time to start.
      EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(4 * kLimitMs));
    });
    expect_good(0);
    expect_good(2);
    kill(processes_[1], SIGKILL);
    waitpid(processes_[1], nullptr, 0);
    processes_.clear();
  }
}

/// A program of three processes, one of which is stopped when it has compiled it.
struct Stop {
  uint32_t stopped;
  std::string text;
  int64_t elements = 8;  ///< of its argument
  uint32_t limit_ms = 2000;
  int late_ms = 0;  ///< process 2 starts the program so much later
};

class StoppedProcessTest : public ProcessesTest {
 protected:
  // Runs the program in the other processes. `check` is called after the run in each of them.
  void run_stopped(const Stop& stop, const std::function<void(Member&)>& check) {
    start(3, [&](Member& member) {
      ClientPtr client = member.join("interpreter", 1, stop.limit_ms);
      ASSERT_TRUE(client) << member.failure.message;
      ExecutablePtr e = member.compile(client.get(), stop.text);
      ASSERT_TRUE(e) << member.failure.message;
      if (member.rank == stop.stopped) raise(SIGSTOP);
      if (member.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(stop.late_ms));
      member.results(e.get(), member.arguments(client.get(), 1, member.rank, stop.elements));
      EXPECT_THAT(member.failure.message, HasSubstr("process " + std::to_string(stop.stopped)));
      check(member);
    });
    for (uint32_t rank = 0; rank < 3; ++rank)
      if (rank != stop.stopped) expect_good(rank);
  }
};

// Process 0 gives up waiting for process 1 and closes its client long before process 2 waits for it.
TEST_F(StoppedProcessTest, ReasonOfAProcessThatGaveUpIsTold) {
  run_stopped(
      {1, program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", "HloModule m, replica_count=3\n"),
       8, 1000, 3000},
      [](Member& member) {
        EXPECT_THAT(member.failure.message, HasSubstr("no answer within 1 s"));
        EXPECT_EQ(member.failure.code, member.rank == 0 ? COLLET_DEADLINE_EXCEEDED : COLLET_UNAVAILABLE);
      });
}

// Process 0 waits for process 2, which waits for process 1, which is stopped. The limit of process 0 passes long before that of process 2.
TEST_F(StoppedProcessTest, ProcessForWhichAnotherOneWaitsIsNamed) {
  run_stopped({1,
               "HloModule m, replica_count=3\nENTRY e {\n  x = s32[8] parameter(0)\n"
               "  a = s32[8] collective-permute(x), source_target_pairs={{1,2}}\n"
               "  ROOT y = s32[8] collective-permute(a), source_target_pairs={{2,0}}\n}",
               8, 2000, 900},
              [](Member&) {});
}

// Process 1 waits for process 2 to take what it sends.
TEST_F(StoppedProcessTest, ProcessThatTakesNothingIsNamed) {
  run_stopped(
      {2,
       "HloModule m, replica_count=3\nENTRY e {\n  x = s32[40000] parameter(0)\n"
       "  a = s32[40000] collective-permute(x), source_target_pairs={{1,2}}\n"
       "  b = s32[40000] add(a, x)\n  ROOT y = s32[40000] collective-permute(b), source_target_pairs={{1,0}}\n}",
       40000},
      [](Member&) {});
}

// Process 0 sees that process 1 has died, and goes on with its client. Process 2, which waits for data of process 0, hears of it at once.
TEST_F(ProcessesTest, SurvivorThatKeepsItsClientIsNotWaitedFor) {
  start(3, [this](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr e =
        member.compile(client.get(),
                       "HloModule m, replica_count=3\nENTRY e {\n  x = s32[40000] parameter(0)\n"
                       "  ROOT y = s32[40000] collective-permute(x), source_target_pairs={{1,0},{0,2}}\n}");
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGKILL);
    if (member.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto begin = Clock::now();
    member.results(e.get(), member.arguments(client.get(), 1, member.rank, 40000));
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    std::ofstream(folder_ + "/done_" + std::to_string(member.rank));
    while (!std::filesystem::exists(folder_ + "/done_" + std::to_string(2 - member.rank)))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    member.failure = {};
    member.results(e.get(), member.arguments(client.get(), 1, member.rank, 40000));  // fails at once
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
  });
  expect_good(0);
  expect_good(2);
}

// An argument fails in process 1, so the program cannot run there; process 0 hears of it.
TEST_F(ProcessesTest, FailureOfAnotherProcessIsTold) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    std::vector<BufferPtr> in = member.arguments(client.get(), 1, member.rank);
    if (member.rank == 1) {
      collet_buffer* promised = nullptr;
      ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &type, &promised, nullptr), COLLET_OK);
      in[0].reset(promised);
      collet_buffer_fail(promised, COLLET_DATA_LOSS, "the disk is gone", nullptr);
    }
    member.results(e.get(), in);
    if (member.rank == 0) {
      EXPECT_EQ(member.failure.code, COLLET_DATA_LOSS);
      EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    }
    EXPECT_THAT(member.failure.message, HasSubstr("the disk is gone"));
    // The processes still have each other.
    const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(out.size(), 1u) << member.failure.message;
  });
}

// A function of the embedder throws in one process. The other one does not wait for it until the limit.
TEST_F(ProcessesTest, ExceptionInAnotherProcessIsTold) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module =
        member.read(program("c = s32[8] custom-call(x), custom_call_target=\"twice\"\n"
                            "ROOT y = s32[8] all-reduce(c), replica_groups={}, to_apply=sum",
                            kTwo));
    ASSERT_TRUE(module) << member.failure.message;
    const collet_host_function twice = {"twice", &member,
                                        [](void* user, const collet_host_call* call, collet_error*) -> collet_status {
                                          if (static_cast<Member*>(user)->rank == 1) throw std::runtime_error("no way");
                                          const auto* x = static_cast<const int32_t*>(call->operands[0]);
                                          auto* y = static_cast<int32_t*>(call->results[0]);
                                          for (int i = 0; i < 8; ++i) y[i] = 2 * x[i];
                                          return COLLET_OK;
                                        }};
    collet_compile_request request{};
    request.host_functions = &twice;
    request.host_function_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(member.results(e.get(), member.arguments(client.get(), 1, member.rank)).empty());
    EXPECT_THAT(member.failure.message, HasSubstr("no way"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  });
}

/// A program over several processes, in whose last process a function of the embedder fails in the first run.
struct Pipeline {
  const char* name;
  uint32_t processes;
  std::string collective;         ///< of z, whose result has the type of z
  std::vector<uint32_t> succeed;  ///< the processes that need nothing of what the last one has not sent
  uint32_t devices = 1;           ///< of process 0
};

class FailingPipeline : public ProcessesTest, public ::testing::WithParamInterface<Pipeline> {
 protected:
  void run_pipeline(int64_t elements);
};

void FailingPipeline::run_pipeline(int64_t elements) {
  const Pipeline& pipeline = GetParam();
  run_in(pipeline.processes, [&](Member& member) {
    const uint32_t devices = member.rank == 0 ? pipeline.devices : 1;
    const ClientPtr client = member.join("interpreter", devices, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    const std::string shape = "s32[" + std::to_string(elements) + "]";
    const ModulePtr module =
        member.read("HloModule m, replica_count=" + std::to_string(pipeline.processes + pipeline.devices - 1) + "\n" +
                    combiner("sum", "add", "s32") + "ENTRY e {\n  x = " + shape +
                    " parameter(0)\n  n = s32[] custom-call(), custom_call_target=\"one\"\n  b = " + shape +
                    " broadcast(n), dimensions={}\n  z = " + shape + " add(x, b)\n  ROOT y = " + shape + " " +
                    pipeline.collective + "\n}");
    ASSERT_TRUE(module) << member.failure.message;
    bool fails = member.rank == pipeline.processes - 1;
    const collet_host_function one = {
        "one", &fails, [](void* user, const collet_host_call* call, collet_error* error) -> collet_status {
          if (*static_cast<bool*>(user)) return collet_set_error(error, COLLET_DATA_LOSS, "the disk is gone");
          *static_cast<int32_t*>(call->results[0]) = 1;
          return COLLET_OK;
        }};
    collet_compile_request request{};
    request.host_functions = &one;
    request.host_function_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    const uint32_t first = member.rank == 0 ? 0 : member.rank + pipeline.devices - 1;
    const bool succeeds = std::count(pipeline.succeed.begin(), pipeline.succeed.end(), member.rank) == 1;
    const auto begin = Clock::now();
    const auto failed = member.results(e.get(), member.arguments(client.get(), devices, first, elements));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    EXPECT_EQ(failed.size(), succeeds ? devices : 0u) << member.rank << ": " << member.failure.message;
    if (!succeeds) {
      EXPECT_THAT(member.failure.message, HasSubstr("the disk is gone"));
      EXPECT_EQ(member.failure.code, COLLET_DATA_LOSS);
    }
    if (!succeeds && !fails) {
      EXPECT_THAT(member.failure.message, HasSubstr("process " + std::to_string(pipeline.processes - 1)));
    }
    // The processes still have each other.
    fails = false;
    member.failure = {};
    EXPECT_EQ(member.results(e.get(), member.arguments(client.get(), devices, first, elements)).size(), devices)
        << member.rank << ": " << member.failure.message;
  });
}

TEST_P(FailingPipeline, IsHeardByThoseThatSendOrReceive) {
  run_pipeline(8);
}
TEST_P(FailingPipeline, IsHeardByThoseThatSendOrReceiveMuch) {
  run_pipeline(40000);
}

INSTANTIATE_TEST_SUITE_P(
    Processes, FailingPipeline,
    ::testing::Values(
        Pipeline{"TwoStages", 2, "collective-permute(z), source_target_pairs={{0,1}}", {}},
        Pipeline{"RingOfThree", 3, "collective-permute(z), source_target_pairs={{0,1},{1,2},{2,0}}", {}},
        Pipeline{"RingOfFour", 4, "collective-permute(z), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", {1}},
        Pipeline{"Broadcast", 3, "collective-broadcast(z), replica_groups={{0,1,2}}", {1}},
        // Process 0 is in both groups, and hears of the failure in one of them.
        Pipeline{"SumsOfTwoGroups", 3, "all-reduce(z), replica_groups={{0,2},{1,3}}, to_apply=sum", {1}, 2},
        Pipeline{"SwapsOfTwoGroups", 3, "all-to-all(z), replica_groups={{0,2},{1,3}}, dimensions={0}", {1}, 2}),
    [](const auto& one) { return std::string(one.param.name); });

/// A program of four participants in two processes, some of which take another branch.
struct Divergence {
  const char* name;
  std::string collective;  ///< of x, in one branch
  int64_t elements;
  uint32_t absent;         ///< the participant that takes the other branch
  bool is_heard_by_other;  ///< the error, by the process that has not got this participant
};

class DivergenceTest : public ProcessesTest, public ::testing::WithParamInterface<Divergence> {};

TEST_P(DivergenceTest, OfOneProcessIsNamed) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join("interpreter", 2, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    const auto& [name, collective, elements, absent, is_heard_by_other] = GetParam();
    const std::string shape = "s32[" + std::to_string(elements) + "]";
    const std::string head = "HloModule m, replica_count=4\n" + combiner("sum", "add", "s32");
    const ExecutablePtr e = member.compile(
        client.get(), head + "t {\n  x = " + shape + " parameter(0)\n  ROOT y = " + shape + " " + collective +
                          "\n}\nf {\n  x = " + shape + " parameter(0)\n  ROOT y = " + shape +
                          " negate(x)\n}\nENTRY e {\n  x = " + shape +
                          " parameter(0)\n  r = u32[] replica-id()\n  n = u32[] constant(" + std::to_string(absent) +
                          ")\n  p = pred[] compare(r, n), direction=NE\n  ROOT w = " + shape +
                          " conditional(p, x, x), true_computation=t, false_computation=f\n}");
    ASSERT_TRUE(e) << member.failure.message;
    const auto begin = Clock::now();
    member.results(e.get(), member.arguments(client.get(), 2, 2 * member.rank, elements));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    if (member.rank == absent / 2 || is_heard_by_other) {
      EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION) << member.rank;
      EXPECT_THAT(member.failure.message,
                  HasSubstr("participant " + std::to_string(absent) + " takes another way through control flow"));
    } else {
      EXPECT_EQ(member.failure.code, COLLET_OK) << member.failure.message;
    }
    member.failure = {};
    const ExecutablePtr next =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum"));
    ASSERT_TRUE(next) << member.failure.message;
    EXPECT_EQ(member.results(next.get(), member.arguments(client.get(), 2, 2 * member.rank)).size(), 2u)
        << member.failure.message;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Processes, DivergenceTest,
    ::testing::Values(
        Divergence{"Swap", "all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={0}", 4096, 1, true},
        Divergence{"SwapFirst", "all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={0}", 4096, 0, true},
        Divergence{"Sum", "all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum", 20000, 1, true},
        Divergence{"SmallSum", "all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum", 8, 3, true},
        Divergence{"SumWithinAProcess", "all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum", 20000, 1, false},
        Divergence{"SmallSumWithinAProcess", "all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum", 8, 2, false},
        Divergence{"Permute", "collective-permute(x), source_target_pairs={{0,2},{1,3}}", 20000, 1, true}),
    [](const auto& one) { return std::string(one.param.name); });

// The processes take different branches, whose collectives are alike but for the computation.
TEST_F(ProcessesTest, OtherCollectiveOfTheProgramIsNamed) {
  for (const int64_t elements : {8, 20000}) {
    run_in(2, [elements](Member& member) {
      const ClientPtr client = member.join("interpreter", 1, 20000);
      ASSERT_TRUE(client) << member.failure.message;
      const std::string shape = "s32[" + std::to_string(elements) + "]";
      const auto branch = [&](const std::string& name, const std::string& computation) {
        return name + " {\n  x = " + shape + " parameter(0)\n  ROOT " + name + "_sum = " + shape +
               " all-reduce(x), replica_groups={}, to_apply=" + computation + "\n}\n";
      };
      const ExecutablePtr e = member.compile(
          client.get(), std::string(kTwo) + combiner("sum", "add", "s32") + combiner("most", "maximum", "s32") +
                            branch("t", "sum") + branch("f", "most") + "ENTRY e {\n  x = " + shape +
                            " parameter(0)\n  r = u32[] replica-id()\n  n = u32[] constant(0)\n"
                            "  p = pred[] compare(r, n), direction=EQ\n  ROOT w = " +
                            shape + " conditional(p, x, x), true_computation=t, false_computation=f\n}");
      ASSERT_TRUE(e) << member.failure.message;
      member.results(e.get(), member.arguments(client.get(), 1, member.rank, elements));
      EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
      EXPECT_THAT(member.failure.message, HasSubstr("'t_sum'"));
      EXPECT_THAT(member.failure.message, HasSubstr("'f_sum'"));
    });
    processes_.clear();
  }
}

TEST_F(ProcessesTest, MissingProcessIsNamed) {
  start(1, [](Member& first) {
    Member member(std::filesystem::temp_directory_path() / "collet_processes_nobody", first.rank, 2);
    EXPECT_FALSE(member.join("interpreter", 1, 300));
    EXPECT_NE(member.failure.code, COLLET_OK);
  });
  expect_good(0);
  processes_.clear();
  start(1, [this](Member& first) {
    Member member(folder_, first.rank, 2);
    EXPECT_FALSE(member.join("interpreter", 1, 300));
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1 of 2"));
  });
  expect_good(0);
}

}  // namespace
}  // namespace collet::testing
