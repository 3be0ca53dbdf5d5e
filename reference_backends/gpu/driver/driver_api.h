// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Our own declarations of the part of the CUDA driver's interface that we use, so that no CUDA toolkit is needed to build.
/// driver_api_test.cc compares them with <cuda.h> where that exists. Names and numbers are the driver's.
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
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUhostFn = void (*)(void* data);

struct CUuuid {
  char bytes[16];
};

/// What every function of the driver returns; others than these exist.
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
enum CUstream_flags : unsigned int {};
enum CUevent_flags : unsigned int {};

#define COLLET_CUDA_VALUE(type, name, number) inline constexpr type name = static_cast<type>(number);
#include "reference_backends/gpu/driver/driver_values.def"

// Flags of cuMemHostAlloc and cuMemHostRegister.
inline constexpr unsigned int kMemHostAllocPortable = 1;
inline constexpr unsigned int kMemHostAllocDeviceMap = 2;
inline constexpr unsigned int kMemHostRegisterPortable = 1;

}  // namespace collet::gpu
