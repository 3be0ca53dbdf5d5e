// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Declares the part of the CUDA driver's interface that the gpu backend uses, so that no CUDA toolkit is needed to
/// build it. driver_api_test.cc compares them with <cuda.h> where that exists. Names and numbers are the driver's.
namespace collet::gpu {

using CUdeviceptr = unsigned long long;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUkernel = struct CUkern_st*;
using CUarray = struct CUarray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUhostFn = void (*)(void* data);

struct CUuuid {
  char bytes[16];
};

/// Results of the driver's functions. The driver may return others, too.
enum CUresult : unsigned int {
#define COLLET_CUDA_ERROR(name, number, text) name = number,
#include "reference_backends/gpu/driver/driver_errors.def"
};

enum CUdevice_attribute : unsigned int {};
enum CUjit_option : unsigned int {};
enum CUfunction_attribute : unsigned int {};
enum CUmemPool_attribute : unsigned int {};
enum CUpointer_attribute : unsigned int {};
enum CUmemorytype : unsigned int {};
enum CUstreamCaptureMode : unsigned int {};
enum CUtensorMapDataType : unsigned int {};
enum CUtensorMapInterleave : unsigned int {};
enum CUtensorMapSwizzle : unsigned int {};
enum CUtensorMapL2promotion : unsigned int {};
enum CUtensorMapFloatOOBfill : unsigned int {};
enum CUstream_flags : unsigned int {};
enum CUevent_flags : unsigned int {};

#define COLLET_CUDA_VALUE(type, name, number) inline constexpr type name = static_cast<type>(number);
#include "reference_backends/gpu/driver/driver_values.def"

/// Describes an array of which kernels copy boxes. Only the driver knows what the words mean.
struct alignas(128) CUtensorMap {
  uint64_t opaque[16] = {};
};

/// Parameters of a kernel node of a graph.
struct CUDA_KERNEL_NODE_PARAMS_v2 {
  CUfunction func = nullptr;
  unsigned int gridDimX = 1, gridDimY = 1, gridDimZ = 1;
  unsigned int blockDimX = 1, blockDimY = 1, blockDimZ = 1;
  unsigned int sharedMemBytes = 0;
  void** kernelParams = nullptr;
  void** extra = nullptr;
  CUkernel kern = nullptr;
  CUcontext ctx = nullptr;
};

/// Parameters of a copy node of a graph.
struct CUDA_MEMCPY3D_v2 {
  size_t srcXInBytes = 0, srcY = 0, srcZ = 0, srcLOD = 0;
  CUmemorytype srcMemoryType{};
  const void* srcHost = nullptr;
  CUdeviceptr srcDevice = 0;
  CUarray srcArray = nullptr;
  void* reserved0 = nullptr;
  size_t srcPitch = 0, srcHeight = 0;
  size_t dstXInBytes = 0, dstY = 0, dstZ = 0, dstLOD = 0;
  CUmemorytype dstMemoryType{};
  void* dstHost = nullptr;
  CUdeviceptr dstDevice = 0;
  CUarray dstArray = nullptr;
  void* reserved1 = nullptr;
  size_t dstPitch = 0, dstHeight = 0;
  size_t WidthInBytes = 0, Height = 0, Depth = 0;
};

// Flags of cuMemHostAlloc and cuMemHostRegister.
inline constexpr unsigned int kMemHostAllocPortable = 1;
inline constexpr unsigned int kMemHostAllocDeviceMap = 2;
inline constexpr unsigned int kMemHostRegisterPortable = 1;

}  // namespace collet::gpu
