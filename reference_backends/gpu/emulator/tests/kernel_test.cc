// SPDX-License-Identifier: Apache-2.0
// Tests whole kernels: memory, control flow, functions, barriers.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "reference_backends/gpu/emulator/tests/gpu.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::HasSubstr;

using KernelTest = GpuTest;

// A kernel as LLVM's NVPTX backend writes it.
const std::string kAxpy = ptx_header() + R"(
.visible .entry axpy(
	.param .u64 .ptr .global .align 4 axpy_param_0,
	.param .u64 axpy_param_1,
	.param .f32 axpy_param_2,
	.param .u32 axpy_param_3
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<6>;
	.reg .f32 	%f<5>;
	.reg .b64 	%rd<8>;
	ld.param.u32 	%r2, [axpy_param_3];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r1, %r3, %r4, %r5;
	setp.ge.s32 	%p1, %r1, %r2;
	@%p1 bra 	$L__BB0_2;
	ld.param.u64 	%rd1, [axpy_param_0];
	ld.param.u64 	%rd2, [axpy_param_1];
	ld.param.f32 	%f1, [axpy_param_2];
	cvta.to.global.u64 	%rd3, %rd1;
	cvta.to.global.u64 	%rd4, %rd2;
	mul.wide.s32 	%rd5, %r1, 4;
	add.s64 	%rd6, %rd3, %rd5;
	add.s64 	%rd7, %rd4, %rd5;
	ld.global.nc.f32 	%f2, [%rd6];
	ld.global.f32 	%f3, [%rd7];
	fma.rn.f32 	%f4, %f1, %f2, %f3;
	st.global.f32 	[%rd7], %f4;
$L__BB0_2:
	ret;
}
)";

TEST_F(KernelTest, Elementwise) {
  const int n = 1000;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) {
    x[i] = 0.1f * static_cast<float>(i);
    y[i] = 1.f / static_cast<float>(i + 1);
  }
  CUfunction f = load(kAxpy, "axpy");
  const CUdeviceptr px = upload(x), py = upload(y);
  ASSERT_EQ(run(f, 4, 256, 0, px, py, 3.f, n), CUDA_SUCCESS) << finding();
  const auto result = download<float>(py, n);
  for (int i = 0; i < n; ++i) EXPECT_EQ(result[i], std::fma(3.f, x[i], y[i])) << i;
}

// A kernel that sums the elements of each block, through shared memory and shuffles.
const std::string kSum = ptx_header() + R"(
.visible .entry sum(.param .u64 in, .param .u64 out)
{
	.reg .pred %p<4>;
	.reg .b32 %r<20>;
	.reg .f32 %f<10>;
	.reg .b64 %rd<10>;
	.shared .align 4 .b8 part[32];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.s32 %r4, %r2, %r3, %r1;
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	mul.wide.u32 %rd3, %r4, 4;
	add.s64 %rd4, %rd1, %rd3;
	ld.global.f32 %f1, [%rd4];
	mov.b32 %r5, 16;
$loop:
	mov.b32 %r6, %f1;
	shfl.sync.bfly.b32 %r7|%p1, %r6, %r5, 31, -1;
	mov.b32 %f2, %r7;
	add.rn.f32 %f1, %f1, %f2;
	shr.u32 %r5, %r5, 1;
	setp.ne.s32 %p2, %r5, 0;
	@%p2 bra $loop;
	and.b32 %r8, %r1, 31;
	shr.u32 %r9, %r1, 5;
	mov.u32 %r10, part;
	shl.b32 %r11, %r9, 2;
	add.s32 %r12, %r10, %r11;
	setp.eq.s32 %p3, %r8, 0;
	@%p3 st.shared.f32 [%r12], %f1;
	bar.sync 0;
	setp.ne.s32 %p2, %r1, 0;
	@%p2 bra $end;
	mov.f32 %f3, 0f00000000;
	mov.b32 %r13, 0;
$more:
	shl.b32 %r14, %r13, 2;
	add.s32 %r15, %r10, %r14;
	ld.shared.f32 %f4, [%r15];
	add.rn.f32 %f3, %f3, %f4;
	add.s32 %r13, %r13, 1;
	setp.lt.s32 %p1, %r13, 8;
	@%p1 bra $more;
	mul.wide.u32 %rd5, %r2, 4;
	add.s64 %rd6, %rd2, %rd5;
	st.global.f32 [%rd6], %f3;
$end:
	ret;
}
)";

TEST_F(KernelTest, ReductionThroughSharedMemory) {
  std::vector<float> in(1024);
  std::iota(in.begin(), in.end(), 0.f);
  CUfunction f = load(kSum, "sum");
  const CUdeviceptr p = upload(in), out = allocated(16);
  ASSERT_EQ(run(f, 4, 256, 0, p, out), CUDA_SUCCESS) << finding();
  const auto sums = download<float>(out, 4);
  for (int b = 0; b < 4; ++b) EXPECT_EQ(sums[b], 256.f * (256.f * static_cast<float>(b) + 127.5f));
}

// A module with functions, local memory, vectors, constants, and switch-like branches. llc has compiled it from LLVM
// IR.
const std::string kMixed = ptx_header() + R"(
.extern .shared .align 16 .b8 dyn[];
.const .align 16 .b8 tab[16] = {0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64};
.visible .global .align 8 .u64 where[2] = {generic(tab), tab+4};
.func  (.param .b32 func_retval0) helper(
	.param .b32 helper_param_0,
	.param .b64 helper_param_1
)
{
	.reg .f32 	%f<3>;
	.reg .b64 	%rd<2>;
	ld.param.f32 	%f1, [helper_param_0];
	mul.rn.f32 	%f2, %f1, 0f40400000;
	ld.param.u64 	%rd1, [helper_param_1];
	st.f32 	[%rd1], %f2;
	st.param.f32 	[func_retval0+0], %f2;
	ret;
}
.visible .entry k(
	.param .u64 k_param_0,
	.param .align 16 .b8 k_param_1[16]
)
{
	.local .align 4 .b8 	__local_depot1[4];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .b32 	%r<4>;
	.reg .f32 	%f<17>;
	.reg .b64 	%rd<13>;
	mov.u64 	%SPL, __local_depot1;
	cvta.local.u64 	%SP, %SPL;
	mov.u32 	%r1, %tid.x;
	ld.param.u64 	%rd1, [k_param_0];
	ld.param.v4.f32 	{%f1, %f2, %f3, %f4}, [k_param_1];
	add.rn.f32 	%f1, %f1, %f4;
	add.u64 	%rd7, %SP, 0;
	add.u64 	%rd8, %SPL, 0;
	{ // callseq 0, 0
	.param .b32 param0;
	st.param.f32 	[param0+0], %f1;
	.param .b64 param1;
	st.param.b64 	[param1+0], %rd7;
	.param .b32 retval0;
	call.uni (retval0), 
	helper, 
	(
	param0, 
	param1
	);
	ld.param.f32 	%f5, [retval0+0];
	} // callseq 0
	ld.local.f32 	%f7, [%rd8];
	mul.wide.u32 	%rd3, %r1, 4;
	mov.u64 	%rd9, tab;
	add.s64 	%rd10, %rd9, %rd3;
	ld.const.f32 	%f11, [%rd10];
	add.rn.f32 	%f12, %f5, %f7;
	add.rn.f32 	%f13, %f12, %f11;
	mov.u64 	%rd11, dyn;
	add.s64 	%rd11, %rd11, %rd3;
	st.shared.f32 	[%rd11], %f13;
	bar.sync 	0;
	xor.b32 	%r2, %r1, 1;
	mul.wide.u32 	%rd4, %r2, 4;
	mov.u64 	%rd12, dyn;
	cvta.shared.u64 	%rd12, %rd12;
	add.s64 	%rd12, %rd12, %rd4;
	ld.f32 	%f14, [%rd12];
	add.s64 	%rd6, %rd1, %rd3;
	st.global.f32 	[%rd6], %f14;
	ret;
}
)";

TEST_F(KernelTest, FunctionsLocalMemoryConstantsAndDynamicSharedMemory) {
  CUfunction f = load(kMixed, "k");
  struct {
    alignas(16) float v[4];
  } vector{{1, 2, 3, 4}};
  const CUdeviceptr out = allocated(16);
  ASSERT_EQ(run(f, 1, 4, 16, out, vector), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<float>(out, 4), (std::vector<float>{32, 31, 34, 33}));
  CUdeviceptr where = 0;
  size_t bytes = 0;
  ASSERT_EQ(d.cuModuleGetGlobal_v2(&where, &bytes, module, "where"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 16u);
  const auto addresses = download<uint64_t>(where, 2);
  EXPECT_EQ(addresses[1], addresses[0] + 4);
}

/// Warp 0 fills a box that warp 1 has said to be free, and warp 1 reads it and says so again, to nobody.
const std::string kPipeline = ptx_header() + R"(
.visible .entry k(.param .u64 to) {
	.reg .pred consumes, first;
	.reg .b32 i, b, v;
	.reg .b64 p;
	.shared .align 4 .b32 box[1];
	mov.u32 i, %tid.x;
	mov.u32 b, %ctaid.x;
	setp.ge.u32 consumes, i, 32;
	and.b32 i, i, 31;
	setp.eq.u32 first, i, 0;
	@consumes bra $consumer;
	bar.sync 1, 64;
	add.u32 v, b, 100;
	@first st.shared.u32 [box], v;
	bar.arrive 2, 64;
	ret;
$consumer:
	bar.arrive 1, 64;
	bar.sync 2, 64;
	ld.shared.u32 v, [box];
	bar.arrive 1, 64;
	ld.param.u64 p, [to];
	mad.wide.u32 p, b, 4, p;
	@first st.global.u32 [p], v;
	ret;
}
)";

TEST_F(KernelTest, EachBlockHasBarriersOfItsOwn) {
  const CUdeviceptr out = allocated(64 * 4);
  ASSERT_EQ(run(load(kPipeline, "k"), 64, 64, 0, out), CUDA_SUCCESS) << finding();
  std::vector<uint32_t> want(64);
  std::iota(want.begin(), want.end(), 100u);
  EXPECT_EQ(download<uint32_t>(out, 64), want);
}

// Static and dynamic shared memory have together as much as a block may have, and a gap between them.
TEST_F(KernelTest, AllOfSharedMemoryIsThere) {
  const std::string text = ptx_header(90) + R"(
.extern .shared .align 1 .b8 dyn[];
.visible .entry k(.param .u64 to) {
	.reg .b16 h;
	.reg .b32 s;
	.reg .b64 p;
	.shared .align 1 .b8 own[1];
	mov.b16 h, 7;
	st.shared.u8 [own], h;
	mov.u32 s, dyn;
	add.u32 s, s, 232446;
	st.shared.u8 [s], h;
	ld.shared.u8 h, [s];
	ld.param.u64 p, [to];
	st.global.u8 [p], h;
	ret;
}
)";
  CUfunction f = load(text, "k");
  const CUdeviceptr out = allocated(1);
  ASSERT_EQ(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232447), CUDA_SUCCESS);
  ASSERT_EQ(run(f, 1, 1, 232447, out), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<uint8_t>(out, 1)[0], 7);
}

TEST_F(KernelTest, MagnitudesAreComparedWithXorsign) {
  const std::string text = ptx_header(86) + R"(
.visible .entry k(.param .u64 to) {
	.reg .b16 a, b, c;
	.reg .b64 p;
	mov.b16 a, 0xC000;
	mov.b16 b, 0x3C00;
	max.xorsign.abs.f16 c, a, b;
	ld.param.u64 p, [to];
	st.global.b16 [p], c;
	ret;
}
)";
  const CUdeviceptr out = allocated(2);
  ASSERT_EQ(run(load(text, "k"), 1, 1, 0, out), CUDA_SUCCESS) << finding();
  EXPECT_EQ(download<uint16_t>(out, 1)[0], 0xC000) << "of -2 and 1";
}

TEST_F(KernelTest, HostCannotTouchDeviceMemory) {
  const CUdeviceptr p = upload(std::vector<int>{1});
  EXPECT_DEATH(std::printf("%d", *reinterpret_cast<volatile int*>(p)), "");
}

TEST_F(KernelTest, UnknownInstructionNamesItsLine) {
  expects_problem = true;
  load(ptx_header() + ".entry k() {\n  .reg .b32 %r<2>;\n  griddepcontrol.wait;\n}\n", "k");
  EXPECT_EQ(load_result, CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(log, HasSubstr("line 6: griddepcontrol.wait: unknown instruction"));
}

}  // namespace
}  // namespace collet::gpu::testing_only
