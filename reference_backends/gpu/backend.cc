// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "reference_backends/gpu/device.h"
#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/machine_code.h"
#include "reference_backends/gpu/virtual_device.h"

namespace collet::gpu {

namespace {

constexpr int kOldest = 80;  ///< compute capability 8.0 has asynchronous copies, and bf16 in its matrix instructions

std::string text(const kernel::Options& options, const std::string& key) {
  const auto found = options.values.find(key);
  return found == options.values.end() ? std::string() : found->second;
}

/// Returns the path of a library in the folder of this one.
std::string beside(const std::string& name) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&beside), &info) == 0 || !info.dli_fname) return name;
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

/// Returns the name for dlopen that the option `driver` stands for.
std::string library_of(const std::string& driver) {
  if (driver == "cuda") return {};
  return driver == "emulator" ? beside("libcollet_cuda_emulator.so") : driver;
}

/// Returns the newest architecture among those that code is compiled for and the device runs. Newer devices run the
/// code of older ones, but for that of sm_90a.
std::string architecture(int capability) {
  if (capability == kWithWarpgroups) return "sm_90a";
  return capability >= 90 ? "sm_90" : "sm_80";
}

/// Returns the value of an option that is 0 or 1, and `otherwise` if it is not given.
bool flag(const kernel::Options& options, const char* key, bool otherwise) {
  const std::string given = text(options, key);
  if (given.empty()) return otherwise;
  if (given != "0" && given != "1")
    throw kernel::Error(COLLET_INVALID_ARGUMENT, std::string(key) + "=" + given + ": 0 or 1 is meant");
  return given == "1";
}

/// The option `tf32`: whether products of f32 whose precision attribute is default round their factors.
bool rounds_to_tf32(const kernel::Options& options) {
  return flag(options, "tf32", false);
}

/// The option `libraries`.
enum class UseOfLibraries { kNone, kMeasured, kAlways };

UseOfLibraries use_of_libraries(const kernel::Options& options) {
  const std::string given = text(options, "libraries");
  // The emulator's libraries are for tests of correctness; measuring them makes no sense.
  if (given.empty()) return text(options, "driver") == "emulator" ? UseOfLibraries::kNone : UseOfLibraries::kMeasured;
  if (given == "0") return UseOfLibraries::kNone;
  if (given == "1") return UseOfLibraries::kMeasured;
  if (given == "always") return UseOfLibraries::kAlways;
  throw kernel::Error(COLLET_INVALID_ARGUMENT, "libraries=" + given + ": 0, 1 or always is meant");
}

/// Returns the value of the option `poll_us` in nanoseconds: see kernel::Backend::queue_poll_ns. By default, threads poll
/// if the host has at least kManyProcessors processors, but not on the emulator, whose kernels run on these processors.
uint64_t poll_time(const kernel::Options& options) {
  constexpr uint64_t kUsualNs = 100000;
  constexpr uint64_t kNsPerUs = 1000;
  constexpr uint64_t kMostUs = 1000000;
  constexpr unsigned kManyProcessors = 8;
  const std::string given = text(options, "poll_us");
  if (given.empty()) {
    const bool may_poll =
        text(options, "driver") != "emulator" && std::thread::hardware_concurrency() >= kManyProcessors;
    return may_poll ? kUsualNs : 0;
  }
  uint64_t us = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), us);
  if (error != std::errc() || end != given.data() + given.size() || us > kMostUs)
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "poll_us=" + given + ": microseconds, at most 1000000, are meant");
  return us * kNsPerUs;
}

/// Devices without hardware, of the architecture that the target names.
void configure_virtual(const kernel::Options& options, kernel::Backend* mine) {
  if (options.device_count != 0) mine->device_count = options.device_count;
  mine->device_kind = options.target;
  mine->traits |= COLLET_TRAIT_VIRTUAL;
  mine->open_device = [](uint32_t) { return std::make_unique<VirtualDevice>(); };
  codegen::Target target = codegen::cross("nvptx64:" + options.target);
  target.grid.tf32_by_default = rounds_to_tf32(options);
  codegen::set_grid_code(mine, target);
  mine->compiler = with_machine_code(mine->compiler, options.target);
}

/// Returns the numbers of the devices for which the code of the first one is made: a program's code runs on all of them.
std::vector<int> devices_like_the_first(const Driver& driver, const DeviceFacts& first) {
  std::vector<int> out = {0};
  for (int ordinal = 1; ordinal < driver.device_count; ++ordinal) {
    const DeviceFacts facts = read_facts(driver, ordinal);
    if (facts.capability == first.capability && facts.grid.block_shared_bytes == first.grid.block_shared_bytes &&
        facts.grid.shared_bytes == first.grid.shared_bytes)
      out.push_back(ordinal);
  }
  return out;
}

void configure(const kernel::Options& options, kernel::Backend* mine) {
  if (!options.target.empty()) return configure_virtual(options, mine);
  const std::string chosen = text(options, "driver");
  const auto driver = std::make_shared<Driver>();
  std::string emulator = text(options, "emulator");
  if (chosen == "emulator" && options.device_count != 0) {
    emulator += (emulator.empty() ? "devices=" : ",devices=") + std::to_string(options.device_count);
  }
  const codegen::Status opened = open_driver(library_of(chosen), *driver, emulator);
  if (!opened.ok()) throw kernel::Error(opened.code(), opened.message());
  const DeviceFacts facts = read_facts(*driver, 0);
  const std::vector<int> ordinals = devices_like_the_first(*driver, facts);
  const auto present = static_cast<uint32_t>(ordinals.size());
  mine->device_count = options.device_count != 0 ? std::min(options.device_count, present) : present;
  if (facts.capability < kOldest)
    throw kernel::Error(COLLET_UNAVAILABLE, facts.name + " has compute capability " +
                                                std::to_string(facts.capability / 10) + "." +
                                                std::to_string(facts.capability % 10) + "; at least 8.0 is needed");
  codegen::Target target = codegen::cross("nvptx64:" + architecture(facts.capability));
  target.grid = facts.grid;
  target.grid.tf32_by_default = rounds_to_tf32(options);
  if (facts.memory_bytes_per_ns > 0) target.memory_bytes_per_ns = facts.memory_bytes_per_ns;
  mine->device_kind = facts.name;
  mine->memory_bytes = facts.memory_bytes;
  mine->memory_bytes_per_ns = target.memory_bytes_per_ns;
  Device::Options device_options;
  device_options.graphs = flag(options, "graphs", true);
  device_options.poll_ns = mine->queue_poll_ns = poll_time(options);
  const UseOfLibraries use = use_of_libraries(options);
  if (use != UseOfLibraries::kNone) {
    const std::string path = chosen == "emulator" ? library_of(chosen) : std::string();
    device_options.libraries = std::make_shared<Libraries>(open_libraries(path));
    device_options.prefers_libraries = use == UseOfLibraries::kAlways;
    target.grid.libraries.products = device_options.libraries->has_products();
    target.grid.libraries.convolutions = device_options.libraries->has_convolutions();
    target.grid.libraries.fft = device_options.libraries->has_fft();
    target.grid.libraries.factorizations = device_options.libraries->has_factorizations();
    target.grid.libraries.collectives = device_options.libraries->has_collectives();
    if (target.grid.libraries.collectives)
      device_options.communicators = std::make_shared<Communicators>(device_options.libraries);
    if (device_options.libraries->has_processes())
      device_options.exchanger = std::make_shared<Exchanger>(driver, device_options.libraries, &Device::place_of);
    mine->exchanger = device_options.exchanger;
    if (device_options.prefers_libraries) target.grid.libraries.least_product = 0;
    // Choices that were measured with one version of the libraries are not reused for another.
    const std::string versions = device_options.libraries->versions();
    if (!versions.empty()) mine->fingerprint += ";" + versions + (device_options.prefers_libraries ? ";always" : "");
  }
  mine->open_device = [driver, device_options, ordinals](uint32_t number) {
    return std::make_unique<Device>(driver, ordinals[number], device_options);
  };
  codegen::set_grid_code(mine, target);
  mine->compiler =
      with_machine_code(mine->compiler, target.cpu == "sm_90a" ? target.cpu : "sm_" + std::to_string(facts.capability));
}

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "gpu";
  backend.version = COLLET_VERSION_TEXT;
  backend.opset = 1;
  backend.device_kind = "GPU";
  backend.alignment = 256;
  backend.fingerprint = ";gpu-1";
  backend.queues = true;
  backend.host_memory = true;
  backend.profile = true;
  backend.launch_ns = 4000;
  backend.link_latency_ns = 10000;
  backend.link_bytes_per_ns = 20;
  backend.flops_per_ns = 20000;
  // The values are: "cuda", "emulator" or a library's path; options of the emulator; 0 or 1; 0, 1 or "always";
  // microseconds; 0 or 1.
  backend.options = {"driver", "emulator", "graphs", "libraries", "poll_us", "tf32"};
  backend.targets = {"sm_80", "sm_90", "sm_90a"};
  backend.configure = configure;
  return backend;
}

}  // namespace

}  // namespace collet::gpu

COLLET_KERNEL_BACKEND(collet::gpu::describe)
