// SPDX-License-Identifier: Apache-2.0
// Tests streams, events, graphs, host functions and memory pools.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "reference_backends/gpu/emulator/tests/gpu.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::HasSubstr;

/// A kernel of one thread: *p = *p * a + b.
const std::string kStep = ptx_header() + R"(
.visible .entry step(.param .u64 to, .param .u32 factor, .param .u32 term) {
	.reg .b32 v, a, b;
	.reg .b64 p;
	ld.param.u64 p, [to];
	ld.param.u32 a, [factor];
	ld.param.u32 b, [term];
	ld.global.u32 v, [p];
	mad.lo.u32 v, v, a, b;
	st.global.u32 [p], v;
	ret;
}
)";

class StreamTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    step = load(kStep, "step");
    ASSERT_NE(step, nullptr) << log;
  }
  CUstream stream() {
    CUstream s = nullptr;
    EXPECT_EQ(d.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    return s;
  }
  CUevent event() {
    CUevent e = nullptr;
    EXPECT_EQ(d.cuEventCreate(&e, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    return e;
  }
  CUresult launch(CUstream s, CUdeviceptr p, uint32_t a, uint32_t b) {
    void* parameters[] = {&p, &a, &b};
    return d.cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr);
  }
  /// Keeps a stream busy until it is opened.
  struct Gate {
    std::atomic<bool> open{false};
    static void wait(void* data) {
      while (!static_cast<Gate*>(data)->open) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  };
  uint32_t value(CUdeviceptr p) { return download<uint32_t>(p, 1)[0]; }
  CUfunction step = nullptr;
};

TEST_F(StreamTest, AStreamKeepsItsOrder) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  CUstream s = stream();
  uint32_t want = 1;
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_EQ(launch(s, p, 3, i), CUDA_SUCCESS);
    want = want * 3 + i;
  }
  ASSERT_EQ(d.cuStreamSynchronize(s), CUDA_SUCCESS) << finding();
  EXPECT_EQ(value(p), want);
}

TEST_F(StreamTest, CallsReturnBeforeTheWorkIsDone) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  CUstream s = stream();
  CUevent e = event();
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(launch(s, p, 2, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(e, s), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(d.cuEventQuery(e), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(value(p), 1u) << "the null stream does not wait for a stream that does not block";
  gate.open = true;
  EXPECT_EQ(d.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(d.cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 2u);
}

TEST_F(StreamTest, EventsOrderStreams) {
  for (int round = 0; round < 20; ++round) {
    const CUdeviceptr p = upload(std::vector<uint32_t>{5});
    CUstream a = stream(), b = stream();
    CUevent e = event();
    Gate gate;
    ASSERT_EQ(d.cuLaunchHostFunc(a, &Gate::wait, &gate), CUDA_SUCCESS);
    ASSERT_EQ(launch(a, p, 1, 1), CUDA_SUCCESS);
    ASSERT_EQ(d.cuEventRecord(e, a), CUDA_SUCCESS);
    ASSERT_EQ(d.cuStreamWaitEvent(b, e, 0), CUDA_SUCCESS);
    ASSERT_EQ(launch(b, p, 10, 0), CUDA_SUCCESS);
    EXPECT_EQ(d.cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    gate.open = true;
    ASSERT_EQ(d.cuStreamSynchronize(b), CUDA_SUCCESS);
    EXPECT_EQ(value(p), 60u);
  }
}

TEST_F(StreamTest, AStreamIsIdleWhenWhatItWaitsForHasEnded) {
  CUstream a = stream(), b = stream();
  CUevent e = event();
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(a, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(e, a), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamWaitEvent(b, e, 0), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  gate.open = true;
  ASSERT_EQ(d.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamQuery(b), CUDA_SUCCESS);
}

// Without an event, the order depends on the seed, and both orders must occur.
TEST_F(StreamTest, StreamsWithoutOrderRunInAnyOrder) {
  bool first = false, second = false;
  for (int round = 0; round < 100 && !(first && second); ++round) {
    const CUdeviceptr p = upload(std::vector<uint32_t>{1});
    CUstream gate_stream = stream(), a = stream(), b = stream();
    CUevent e = event();
    Gate gate;
    ASSERT_EQ(d.cuLaunchHostFunc(gate_stream, &Gate::wait, &gate), CUDA_SUCCESS);
    ASSERT_EQ(d.cuEventRecord(e, gate_stream), CUDA_SUCCESS);
    ASSERT_EQ(d.cuStreamWaitEvent(a, e, 0), CUDA_SUCCESS);
    ASSERT_EQ(d.cuStreamWaitEvent(b, e, 0), CUDA_SUCCESS);
    ASSERT_EQ(launch(a, p, 1, 1), CUDA_SUCCESS);
    ASSERT_EQ(launch(b, p, 10, 0), CUDA_SUCCESS);
    gate.open = true;
    ASSERT_EQ(d.cuCtxSynchronize(), CUDA_SUCCESS);
    (value(p) == 20 ? first : second) = true;
    EXPECT_EQ(d.cuMemFree_v2(p), CUDA_SUCCESS);
  }
  EXPECT_TRUE(first && second);
}

TEST_F(StreamTest, TheNullStreamWaitsForBlockingStreams) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  CUstream s = nullptr;
  ASSERT_EQ(d.cuStreamCreateWithPriority(&s, CU_STREAM_DEFAULT, 0), CUDA_SUCCESS);
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(launch(s, p, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(launch(nullptr, p, 10, 0), CUDA_SUCCESS);
  ASSERT_EQ(launch(s, p, 1, 3), CUDA_SUCCESS);
  gate.open = true;
  ASSERT_EQ(d.cuStreamSynchronize(s), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 23u);
}

TEST_F(StreamTest, GraphsRunWhatWasCaptured) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1, 100});
  CUstream a = stream(), b = stream();
  CUevent fork = event(), join = event();
  ASSERT_EQ(d.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  ASSERT_EQ(launch(a, p, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(fork, a), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamWaitEvent(b, fork, 0), CUDA_SUCCESS);
  ASSERT_EQ(launch(b, p + 4, 1, 7), CUDA_SUCCESS);
  ASSERT_EQ(launch(a, p, 2, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(join, b), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamWaitEvent(a, join, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemcpyDtoDAsync_v2(p, p + 4, 4, b), CUDA_SUCCESS) << "captured too, and joined below";
  EXPECT_EQ(d.cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
  ASSERT_EQ(d.cuEventRecord(join, b), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamWaitEvent(a, join, 0), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(d.cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 1u) << "nothing ran";
  CUgraphExec executable = nullptr;
  ASSERT_EQ(d.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.cuGraphDestroy(graph), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(d.cuGraphLaunch(executable, a), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamSynchronize(a), CUDA_SUCCESS) << finding();
  EXPECT_EQ(value(p + 4), 121u);
  EXPECT_EQ(d.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(d.cuGraphLaunch(executable, a), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, GraphsAreMadeAndChangedNodeByNode) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1, 100, 0});
  CUstream a = stream();
  const auto node = [&](CUdeviceptr at, uint32_t factor, uint32_t term, const std::function<CUresult(void*)>& use) {
    void* parameters[] = {&at, &factor, &term};
    CUDA_KERNEL_NODE_PARAMS_v2 what;
    what.func = step;
    what.kernelParams = parameters;
    return use(&what);
  };
  const auto kernel = [](void* what) { return static_cast<const CUDA_KERNEL_NODE_PARAMS_v2*>(what); };
  const auto copy = [](CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D_v2 what;
    what.srcMemoryType = what.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    what.srcDevice = from;
    what.dstDevice = to;
    what.WidthInBytes = 4;
    what.Height = what.Depth = 1;
    return what;
  };
  CUgraph graph = nullptr, other = nullptr;
  ASSERT_EQ(d.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(d.cuGraphCreate(&other, 0), CUDA_SUCCESS);
  CUgraphNode one = nullptr, two = nullptr, last = nullptr, wrong = nullptr;
  const auto add = [&](CUgraphNode* out, CUgraph to, const CUgraphNode* after) {
    return [&, out, to, after](void* w) { return d.cuGraphAddKernelNode_v2(out, to, after, after ? 1 : 0, kernel(w)); };
  };
  ASSERT_EQ(node(p, 2, 1, add(&one, graph, nullptr)), CUDA_SUCCESS);
  ASSERT_EQ(node(p, 10, 0, add(&two, graph, &one)), CUDA_SUCCESS);
  EXPECT_EQ(node(p, 1, 0, add(&wrong, other, &one)), CUDA_ERROR_INVALID_VALUE) << "a node of another graph";
  CUDA_MEMCPY3D_v2 out = copy(p + 8, p);
  ASSERT_EQ(d.cuGraphAddMemcpyNode(&last, graph, &two, 1, &out, nullptr), CUDA_SUCCESS);
  CUDA_MEMCPY3D_v2 to_host = out;
  to_host.dstMemoryType = CU_MEMORYTYPE_HOST;
  EXPECT_EQ(d.cuGraphAddMemcpyNode(&wrong, graph, nullptr, 0, &to_host, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(d.cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(a, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(d.cuGraphLaunch(executable, a), CUDA_SUCCESS);
  const auto set = [&](void* w) { return d.cuGraphExecKernelNodeSetParams_v2(executable, one, kernel(w)); };
  ASSERT_EQ(node(p, 1, 5, set), CUDA_SUCCESS) << "of later launches alone";
  out = copy(p + 4, p);
  ASSERT_EQ(d.cuGraphExecMemcpyNodeSetParams(executable, last, &out, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(d.cuGraphExecMemcpyNodeSetParams(executable, one, &out, nullptr), CUDA_ERROR_INVALID_VALUE)
      << "a node of another kind";
  ASSERT_EQ(d.cuGraphLaunch(executable, a), CUDA_SUCCESS);
  gate.open = true;
  ASSERT_EQ(d.cuStreamSynchronize(a), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<uint32_t>(p, 3), (std::vector<uint32_t>{350, 350, 30}));
  ASSERT_EQ(d.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(d.cuGraphExecMemcpyNodeSetParams(executable, last, &out, nullptr), CUDA_ERROR_INVALID_VALUE)
      << "its graph has gone";
  EXPECT_EQ(d.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(d.cuGraphDestroy(other), CUDA_SUCCESS);
}

TEST_F(StreamTest, CapturesAreChecked) {
  CUstream a = stream(), b = stream();
  CUevent e = event();
  CUgraph graph = nullptr;
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  ASSERT_EQ(d.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(d.cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(d.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(e, a), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamWaitEvent(b, e, 0), CUDA_SUCCESS);
  ASSERT_EQ(launch(b, p, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(d.cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(launch(a, p, 1, 1), CUDA_SUCCESS) << "the stream runs again";
  EXPECT_EQ(d.cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 2u);
}

TEST_F(StreamTest, PinnedCopiesAreAsynchronous) {
  void* host = nullptr;
  ASSERT_EQ(d.cuMemHostAlloc(&host, 64, 0), CUDA_SUCCESS);
  auto* const words = static_cast<volatile uint32_t*>(host);
  words[0] = 1;
  const CUdeviceptr p = allocated(64);
  CUstream s = stream();
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemcpyHtoDAsync_v2(p, host, 64, s), CUDA_SUCCESS);
  words[0] = 2;  // changes the source before the copy has run, which must read the new value
  gate.open = true;
  ASSERT_EQ(d.cuStreamSynchronize(s), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 2u);
  EXPECT_EQ(d.cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(d.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamTest, MemoryOfOneStreamIsNotReadyOnAnother) {
  CUstream a = stream(), b = stream();
  Gate gate;
  CUdeviceptr p = 0;
  ASSERT_EQ(d.cuLaunchHostFunc(a, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemAllocAsync(&p, 16, a), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemsetD32Async(p, 1, 4, b), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamSynchronize(b), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(finding(), HasSubstr("before it is allocated on its stream"));
  gate.open = true;
}

TEST_F(StreamTest, MemoryIsFreedOnceOnly) {
  CUstream s = stream();
  CUevent e = event();
  Gate first, second;
  CUdeviceptr p = 0;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &first), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemAllocAsync(&p, 4096, s), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventRecord(e, s), CUDA_SUCCESS);
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &second), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemFreeAsync(p, s), CUDA_SUCCESS) << "before the allocation has run";
  EXPECT_EQ(d.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
  first.open = true;
  ASSERT_EQ(d.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(d.cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE) << "when it has run";
  EXPECT_THAT(finding(), HasSubstr("is freed twice"));
  second.open = true;
  EXPECT_EQ(d.cuStreamSynchronize(s), CUDA_SUCCESS);
}

TEST_F(StreamTest, TheLastReleaseWaitsForWhoRetainsMeanwhile) {
  CUstream s = stream();
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &gate), CUDA_SUCCESS);
  std::thread release([&] { EXPECT_EQ(d.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for it to wait for the stream
  CUcontext context = nullptr;
  ASSERT_EQ(d.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  const CUdeviceptr p = allocated(4);
  gate.open = true;
  release.join();
  EXPECT_EQ(d.cuMemsetD32Async(p, 7, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(value(p), 7u);
  EXPECT_EQ(launch(nullptr, p, 2, 0), CUDA_SUCCESS) << "its module is there";
  EXPECT_EQ(value(p), 14u);
}

TEST_F(StreamTest, AFailureStopsWhatFollows) {
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  CUstream s = stream();
  std::atomic<int> called{0};
  Gate gate;
  ASSERT_EQ(d.cuLaunchHostFunc(s, &Gate::wait, &gate), CUDA_SUCCESS);
  ASSERT_EQ(launch(s, p + 2, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(d.cuLaunchHostFunc(s, [](void* c) { ++*static_cast<std::atomic<int>*>(c); }, &called), CUDA_SUCCESS);
  gate.open = true;
  EXPECT_EQ(d.cuStreamSynchronize(s), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(launch(s, p, 1, 1), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(called, 0);
}

TEST_F(StreamTest, StreamsAndEventsEndWithTheirContext) {
  CUstream s = stream();
  CUevent e = event();
  const CUdeviceptr p = upload(std::vector<uint32_t>{1});
  ASSERT_EQ(launch(s, p + 2, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(d.cuStreamSynchronize(s), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_NE(d.cuStreamDestroy_v2(s), CUDA_SUCCESS) << "the device has failed";
  TearDown();
  SetUp();
  EXPECT_EQ(d.cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(d.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamTest, PoolsAndTimes) {
  CUstream s = stream();
  CUevent start = event(), end = event();
  ASSERT_EQ(d.cuEventRecord(start, s), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr p = 0;
    ASSERT_EQ(d.cuMemAllocAsync(&p, 32 << 20, s), CUDA_SUCCESS) << "100 times 32 MiB fit, one after the other";
    ASSERT_EQ(d.cuMemsetD8Async(p, 1, 1 << 12, s), CUDA_SUCCESS);
    ASSERT_EQ(d.cuMemFreeAsync(p, s), CUDA_SUCCESS);
  }
  ASSERT_EQ(d.cuEventRecord(end, s), CUDA_SUCCESS);
  ASSERT_EQ(d.cuEventSynchronize(end), CUDA_SUCCESS);
  float ms = -1;
  EXPECT_EQ(d.cuEventElapsedTime(&ms, start, end), CUDA_SUCCESS);
  EXPECT_GE(ms, 0);
  size_t free_bytes = 0, total = 0;
  EXPECT_EQ(d.cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, size_t{512} << 20);
  CUdeviceptr p = 0;
  EXPECT_EQ(d.cuMemAlloc_v2(&p, size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace collet::gpu::testing_only
