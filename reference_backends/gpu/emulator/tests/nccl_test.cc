// SPDX-License-Identifier: Apache-2.0
// Tests the emulator's NCCL: results, and that calls which do not fit together or a device that fails never make others
// wait for ever.
#include <chrono>
#include <future>
#include <numeric>
#include <thread>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kMembers = 3;
constexpr size_t kCount = 6;
using Floats = std::vector<float>;

class NcclTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("COLLET_BACKEND_PATH");
    nccl = open_libraries((folder ? std::string(folder) : ".") + "/libcollet_cuda_emulator.so");
    ASSERT_TRUE(nccl.has_collectives());
    for (int i = 0; i < kMembers; ++i) {
      ASSERT_EQ(d.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
      use(i);
      ASSERT_EQ(d.cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
      ASSERT_EQ(d.cuMemAlloc_v2(&from[i], kMembers * kCount * sizeof(float)), CUDA_SUCCESS);
      ASSERT_EQ(d.cuMemAlloc_v2(&to[i], kMembers * kCount * sizeof(float)), CUDA_SUCCESS);
      Floats values(kMembers * kCount);
      std::iota(values.begin(), values.end(), 100.0F * static_cast<float>(i));
      ASSERT_EQ(d.cuMemcpyHtoD_v2(from[i], values.data(), values.size() * sizeof(float)), CUDA_SUCCESS);
    }
    ASSERT_EQ(nccl.ncclCommInitAll(members, kMembers, nullptr), ncclSuccess);
  }
  void TearDown() override {
    for (int i = 0; i < kMembers; ++i) d.cuDevicePrimaryCtxRelease_v2(i);
  }
  void use(int i) { ASSERT_EQ(d.cuCtxSetCurrent(contexts[i]), CUDA_SUCCESS); }
  static const void* source(CUdeviceptr p) { return reinterpret_cast<const void*>(p); }
  static void* target(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

  /// Makes calls for all members in one group.
  template <class F>
  ncclResult_t group(const F& call) {
    EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < kMembers; ++i) EXPECT_EQ(call(i), ncclSuccess);
    return nccl.ncclGroupEnd();
  }
  Floats result(int i, size_t count = kCount) {
    use(i);
    EXPECT_EQ(d.cuStreamSynchronize(streams[i]), CUDA_SUCCESS);
    Floats out(count);
    EXPECT_EQ(d.cuMemcpyDtoH_v2(out.data(), to[i], count * sizeof(float)), CUDA_SUCCESS);
    return out;
  }

  const Driver& d = open_emulator("quiet=1,memory=512,timeout=20,threads=2,devices=3");
  Libraries nccl;
  CUcontext contexts[kMembers] = {};
  CUstream streams[kMembers] = {};
  CUdeviceptr from[kMembers] = {}, to[kMembers] = {};
  ncclComm_t members[kMembers] = {};
};

TEST_F(NcclTest, Collectives) {
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclAllReduce(source(from[i]), target(to[i]), kCount, ncclFloat32, ncclSum, members[i],
                                        streams[i]);
            }),
            ncclSuccess);
  for (int i = 0; i < kMembers; ++i) EXPECT_THAT(result(i), ElementsAre(300, 303, 306, 309, 312, 315));
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclReduceScatter(source(from[i]), target(to[i]), 2, ncclFloat32, ncclMax, members[i],
                                            streams[i]);
            }),
            ncclSuccess);
  EXPECT_THAT(result(0, 2), ElementsAre(200, 201));
  EXPECT_THAT(result(2, 2), ElementsAre(204, 205));
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclAllGather(source(from[i]), target(to[i]), 2, ncclFloat32, members[i], streams[i]);
            }),
            ncclSuccess);
  for (int i = 0; i < kMembers; ++i) EXPECT_THAT(result(i), ElementsAre(0, 1, 100, 101, 200, 201));
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclBroadcast(source(from[i]), target(to[i]), 2, ncclFloat32, 1, members[i], streams[i]);
            }),
            ncclSuccess);
  for (int i = 0; i < kMembers; ++i) EXPECT_THAT(result(i, 2), ElementsAre(100, 101));
}

TEST_F(NcclTest, SendsAndReceives) {
  // Member i sends to member i + 1.
  ASSERT_EQ(group([&](int i) {
              const ncclResult_t sent =
                  nccl.ncclSend(source(from[i]), 2, ncclFloat32, (i + 1) % kMembers, members[i], streams[i]);
              if (sent != ncclSuccess) return sent;
              return nccl.ncclRecv(target(to[i]), 2, ncclFloat32, (i + 2) % kMembers, members[i], streams[i]);
            }),
            ncclSuccess);
  for (int i = 0; i < kMembers; ++i) {
    const auto first = 100.0F * static_cast<float>((i + 2) % kMembers);
    EXPECT_THAT(result(i, 2), ElementsAre(first, first + 1));
  }
}

TEST_F(NcclTest, CallsThatDoNotFitTogether_AreRefused) {
  const auto reduce = [&](int i, size_t count, ncclDataType_t type) {
    return nccl.ncclAllReduce(source(from[i]), target(to[i]), count, type, ncclSum, members[i], streams[i]);
  };
  EXPECT_EQ(group([&](int i) { return reduce(i, i == 1 ? 3 : 4, ncclFloat32); }), ncclInvalidUsage);
  EXPECT_EQ(group([&](int i) { return reduce(i, 4, i == 1 ? ncclInt32 : ncclFloat32); }), ncclInvalidUsage);
  EXPECT_EQ(group([&](int i) { return i == 2 ? ncclSuccess : reduce(i, 4, ncclFloat32); }), ncclInvalidUsage);
  EXPECT_EQ(reduce(0, 4, ncclFloat32), ncclInvalidUsage) << "one member alone would wait for ever";
  EXPECT_EQ(group([&](int i) {
              return i == 0 ? nccl.ncclSend(source(from[i]), 2, ncclFloat32, 1, members[i], streams[i]) : ncclSuccess;
            }),
            ncclInvalidUsage)
      << "nobody receives it";
  EXPECT_EQ(nccl.ncclAllReduce(source(from[0]), target(to[0]), 4, ncclFloat32, ncclSum, nullptr, streams[0]),
            ncclInvalidArgument);
  // Nothing was started.
  for (int i = 0; i < kMembers; ++i) {
    use(i);
    EXPECT_EQ(d.cuStreamSynchronize(streams[i]), CUDA_SUCCESS);
  }
}

TEST_F(NcclTest, MemoryOfAnotherDevice_FailsTheMember) {
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclAllReduce(source(from[i]), target(to[i == 1 ? 2 : i]), kCount, ncclFloat32, ncclSum,
                                        members[i], streams[i]);
            }),
            ncclSuccess);
  for (int i = 0; i < kMembers; ++i) {
    use(i);
    EXPECT_EQ(d.cuStreamSynchronize(streams[i]), i == 1 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS) << i;
  }
  EXPECT_THAT(d.colletCudaEmulatorLastError(), HasSubstr("memory of another device"));
}

TEST_F(NcclTest, DeviceThatHasFailed_LetsOthersWaitUntilTheyAreAborted) {
  use(1);
  ASSERT_EQ(d.cuMemFree_v2(from[1]), CUDA_SUCCESS);
  // The device must not fail before the group has started.
  std::promise<void> started;
  const CUhostFn wait = [](void* promise) { static_cast<std::promise<void>*>(promise)->get_future().wait(); };
  ASSERT_EQ(d.cuLaunchHostFunc(streams[1], wait, &started), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemcpyDtoDAsync_v2(to[1], from[1], 4, streams[1]), CUDA_SUCCESS);  // use after free
  ASSERT_EQ(group([&](int i) {
              return nccl.ncclAllReduce(source(to[i]), target(to[i]), kCount, ncclFloat32, ncclSum, members[i],
                                        streams[i]);
            }),
            ncclSuccess);
  started.set_value();
  EXPECT_NE(d.cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
  auto other = std::async(std::launch::async, [&] {
    d.cuCtxSetCurrent(contexts[0]);
    return d.cuStreamSynchronize(streams[0]);
  });
  EXPECT_EQ(other.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  for (ncclComm_t member : members) EXPECT_EQ(nccl.ncclCommAbort(member), ncclSuccess);
  EXPECT_EQ(other.get(), CUDA_SUCCESS);
  use(2);
  EXPECT_EQ(d.cuStreamSynchronize(streams[2]), CUDA_SUCCESS);
}

}  // namespace
}  // namespace collet::gpu::testing_only
