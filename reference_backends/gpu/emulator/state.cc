// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/state.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace collet::gpu::emulator {
namespace {

std::atomic<State*> the_state{nullptr};
std::mutex init_mutex;
std::mutex finding_mutex;
std::string& finding() {
  static std::string& text = *new std::string;
  return text;
}
/// Returns options that the process has set in addition to those of the environment.
std::string& told() {
  static std::string& text = *new std::string;
  return text;
}

}  // namespace

State* state() {
  return the_state.load(std::memory_order_acquire);
}

CUresult configure(const char* options) {
  std::lock_guard lock(init_mutex);
  Options ignored;
  std::string problem;
  if (!options || !read_options(options, ignored, problem)) {
    std::lock_guard finding_lock(finding_mutex);
    finding() = problem;
    return CUDA_ERROR_INVALID_VALUE;
  }
  told() = options;
  return CUDA_SUCCESS;
}

CUresult initialise() {
  std::lock_guard lock(init_mutex);
  if (state()) return CUDA_SUCCESS;
  auto s = std::make_unique<State>();
  const char* const text = std::getenv("COLLET_CUDA_EMULATOR");
  std::string problem;
  if (!read_options(text ? text : "", s->machine.options, problem) ||
      !read_options(told(), s->machine.options, problem)) {
    s->report(problem);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Options& options = s->machine.options;
  if (!options.threads) options.threads = std::max(1u, std::thread::hardware_concurrency());
  s->machine.memory = DeviceMemory::create(options.devices, options.memory, options.quarantine, problem);
  if (!s->machine.memory) {
    s->report(problem);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  s->pool = std::make_unique<Pool>(options.threads);
  s->scheduler = std::make_unique<Scheduler>(options.seed);
  const std::lock_guard scheduler_lock(s->scheduler->mutex);  // its thread runs already
  s->devices.resize(options.devices);
  for (unsigned i = 0; i < options.devices; ++i) {
    s->devices[i].context.device = s->devices[i].pool.device = static_cast<int>(i);
    s->devices[i].null_stream = s->scheduler->create_stream(static_cast<int>(i), true, true);
  }
  the_state.store(s.release(), std::memory_order_release);
  return CUDA_SUCCESS;
}

void State::report(const std::string& message) {
  std::lock_guard lock(finding_mutex);
  finding() = message;
  if (!machine.options.quiet) std::fprintf(stderr, "CUDA emulator: %s\n", message.c_str());
}

void State::fail_device(int device, CUresult result, const std::string& message) {
  report(message);
  std::lock_guard lock(scheduler->mutex);
  CUresult& failure = devices[static_cast<size_t>(device)].failure;
  if (failure == CUDA_SUCCESS) failure = result;
}

const char* last_finding() {
  static thread_local std::string copy;
  std::lock_guard lock(finding_mutex);
  copy = finding();
  return copy.c_str();
}

}  // namespace collet::gpu::emulator
