// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <chrono>

namespace opencl {

using kernel::Error;

namespace {

cl_mem memory_of(Memory memory) {
  return reinterpret_cast<cl_mem>(static_cast<uintptr_t>(memory));
}

template <class T>
uint64_t handle_of(T object) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object));
}

int64_t time_of(cl_event event, cl_profiling_info which) {
  cl_ulong ns = 0;
  return clGetEventProfilingInfo(event, which, sizeof ns, &ns, nullptr) == CL_SUCCESS ? static_cast<int64_t>(ns) : 0;
}

}  // namespace

Device::Device(std::shared_ptr<const Driver> driver, uint32_t number, uint64_t fail_at)
    : driver_(std::move(driver)), device_(driver_->devices[number]), fail_at_(fail_at) {
  cl_int result = CL_SUCCESS;
  for (Shared<cl_command_queue>* const queue : {&compute_, &up_, &down_}) {
    *queue = {clCreateCommandQueue(driver_->context.get(), device_, CL_QUEUE_PROFILING_ENABLE, &result),
              clReleaseCommandQueue};
    check(result, "clCreateCommandQueue");
  }
  // When a command has just ended, both clocks are read. Markers have no times with all drivers.
  const Memory memory = allocate(1, 1);
  cl_event written = nullptr;
  result = clEnqueueWriteBuffer(compute_.get(), memory_of(memory), CL_TRUE, 0, 1, "", 0, nullptr, &written);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  free(memory);
  check(result, "clEnqueueWriteBuffer");
  const Event owned(written, clReleaseEvent);
  clock_offset_ns_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - time_of(written, CL_PROFILING_COMMAND_END);
}

Device::~Device() {
  for (const Shared<cl_command_queue>* const queue : {&compute_, &up_, &down_}) clFinish(queue->get());
}

void Device::use() const {
  if (is_lost_) throw Error(COLLET_UNAVAILABLE, "the device is lost");
}

void Device::lose(cl_int result, const char* what) const {
  is_lost_ = true;
  throw Error(COLLET_UNAVAILABLE, std::string("the device is lost: ") + what + " returned " + std::to_string(result));
}

template <class Start>
void Device::put(const char* name, const char* engine, uint64_t run_id, uint64_t bytes, const char* what, bool waits,
                 const Start& start) {
  use();
  const bool timed = wants_records();
  cl_event event = nullptr;
  const cl_int result = start(timed ? &event : nullptr);
  // Drivers may allocate memory when it is first used.
  const bool is_lost = (waits && !is_memory_error(result)) || result == CL_DEVICE_NOT_AVAILABLE;
  if (result != CL_SUCCESS && is_lost) lose(result, what);
  check(result, what);
  if (!timed) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  timed_.push_back({Event(event, clReleaseEvent), {name, engine, 0, 0, run_id, bytes}});
}

// A cl_mem has no address that anybody sees. Kernels need at most 64 bytes, which the driver gives to each.
Memory Device::allocate(uint64_t bytes, uint64_t) {
  use();
  if (bytes > driver_->most_bytes)
    throw Error(COLLET_RESOURCE_EXHAUSTED, "an allocation of " + std::to_string(bytes) + " bytes: the device allows " +
                                               std::to_string(driver_->most_bytes));
  cl_int result = CL_SUCCESS;
  cl_mem const memory = clCreateBuffer(driver_->context.get(), CL_MEM_READ_WRITE, bytes, nullptr, &result);
  check(result, "clCreateBuffer");
  return handle_of(memory);
}

void Device::transfer(const Shared<cl_command_queue>& queue, bool to_device, Memory memory, uint64_t offset, void* host,
                      uint64_t bytes, const char* engine) {
  const auto start = [&](cl_event* event) {
    cl_mem const of = memory_of(memory);
    return to_device ? clEnqueueWriteBuffer(queue.get(), of, CL_TRUE, offset, bytes, host, 0, nullptr, event)
                     : clEnqueueReadBuffer(queue.get(), of, CL_TRUE, offset, bytes, host, 0, nullptr, event);
  };
  put(to_device ? "write" : "read", engine, 0, bytes, "a copy to or from the host", true, start);
}

void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  put("copy", "compute", 0, bytes, "clEnqueueCopyBuffer", false, [&](cl_event* event) {
    return clEnqueueCopyBuffer(compute_.get(), memory_of(from), memory_of(to), from_offset, to_offset, bytes, 0,
                               nullptr, event);
  });
}

// The devices are parts of one, and share their context, so that the memory of one is that of all.
bool Device::copy_to(kernel::Device&, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
                     uint64_t bytes) {
  copy(to, to_offset, from, from_offset, bytes);
  finish();
  return true;
}

void Device::finish() {
  use();
  const cl_int result = clFinish(compute_.get());
  if (result != CL_SUCCESS) lose(result, "clFinish");
  drain();
}

uint64_t Device::mark() {
  use();
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(compute_.get(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  Event owned(event, clReleaseEvent);
  check(clFlush(compute_.get()), "clFlush");
  return keep(std::move(owned));
}

uint64_t Device::keep(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Marks that have been reached need no event.
  for (auto at = marks_.begin(); at != marks_.end();) {
    cl_int status = CL_QUEUED;
    clGetEventInfo(at->second.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    at = status == CL_COMPLETE ? marks_.erase(at) : std::next(at);
  }
  marks_[++last_mark_] = std::move(event);
  return last_mark_;
}

void Device::wait(uint64_t mark) {
  Event event;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = marks_.find(mark); found != marks_.end()) event = found->second;
  }
  if (event) {
    cl_event const one = event.get();
    const cl_int result = clWaitForEvents(1, &one);
    if (result != CL_SUCCESS) lose(result, "clWaitForEvents");
  }
  use();
  drain();
}

void Device::drain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto one = timed_.begin(); one != timed_.end();) {
    cl_int status = CL_QUEUED;
    clGetEventInfo(one->event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (status > CL_COMPLETE) {
      ++one;
      continue;
    }
    const int64_t begin = time_of(one->event.get(), CL_PROFILING_COMMAND_START);
    const int64_t end = time_of(one->event.get(), CL_PROFILING_COMMAND_END);
    one->record.start_ns = static_cast<uint64_t>(begin + clock_offset_ns_);
    one->record.duration_ns = static_cast<uint64_t>(std::max<int64_t>(end - begin, 0));
    record(one->record);
    one = timed_.erase(one);
  }
}

Device::Handle Device::load_module(const std::string& code, const std::string&) {
  use();
  Program program = driver_->load(device_, code);
  const Handle handle = handle_of(program.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  modules_[handle].program = std::move(program);
  return handle;
}

Device::Handle Device::find_kernel(Handle module, const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cl_int result = CL_SUCCESS;
  Shared<cl_kernel> kernel(clCreateKernel(modules_.at(module).program.get(), name.c_str(), &result), clReleaseKernel);
  check(result, "clCreateKernel");
  modules_[module].kernels.push_back(std::move(kernel));
  return handle_of(modules_[module].kernels.back().get());
}

void Device::launch(const Launch& what) {
  if (++launches_ == fail_at_) lose(CL_DEVICE_NOT_AVAILABLE, "clEnqueueNDRangeKernel");
  auto* const function = reinterpret_cast<cl_kernel>(static_cast<uintptr_t>(what.kernel));
  const size_t group = what.block_threads, all = group * what.blocks;
  const std::lock_guard<std::mutex> lock(launch_mutex_);
  for (uint32_t i = 0; i < what.argument_count; i += 2) {
    cl_mem const memory = memory_of(what.arguments[i]);
    const auto offset = static_cast<cl_long>(what.arguments[i + 1]);
    check(clSetKernelArg(function, i, sizeof memory, &memory), "clSetKernelArg");
    check(clSetKernelArg(function, i + 1, sizeof offset, &offset), "clSetKernelArg");
  }
  put(what.name->c_str(), "compute", what.run_id, 0, "clEnqueueNDRangeKernel", false, [&](cl_event* event) {
    return clEnqueueNDRangeKernel(compute_.get(), function, 1, nullptr, &all, &group, 0, nullptr, event);
  });
}

}  // namespace opencl
