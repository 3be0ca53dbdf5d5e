// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/source_backend.hpp>

#include <cstdlib>

#include "device.h"

namespace opencl {

namespace {

std::string text(const kernel::Options& options, const char* key) {
  const auto found = options.values.find(key);
  return found == options.values.end() ? std::string() : found->second;
}

void configure(const kernel::Options& options, kernel::Backend* mine) {
  const std::string machine = text(options, "machine"), number = text(options, "fail_at");
  if (!machine.empty() && machine != "threads" && machine != "grid")
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option machine is threads or grid, not '" + machine + "'");
  char* end = nullptr;
  const uint64_t fail_at = std::strtoull(number.c_str(), &end, 10);
  if (*end != 0) throw kernel::Error(COLLET_INVALID_ARGUMENT, "the option fail_at is a number, not '" + number + "'");
  if (options.device_count != 0) mine->device_count = options.device_count;
  const std::shared_ptr<const Driver> driver = Driver::open(text(options, "device"), machine, mine->device_count);
  mine->device_kind = driver->name;
  mine->memory_bytes = driver->memory_bytes;
  mine->open_device = [driver, fail_at](uint32_t i) { return std::make_unique<Device>(driver, i, fail_at); };
  collet::codegen::SourceCompiler compiler;
  compiler.version = driver->version;
  compiler.compile = [driver](const std::string& source) { return driver->compile(source); };
  compiler.cache_folder = text(options, "cache");
  collet::codegen::set_grid_source(mine, driver->target, compiler);
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "opencl";
  backend.version = "0.1.0";
  backend.opset = 1;
  backend.fingerprint = ";opencl-1";
  backend.queues = true;
  backend.profile = true;
  backend.options = {
      "device",    // a part of the name of the device or its platform
      "machine",   // "threads" or "grid": how kernels are divided; by default as suits the device
      "cache",     // a folder in which compiled programs are kept
      "fail_at"};  // number of the launch, from 1, at which the device is lost, to test what happens then
  backend.configure = configure;
  return backend;
}

}  // namespace opencl

COLLET_KERNEL_BACKEND(opencl::describe)
