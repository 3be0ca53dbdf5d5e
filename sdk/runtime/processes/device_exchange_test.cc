// SPDX-License-Identifier: Apache-2.0
// Tests collectives over several processes that the backend runs by links of its devices.
#include <gmock/gmock.h>

#include <thread>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/queued.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

constexpr int64_t kElements = 1000;

// A program of x = s32[1000] in four participants, whose result is that of one collective.
std::string collective(const std::string& shape, const std::string& op, const std::string& name = "m") {
  return "HloModule " + name + ", replica_count=4\n" + combiner("sum", "add", "s32") + "ENTRY e {\n  x = s32[1000] " +
         "parameter(0)\n  ROOT y = " + shape + " " + op + "\n}";
}
const std::string kSum = collective("s32[1000]", "all-reduce(x), replica_groups={}, to_apply=sum");

/// A client of a process whose devices have links to those of the others.
struct Linked {
  explicit Linked(Member& member, uint32_t devices = 2, uint32_t timeout_ms = 20000) : member_(member) {
    control.exchange = true;
    client = member.join("queued", devices, timeout_ms, nullptr, &control);
    EXPECT_TRUE(client) << member.failure.message;
  }
  ~Linked() {
    EXPECT_EQ(control.broken_rules(), std::vector<std::string>());
    client.reset();
    control.wait_until_closed();
  }
  // Runs a program; element i of participant p's argument is 100 p + i.
  std::vector<std::vector<int32_t>> run(const std::string& text, uint32_t devices = 2) {
    const ExecutablePtr e = member_.compile(client.get(), text);
    EXPECT_TRUE(e) << member_.failure.message;
    if (!e) return {};
    return member_.results(e.get(), member_.arguments(client.get(), devices, devices * member_.rank, kElements));
  }

  QueueControl control;
  ClientPtr client;

 private:
  Member& member_;
};

TEST_F(ProcessesTest, CollectivesRunByLinksOfTheDevices) {
  run_in(2, [](Member& member) {
    Linked linked(member);
    ASSERT_TRUE(linked.client);
    const auto sums = linked.run(kSum);
    ASSERT_EQ(sums.size(), 2u) << member.failure.message;
    for (const auto& sum : sums)
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], 600 + 4 * static_cast<int32_t>(i));
    EXPECT_EQ(linked.control.exchanges, 1);
    // What has no source gets zeros.
    const auto moved =
        linked.run(collective("s32[1000]", "collective-permute(x), source_target_pairs={{0,3},{2,1},{1,0}}"));
    ASSERT_EQ(moved.size(), 2u) << member.failure.message;
    const int32_t first[] = {100, 200, 0, 0};  // of participant p's source
    for (uint32_t d = 0; d < 2; ++d) {
      const uint32_t p = 2 * member.rank + d;
      ASSERT_EQ(moved[d].size(), 1000u);
      EXPECT_EQ(moved[d][0], first[p]);
      EXPECT_EQ(moved[d][999], p == 2 ? 0 : first[p] + 999);
    }
    EXPECT_EQ(linked.control.exchanges, 2);
  });
}

// Groups of one process are exchanges of this process alone; each process runs those in which it has a device.
TEST_F(ProcessesTest, EachGroupIsAnExchange) {
  run_in(2, [](Member& member) {
    Linked linked(member);
    ASSERT_TRUE(linked.client);
    const std::string shape = "s32[1000]";
    ASSERT_EQ(linked.run(collective(shape, "all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum")).size(), 2u);
    EXPECT_EQ(linked.control.exchanges, 1);
    const auto across = linked.run(collective(shape, "all-reduce(x), replica_groups={{3,0},{1,2}}, to_apply=sum"));
    ASSERT_EQ(across.size(), 2u) << member.failure.message;
    EXPECT_EQ(across[0][1], 302);
    EXPECT_EQ(across[1][1], 302);
    EXPECT_EQ(linked.control.exchanges, 3);
  });
}

TEST_F(ProcessesTest, WhatLinksDoNotTakeGoesThroughTheHost) {
  run_in(2, [](Member& member) {
    Linked linked(member);
    ASSERT_TRUE(linked.client);
    // An inner dimension, and an array that fits into a message.
    const std::string head = "HloModule m, replica_count=4\nENTRY e {\n  x = s32[1000] parameter(0)\n";
    const auto gathered =
        linked.run(head +
                   "  r = s32[10,100] reshape(x)\n  g = s32[10,400] all-gather(r), replica_groups={}, dimensions={1}\n"
                   "  ROOT y = s32[4000] reshape(g)\n}");
    ASSERT_EQ(gathered.size(), 2u) << member.failure.message;
    EXPECT_EQ(gathered[0][399], 300 + 99);
    EXPECT_EQ(gathered[1][400], 100);
    const auto small =
        linked.run(head +
                   "  s = s32[8] slice(x), slice={[0:8]}\n  ROOT y = s32[32] all-gather(s), replica_groups={}, "
                   "dimensions={0}\n}");
    ASSERT_EQ(small.size(), 2u) << member.failure.message;
    EXPECT_EQ(small[0][31], 307);
    EXPECT_EQ(linked.control.exchanges, 0);
  });
}

// Where one process lacks the links, none uses them.
TEST_F(ProcessesTest, LinksOfSomeProcessesAreNotUsed) {
  run_in(2, [](Member& member) {
    QueueControl control;
    control.exchange = member.rank == 0;
    const ClientPtr client = member.join("queued", 2, 20000, nullptr, &control);
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e = member.compile(client.get(), kSum);
    ASSERT_TRUE(e) << member.failure.message;
    const auto out = member.results(e.get(), member.arguments(client.get(), 2, 2 * member.rank, kElements));
    ASSERT_EQ(out.size(), 2u) << member.failure.message;
    EXPECT_EQ(out[0][1], 604);
    EXPECT_EQ(control.exchanges, 0);
  });
}

// Two threads in each process run programs with the same members at the same time: the processes agree on the order.
TEST_F(ProcessesTest, ExchangesOfTwoProgramsKeepOneOrder) {
  run_in(2, [](Member& member) {
    Linked linked(member);
    ASSERT_TRUE(linked.client);
    ExecutablePtr programs[2];
    for (int which = 0; which < 2; ++which) {
      const std::string text = which ? collective("s32[1000]", "all-reduce(x), replica_groups={}, to_apply=sum", "b")
                                     : collective("s32[4000]", "all-gather(x), replica_groups={}, dimensions={0}", "a");
      programs[which] = member.compile(linked.client.get(), text);
      ASSERT_TRUE(programs[which]) << member.failure.message;
    }
    // Programs over the same processes are started in the same order, but may end in any.
    for (int round = 0; round < 20; ++round) {
      std::vector<BufferPtr> results[2];
      for (int which = 0; which < 2; ++which)
        results[which] =
            member.run(programs[which].get(), member.arguments(linked.client.get(), 2, 2 * member.rank, kElements));
      for (int which = 1; which >= 0; --which) {
        ASSERT_EQ(results[which].size(), 2u) << member.failure.message;
        const auto out = member.download<int32_t>(results[which][1]);
        ASSERT_EQ(out.size(), which ? 1000u : 4000u) << member.failure.message;
        EXPECT_EQ(out[999], which ? 600 + 4 * 999 : 999);
      }
    }
    EXPECT_EQ(linked.control.exchanges, 40);
  });
}

TEST_F(ProcessesTest, OtherProgramIsNamedBeforeDevicesExchange) {
  run_in(3, [](Member& member) {
    Linked linked(member, 1);
    ASSERT_TRUE(linked.client);
    const auto text = [](const char* name, const char* op) {
      return "HloModule " + std::string(name) + ", replica_count=3\n" + combiner("sum", "add", "s32") +
             "ENTRY e {\n  x = s32[1000] parameter(0)\n  z = s32[1000] " + op +
             "(x, x)\n  ROOT y = s32[1000] all-reduce(z), replica_groups={}, to_apply=sum\n}";
    };
    for (uint32_t odd = 0; odd < 3; ++odd) {
      member.failure = {};
      const bool is_odd = member.rank == odd;
      linked.run(text(is_odd ? "second" : "first", is_odd ? "multiply" : "add"), 1);
      EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION) << member.failure.message;
      EXPECT_THAT(member.failure.message, HasSubstr("'first'"));
      EXPECT_THAT(member.failure.message, HasSubstr("'second'"));
    }
    EXPECT_EQ(linked.control.exchanges, 0);
    member.failure = {};
    const auto out = linked.run(text("first", "add"), 1);
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][1], 2 * (300 + 3));
  });
}

// A process dies while the devices exchange: the others hear of it by `is_over`.
TEST_F(ProcessesTest, ProcessThatDiesInAnExchangeIsNamed) {
  start(3, [](Member& member) {
    Linked linked(member, 1);
    ASSERT_TRUE(linked.client);
    linked.control.stuck = true;
    std::thread killer;
    if (member.rank == 1)
      killer = std::thread([&] {
        while (linked.control.exchanges == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        raise(SIGKILL);
      });
    const auto begin = Clock::now();
    linked.run("HloModule m, replica_count=3\n" + combiner("sum", "add", "s32") +
                   "ENTRY e {\n  x = s32[1000] parameter(0)\n  ROOT y = s32[1000] all-reduce(x), replica_groups={}, "
                   "to_apply=sum\n}",
               1);
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1 ("));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    if (killer.joinable()) killer.join();
  });
  expect_good(0);
  expect_good(2);
}

TEST_F(ProcessesTest, ExchangeThatDoesNotEndFailsAfterTheLimit) {
  run_in(2, [](Member& member) {
    Linked linked(member, 1, 600);
    ASSERT_TRUE(linked.client);
    linked.control.stuck = true;
    const std::string text = "HloModule m, replica_count=2\n" + combiner("sum", "add", "s32") +
                             "ENTRY e {\n  x = s32[1000] parameter(0)\n  ROOT y = s32[1000] all-reduce(x), "
                             "replica_groups={}, to_apply=sum\n}";
    linked.run(text, 1);
    // The first whose limit is over leaves the group, which the other one may hear before its own limit.
    EXPECT_THAT(member.failure.code, ::testing::AnyOf(COLLET_DEADLINE_EXCEEDED, COLLET_UNAVAILABLE));
    EXPECT_THAT(member.failure.message, HasSubstr("process " + std::to_string(1 - member.rank)));
    const auto begin = Clock::now();
    linked.run(text, 1);  // fails at once
    EXPECT_NE(member.failure.code, COLLET_OK);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  });
}

}  // namespace
}  // namespace collet::testing
