// SPDX-License-Identifier: Apache-2.0
// Tests the emulator's NCCL between processes: results, calls that do not fit together, and that a process which is gone
// makes no other one wait for ever.
#include <chrono>
#include <numeric>
#include <thread>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/emulator/tests/processes.h"
#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

constexpr size_t kCount = 6;
constexpr size_t kMostElements = 6 * kCount;

/// A process with some members of a communicator: those of process 0 come first.
class Process {
 public:
  Process(uint32_t number, uint32_t count, int device_count, Meeting& where)
      : rank(number), size(count), devices(device_count), meeting(where) {
    const char* const folder = std::getenv("COLLET_BACKEND_PATH");
    nccl = open_libraries((folder ? std::string(folder) : ".") + "/libcollet_cuda_emulator.so");
    EXPECT_TRUE(nccl.has_processes());
    for (int i = 0; i < devices; ++i) {
      contexts.emplace_back(), streams.emplace_back(), from.emplace_back(), to.emplace_back();
      EXPECT_EQ(d.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
      use(i);
      EXPECT_EQ(d.cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
      EXPECT_EQ(d.cuMemAlloc_v2(&from[i], kMostElements * sizeof(float)), CUDA_SUCCESS);
      EXPECT_EQ(d.cuMemAlloc_v2(&to[i], kMostElements * sizeof(float)), CUDA_SUCCESS);
      Floats values(kMostElements);
      std::iota(values.begin(), values.end(), 100.0F * static_cast<float>(member(i)));
      EXPECT_EQ(d.cuMemcpyHtoD_v2(from[i], values.data(), values.size() * sizeof(float)), CUDA_SUCCESS);
    }
  }
  /// Makes the id in process 0, and hands it to all.
  ncclUniqueId shared_id() {
    ncclUniqueId mine{}, all[Meeting::kMost];
    if (rank == 0) {
      EXPECT_EQ(nccl.ncclGetUniqueId(&mine), ncclSuccess);
    }
    EXPECT_TRUE(meeting.exchange(rank, size, &mine, sizeof mine, all));
    return all[0];
  }
  /// Joins a communicator; its functions wait.
  void join() {
    const ncclUniqueId id = shared_id();
    comms.resize(static_cast<size_t>(devices));
    EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < devices; ++i) {
      use(i);
      EXPECT_EQ(nccl.ncclCommInitRank(&comms[i], members(), id, member(i)), ncclSuccess);
    }
    EXPECT_EQ(nccl.ncclGroupEnd(), ncclSuccess);
  }
  /// Starts to join a communicator whose functions do not wait.
  ncclResult_t start_to_join(const ncclUniqueId& id) {
    ncclConfig_t config{sizeof config, kNcclConfigMagic, kNcclConfigVersion, 0};
    comms.resize(static_cast<size_t>(devices));
    EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < devices; ++i) {
      use(i);
      EXPECT_EQ(nccl.ncclCommInitRankConfig(&comms[i], members(), id, member(i), &config), ncclSuccess);
    }
    return nccl.ncclGroupEnd();
  }
  void leave() {
    for (ncclComm_t comm : comms) EXPECT_EQ(nccl.ncclCommDestroy(comm), ncclSuccess);
    comms.clear();
  }
  void abort() {
    for (ncclComm_t comm : comms) EXPECT_EQ(nccl.ncclCommAbort(comm), ncclSuccess);
    comms.clear();
  }

  int members() const { return static_cast<int>(size) * devices; }
  int member(int i) const { return static_cast<int>(rank) * devices + i; }
  void use(int i) { EXPECT_EQ(d.cuCtxSetCurrent(contexts[i]), CUDA_SUCCESS); }
  static const void* source(CUdeviceptr p) { return reinterpret_cast<const void*>(p); }
  static void* target(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

  /// Makes calls for the members of this process in one group.
  template <class F>
  ncclResult_t group(const F& call) {
    EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < devices; ++i) EXPECT_EQ(call(i), ncclSuccess);
    return nccl.ncclGroupEnd();
  }
  ncclResult_t all_reduce(size_t count = kCount, ncclRedOp_t combine = ncclSum) {
    return group([&](int i) {
      return nccl.ncclAllReduce(source(from[i]), target(to[i]), count, ncclFloat32, combine, comms[i], streams[i]);
    });
  }
  Floats result(int i, size_t count = kCount) {
    use(i);
    EXPECT_EQ(d.cuStreamSynchronize(streams[i]), CUDA_SUCCESS) << d.colletCudaEmulatorLastError();
    Floats out(count);
    EXPECT_EQ(d.cuMemcpyDtoH_v2(out.data(), to[i], count * sizeof(float)), CUDA_SUCCESS);
    return out;
  }
  bool is_waiting(int i) {
    use(i);
    return d.cuStreamQuery(streams[i]) == CUDA_ERROR_NOT_READY;
  }
  ncclResult_t state(int i) {
    ncclResult_t out = ncclInternalError;
    EXPECT_EQ(nccl.ncclCommGetAsyncError(comms[i], &out), ncclSuccess);
    return out;
  }
  /// Waits until the state of a communicator is neither of these, and returns it.
  ncclResult_t state_after(int i, ncclResult_t one, ncclResult_t other) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    ncclResult_t out = state(i);
    while ((out == one || out == other) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      out = state(i);
    }
    return out;
  }
  ncclResult_t error_of(int i) { return state_after(i, ncclSuccess, ncclInProgress); }
  ncclResult_t done(int i) { return state_after(i, ncclInProgress, ncclInProgress); }

  const uint32_t rank, size;
  const int devices;
  Meeting& meeting;
  const Driver& d = open_emulator("quiet=1,memory=64,timeout=20,threads=1,devices=2");
  Libraries nccl;
  std::vector<CUcontext> contexts;
  std::vector<CUstream> streams;
  std::vector<CUdeviceptr> from, to;
  std::vector<ncclComm_t> comms;
};

class NcclProcessesTest : public ProcessesTest {
 protected:
  void run_members(uint32_t size, int devices, const std::function<void(Process&)>& body) {
    run_in(size, [&](uint32_t rank) {
      Process process(rank, size, devices, meetings[0]);
      body(process);
    });
  }
};

/// Checks all collectives between members of processes.
void expect_collectives(Process& p) {
  p.join();
  const auto members = static_cast<size_t>(p.members());
  const auto base = [](size_t member) { return 100.0F * static_cast<float>(member); };
  ASSERT_EQ(p.all_reduce(), ncclSuccess);
  for (int i = 0; i < p.devices; ++i) {
    const Floats out = p.result(i);
    for (size_t k = 0; k < kCount; ++k)
      EXPECT_EQ(out[k], base(members * (members - 1) / 2) + static_cast<float>(k * members)) << i << " " << k;
  }
  ASSERT_EQ(p.group([&](int i) {
    return p.nccl.ncclReduceScatter(p.source(p.from[i]), p.target(p.to[i]), 2, ncclFloat32, ncclMax, p.comms[i],
                                    p.streams[i]);
  }),
            ncclSuccess);
  for (int i = 0; i < p.devices; ++i) {
    const float first = base(members - 1) + 2 * static_cast<float>(p.member(i));
    EXPECT_THAT(p.result(i, 2), ElementsAre(first, first + 1));
  }
  ASSERT_EQ(p.group([&](int i) {
    return p.nccl.ncclAllGather(p.source(p.from[i]), p.target(p.to[i]), 2, ncclFloat32, p.comms[i], p.streams[i]);
  }),
            ncclSuccess);
  for (int i = 0; i < p.devices; ++i) {
    const Floats out = p.result(i, 2 * members);
    for (size_t m = 0; m < members; ++m) EXPECT_EQ(out[2 * m + 1], base(m) + 1);
  }
  const int root = p.members() - 1;
  ASSERT_EQ(p.group([&](int i) {
    return p.nccl.ncclBroadcast(p.source(p.from[i]), p.target(p.to[i]), 2, ncclFloat32, root, p.comms[i], p.streams[i]);
  }),
            ncclSuccess);
  for (int i = 0; i < p.devices; ++i) EXPECT_EQ(p.result(i, 2)[1], base(members - 1) + 1);
  // Each member sends to the next one, and some more to the one before.
  const auto next = [&](int i, int by) { return (p.member(i) + p.members() + by) % p.members(); };
  ASSERT_EQ(p.group([&](int i) {
    const CUdeviceptr more = p.from[i] + 8, behind = p.to[i] + 8;
    const auto& n = p.nccl;
    for (const ncclResult_t one :
         {n.ncclSend(p.source(p.from[i]), 2, ncclFloat32, next(i, 1), p.comms[i], p.streams[i]),
          n.ncclSend(p.source(more), 12, ncclUint8, next(i, -1), p.comms[i], p.streams[i]),
          n.ncclRecv(p.target(p.to[i]), 2, ncclFloat32, next(i, -1), p.comms[i], p.streams[i]),
          n.ncclRecv(p.target(behind), 12, ncclUint8, next(i, 1), p.comms[i], p.streams[i])})
      if (one != ncclSuccess) return one;
    return ncclSuccess;
  }),
            ncclSuccess);
  for (int i = 0; i < p.devices; ++i) {
    const float before = base(static_cast<size_t>(next(i, -1))), after = base(static_cast<size_t>(next(i, 1)));
    EXPECT_THAT(p.result(i, 5), ElementsAre(before, before + 1, after + 2, after + 3, after + 4));
  }
  p.leave();
}

TEST_F(NcclProcessesTest, Collectives_TwoProcesses) {
  run_members(2, 1, expect_collectives);
}

TEST_F(NcclProcessesTest, Collectives_TwoProcessesOfTwoDevices) {
  run_members(2, 2, expect_collectives);
}

TEST_F(NcclProcessesTest, Collectives_ThreeProcesses) {
  run_members(3, 1, expect_collectives);
}

TEST_F(NcclProcessesTest, LargeArraysInManyCalls) {
  run_members(2, 1, [](Process& p) {
    p.join();
    constexpr size_t kLarge = size_t{1} << 18;
    CUdeviceptr large = 0;
    p.use(0);
    ASSERT_EQ(p.d.cuMemAlloc_v2(&large, kLarge * sizeof(float)), CUDA_SUCCESS);
    Floats values(kLarge, 1.0F + static_cast<float>(p.rank));
    ASSERT_EQ(p.d.cuMemcpyHtoD_v2(large, values.data(), kLarge * sizeof(float)), CUDA_SUCCESS);
    // In place, without waiting between the calls: each works with the result of the one before.
    for (int turn = 0; turn < 8; ++turn)
      ASSERT_EQ(p.nccl.ncclAllReduce(p.source(large), p.target(large), kLarge, ncclFloat32, ncclSum, p.comms[0],
                                     p.streams[0]),
                ncclSuccess);
    ASSERT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
    ASSERT_EQ(p.d.cuMemcpyDtoH_v2(values.data(), large, kLarge * sizeof(float)), CUDA_SUCCESS);
    EXPECT_EQ(values, Floats(kLarge, 3.0F * 128));
    p.leave();
    EXPECT_EQ(p.d.cuMemFree_v2(large), CUDA_SUCCESS);
  });
}

// Two of three members send and receive; the third one has no part in it, and they do not wait for it.
TEST_F(NcclProcessesTest, MembersThatAreNotConcernedAreNotWaitedFor) {
  run_members(3, 1, [](Process& p) {
    p.join();
    if (p.rank == 0) {
      ASSERT_EQ(p.nccl.ncclSend(p.source(p.from[0]), 2, ncclFloat32, 1, p.comms[0], p.streams[0]), ncclSuccess);
      EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
    } else if (p.rank == 1) {
      ASSERT_EQ(p.nccl.ncclRecv(p.target(p.to[0]), 2, ncclFloat32, 0, p.comms[0], p.streams[0]), ncclSuccess);
      EXPECT_THAT(p.result(0, 2), ElementsAre(0, 1));
    }
    EXPECT_TRUE(p.meeting.wait(p.rank, p.size));
    ASSERT_EQ(p.all_reduce(), ncclSuccess);
    EXPECT_EQ(p.result(0)[1], 303);
    p.leave();
  });
}

TEST_F(NcclProcessesTest, StreamWaitsUntilTheOthersCome) {
  run_members(2, 1, [](Process& p) {
    p.join();
    if (p.rank == 0) {
      ASSERT_EQ(p.all_reduce(), ncclSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_TRUE(p.is_waiting(0));
    }
    EXPECT_TRUE(p.meeting.wait(p.rank, p.size));
    if (p.rank == 1) {
      ASSERT_EQ(p.all_reduce(), ncclSuccess);
    }
    EXPECT_EQ(p.result(0)[0], 100);
    p.leave();
  });
}

TEST_F(NcclProcessesTest, CallsThatDoNotFitTogether_FailAllMembers) {
  const auto expect = [&](const std::function<ncclResult_t(Process&)>& calls, const std::string& why) {
    run_members(2, 1, [&](Process& p) {
      p.join();
      ASSERT_EQ(calls(p), ncclSuccess);
      EXPECT_EQ(p.error_of(0), ncclInvalidUsage);
      EXPECT_TRUE(p.is_waiting(0)) << "as with NCCL, until it is aborted";
      std::string found;
      for (int i = 0; i < 200 && found.empty(); ++i) {
        found = p.nccl.ncclGetLastError(nullptr);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_THAT(found, HasSubstr(why));
      EXPECT_EQ(p.nccl.ncclAllReduce(p.source(p.from[0]), p.target(p.to[0]), 1, ncclFloat32, ncclSum, p.comms[0],
                                     p.streams[0]),
                ncclInvalidUsage)
          << "the error stays";
      p.abort();
      EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
    });
  };
  expect([](Process& p) { return p.all_reduce(p.rank == 0 ? 3 : 4); }, "different counts");
  expect([](Process& p) { return p.all_reduce(4, p.rank == 0 ? ncclSum : ncclMax); }, "different counts");
  expect(
      [](Process& p) {
        if (p.rank == 0) return p.all_reduce();
        return p.nccl.ncclAllGather(p.source(p.from[0]), p.target(p.to[0]), 2, ncclFloat32, p.comms[0], p.streams[0]);
      },
      "member 1 calls ncclAllGather, and member 0 ncclAllReduce");
  expect(
      [](Process& p) {
        return p.nccl.ncclSend(p.source(p.from[0]), 2, ncclFloat32, 1 - static_cast<int>(p.rank), p.comms[0],
                               p.streams[0]);
      },
      "1 sends and 0 receives from member 0 to member 1");
}

TEST_F(NcclProcessesTest, MembersThatDoNotFitTogether_AreRefused) {
  run_in(2, [&](uint32_t rank) {
    Process p(rank, 2, 1, meetings[0]);
    const auto join = [&](int members, int number) {
      const ncclUniqueId id = p.shared_id();
      ncclComm_t comm = nullptr;
      p.use(0);
      const ncclResult_t out = p.nccl.ncclCommInitRank(&comm, members, id, number);
      EXPECT_TRUE(meetings[1].wait(rank, 2));
      if (comm) {
        EXPECT_EQ(p.nccl.ncclCommAbort(comm), ncclSuccess);
      }
      return out;
    };
    EXPECT_EQ(join(2 + static_cast<int>(rank), static_cast<int>(rank)), ncclInvalidArgument) << "other counts";
    EXPECT_EQ(join(2, 1), ncclInvalidArgument) << "the same member";
    // Two members with one device.
    ncclUniqueId id{};
    ASSERT_EQ(p.nccl.ncclGetUniqueId(&id), ncclSuccess);
    ncclComm_t both[2] = {};
    ASSERT_EQ(p.nccl.ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(p.nccl.ncclCommInitRank(&both[i], 2, id, i), ncclSuccess);
    EXPECT_EQ(p.nccl.ncclGroupEnd(), ncclInvalidUsage);
    for (ncclComm_t one : both) EXPECT_EQ(p.nccl.ncclCommAbort(one), ncclSuccess);
    ncclComm_t none = nullptr;
    EXPECT_EQ(p.nccl.ncclCommInitRank(&none, 2, ncclUniqueId{}, 0), ncclInvalidArgument) << "no id";
    EXPECT_EQ(p.nccl.ncclCommInitRank(&none, 2, id, 2), ncclInvalidArgument) << "no such rank";
  });
}

TEST_F(NcclProcessesTest, FunctionsThatDoNotWait_SayWhenTheyHaveEnded) {
  run_members(2, 2, [](Process& p) {
    const ncclUniqueId id = p.shared_id();
    if (p.rank == 0) {
      EXPECT_EQ(p.start_to_join(id), ncclInProgress) << "the other process has not come";
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(p.state(0), ncclInProgress);
      EXPECT_EQ(p.nccl.ncclAllReduce(p.source(p.from[0]), p.target(p.to[0]), 1, ncclFloat32, ncclSum, p.comms[0],
                                     p.streams[0]),
                ncclInvalidArgument)
          << "it is not ready";
    }
    EXPECT_TRUE(p.meeting.wait(p.rank, p.size));
    if (p.rank == 1) p.start_to_join(id);
    for (int i = 0; i < p.devices; ++i) EXPECT_EQ(p.done(i), ncclSuccess);
    EXPECT_EQ(p.all_reduce(), ncclInProgress);
    for (int i = 0; i < p.devices; ++i) EXPECT_EQ(p.done(i), ncclSuccess);
    for (int i = 0; i < p.devices; ++i) EXPECT_EQ(p.result(i)[0], 600);
    for (ncclComm_t comm : p.comms) EXPECT_EQ(p.nccl.ncclCommFinalize(comm), ncclInProgress);
    for (int i = 0; i < p.devices; ++i) EXPECT_EQ(p.done(i), ncclSuccess) << p.nccl.ncclGetLastError(nullptr);
    EXPECT_EQ(
        p.nccl.ncclAllReduce(p.source(p.from[0]), p.target(p.to[0]), 1, ncclFloat32, ncclSum, p.comms[0], p.streams[0]),
        ncclInvalidUsage)
        << "after ncclCommFinalize";
    p.abort();
  });
}

// The process with the coordinator does not end before the other one, which stands still for a while, can get its result.
TEST_F(NcclProcessesTest, ProcessThatLeaves_WaitsUntilTheOthersHaveTheirResults) {
  std::atomic<uint32_t>& step = meetings[0].counts[0];
  const auto wait_for_step = [&](uint32_t which) {
    while (step.load() < which) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  start(2, [&](uint32_t rank) {
    Process p(rank, 2, 1, meetings[0]);
    p.join();
    CUdeviceptr large = 0;
    constexpr size_t kLarge = size_t{1} << 20;  // more than a socket holds
    ASSERT_EQ(p.d.cuMemAlloc_v2(&large, kLarge), CUDA_SUCCESS);
    const std::vector<char> ones(kLarge, 1);
    ASSERT_EQ(p.d.cuMemcpyHtoD_v2(large, ones.data(), kLarge), CUDA_SUCCESS);
    if (rank == 0) wait_for_step(2);
    ASSERT_EQ(
        p.nccl.ncclAllReduce(p.source(large), p.target(large), kLarge, ncclInt8, ncclSum, p.comms[0], p.streams[0]),
        ncclSuccess);
    if (rank == 1) step = 1;
    ASSERT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
    if (rank == 0) step = 3;
    if (rank == 1) {
      std::vector<char> out(kLarge);
      ASSERT_EQ(p.d.cuMemcpyDtoH_v2(out.data(), large, kLarge), CUDA_SUCCESS);
      EXPECT_EQ(out, std::vector<char>(kLarge, 2));
    }
    p.leave();
  });
  wait_for_step(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the operands are sent
  signal_process(1, SIGSTOP);
  step = 2;
  wait_for_step(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(is_running(0));
  signal_process(1, SIGCONT);
  expect_good(0);
  expect_good(1);
}

TEST_F(NcclProcessesTest, CallsOnSeveralStreams_KeepTheirOrder) {
  run_members(2, 1, [](Process& p) {
    p.join();
    p.use(0);
    CUstream second = nullptr;
    ASSERT_EQ(p.d.cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    for (size_t turn = 1; turn <= 30; ++turn) {
      // Another count each time: calls in another order would not fit together.
      CUstream const stream = p.rank == 1 && turn % 3 == 0 ? second : p.streams[0];
      ASSERT_EQ(
          p.nccl.ncclAllReduce(p.source(p.from[0]), p.target(p.to[0]), turn, ncclFloat32, ncclSum, p.comms[0], stream),
          ncclSuccess);
    }
    EXPECT_EQ(p.d.cuStreamSynchronize(second), CUDA_SUCCESS);
    EXPECT_EQ(p.result(0, 30)[29], 158);
    EXPECT_EQ(p.state(0), ncclSuccess) << p.nccl.ncclGetLastError(nullptr);
    p.leave();
  });
}

TEST_F(NcclProcessesTest, ProcessThatIsKilled_FailsTheOthers) {
  for (const uint32_t victim : {0u, 2u}) {  // process 0 has made the id
    const uint32_t before = meetings[0].counts[0].load();
    const uint32_t first = static_cast<uint32_t>(3 * (victim == 0 ? 0 : 1));
    start(3, [&](uint32_t rank) {
      Process p(rank, 3, 1, meetings[victim == 0 ? 0 : 1]);
      p.join();
      ++meetings[0].counts[0];
      if (rank == victim) {
        pause();
      } else {
        ASSERT_EQ(p.all_reduce(), ncclSuccess);
        EXPECT_EQ(p.error_of(0), ncclRemoteError);
        EXPECT_TRUE(p.is_waiting(0)) << "until it is aborted";
        p.abort();
        EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
      }
    });
    while (meetings[0].counts[0].load() < before + 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    signal_process(first + victim, SIGKILL);
    expect_killed(first + victim);
    for (uint32_t rank = 0; rank < 3; ++rank)
      if (rank != victim) expect_good(first + rank);
  }
}

// A process that never comes does not keep the others from giving up; nor does one that is gone before they come.
TEST_F(NcclProcessesTest, MembersThatDoNotCome_AreGivenUp) {
  run_in(2, [&](uint32_t rank) {
    Process p(rank, 2, 1, meetings[0]);
    const ncclUniqueId id = p.shared_id();
    if (rank == 1) return;
    EXPECT_EQ(p.start_to_join(id), ncclInProgress);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(p.state(0), ncclInProgress);
    p.abort();
  });
  start(2, [&](uint32_t rank) {
    Process p(rank, 2, 1, meetings[1]);
    const ncclUniqueId id = p.shared_id();
    if (rank == 0) return;
    while (!meetings[1].someone_is_lost.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ncclComm_t comm = nullptr;
    p.use(0);
    EXPECT_EQ(p.nccl.ncclCommInitRank(&comm, 2, id, 1), ncclRemoteError);
  });
  expect_good(2);
  meetings[1].someone_is_lost = true;
  expect_good(3);
}

TEST_F(NcclProcessesTest, Abort_EndsTheWaitAndFailsTheOthers) {
  run_members(2, 1, [](Process& p) {
    p.join();
    const Floats before = p.result(0);
    if (p.rank == 0) {
      ASSERT_EQ(p.all_reduce(), ncclSuccess);
      EXPECT_TRUE(p.is_waiting(0));
      p.abort();
      EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
      EXPECT_EQ(p.result(0), before) << "nothing was written";
    }
    EXPECT_TRUE(p.meeting.wait(p.rank, p.size));
    if (p.rank == 1) {
      EXPECT_EQ(p.state(0), ncclSuccess) << "it waits for nothing";
      ASSERT_EQ(p.all_reduce(), ncclSuccess);
      EXPECT_EQ(p.error_of(0), ncclRemoteError);
      p.abort();
    }
  });
}

TEST_F(NcclProcessesTest, DeviceThatFails_LetsOthersWaitUntilTheyAreAborted) {
  run_members(2, 1, [](Process& p) {
    p.join();
    if (p.rank == 1) {
      ASSERT_EQ(p.nccl.ncclAllReduce(p.source(p.from[0]), reinterpret_cast<void*>(4096), 1, ncclFloat32, ncclSum,
                                     p.comms[0], p.streams[0]),
                ncclSuccess);
      EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
      EXPECT_THAT(p.d.colletCudaEmulatorLastError(), HasSubstr("ncclAllReduce writes"));
    } else {
      ASSERT_EQ(p.all_reduce(1), ncclSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_TRUE(p.is_waiting(0));
    }
    EXPECT_TRUE(p.meeting.wait(p.rank, p.size));
    p.abort();
    if (p.rank == 0) {
      EXPECT_EQ(p.d.cuStreamSynchronize(p.streams[0]), CUDA_SUCCESS);
    }
  });
}

}  // namespace
}  // namespace collet::gpu::testing_only
