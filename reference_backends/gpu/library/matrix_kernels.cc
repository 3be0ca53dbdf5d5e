// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/matrix_kernels.h"

#include <utility>

namespace collet::gpu {
namespace {

constexpr unsigned kThreads = 128;  ///< threads of a block

// matrix_orders follows, for each row of the result, the exchanges backwards from the last one.
constexpr char kText[] = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry matrix_pointers(
  .param .u64 to,
  .param .u64 first,
  .param .u64 distance,
  .param .u64 count
)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<12>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd1, %r1, %r2;
  cvt.u64.u32 %rd2, %r3;
  add.s64 %rd3, %rd1, %rd2;
  ld.param.u64 %rd4, [count];
  setp.ge.u64 %p1, %rd3, %rd4;
  @%p1 bra DONE;
  ld.param.u64 %rd5, [to];
  ld.param.u64 %rd6, [first];
  ld.param.u64 %rd7, [distance];
  mul.lo.s64 %rd8, %rd3, %rd7;
  add.s64 %rd9, %rd6, %rd8;
  shl.b64 %rd10, %rd3, 3;
  add.s64 %rd11, %rd5, %rd10;
  st.global.u64 [%rd11], %rd9;
DONE:
  ret;
}

.visible .entry matrix_orders(
  .param .u64 pivots,
  .param .u64 orders,
  .param .u64 rows,
  .param .u64 exchanges,
  .param .u64 count
)
{
  .reg .pred %p<6>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<20>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd1, %r1, %r2;
  cvt.u64.u32 %rd2, %r3;
  add.s64 %rd3, %rd1, %rd2;
  ld.param.u64 %rd4, [count];
  setp.ge.u64 %p1, %rd3, %rd4;
  @%p1 bra DONE;
  ld.param.u64 %rd5, [pivots];
  ld.param.u64 %rd6, [orders];
  ld.param.u64 %rd7, [rows];
  ld.param.u64 %rd8, [exchanges];
  div.u64 %rd9, %rd3, %rd7;
  mul.lo.s64 %rd10, %rd9, %rd7;
  sub.s64 %rd11, %rd3, %rd10;
  cvt.u32.u64 %r4, %rd11;
  mul.lo.s64 %rd12, %rd9, %rd8;
  add.s64 %rd13, %rd12, %rd8;
  shl.b64 %rd14, %rd13, 2;
  add.s64 %rd15, %rd5, %rd14;
  cvt.u32.u64 %r5, %rd8;
LOOP:
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra STORE;
  add.s32 %r5, %r5, -1;
  add.s64 %rd15, %rd15, -4;
  ld.global.u32 %r6, [%rd15];
  add.s32 %r7, %r6, -1;
  setp.eq.u32 %p3, %r4, %r5;
  setp.eq.u32 %p4, %r4, %r7;
  selp.b32 %r8, %r5, %r4, %p4;
  selp.b32 %r4, %r7, %r8, %p3;
  bra LOOP;
STORE:
  shl.b64 %rd16, %rd3, 2;
  add.s64 %rd17, %rd6, %rd16;
  st.global.u32 [%rd17], %r4;
DONE:
  ret;
}
)";

}  // namespace

MatrixKernels::MatrixKernels(const Driver& driver, Check check) : driver_(driver), check_(std::move(check)) {
  check_(driver_.cuModuleLoadDataEx(&module_, kText, 0, nullptr, nullptr), "cuModuleLoadDataEx");
  try {
    check_(driver_.cuModuleGetFunction(&pointers_, module_, "matrix_pointers"), "cuModuleGetFunction");
    check_(driver_.cuModuleGetFunction(&orders_, module_, "matrix_orders"), "cuModuleGetFunction");
  } catch (...) {
    driver_.cuModuleUnload(module_);
    throw;
  }
}

MatrixKernels::~MatrixKernels() {
  driver_.cuModuleUnload(module_);
}

void MatrixKernels::write_pointers(CUdeviceptr to, CUdeviceptr first, uint64_t distance, uint64_t count,
                                   CUstream stream) const {
  void* parameters[] = {&to, &first, &distance, &count};
  launch(pointers_, count, parameters, stream);
}

void MatrixKernels::write_orders(CUdeviceptr pivots, CUdeviceptr orders, uint64_t rows, uint64_t exchanges,
                                 uint64_t batches, CUstream stream) const {
  uint64_t count = rows * batches;
  void* parameters[] = {&pivots, &orders, &rows, &exchanges, &count};
  launch(orders_, count, parameters, stream);
}

void MatrixKernels::launch(CUfunction kernel, uint64_t threads, void** parameters, CUstream stream) const {
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  check_(driver_.cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr),
         "cuLaunchKernel");
}

}  // namespace collet::gpu
