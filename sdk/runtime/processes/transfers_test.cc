// SPDX-License-Identifier: Apache-2.0
// Tests copies of arrays between devices of several processes.
#include <collet/transfers.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

class Transfers : public ProcessesTest {
 protected:
  static EventPtr send(Member& member, collet_client* client, const BufferPtr& buffer,
                       const collet_transfer& transfer) {
    collet_buffer* const handle = buffer.get();
    collet_event* event = nullptr;
    collet_error error{};
    EXPECT_EQ(collet_buffers_send(client, 1, &handle, &transfer, &event, &error), COLLET_OK) << error.message;
    (void)member;
    return EventPtr(event);
  }
  static BufferPtr receive(collet_client* client, const std::vector<int64_t>& dims, const collet_transfer& transfer) {
    const collet_array_type type = {COLLET_TYPE_S32, static_cast<uint32_t>(dims.size()), dims.data()};
    collet_buffer* buffer = nullptr;
    collet_error error{};
    EXPECT_EQ(collet_buffers_receive(client, COLLET_NONE, 1, &type, &transfer, &buffer, &error), COLLET_OK)
        << error.message;
    return BufferPtr(buffer);
  }
  static collet_status wait(const EventPtr& event, std::string& message) {
    collet_error error{};
    const collet_status status = collet_event_wait(event.get(), &error);
    message = error.message;
    return status;
  }
};

// Each of two processes with two devices sends arrays of several sizes to the other one; the orders of the calls are unlike.
TEST_F(Transfers, ArraysReachTheirDevices) {
  for (const char* const backend : {"interpreter", "memory_only", "queued"}) {
    SCOPED_TRACE(backend);
    run_in(2, [&](Member& member) {
      const ClientPtr client = member.join(backend, 2);
      ASSERT_TRUE(client) << member.failure.message;
      const std::vector<int64_t> sizes = {1, 0, 1000, 300'000};
      std::vector<BufferPtr> in, out;
      std::vector<EventPtr> events;
      const auto first = [](uint64_t rank, size_t i) { return static_cast<int32_t>(1000 * rank + i); };
      for (size_t k = 0; k < sizes.size(); ++k) {
        const size_t i = member.rank == 0 ? k : sizes.size() - 1 - k;
        const uint32_t mine = 2 * member.rank + i % 2, other = 2 * (1 - member.rank) + (i + 1) % 2;
        std::vector<int32_t> x(static_cast<size_t>(sizes[i]));
        std::iota(x.begin(), x.end(), first(member.rank, i));
        in.push_back(member.upload(client.get(), {COLLET_TYPE_S32, 1, &sizes[i]}, x.data(), i % 2));
        events.push_back(send(member, client.get(), in.back(), {i, mine, other}));
        // The data stay until they are sent.
        collet_buffer_delete(in.back().get());
      }
      for (size_t i = 0; i < sizes.size(); ++i)
        out.push_back(receive(client.get(), {sizes[i]},
                              {i, static_cast<uint32_t>(2 * (1 - member.rank) + i % 2),
                               static_cast<uint32_t>(2 * member.rank + (i + 1) % 2)}));
      for (size_t i = 0; i < sizes.size(); ++i) {
        std::vector<int32_t> x(static_cast<size_t>(sizes[i]));
        std::iota(x.begin(), x.end(), first(1 - member.rank, i));
        EXPECT_EQ(member.download<int32_t>(out[i]), x) << member.failure.message;
      }
      std::string message;
      for (const EventPtr& event : events) EXPECT_EQ(wait(event, message), COLLET_OK) << message;
    });
    processes_.clear();
  }
}

// What is received is an argument of a program before it has come, and what is sent is a result that is not computed yet.
TEST_F(Transfers, ArraysOfProgramsAreSent) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const uint32_t own = member.rank;
    const ModulePtr module =
        member.read("HloModule m\nENTRY e {\n  x = s32[8] parameter(0)\n  ROOT y = s32[8] add(x, x)\n}");
    collet_compile_request request{};
    request.assignment = &own;
    request.assignment_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 0) {
      const auto made = member.run(e.get(), member.arguments(client.get(), 1, 0));
      ASSERT_EQ(made.size(), 1u) << member.failure.message;
      std::string message;
      EXPECT_EQ(wait(send(member, client.get(), made[0], {5, 0, 1}), message), COLLET_OK) << message;
      return;
    }
    std::vector<BufferPtr> in;
    in.push_back(receive(client.get(), {8}, {5, 0, 1}));
    const auto out = member.results(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 4 * 3);
  });
}

TEST_F(Transfers, FailureOfTheSourceIsTold) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) {
      member.download<int32_t>(receive(client.get(), {8}, {0, 0, 1}));
      EXPECT_EQ(member.failure.code, COLLET_DATA_LOSS);
      EXPECT_THAT(member.failure.message, HasSubstr("process 0"));
      EXPECT_THAT(member.failure.message, HasSubstr("the disk is gone"));
      member.failure = {};
      EXPECT_EQ(member.download<int32_t>(receive(client.get(), {8}, {1, 0, 1})).size(), 8u) << member.failure.message;
      return;
    }
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    collet_buffer* promised = nullptr;
    ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &type, &promised, nullptr), COLLET_OK);
    const BufferPtr lost(promised);
    const EventPtr sent = send(member, client.get(), lost, {0, 0, 1});
    collet_buffer_fail(promised, COLLET_DATA_LOSS, "the disk is gone", nullptr);
    std::string message;
    EXPECT_EQ(wait(sent, message), COLLET_DATA_LOSS);
    // The processes still have each other.
    EXPECT_EQ(wait(send(member, client.get(), member.arguments(client.get(), 1, 0)[0], {1, 0, 1}), message), COLLET_OK)
        << message;
  });
}

TEST_F(Transfers, OtherTypesAreNamedInBothProcesses) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    std::string message;
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 2}, std::vector<int64_t>{9}}) {
      const collet_transfer transfer = {static_cast<uint64_t>(dims.size()), 0, 1};
      if (member.rank == 0) {
        EXPECT_EQ(wait(send(member, client.get(), member.arguments(client.get(), 1, 0)[0], transfer), message),
                  COLLET_FAILED_PRECONDITION);
      } else {
        member.failure = {};
        member.download<int32_t>(receive(client.get(), dims, transfer));
        EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
        message = member.failure.message;
      }
      EXPECT_THAT(message, HasSubstr("sends s32[8]"));
    }
  });
}

TEST_F(Transfers, LostProcessIsNamed) {
  start(2, [&](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) raise(SIGKILL);
    const EventPtr sent = send(member, client.get(), member.arguments(client.get(), 1, 0)[0], {0, 0, 1});
    member.download<int32_t>(receive(client.get(), {8}, {0, 1, 0}));
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    std::string message;
    EXPECT_EQ(wait(sent, message), COLLET_UNAVAILABLE);
    EXPECT_THAT(message, HasSubstr("process 1"));
  });
  expect_good(0);
}

// The arrays of one call are listed in another order than those of the other process's call.
TEST_F(Transfers, OrdersOfListsMayDiffer) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20'000);
    ASSERT_TRUE(client) << member.failure.message;
    constexpr uint32_t kCount = 5;
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    std::vector<collet_transfer> transfers;
    std::vector<collet_array_type> types(kCount, type);
    std::vector<BufferPtr> in;
    std::vector<collet_buffer*> handles;
    for (uint32_t i = 0; i < kCount; ++i) transfers.push_back({member.rank == 0 ? i : kCount - 1 - i, 0, 1});
    collet_error error{};
    if (member.rank == 0) {
      for (uint32_t i = 0; i < kCount; ++i) {
        const std::vector<int32_t> x(8, static_cast<int32_t>(i));
        in.push_back(member.upload(client.get(), type, x.data()));
        handles.push_back(in.back().get());
      }
      std::vector<collet_event*> events(kCount);
      ASSERT_EQ(collet_buffers_send(client.get(), kCount, handles.data(), transfers.data(), events.data(), &error),
                COLLET_OK)
          << error.message;
      std::string message;
      for (collet_event* const event : events) EXPECT_EQ(wait(EventPtr(event), message), COLLET_OK) << message;
      return;
    }
    handles.resize(kCount);
    ASSERT_EQ(collet_buffers_receive(client.get(), COLLET_NONE, kCount, types.data(), transfers.data(), handles.data(),
                                     &error),
              COLLET_OK)
        << error.message;
    for (uint32_t i = 0; i < kCount; ++i) {
      const BufferPtr one(handles[i]);
      EXPECT_EQ(member.download<int32_t>(one), std::vector<int32_t>(8, static_cast<int32_t>(kCount - 1 - i)))
          << member.failure.message;
    }
  });
}

// Arrays of one send are received one after another, in another order; and one of them is promised only when the others have come.
TEST_F(Transfers, ArraysOfACallDoNotWaitForEachOther) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20'000);
    ASSERT_TRUE(client) << member.failure.message;
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    constexpr size_t kCount = 3;
    const collet_transfer transfers[kCount] = {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}}, back = {4, 1, 0};
    collet_error error{};
    if (member.rank == 1) {
      for (size_t i = kCount - 1; i > 0; --i)
        EXPECT_EQ(member.download<int32_t>(receive(client.get(), {8}, transfers[i])),
                  std::vector<int32_t>(8, static_cast<int32_t>(i)))
            << member.failure.message;
      const std::vector<int32_t> x(8, 7);
      std::string message;
      EXPECT_EQ(wait(send(member, client.get(), member.upload(client.get(), type, x.data()), back), message), COLLET_OK)
          << message;
      EXPECT_EQ(member.download<int32_t>(receive(client.get(), {8}, transfers[0])), x) << member.failure.message;
      return;
    }
    std::vector<BufferPtr> in;
    collet_buffer* promised = nullptr;
    ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &type, &promised, nullptr), COLLET_OK);
    in.emplace_back(promised);
    for (size_t i = 1; i < kCount; ++i) {
      const std::vector<int32_t> x(8, static_cast<int32_t>(i));
      in.push_back(member.upload(client.get(), type, x.data()));
    }
    std::vector<collet_buffer*> handles;
    for (const BufferPtr& one : in) handles.push_back(one.get());
    collet_event* events[kCount] = {};
    ASSERT_EQ(collet_buffers_send(client.get(), kCount, handles.data(), transfers, events, &error), COLLET_OK)
        << error.message;
    const BufferPtr came = receive(client.get(), {8}, back);
    ASSERT_EQ(collet_buffer_fulfil(promised, came.get(), &error), COLLET_OK) << error.message;
    std::string message;
    for (collet_event* const event : events) EXPECT_EQ(wait(EventPtr(event), message), COLLET_OK) << message;
  });
}

// One of the processes has no host memory for a copy of the array, which the host does not see on the device.
TEST_F(Transfers, MissingMemoryIsToldToTheOtherProcess) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's process has no limit of its address space";
#endif
  constexpr rlim_t kArray = rlim_t{128} << 20, kRest = rlim_t{64} << 20;
  for (const uint32_t poor : {0u, 1u}) {
    SCOPED_TRACE(poor);
    run_in(2, [poor](Member& member) {
      const ClientPtr client = member.join("memory_only", 1, 20'000);
      ASSERT_TRUE(client) << member.failure.message;
      const int64_t elements = kArray / sizeof(int32_t);
      const auto limit = [&](rlim_t more) {
        if (member.rank != poor) return;
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more;
        const rlimit both = {bytes, bytes};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &both), 0);
      };
      const auto begin = std::chrono::steady_clock::now();
      std::string message;
      if (member.rank == 0) {
        const int64_t dims[] = {elements};
        BufferPtr buffer;
        {
          const std::vector<int32_t> x(static_cast<size_t>(elements));
          buffer = member.upload(client.get(), {COLLET_TYPE_S32, 1, dims}, x.data());
        }
        limit(kRest);
        EXPECT_EQ(wait(send(member, client.get(), buffer, {0, 0, 1}), message), COLLET_RESOURCE_EXHAUSTED);
      } else {
        limit(kArray + kRest);
        const BufferPtr buffer = receive(client.get(), {elements}, {0, 0, 1});
        ASSERT_TRUE(buffer);
        EXPECT_EQ(wait(EventPtr(collet_buffer_ready(buffer.get())), message), COLLET_RESOURCE_EXHAUSTED);
      }
      EXPECT_THAT(message, HasSubstr("memory"));
      if (member.rank != poor) {
        EXPECT_THAT(message, HasSubstr("process " + std::to_string(poor)));
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
      // The processes still have each other.
      if (member.rank == 0) {
        EXPECT_EQ(wait(send(member, client.get(), member.arguments(client.get(), 1, 0)[0], {1, 0, 1}), message),
                  COLLET_OK)
            << message;
      } else {
        EXPECT_EQ(member.download<int32_t>(receive(client.get(), {8}, {1, 0, 1})).size(), 8u) << member.failure.message;
      }
    });
    processes_.clear();
  }
}

// The caller releases what is sent, and closes the client: close waits for it.
TEST_F(Transfers, CloseWaitsForWhatIsSent) {
  run_in(2, [](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 20'000);
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_EQ(member.download<int32_t>(receive(client.get(), {8}, {0, 0, 1})).size(), 8u) << member.failure.message;
      return;
    }
    BufferPtr buffer = std::move(member.arguments(client.get(), 1, 0)[0]);
    std::atomic<int> called{0};
    const EventPtr sent = send(member, client.get(), buffer, {0, 0, 1});
    collet_event_on_ready(
        sent.get(),
        [](void* user, collet_status status, const char*) { *static_cast<std::atomic<int>*>(user) = 1 + status; },
        &called);
    buffer.reset();
    const_cast<EventPtr&>(sent).reset();
    client.reset();
    EXPECT_EQ(called, 1) << "close has returned before the array was sent";
  });
}

TEST_F(Transfers, ProcessThatReceivesNothingIsNamedAfterTheLimit) {
  start(2, [&](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 500);
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) raise(SIGSTOP);
    std::string message;
    EXPECT_EQ(wait(send(member, client.get(), member.arguments(client.get(), 1, 0)[0], {0, 0, 1}), message),
              COLLET_DEADLINE_EXCEEDED);
    EXPECT_THAT(message, HasSubstr("process 1"));
  });
  expect_good(0);
}

TEST_F(Transfers, DevicesAreChecked) {
  run_in(2, [&](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const BufferPtr buffer = std::move(member.arguments(client.get(), 1, 0)[0]);
    collet_buffer* const handle = buffer.get();
    collet_event* event = nullptr;
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    collet_buffer* out = nullptr;
    const uint32_t other = 1 - member.rank;
    for (const collet_transfer& wrong : {collet_transfer{0, member.rank, member.rank}, collet_transfer{0, other, other},
                                         collet_transfer{0, 2, 0}, collet_transfer{0, 0, 7}}) {
      collet_error error{};
      EXPECT_EQ(collet_buffers_send(client.get(), 1, &handle, &wrong, &event, &error), COLLET_INVALID_ARGUMENT);
      EXPECT_THAT(error.message, HasSubstr("device"));
      EXPECT_EQ(collet_buffers_receive(client.get(), COLLET_NONE, 1, &type, &wrong, &out, &error),
                COLLET_INVALID_ARGUMENT);
    }
    Session alone;
    const ClientPtr none = alone.open("interpreter", "none", nullptr, 1);
    const collet_transfer transfer = {0, 0, 1};
    EXPECT_EQ(collet_buffers_receive(none.get(), COLLET_NONE, 1, &type, &transfer, &out, nullptr),
              COLLET_FAILED_PRECONDITION);
  });
}

}  // namespace
}  // namespace collet::testing
