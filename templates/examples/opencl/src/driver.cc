// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace opencl {

using collet::kernel::Error;

namespace {

// No operation on floats is reordered; divisions and roots are rounded as HLO asks where the device can.
constexpr const char* kOptions = "-cl-std=CL1.2";
constexpr const char* kExactDivision = " -cl-fp32-correctly-rounded-divide-sqrt";

template <class T>
T info(cl_device_id device, cl_device_info which) {
  T value{};
  check(clGetDeviceInfo(device, which, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

template <class Get>
std::string text_of(const Get& get) {
  size_t bytes = 0;
  check(get(0, nullptr, &bytes), "clGetDeviceInfo");
  std::string text(bytes, '\0');
  check(get(bytes, text.data(), nullptr), "clGetDeviceInfo");
  return text.c_str();
}

std::string text(cl_device_id device, cl_device_info which) {
  return text_of([&](size_t size, void* to, size_t* got) { return clGetDeviceInfo(device, which, size, to, got); });
}

bool has(const std::string& extensions, const std::string& name) {
  return (" " + extensions + " ").find(" " + name + " ") != std::string::npos;
}

std::string options_of(cl_device_id device) {
  const auto floats = info<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG);
  return std::string(kOptions) + ((floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0 ? kExactDivision : "");
}

collet::codegen::Target target_of(cl_device_id device, const std::string& machine, uint32_t count) {
  const auto units = std::max<cl_uint>(info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS) / count, 1);
  const bool is_processor = info<cl_device_type>(device, CL_DEVICE_TYPE) == CL_DEVICE_TYPE_CPU;
  collet::codegen::Target target;
  if (machine == "threads" || (machine.empty() && is_processor)) {
    const auto width = info<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    int lanes = 1;
    while (lanes * 2 <= static_cast<int>(std::min<cl_uint>(width, 16))) lanes *= 2;
    target = collet::codegen::vector_machine(lanes, lanes >= 16 ? 32 : 16);
    target.threads = static_cast<int>(units);
  } else {
    const auto group = info<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    if (group < 64) throw Error(COLLET_FAILED_PRECONDITION, "a work-group of the device has fewer than 64 work-items");
    target = collet::codegen::grid_machine(static_cast<int>(units),
                                           static_cast<int64_t>(info<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE)),
                                           static_cast<int>(std::min<size_t>(group, 256)));
  }
  target.fma = (info<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_FMA) != 0;
  target.half_conversion = has(text(device, CL_DEVICE_EXTENSIONS), "cl_khr_fp16");
  return target;
}

// Finds the device. The reasons why others are not used are part of the error.
cl_device_id find(const std::string& wanted) {
  cl_uint count = 0;
  std::vector<cl_platform_id> platforms;
  if (clGetPlatformIDs(0, nullptr, &count) == CL_SUCCESS && count != 0) {
    platforms.resize(count);
    check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  }
  std::string others;
  for (const cl_platform_id platform : platforms) {
    const std::string maker = text_of([&](size_t size, void* to, size_t* got) {
      return clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, to, got);
    });
    std::vector<cl_device_id> devices(
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) == CL_SUCCESS ? count : 0);
    if (!devices.empty())
      check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr), "clGetDeviceIDs");
    for (const cl_device_id device : devices) {
      const std::string name = maker + ": " + text(device, CL_DEVICE_NAME);
      const bool fits = has(text(device, CL_DEVICE_EXTENSIONS), "cl_khr_fp64") &&
                        info<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) &&
                        info<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE);
      if (fits && name.find(wanted) != std::string::npos) return device;
      others += "\n  " + name + (fits ? "" : ", which lacks double, a compiler, or little-endian memory");
    }
  }
  if (others.empty())
    throw Error(COLLET_NOT_FOUND, "there is no OpenCL device: install a driver, such as Debian's pocl-opencl-icd");
  throw Error(COLLET_NOT_FOUND, "no OpenCL device is named '" + wanted + "' and fits; there are" + others);
}

}  // namespace

bool is_memory_error(cl_int result) {
  return result == CL_MEM_OBJECT_ALLOCATION_FAILURE || result == CL_OUT_OF_HOST_MEMORY ||
         result == CL_OUT_OF_RESOURCES || result == CL_INVALID_BUFFER_SIZE;
}

void check(cl_int result, const char* what) {
  if (result == CL_SUCCESS) return;
  const bool is_lost = result == CL_DEVICE_NOT_AVAILABLE || result == CL_INVALID_COMMAND_QUEUE;
  throw Error(is_memory_error(result) ? COLLET_RESOURCE_EXHAUSTED
              : is_lost               ? COLLET_UNAVAILABLE
                                      : COLLET_INTERNAL,
              std::string(what) + " returned " + std::to_string(result));
}

Driver::~Driver() {
  for (const cl_device_id device : devices) clReleaseDevice(device);  // does nothing for whole devices
}

std::shared_ptr<const Driver> Driver::open(const std::string& wanted, const std::string& machine, uint32_t count) {
  const auto driver = std::make_shared<Driver>();
  const cl_device_id device = find(wanted);
  driver->name = text(device, CL_DEVICE_NAME);
  driver->version = driver->name + ";" + text(device, CL_DEVICE_VERSION) + ";" + text(device, CL_DRIVER_VERSION) + ";" +
                    options_of(device);
  driver->memory_bytes = info<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE) / count;
  driver->most_bytes = info<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  driver->target = target_of(device, machine, count);
  driver->devices = {device};
  if (count > 1) {
    const auto units = info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    std::vector<cl_device_partition_property> parts{CL_DEVICE_PARTITION_BY_COUNTS};
    for (uint32_t i = 0; i < count; ++i) parts.push_back(units / count);
    parts.insert(parts.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
    driver->devices.assign(count, nullptr);
    if (units < count ||
        clCreateSubDevices(device, parts.data(), count, driver->devices.data(), nullptr) != CL_SUCCESS) {
      driver->devices.clear();
      throw Error(COLLET_INVALID_ARGUMENT, driver->name + ", which has " + std::to_string(units) +
                                               " compute units, cannot be divided into " + std::to_string(count) +
                                               " devices");
    }
  }
  cl_int result = CL_SUCCESS;
  driver->context = {clCreateContext(nullptr, count, driver->devices.data(), nullptr, nullptr, &result),
                     clReleaseContext};
  check(result, "clCreateContext");
  return driver;
}

std::string Driver::compile(const std::string& source) const {
  const char* begin = source.data();
  const size_t size = source.size();
  cl_int result = CL_SUCCESS;
  const Program program(clCreateProgramWithSource(context.get(), 1, &begin, &size, &result), clReleaseProgram);
  check(result, "clCreateProgramWithSource");
  result = clBuildProgram(program.get(), 1, devices.data(), options_of(devices[0]).c_str(), nullptr, nullptr);
  if (result != CL_SUCCESS)
    throw std::runtime_error(
        "clBuildProgram returned " + std::to_string(result) + "\n" + text_of([&](size_t bytes, void* to, size_t* got) {
          return clGetProgramBuildInfo(program.get(), devices[0], CL_PROGRAM_BUILD_LOG, bytes, to, got);
        }));
  // There is a binary for each device of the context, but only that of the first one has been made.
  std::vector<size_t> sizes(devices.size());
  check(clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
        "clGetProgramInfo");
  std::string bytes(sizes[0], '\0');
  std::vector<unsigned char*> places(devices.size(), nullptr);
  places[0] = reinterpret_cast<unsigned char*>(bytes.data());
  check(clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, places.size() * sizeof(char*), places.data(), nullptr),
        "clGetProgramInfo");
  return bytes;
}

Program Driver::load(cl_device_id device, const std::string& bytes) const {
  const auto* begin = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t size = bytes.size();
  cl_int result = CL_SUCCESS, is_valid = CL_SUCCESS;
  Program program(clCreateProgramWithBinary(context.get(), 1, &device, &size, &begin, &is_valid, &result),
                  clReleaseProgram);
  check(result, "clCreateProgramWithBinary");
  check(is_valid, "clCreateProgramWithBinary");
  check(clBuildProgram(program.get(), 1, &device, nullptr, nullptr, nullptr), "clBuildProgram");
  return program;
}

}  // namespace opencl
