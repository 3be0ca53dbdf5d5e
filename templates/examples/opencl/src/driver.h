// SPDX-License-Identifier: Apache-2.0
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <collet/codegen/target.h>
#include <collet/kernel_backend.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace opencl {

// Throws kernel::Error unless a call of OpenCL has succeeded. `what` is the name of the function.
void check(cl_int result, const char* what);
// True if memory is lacking: the device can go on.
bool is_memory_error(cl_int result);

// An object of OpenCL, which is released at the end: its maker gives the function for that.
template <class T>
using Shared = std::shared_ptr<std::remove_pointer_t<T>>;
using Program = Shared<cl_program>;

// A device of a platform, or several sub-devices of it, with the context that they share.
struct Driver {
  std::string name;     // of the device
  std::string version;  // of device and driver: code that was made by another one is not loaded
  uint64_t memory_bytes = 0;
  uint64_t most_bytes = 0;  // of one allocation
  collet::codegen::Target target;
  std::vector<cl_device_id> devices;
  Shared<cl_context> context;

  ~Driver();

  // Opens the first device that computes with double and whose name, or that of its platform, contains `wanted`. `machine` is "threads",
  // "grid", or empty: a processor's threads run kernels, those of other devices are grids. With `count` above 1, the device is divided
  // into so many.
  static std::shared_ptr<const Driver> open(const std::string& wanted, const std::string& machine, uint32_t count);

  // Returns the program that the driver makes of text, as bytes that `load` takes. What it says of wrong text is in the exception.
  std::string compile(const std::string& text) const;
  Program load(cl_device_id device, const std::string& bytes) const;
};

}  // namespace opencl
