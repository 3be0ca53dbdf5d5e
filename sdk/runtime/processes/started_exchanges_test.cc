// SPDX-License-Identifier: Apache-2.0
// Tests collectives over several processes that run beside other work of their program.
#include <gmock/gmock.h>

#include <fstream>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 100'000;
constexpr char kHeader[] = "HloModule m, replica_count=2\n";

class StartedExchanges : public ProcessesTest {
 protected:
  // Compiles a program that calls a function of the host, which leaves a file that process 1 waits for before it runs the program.
  ExecutablePtr compile_with_note(Member& member, collet_client* client, const std::string& text) {
    const ModulePtr module = member.read(text);
    if (!module) return {};
    const collet_host_function function = {
        "note", this, [](void* user, const collet_host_call* call, collet_error*) -> collet_status {
          std::ofstream(static_cast<StartedExchanges*>(user)->folder_ + "/note");
          static_cast<int32_t*>(call->results[0])[0] = 5;
          return COLLET_OK;
        }};
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    return member.compile(client, module.get(), request);
  }

  void wait_for_note() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!std::filesystem::exists(folder_ + "/note") && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/note"));
  }
};

// Process 1 only runs the program when process 0 has called a function that does not depend on the collective.
TEST_F(StartedExchanges, HostFunctionIsCalledWhileACollectiveWaits) {
  for (const char* const backend : {"interpreter", "memory_only", "queued"}) {
    SCOPED_TRACE(backend);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    run_in(2, [&](Member& member) {
      const ClientPtr client = member.join(backend);
      ASSERT_TRUE(client) << member.failure.message;
      const ExecutablePtr e =
          compile_with_note(member, client.get(),
                            kHeader + combiner("sum", "add", "s32") +
                                "ENTRY e {\n  x = s32[100000] parameter(0)\n"
                                "  r = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum\n"
                                "  n = s32[] custom-call(), custom_call_target=\"note\"\n"
                                "  b = s32[100000] broadcast(n), dimensions={}\n  ROOT y = s32[100000] add(r, b)\n}");
      ASSERT_TRUE(e) << member.failure.message;
      const auto in = member.arguments(client.get(), 1, member.rank, kElements);
      if (member.rank == 1) wait_for_note();
      const auto out = member.results(e.get(), in);
      ASSERT_EQ(out.size(), 1u) << member.failure.message;
      for (int32_t i = 0; i < kElements; ++i) ASSERT_EQ(out[0][static_cast<size_t>(i)], 100 + 2 * i + 5);
    });
    processes_.clear();
  }
}

// Two collectives are under way, the second of which is in a loop; each result is right.
TEST_F(StartedExchanges, CollectiveOfALoopFollowsOneThatWasStartedBefore) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join("interpreter");
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e = compile_with_note(
        member, client.get(),
        kHeader + combiner("sum", "add", "s32") +
            loop_computations(3, "y = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum", "s32[100000]") +
            "ENTRY e {\n  x = s32[100000] parameter(0)\n"
            "  r = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum\n"
            "  zero = s32[] constant(0)\n  n = s32[] custom-call(), custom_call_target=\"note\"\n"
            "  t = (s32[], s32[100000]) tuple(zero, x)\n"
            "  w = (s32[], s32[100000]) while(t), condition=cond, body=body\n"
            "  l = s32[100000] get-tuple-element(w), index=1\n  b = s32[100000] broadcast(n), dimensions={}\n"
            "  s = s32[100000] subtract(l, r)\n  ROOT y = s32[100000] add(s, b)\n}");
    ASSERT_TRUE(e) << member.failure.message;
    const auto in = member.arguments(client.get(), 1, member.rank, kElements);
    if (member.rank == 1) wait_for_note();
    const auto out = member.results(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    for (int32_t i = 0; i < kElements; ++i) ASSERT_EQ(out[0][static_cast<size_t>(i)], 3 * (100 + 2 * i) + 5);
  });
}

// A launch that may overwrite a donated argument waits until the collective has sent it.
TEST_F(StartedExchanges, DonatedOperandIsKeptUntilItIsSent) {
  for (const char* const backend : {"interpreter", "memory_only", "queued"}) {
    SCOPED_TRACE(backend);
    run_in(2, [&](Member& member) {
      const ClientPtr client = member.join(backend);
      ASSERT_TRUE(client) << member.failure.message;
      const ExecutablePtr e = member.compile(
          client.get(), "HloModule m, replica_count=2, input_output_alias={ {0}: (0, {}, may-alias) }\n" +
                            combiner("sum", "add", "s32") +
                            "ENTRY e {\n  x = s32[100000] parameter(0)\n"
                            "  r = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum\n"
                            "  minus = s32[] constant(-1)\n  b = s32[100000] broadcast(minus), dimensions={}\n"
                            "  y = s32[100000] multiply(x, b)\n  ROOT t = (s32[100000], s32[100000]) tuple(y, r)\n}");
      ASSERT_TRUE(e) << member.failure.message;
      for (int round = 0; round < 10; ++round) {
        const auto in = member.arguments(client.get(), 1, member.rank, kElements);
        if (static_cast<int>(member.rank) == round % 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::vector<BufferPtr> out = member.run(e.get(), in);
        ASSERT_EQ(out.size(), 2u) << member.failure.message;
        const auto y = member.download<int32_t>(out[0]), r = member.download<int32_t>(out[1]);
        for (int32_t i = 0; i < kElements; ++i) {
          ASSERT_EQ(y[static_cast<size_t>(i)], -(100 * static_cast<int32_t>(member.rank) + i));
          ASSERT_EQ(r[static_cast<size_t>(i)], 100 + 2 * i);
        }
      }
    });
    processes_.clear();
  }
}

// The function fails while the collective waits for process 1; that one hears of it, and both go on.
TEST_F(StartedExchanges, FailureBesideACollectiveIsTold) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join("interpreter");
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(
        kHeader + combiner("sum", "add", "s32") +
        "ENTRY e {\n  x = s32[100000] parameter(0)\n"
        "  r = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum\n"
        "  n = s32[] custom-call(), custom_call_target=\"fails\"\n  b = s32[100000] broadcast(n), dimensions={}\n"
        "  a = s32[100000] add(r, b)\n  ROOT y = s32[100000] all-reduce(a), replica_groups={}, to_apply=sum\n}");
    ASSERT_TRUE(module) << member.failure.message;
    bool fails = member.rank == 0;
    const collet_host_function function = {
        "fails", &fails, [](void* user, const collet_host_call* call, collet_error* error) -> collet_status {
          static_cast<int32_t*>(call->results[0])[0] = 0;
          if (!*static_cast<bool*>(user)) return COLLET_OK;
          return collet_set_error(error, COLLET_DATA_LOSS, "the disk is gone");
        }};
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    const auto in = member.arguments(client.get(), 1, member.rank, kElements);
    EXPECT_TRUE(member.results(e.get(), in).empty());
    EXPECT_EQ(member.failure.code, COLLET_DATA_LOSS) << member.failure.message;
    EXPECT_THAT(member.failure.message, HasSubstr("the disk is gone"));
    fails = false;
    member.failure = {};
    const auto out = member.results(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 2 * (100 + 2 * 3));
  });
}

// A process dies while another one waits for it beside its work.
TEST_F(StartedExchanges, LostProcessIsNamed) {
  start(2, [&](Member& member) {
    const ClientPtr client = member.join("interpreter");
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        compile_with_note(member, client.get(),
                          kHeader + combiner("sum", "add", "s32") +
                              "ENTRY e {\n  x = s32[100000] parameter(0)\n"
                              "  r = s32[100000] all-reduce(x), replica_groups={}, to_apply=sum\n"
                              "  n = s32[] custom-call(), custom_call_target=\"note\"\n"
                              "  b = s32[100000] broadcast(n), dimensions={}\n  ROOT y = s32[100000] add(r, b)\n}");
    ASSERT_TRUE(e) << member.failure.message;
    const auto in = member.arguments(client.get(), 1, member.rank, kElements);
    if (member.rank == 1) {
      wait_for_note();
      raise(SIGKILL);
    }
    EXPECT_TRUE(member.results(e.get(), in).empty());
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
  });
  expect_good(0);
}

}  // namespace
}  // namespace collet::testing
