/* SPDX-License-Identifier: Apache-2.0 */
/* Succeeds if there is an OpenCL device that computes with double. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

int main(void) {
  enum { MOST = 16 };
  cl_platform_id platforms[MOST];
  cl_device_id devices[MOST];
  cl_uint platform_count = 0, device_count = 0;
  if (clGetPlatformIDs(MOST, platforms, &platform_count) != CL_SUCCESS) return 1;
  for (cl_uint i = 0; i < platform_count && i < MOST; ++i) {
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MOST, devices, &device_count) != CL_SUCCESS) continue;
    for (cl_uint j = 0; j < device_count && j < MOST; ++j) {
      cl_device_fp_config doubles = 0;
      clGetDeviceInfo(devices[j], CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, 0);
      if (doubles != 0) return 0;
    }
  }
  return 1;
}
