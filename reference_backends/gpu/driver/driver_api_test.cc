// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of driver_api.h with those of the CUDA toolkit, if there is one.
#include "reference_backends/gpu/driver/driver_api.h"

#include <gtest/gtest.h>

#include "reference_backends/gpu/driver/theirs.h"

#ifdef COLLET_HAS_CUDA_TOOLKIT
// With this macro, <cuda.h> declares functions under the names that the driver exports.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <type_traits>

#define SAME(name) COLLET_SAME_TYPE(name, name)
SAME(CUcontext)
SAME(CUmodule)
SAME(CUfunction)
SAME(CUstream)
SAME(CUevent)
SAME(CUgraph)
SAME(CUgraphExec)
SAME(CUgraphNode)
SAME(CUDA_KERNEL_NODE_PARAMS_v2)
SAME(CUDA_MEMCPY3D_v2)
SAME(CUmemoryPool)
SAME(CUuuid)
SAME(CUresult)
SAME(CUdevice_attribute)
SAME(CUjit_option)
SAME(CUfunction_attribute)
SAME(CUmemPool_attribute)
SAME(CUpointer_attribute)
SAME(CUstreamCaptureMode)
SAME(CUtensorMapDataType)
SAME(CUtensorMapInterleave)
SAME(CUtensorMapSwizzle)
SAME(CUtensorMapL2promotion)
SAME(CUtensorMapFloatOOBfill)
#undef SAME
// Its alignment is 64 or 128 bytes, by the version of the toolkit.
template <>
struct Theirs<collet::gpu::CUtensorMap> {
  using Type = ::CUtensorMap;
  static_assert(sizeof(Type) == sizeof(collet::gpu::CUtensorMap));
  static_assert(alignof(Type) <= alignof(collet::gpu::CUtensorMap));
};

namespace {

static_assert(std::is_same_v<collet::gpu::CUdeviceptr, ::CUdeviceptr>);
static_assert(std::is_same_v<collet::gpu::CUdevice, ::CUdevice>);
static_assert(std::is_same_v<collet::gpu::CUhostFn, ::CUhostFn>);

#define COLLET_CUDA_ERROR(name, number, text) static_assert(::name == number);
#include "reference_backends/gpu/driver/driver_errors.def"
#define COLLET_CUDA_VALUE(type, name, number) \
  static_assert(::name == number && sizeof(collet::gpu::type) == sizeof(::type));
#include "reference_backends/gpu/driver/driver_values.def"
#define SAME_PLACE(type, member) static_assert(offsetof(collet::gpu::type, member) == offsetof(::type, member))
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS_v2, ctx);
SAME_PLACE(CUDA_MEMCPY3D_v2, srcMemoryType);
SAME_PLACE(CUDA_MEMCPY3D_v2, srcDevice);
SAME_PLACE(CUDA_MEMCPY3D_v2, dstMemoryType);
SAME_PLACE(CUDA_MEMCPY3D_v2, dstDevice);
SAME_PLACE(CUDA_MEMCPY3D_v2, WidthInBytes);
SAME_PLACE(CUDA_MEMCPY3D_v2, Depth);
#undef SAME_PLACE
static_assert(CU_MEMHOSTALLOC_PORTABLE == collet::gpu::kMemHostAllocPortable);
static_assert(CU_MEMHOSTALLOC_DEVICEMAP == collet::gpu::kMemHostAllocDeviceMap);
static_assert(CU_MEMHOSTREGISTER_PORTABLE == collet::gpu::kMemHostRegisterPortable);

}  // namespace

namespace collet::gpu {
struct Ours {
#define COLLET_CUDA_FUNCTION(name, parameters) CUresult(*name) parameters;
#include "reference_backends/gpu/driver/driver_functions.def"
};
}  // namespace collet::gpu

#define COLLET_CUDA_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<Theirs<decltype(collet::gpu::Ours::name)>::Type, decltype(&::name)>, #name);
#include "reference_backends/gpu/driver/driver_functions.def"

TEST(DriverApi, IsThatOfTheToolkit) {
  EXPECT_GE(CUDA_VERSION, 12000) << "compared at compile time";
}
#else
TEST(DriverApi, IsThatOfTheToolkit) {
  GTEST_SKIP() << "no CUDA toolkit was found when this was built";
}
#endif
