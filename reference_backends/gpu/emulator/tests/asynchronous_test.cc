// SPDX-License-Identifier: Apache-2.0
// Tests barriers that count bytes, copies of boxes, and products by warpgroups: what they compute, and which mistakes are
// found. Generated kernels with these instructions are tested in gpu_kernel_test, their mutants in gpu_mutant_test.
#include <numeric>

#include "reference_backends/gpu/emulator/tests/gpu.h"

namespace collet::gpu::testing_only {
namespace {

/// A kernel `k(to, map)` of 128 threads with 16 KiB of shared memory. `body` has the thread's number in %r1, the address of
/// an own word of the result in %rd1, and that of shared memory in %r2.
std::string kernel(const std::string& body) {
  return ptx_header(90) +
         ".visible .entry k(.param .u64 to, .param .align 128 .b8 map[128]) {\n.reg .pred %p<8>;\n.reg .b32 %r<40>;\n"
         ".reg .f32 %f<9>;\n.reg .b64 %rd<20>;\n.shared .align 1024 .b8 memory[16384];\nmov.u32 %r1, %tid.x;\n"
         "ld.param.u64 %rd1, [to];\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\nmov.u32 %r2, memory;\n"
         "setp.eq.u32 %p1, %r1, 0;\n" +
         body + "\nret;\n}\n";
}

/// Waits for the phase of the barrier at [%r2 + offset] with this parity.
std::string wait(const std::string& offset, const std::string& parity, const std::string& name = "wait") {
  return "$" + name + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+" + offset + "], " + parity +
         ";\n@!%p2 bra $" + name + ";\n";
}

constexpr char kInit[] =
    "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n@%p1 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";

/// Descriptors of a factor at the begin of shared memory, and of one at 8 KiB.
constexpr char kDescriptors[] =
    "shr.u32 %r3, %r2, 4;\ncvt.u64.u32 %rd3, %r3;\nor.b64 %rd3, %rd3, 4611686293305360384;\nadd.s64 %rd4, %rd3, 512;\n"
    "mov.f32 %f1, 0f00000000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;\nmov.f32 %f4, %f1;\nsetp.eq.u32 %p3, 0, 0;\n";
constexpr char kProduct[] =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd3, %rd4, %p3, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\n";
/// Fills all of shared memory with ones in bf16.
constexpr char kOnes[] =
    "mov.u32 %r4, 0x3f803f80;\nshl.b32 %r5, %r1, 7;\nadd.u32 %r6, %r2, %r5;\nadd.u32 %r7, %r6, 128;\n$fill:\n"
    "st.shared.b32 [%r6], %r4;\nadd.u32 %r6, %r6, 4;\nsetp.lt.u32 %p4, %r6, %r7;\n@%p4 bra $fill;\n";

class AsynchronousTest : public GpuTest {
 protected:
  CUresult start(const std::string& body, const CUtensorMap& map = {}) {
    to = allocated(4 * 128);
    CUfunction f = load(kernel(body), "k");
    if (!f) return load_result;
    CUtensorMap own = map;
    void* parameters[] = {&to, &own, nullptr};
    const CUresult r = d.cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr);
    return r == CUDA_SUCCESS ? d.cuCtxSynchronize() : r;
  }
  CUdeviceptr to = 0;
};

TEST_F(AsynchronousTest, ABarrierOrdersWhatThreadsWriteAndRead) {
  const std::string body = std::string(kInit) +
                           "@!%p1 bra $read;\nmov.u32 %r9, 77;\nst.shared.u32 [%r2+1024], %r9;\n"
                           "mbarrier.arrive.shared::cta.b64 _, [%r2];\n$read:\n" +
                           wait("0", "0") + "ld.shared.u32 %r8, [%r2+1024];\nst.global.u32 [%rd1], %r8;";
  ASSERT_EQ(start(body), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<uint32_t>(to, 128), std::vector<uint32_t>(128, 77));
}

TEST_F(AsynchronousTest, AReadWithoutAWaitIsARace) {
  const std::string body = std::string(kInit) +
                           "@!%p1 bra $read;\nmov.u32 %r9, 77;\nst.shared.u32 [%r2+1024], %r9;\n"
                           "mbarrier.arrive.shared::cta.b64 _, [%r2];\n$read:\nld.shared.u32 %r8, [%r2+1024];\n"
                           "st.global.u32 [%rd1], %r8;";
  EXPECT_NE(start(body), CUDA_SUCCESS);
  EXPECT_THAT(finding(), ::testing::AnyOf(::testing::HasSubstr("race in shared memory"),
                                          ::testing::HasSubstr("nobody wrote these bytes")));
}

TEST_F(AsynchronousTest, ABoxIsCopiedWithZerosBehindTheEdge) {
  // An array of 3 x 40 words, and the box of 2 x 32 words that begins at (2, 16): one row and 24 words are inside.
  std::vector<uint32_t> words(120);
  std::iota(words.begin(), words.end(), 1000);
  const CUdeviceptr from = upload(words);
  const uint64_t sizes[] = {40, 3}, strides[] = {160};
  const unsigned box[] = {32, 2}, steps[] = {1, 1};
  CUtensorMap map;
  for (const CUtensorMapSwizzle swizzle : {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B}) {
    ASSERT_EQ(d.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(from), sizes,
                                       strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    const std::string body =
        std::string(kInit) +
        "@!%p1 bra $read;\nmov.b64 %rd5, map;\ncvta.param.u64 %rd5, %rd5;\nmov.u32 %r10, 16;\nmov.u32 %r11, 2;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\nadd.u32 %r12, %r2, 1024;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12], [%rd5, {%r10, "
        "%r11}], [%r2];\n"
        "$read:\n" +
        wait("0", "0") +
        "setp.ge.u32 %p6, %r1, 64;\n@%p6 bra $end;\nshl.b32 %r13, %r1, 2;\nadd.u32 %r13, %r13, %r2;\n"
        "ld.shared.u32 %r8, [%r13+1024];\nst.global.u32 [%rd1], %r8;\n$end:";
    ASSERT_EQ(start(body, map), CUDA_SUCCESS) << finding();
    const std::vector<uint32_t> got = download<uint32_t>(to, 64);
    for (uint32_t i = 0; i < 64; ++i) {
      // Chunks of four words are exchanged by the number of their line.
      const uint32_t line = i / 32;
      const uint32_t place = swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? i ^ line << 2 : i;
      const uint32_t expected = line == 0 && i % 32 < 24 ? 1000 + 80 + 16 + i : 0;
      EXPECT_EQ(got[place], expected) << i;
    }
  }
}

// All threads poll for the end of a copy, which none of them waits for.
TEST_F(AsynchronousTest, CopiesEndWhileThreadsPoll) {
  const CUdeviceptr from = upload(std::vector<uint32_t>(64, 5));
  const uint64_t sizes[] = {64};
  const unsigned box[] = {16}, steps[] = {1};
  CUtensorMap map;
  ASSERT_EQ(d.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, reinterpret_cast<void*>(from), sizes,
                                     nullptr, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            CUDA_SUCCESS);
  const std::string body =
      std::string(kInit) +
      "@!%p1 bra $poll;\nmov.b64 %rd5, map;\ncvta.param.u64 %rd5, %rd5;\nmov.u32 %r10, 0;\nadd.u32 %r12, %r2, 1024;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;\n"
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12], [%rd5, {%r10}], "
      "[%r2];\n"
      "$poll:\nmbarrier.test_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra $poll;\n"
      "ld.shared.u32 %r8, [%r2+1024];\nst.global.u32 [%rd1], %r8;";
  ASSERT_EQ(start(body, map), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<uint32_t>(to, 128), std::vector<uint32_t>(128, 5));
}

TEST_F(AsynchronousTest, AProductOfOnesIsItsDepth) {
  const std::string body = std::string(kOnes) + "fence.proxy.async;\nbar.sync 0;\n" + kDescriptors +
                           "wgmma.fence.sync.aligned;\n" + kProduct +
                           "wgmma.wait_group.sync.aligned 0;\nadd.f32 %f1, %f1, %f4;\nst.global.f32 [%rd1], %f1;";
  ASSERT_EQ(start(body), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<float>(to, 128), std::vector<float>(128, 32));
}

TEST_F(AsynchronousTest, MistakesAreFound) {
  const std::string ones = std::string(kOnes) + "fence.proxy.async;\nbar.sync 0;\n" + kDescriptors;
  const std::string finish = "wgmma.wait_group.sync.aligned 0;\n";
  const std::pair<std::string, const char*> cases[] = {
      {"mbarrier.arrive.shared::cta.b64 _, [%r2];", "there is no mbarrier"},
      {std::string(kInit) + "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;", "mbarrier.inval is missing"},
      {"@%p1 mbarrier.init.shared::cta.b64 [%r2+4], 1;", "an mbarrier has 8 bytes"},
      {"@%p1 mbarrier.init.shared::cta.b64 [%r2], 0;", "an mbarrier for 0 threads"},
      {"@%p1 mbarrier.init.shared::cta.b64 [%r2], 2;\nbar.sync 0;\nsetp.lt.u32 %p5, %r1, 2;\n"
       "@%p5 mbarrier.arrive.shared::cta.b64 _, [%r2], 3;",
       "more threads arrive"},
      {std::string(kInit) + wait("0", "0"), "waits for others that do not come"},
      {std::string(kInit) + "@!%p1 bra $end;\nmov.b64 %rd5, map;\ncvta.param.u64 %rd5, %rd5;\nmov.u32 %r10, 0;\n"
                            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+1024], "
                            "[%rd5, {%r10}], [%r2];\n$end:",
       "this is no tensor map"},
      {ones + kProduct + finish, "no wgmma.fence"},
      {std::string(kOnes) + "bar.sync 0;\n" + kDescriptors + "wgmma.fence.sync.aligned;\n" + kProduct + finish,
       "without a fence.proxy.async"},
      {ones + "wgmma.fence.sync.aligned;\n" + kProduct, "did not wait for its products"},
      {ones + "wgmma.fence.sync.aligned;\nand.b64 %rd3, %rd3, 0xffff;\n" + kProduct + finish, "are swizzled"},
      {ones + "wgmma.fence.sync.aligned;\n" + kProduct + "mov.u32 %r20, 0;\nst.shared.u32 [%r2], %r20;\n" + finish,
       "race in shared memory"},
  };
  for (const auto& [body, expected] : cases) {
    EXPECT_NE(start(body), CUDA_SUCCESS) << body;
    EXPECT_THAT(finding(), ::testing::HasSubstr(expected)) << body << log;
    TearDown();
    SetUp();
  }
}

TEST_F(AsynchronousTest, DescriptorsThatTheDriverRefuses) {
  const CUdeviceptr from = allocated(4096);
  const auto encode = [&](uint64_t address, uint64_t size, uint64_t stride, unsigned width, unsigned rank = 2) {
    const uint64_t sizes[] = {size, 4}, strides[] = {stride};
    const unsigned box[] = {width, 2}, steps[] = {1, 1};
    CUtensorMap map;
    return d.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, rank, reinterpret_cast<void*>(address), sizes,
                                    strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT_EQ(encode(from, 100, 256, 64), CUDA_SUCCESS);
  EXPECT_EQ(encode(from + 8, 100, 256, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(from, 100, 200, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(from, 0, 256, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(from, 100, 256, 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(from, 100, 256, 64, 6), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace collet::gpu::testing_only
