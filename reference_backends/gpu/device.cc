// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/device.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace collet::gpu {

namespace {

/// Errors after which a context serves no more.
bool is_lost(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

collet_status code_of(CUresult result) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return COLLET_RESOURCE_EXHAUSTED;
  if (result == CUDA_ERROR_NOT_SUPPORTED) return COLLET_UNIMPLEMENTED;
  return is_lost(result) ? COLLET_UNAVAILABLE : COLLET_INTERNAL;
}

CUdeviceptr address(kernel::Memory memory, uint64_t offset) {
  return memory + offset;
}

uint64_t clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

int attribute(const Driver& driver, CUdevice_attribute which, CUdevice device) {
  int value = 0;
  check(driver, driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

}  // namespace

void check(const Driver& driver, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::string text = std::string(what) + ": " + result_text(result);
  if (driver.colletCudaEmulatorLastError && is_lost(result)) {
    const char* const found = driver.colletCudaEmulatorLastError();
    if (found && *found) text += std::string(": ") + found;
  }
  throw kernel::Error(code_of(result), text);
}

DeviceFacts read_facts(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  check(driver, driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  DeviceFacts out;
  char name[256] = {};
  check(driver, driver.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName");
  out.name = name;
  size_t bytes = 0;
  check(driver, driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem_v2");
  out.memory_bytes = bytes;
  const auto read = [&](CUdevice_attribute which) { return attribute(driver, which, device); };
  out.capability =
      10 * read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) + read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out.grid.warp = read(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  out.grid.block_threads = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out.grid.shared_bytes = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  out.grid.processors = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.grid.processor_threads = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  // Two transfers a cycle; the clock is in kHz, the width in bits.
  const double clock = read(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  out.memory_bytes_per_ns = 2 * clock * 1e-6 * read(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  return out;
}

Device::Device(std::shared_ptr<const Driver> driver, int ordinal) : library_(std::move(driver)), driver_(*library_) {
  check(driver_.cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  try {
    use();
    for (CUstream* stream : {&compute_, &upload_, &download_, &memory_}) *stream = make_stream();
    check(driver_.cuDeviceGetDefaultMemPool(&pool_, device_), "cuDeviceGetDefaultMemPool");
    uint64_t keep = UINT64_MAX;  // memory that is given back serves the next allocation
    check(driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "cuMemPoolSetAttribute");
  } catch (...) {
    close();
    throw;
  }
}

Device::~Device() {
  close();
}

void Device::close() noexcept {
  driver_.cuCtxSetCurrent(context_);
  for (const auto& [number, event] : marks_) driver_.cuEventDestroy_v2(event);
  for (CUevent event : spare_events_) driver_.cuEventDestroy_v2(event);
  for (CUevent event : spare_timing_events_) driver_.cuEventDestroy_v2(event);
  for (const Timed& one : timed_) {
    driver_.cuEventDestroy_v2(one.begin);
    driver_.cuEventDestroy_v2(one.end);
  }
  if (origin_) driver_.cuEventDestroy_v2(origin_);
  for (CUstream stream : {compute_, upload_, download_, memory_}) {
    if (!stream) continue;
    driver_.cuStreamSynchronize(stream);
    driver_.cuStreamDestroy_v2(stream);
  }
  if (pool_) {  // the process may have other users of it
    uint64_t usual = 0;
    driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &usual);
    driver_.cuMemPoolTrimTo(pool_, 0);
  }
  driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

void Device::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  if (is_lost(result)) {
    CUresult none = CUDA_SUCCESS;
    lost_.compare_exchange_strong(none, result);
  }
  gpu::check(driver_, result, what);
}

void Device::use() const {
  check(lost_.load(), "the device is lost");
  check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

CUstream Device::make_stream() const {
  CUstream stream = nullptr;
  check(driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
  return stream;
}

void Device::synchronize(CUstream stream) const {
  check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

CUevent Device::timing_event() {
  if (!spare_timing_events_.empty()) {
    CUevent const event = spare_timing_events_.back();
    spare_timing_events_.pop_back();
    return event;
  }
  CUevent event = nullptr;
  check(driver_.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return event;
}

template <class Start>
void Device::timed(const char* name, uint64_t run_id, uint64_t bytes, const Start& start) {
  use();
  if (!wants_records()) return start();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!origin_) {
    CUevent const origin = timing_event();
    spare_timing_events_.push_back(origin);  // until it is recorded
    check(driver_.cuEventRecord(origin, compute_), "cuEventRecord");
    check(driver_.cuEventSynchronize(origin), "cuEventSynchronize");
    spare_timing_events_.pop_back();
    origin_ns_ = clock_ns();
    origin_ = origin;
  }
  Timed one{timing_event(), nullptr, {name, "compute", 0, 0, run_id, bytes}};
  try {
    one.end = timing_event();
    check(driver_.cuEventRecord(one.begin, compute_), "cuEventRecord");
    start();
    check(driver_.cuEventRecord(one.end, compute_), "cuEventRecord");
  } catch (...) {
    spare_timing_events_.push_back(one.begin);
    if (one.end) spare_timing_events_.push_back(one.end);
    throw;
  }
  timed_.push_back(std::move(one));
}

void Device::drain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!timed_.empty()) {
    Timed& one = timed_.front();
    const CUresult ended = driver_.cuEventQuery(one.end);
    if (ended == CUDA_ERROR_NOT_READY) return;
    float before_ms = 0;
    float own_ms = 0;
    // What failed is reported by the call that waits for it, and has no record.
    if (ended == CUDA_SUCCESS && driver_.cuEventElapsedTime(&before_ms, origin_, one.begin) == CUDA_SUCCESS &&
        driver_.cuEventElapsedTime(&own_ms, one.begin, one.end) == CUDA_SUCCESS) {
      one.record.start_ns = origin_ns_ + static_cast<uint64_t>(std::max(before_ms, 0.0F) * 1e6);
      one.record.duration_ns = static_cast<uint64_t>(std::max(own_ms, 0.0F) * 1e6);
      record(one.record);
    }
    spare_timing_events_.push_back(one.begin);
    spare_timing_events_.push_back(one.end);
    timed_.pop_front();
  }
}

template <class Run>
void Device::recorded(const char* name, const char* engine, uint64_t bytes, const Run& run) {
  use();
  const uint64_t begin = clock_ns();
  run();
  if (wants_records()) record({name, engine, begin, clock_ns() - begin, 0, bytes});
}

kernel::Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  constexpr uint64_t kDriverAlignment = 256;
  const uint64_t extra = alignment > kDriverAlignment ? alignment - kDriverAlignment : 0;
  if (bytes > UINT64_MAX - extra) throw std::bad_alloc();
  use();
  CUdeviceptr base = 0;
  check(driver_.cuMemAllocAsync(&base, bytes + extra, memory_), "cuMemAllocAsync");
  synchronize(memory_);
  if (extra == 0) return base;
  const CUdeviceptr out = (base + alignment - 1) / alignment * alignment;
  const std::lock_guard<std::mutex> lock(mutex_);
  bases_[out] = base;
  return out;
}

void Device::free(kernel::Memory memory) noexcept {
  if (memory == kernel::no_memory) return;
  CUdeviceptr base = memory;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = bases_.find(memory); found != bases_.end()) {
      base = found->second;
      bases_.erase(found);
    }
  }
  driver_.cuCtxSetCurrent(context_);
  driver_.cuMemFreeAsync(base, memory_);
}

void Device::write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  recorded("write", "compute", bytes, [&] {
    check(driver_.cuMemcpyHtoDAsync_v2(address(to, offset), from, bytes, compute_), "cuMemcpyHtoDAsync_v2");
    synchronize(compute_);
  });
}

void Device::read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  recorded("read", "compute", bytes, [&] {
    check(driver_.cuMemcpyDtoHAsync_v2(to, address(from, offset), bytes, compute_), "cuMemcpyDtoHAsync_v2");
    synchronize(compute_);
  });
  drain();
}

void Device::copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) {
  timed("copy", 0, bytes, [&] {
    check(driver_.cuMemcpyDtoDAsync_v2(address(to, to_offset), address(from, from_offset), bytes, compute_),
          "cuMemcpyDtoDAsync_v2");
  });
}

void Device::finish() {
  use();
  synchronize(compute_);
  drain();
}

CUevent Device::take_event() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!spare_events_.empty()) {
      CUevent const event = spare_events_.back();
      spare_events_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  return event;
}

uint64_t Device::mark() {
  use();
  CUevent const event = take_event();
  const CUresult recorded = driver_.cuEventRecord(event, compute_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded != CUDA_SUCCESS) {
    spare_events_.push_back(event);
    check(recorded, "cuEventRecord");
  }
  marks_[++last_mark_] = event;
  return last_mark_;
}

void Device::wait(uint64_t mark) {
  use();
  CUevent event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = marks_.find(mark);
    if (found == marks_.end()) return synchronize(compute_);
    event = found->second;
    marks_.erase(found);
  }
  const CUresult waited = driver_.cuEventSynchronize(event);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    spare_events_.push_back(event);
  }
  check(waited, "cuEventSynchronize");
  drain();
}

void Device::upload(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  recorded("upload", "upload", bytes, [&] {
    check(driver_.cuMemcpyHtoDAsync_v2(address(to, offset), from, bytes, upload_), "cuMemcpyHtoDAsync_v2");
    synchronize(upload_);
  });
}

void Device::download(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  recorded("download", "download", bytes, [&] {
    check(driver_.cuMemcpyDtoHAsync_v2(to, address(from, offset), bytes, download_), "cuMemcpyDtoHAsync_v2");
    synchronize(download_);
  });
}

bool Device::copy_to(kernel::Device& other, kernel::Memory to, uint64_t to_offset, kernel::Memory from,
                     uint64_t from_offset, uint64_t bytes) {
  auto& target = static_cast<Device&>(other);
  use();
  check(driver_.cuMemcpyPeerAsync(address(to, to_offset), target.context_, address(from, from_offset), context_, bytes,
                                  compute_),
        "cuMemcpyPeerAsync");
  synchronize(compute_);
  return true;
}

void Device::add_host_memory(void* host, uint64_t bytes) {
  use();
  check(driver_.cuMemHostRegister_v2(host, bytes, kMemHostRegisterPortable), "cuMemHostRegister_v2");
}

void Device::remove_host_memory(void* host) {
  use();
  check(driver_.cuMemHostUnregister(host), "cuMemHostUnregister");
}

codegen::GridDevice::Handle Device::load_module(const std::string& text, const std::string& name) {
  use();
  constexpr size_t kLogBytes = 4096;
  std::string log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  CUmodule module = nullptr;
  const CUresult loaded =
      driver_.cuModuleLoadDataEx(&module, text.c_str(), static_cast<unsigned>(std::size(options)), options, values);
  log.resize(std::min(log.find('\0'), log.size()));
  check(loaded, ("the driver does not load the code of " + name + (log.empty() ? "" : ": " + log)).c_str());
  return reinterpret_cast<Handle>(module);
}

void Device::unload_module(Handle module) noexcept {
  driver_.cuCtxSetCurrent(context_);
  driver_.cuModuleUnload(reinterpret_cast<CUmodule>(module));
}

codegen::GridDevice::Handle Device::find_kernel(Handle module, const std::string& name) {
  use();
  CUfunction function = nullptr;
  check(driver_.cuModuleGetFunction(&function, reinterpret_cast<CUmodule>(module), name.c_str()),
        "cuModuleGetFunction");
  return reinterpret_cast<Handle>(function);
}

void Device::launch(const Launch& what) {
  thread_local std::vector<void*> parameters;  // kept: launches are many
  parameters.clear();
  for (uint32_t i = 0; i < what.argument_count; ++i) parameters.push_back(const_cast<uint64_t*>(what.arguments + i));
  timed(what.name->c_str(), what.run_id, 0, [&] {
    check(driver_.cuLaunchKernel(reinterpret_cast<CUfunction>(what.kernel), what.blocks, 1, 1, what.block_threads, 1, 1,
                                 0, compute_, parameters.data(), nullptr),
          "cuLaunchKernel");
  });
}

}  // namespace collet::gpu
