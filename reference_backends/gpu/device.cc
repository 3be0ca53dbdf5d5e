// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "reference_backends/gpu/graph.h"
#include "reference_backends/gpu/tensor_maps.h"

namespace collet::gpu {

namespace {

/// Errors after which a context cannot be used any more.
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

/// Most time between an event from which times are measured and others: 1 s, for which a float is precise to 0.06 us.
constexpr uint64_t kMostBeforeNs = 1'000'000'000;

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
  out.grid.declared_bytes = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  const int64_t half = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / 2 -
                       read(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const int64_t most = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out.grid.shared_bytes = std::max(out.grid.declared_bytes, std::min(half, most));
  out.grid.block_shared_bytes = most;
  out.grid.warpgroups = out.capability == kWithWarpgroups;
  out.grid.processors = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out.grid.cache_bytes = read(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  out.grid.processor_threads = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  // There are two transfers in a cycle; the clock is in kHz, the bus width in bits.
  const double clock = read(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  out.memory_bytes_per_ns = 2 * clock * 1e-6 * read(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  return out;
}

Device::Device(std::shared_ptr<const Driver> driver, int ordinal, Options options)
    : options_(std::move(options)),
      library_(std::move(driver)),
      driver_(*library_),
      ordinal_(ordinal),
      staging_(driver_, [this](CUresult result, const char* what) { check(result, what); }) {
  check(driver_.cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  try {
    use();
    for (CUstream* stream : {&compute_.stream, &upload_.stream, &download_.stream, &memory_}) *stream = make_stream();
    most_shared_bytes_ = attribute(driver_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device_);
    check(driver_.cuDeviceGetDefaultMemPool(&pool_, device_), "cuDeviceGetDefaultMemPool");
    uint64_t keep = UINT64_MAX;  // freed memory stays in the pool, for the next allocation
    check(driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "cuMemPoolSetAttribute");
    library_calls_ = std::make_unique<LibraryCalls>(
        *options_.libraries, driver_, [this](CUresult result, const char* what) { check(result, what); },
        compute_.stream, [this](uint64_t bytes) { return allocate(bytes, 1); });
  } catch (...) {
    close();
    throw;
  }
}

Device::~Device() {
  close();
}

void Device::close() noexcept {
  if (options_.communicators) options_.communicators->close(ordinal_);
  if (options_.exchanger) options_.exchanger->close(ordinal_);
  driver_.cuCtxSetCurrent(context_);
  if (library_calls_) {
    driver_.cuStreamSynchronize(compute_.stream);
    const std::vector<CUdeviceptr> areas = library_calls_->areas();
    library_calls_.reset();
    for (const CUdeviceptr area : areas) driver_.cuMemFreeAsync(area, memory_);
  }
  for (CUstream stream : {compute_.stream, upload_.stream, download_.stream, memory_}) {
    if (!stream) continue;
    driver_.cuStreamSynchronize(stream);
    driver_.cuStreamDestroy_v2(stream);
  }
  for (const auto& [number, mark] : marks_) driver_.cuEventDestroy_v2(mark.event);
  for (CUevent event : spare_events_) driver_.cuEventDestroy_v2(event);
  for (CUevent event : order_events_) driver_.cuEventDestroy_v2(event);
  for (CUevent event : spare_timing_events_) driver_.cuEventDestroy_v2(event);
  for (const Lane* lane : {&compute_, &upload_, &download_}) {
    if (lane->origin) driver_.cuEventDestroy_v2(lane->origin);
    for (const Timed& one : lane->timed) {
      driver_.cuEventDestroy_v2(one.begin);
      driver_.cuEventDestroy_v2(one.end);
    }
  }
  if (origin_) driver_.cuEventDestroy_v2(origin_);
  staging_.release();
  if (pool_) {  // other users in the process may share the pool, so only unused memory is released
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
    const bool is_first = lost_.compare_exchange_strong(none, result);
    // Without that, other devices would wait for ever for the part of this one in their collectives.
    if (is_first && options_.communicators) options_.communicators->abort(ordinal_);
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

void Device::set_origin() {
  const uint64_t now = clock_ns();
  const bool is_pause = now - std::exchange(timed_ns_, now) > kMostBeforeNs;
  const auto is_drained = [](const Lane* lane) { return lane->timed.empty(); };
  Lane* const lanes[] = {&compute_, &upload_, &download_};
  const bool is_idle = starting_ == 0 && std::all_of(std::begin(lanes), std::end(lanes), is_drained);
  if (origin_ && !(is_pause && is_idle)) return;
  CUevent const origin = timing_event();
  spare_timing_events_.push_back(origin);  // kept as spare until it is recorded
  check(driver_.cuEventRecord(origin, memory_), "cuEventRecord");
  check(driver_.cuEventSynchronize(origin), "cuEventSynchronize");
  spare_timing_events_.pop_back();
  for (Lane* const lane : lanes) {
    if (lane->origin) spare_timing_events_.push_back(std::exchange(lane->origin, nullptr));
  }
  if (origin_) spare_timing_events_.push_back(origin_);
  origin_ns_ = clock_ns();
  origin_ = origin;
}

template <class Start>
void Device::timed(Lane& lane, const char* name, uint64_t run_id, uint64_t bytes, const Start& start) {
  use();
  if (!wants_records()) return start();
  Timed one{nullptr, nullptr, {name, lane.name, 0, 0, run_id, bytes}};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_origin();
    one.begin = timing_event();
    one.end = timing_event();
    ++starting_;
  }
  try {
    check(driver_.cuEventRecord(one.begin, lane.stream), "cuEventRecord");
    start();
    check(driver_.cuEventRecord(one.end, lane.stream), "cuEventRecord");
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    --starting_;
    spare_timing_events_.insert(spare_timing_events_.end(), {one.begin, one.end});
    throw;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  --starting_;
  lane.timed.push_back(std::move(one));
}

void Device::drain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Lane* const lane : {&compute_, &upload_, &download_}) {
    while (!lane->timed.empty()) {
      Timed& one = lane->timed.front();
      const CUresult ended = driver_.cuEventQuery(one.end);
      if (ended == CUDA_ERROR_NOT_READY) break;
      float before_ms = 0;
      float own_ms = 0;
      // Work that failed is reported by the call that waits for it, and gets no record.
      CUevent const origin = lane->origin ? lane->origin : origin_;
      if (ended == CUDA_SUCCESS && driver_.cuEventElapsedTime(&before_ms, origin, one.begin) == CUDA_SUCCESS &&
          driver_.cuEventElapsedTime(&own_ms, one.begin, one.end) == CUDA_SUCCESS) {
        const auto before_ns = static_cast<uint64_t>(std::max(before_ms, 0.0F) * 1e6);
        one.record.start_ns = (lane->origin ? lane->origin_ns : origin_ns_) + before_ns;
        one.record.duration_ns = static_cast<uint64_t>(std::max(own_ms, 0.0F) * 1e6);
        record(one.record);
        if (before_ns > kMostBeforeNs) {
          lane->origin_ns = one.record.start_ns;
          std::swap(lane->origin, one.begin);
        }
      }
      if (one.begin) spare_timing_events_.push_back(one.begin);
      spare_timing_events_.push_back(one.end);
      lane->timed.pop_front();
    }
  }
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

void Device::send(CUstream stream, CUdeviceptr to, const char* from, uint64_t bytes) {
  while (bytes != 0) {
    Staging::Block* const block = staging_.take(bytes);
    if (!block) {  // the driver copies from unpinned memory in its own way, and waits for it
      check(driver_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream), "cuMemcpyHtoDAsync_v2");
      return synchronize(stream);
    }
    const uint64_t part = std::min(bytes, block->bytes);
    std::memcpy(block->data, from, part);
    const CUresult started = driver_.cuMemcpyHtoDAsync_v2(to, block->data, part, stream);
    staging_.give_back_behind(block, stream);
    check(started, "cuMemcpyHtoDAsync_v2");
    to += part, from += part, bytes -= part;
  }
}

void Device::land(const Landing& one) {
  std::memcpy(one.to, one.block->data, one.bytes);
  staging_.give_back(one.block);
}

// While the host copies one piece from pinned memory, the device copies the next ones.
void Device::fetch_staged(CUstream stream, CUdeviceptr from, char* to, uint64_t bytes) {
  constexpr size_t kAhead = 4;
  std::deque<Landing> landings;
  const auto give_back = [&] {
    driver_.cuStreamSynchronize(stream);
    for (const Landing& one : landings) staging_.give_back(one.block);
  };
  try {
    while (bytes != 0 || !landings.empty()) {
      Staging::Block* const block = bytes != 0 && landings.size() < kAhead ? staging_.take(bytes) : nullptr;
      if (block) {
        landings.push_back({block, to, std::min(bytes, block->bytes)});
        const uint64_t part = landings.back().bytes;
        check(driver_.cuMemcpyDtoHAsync_v2(block->data, from, part, stream), "cuMemcpyDtoHAsync_v2");
        check(driver_.cuEventRecord(block->event, stream), "cuEventRecord");
        from += part, to += part, bytes -= part;
      } else if (!landings.empty()) {
        check(driver_.cuEventSynchronize(landings.front().block->event), "cuEventSynchronize");
        land(landings.front());
        landings.pop_front();
      } else {  // all blocks are in use
        check(driver_.cuMemcpyDtoHAsync_v2(to, from, bytes, stream), "cuMemcpyDtoHAsync_v2");
        return synchronize(stream);
      }
    }
  } catch (...) {
    give_back();
    throw;
  }
}

template <class Start>
auto Device::host_copy(CUstream stream, const Start& start) {
  try {
    return start();
  } catch (...) {  // what failed may have been a call behind the copy
    driver_.cuStreamSynchronize(stream);
    throw;
  }
}

void Device::fetch(Lane& lane, CUdeviceptr from, char* to, uint64_t bytes) {
  const bool is_direct = is_pinned(to, bytes);
  host_copy(lane.stream, [&] {
    timed(lane, lane.stream == compute_.stream ? "read" : "download", 0, bytes, [&] {
      if (!is_direct) return fetch_staged(lane.stream, from, to, bytes);
      check(driver_.cuMemcpyDtoHAsync_v2(to, from, bytes, lane.stream), "cuMemcpyDtoHAsync_v2");
    });
  });
  synchronize(lane.stream);
  drain();
}

void Device::write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  timed(compute_, "write", 0, bytes,
        [&] { send(compute_.stream, address(to, offset), static_cast<const char*>(from), bytes); });
}

void Device::read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  fetch(compute_, address(from, offset), static_cast<char*>(to), bytes);
}

void Device::copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) {
  timed(compute_, "copy", 0, bytes, [&] {
    check(driver_.cuMemcpyDtoDAsync_v2(address(to, to_offset), address(from, from_offset), bytes, compute_.stream),
          "cuMemcpyDtoDAsync_v2");
  });
}

void Device::finish() {
  use();
  for (const Lane* lane : {&upload_, &download_, &compute_}) synchronize(lane->stream);
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

void Device::give_back_event(CUevent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spare_events_.push_back(event);
}

uint64_t Device::add_mark(CUstream stream, std::vector<Landing> landings, Partners partners) {
  CUevent const event = take_event();
  const CUresult recorded = driver_.cuEventRecord(event, stream);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded != CUDA_SUCCESS) {
    spare_events_.push_back(event);
    check(recorded, "cuEventRecord");
  }
  marks_[++last_mark_] = {event, std::move(landings), std::move(partners)};
  return last_mark_;
}

uint64_t Device::mark() {
  use();
  Partners partners;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!partners_.empty()) {
      const uint64_t before = std::exchange(marked_[std::this_thread::get_id()], collectives_);
      for (const auto& one : partners_) {
        if (one.second > before) partners.insert(one);
      }
    }
  }
  return add_mark(compute_.stream, {}, std::move(partners));
}

void Device::check_partners(const Partners& partners) {
  for (const auto& [partner, collective] : partners) {
    try {
      partner->use();
      const CUresult state = partner->driver_.cuStreamQuery(partner->compute_.stream);
      if (state != CUDA_ERROR_NOT_READY) partner->check(state, "cuStreamQuery");
    } catch (const kernel::Error& error) {  // this device itself has not failed
      throw kernel::Error(COLLET_INTERNAL, std::string("another device of a collective: ") + error.what());
    }
  }
}

CUresult Device::await_event(CUevent event) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(options_.poll_ns));
  while (options_.poll_ns != 0 && std::chrono::steady_clock::now() < end) {
    const CUresult state = driver_.cuEventQuery(event);
    if (state != CUDA_ERROR_NOT_READY) return state;
  }
  return driver_.cuEventSynchronize(event);
}

void Device::wait(uint64_t mark) {
  use();
  Mark what;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = marks_.find(mark);
    if (found == marks_.end()) return synchronize(compute_.stream);
    what = std::move(found->second);
    marks_.erase(found);
  }
  const CUresult waited = await_event(what.event);
  give_back_event(what.event);
  for (const Landing& one : what.landings) {
    waited == CUDA_SUCCESS ? land(one) : staging_.give_back(one.block);
  }
  check(waited, "cuEventSynchronize");
  drain();
  if (what.partners.empty()) return;
  check_partners(what.partners);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [partner, collective] : what.partners) {
    const auto found = partners_.find(partner);
    if (found != partners_.end() && found->second == collective) partners_.erase(found);
  }
  if (partners_.empty()) marked_.clear();
}

void Device::upload(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  wait(start_upload(to, offset, from, bytes));
}

uint64_t Device::start_upload(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  const bool is_direct = is_pinned(from, bytes);
  return host_copy(upload_.stream, [&] {
    timed(upload_, "upload", 0, bytes, [&] {
      const CUdeviceptr at = address(to, offset);
      if (!is_direct) return send(upload_.stream, at, static_cast<const char*>(from), bytes);
      check(driver_.cuMemcpyHtoDAsync_v2(at, from, bytes, upload_.stream), "cuMemcpyHtoDAsync_v2");
    });
    return add_mark(upload_.stream, {});
  });
}

void Device::download(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  fetch(download_, address(from, offset), static_cast<char*>(to), bytes);
}

uint64_t Device::start_download(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  use();
  const bool is_direct = is_pinned(to, bytes);
  Staging::Block* const block = is_direct ? nullptr : staging_.take(bytes);
  // Several pieces are needed, which the host must copy one by one.
  if (!is_direct && (!block || block->bytes < bytes)) {
    if (block) staging_.give_back(block);
    download(from, offset, to, bytes);
    return 0;
  }
  try {
    return host_copy(download_.stream, [&] {
      timed(download_, "download", 0, bytes, [&] {
        check(driver_.cuMemcpyDtoHAsync_v2(block ? block->data : to, address(from, offset), bytes, download_.stream),
              "cuMemcpyDtoHAsync_v2");
      });
      std::vector<Landing> landings;
      if (block) landings.push_back({block, static_cast<char*>(to), bytes});
      return add_mark(download_.stream, std::move(landings));
    });
  } catch (...) {
    if (block) staging_.give_back(block);
    throw;
  }
}

bool Device::copy_to(kernel::Device& other, kernel::Memory to, uint64_t to_offset, kernel::Memory from,
                     uint64_t from_offset, uint64_t bytes) {
  auto& target = static_cast<Device&>(other);
  use();
  check(driver_.cuMemcpyPeerAsync(address(to, to_offset), target.context_, address(from, from_offset), context_, bytes,
                                  compute_.stream),
        "cuMemcpyPeerAsync");
  synchronize(compute_.stream);
  return true;
}

void Device::follow(GridDevice& other) {
  auto& before = static_cast<Device&>(other);
  before.use();
  CUevent event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(before.mutex_);
    if (!before.order_events_.empty()) {
      event = before.order_events_.back();
      before.order_events_.pop_back();
    }
  }
  if (!event) event = before.take_event();
  const auto give_back = [&] {
    const std::lock_guard<std::mutex> lock(before.mutex_);
    before.order_events_.push_back(event);
  };
  try {
    before.check(driver_.cuEventRecord(event, before.compute_.stream), "cuEventRecord");
    use();
    check(driver_.cuStreamWaitEvent(compute_.stream, event, 0), "cuStreamWaitEvent");
  } catch (...) {
    give_back();
    throw;
  }
  give_back();  // the stream waits for what was recorded, even if the event is recorded again on the same stream
}

bool Device::start_copy_to(GridDevice& other, kernel::Memory to, kernel::Memory from, uint64_t bytes) {
  auto& target = static_cast<Device&>(other);
  timed(compute_, "copy to another device", 0, bytes, [&] {
    check(driver_.cuMemcpyPeerAsync(to, target.context_, from, context_, bytes, compute_.stream), "cuMemcpyPeerAsync");
  });
  return true;
}

void Device::launch_collective(const CollectiveLaunch& what) {
  try {
    start_collective(what);
  } catch (const kernel::Error& error) {
    // This is thrown for all members, of which one is lost and the others are not.
    if (error.code() != COLLET_UNAVAILABLE || what.members.size() == 1) throw;
    throw kernel::Error(COLLET_INTERNAL, std::string("a device of a collective: ") + error.what());
  }
}

void Device::start_collective(const CollectiveLaunch& what) {
  for (const CollectiveMember& one : what.members) {
    auto& device = static_cast<Device&>(*one.device);
    const std::lock_guard<std::mutex> lock(device.mutex_);
    ++device.collectives_;
    for (const CollectiveMember& other : what.members) {
      if (other.device != one.device) device.partners_[static_cast<const Device*>(other.device)] = device.collectives_;
    }
  }
  if (!options_.communicators || what.members.size() == 1) return exchange(what);
  if (!Communicators::is_whole(*what.call)) exchange_own(what);
  std::vector<Communicators::Place> places;
  for (const CollectiveMember& one : what.members) {
    const auto& device = static_cast<const Device&>(*one.device);
    device.use();
    places.push_back({device.ordinal_, device.compute_.stream});
  }
  timed(compute_, codegen::name_of(what.call->kind), what.run_id, 0,
        [&] { options_.communicators->start(what, places); });
}

Exchanger::Place Device::place_of(kernel::Device& device) {
  const auto& mine = static_cast<const Device&>(device);
  mine.use();
  return {mine.ordinal_, mine.context_, [&mine](CUresult result, const char* what) { mine.check(result, what); }};
}

void Device::add_host_memory(void* host, uint64_t bytes) {
  use();
  // The memory is registered for all devices of the process; each of them is told.
  const CUresult added = driver_.cuMemHostRegister_v2(host, bytes, kMemHostRegisterPortable);
  const bool is_ours = added != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (is_ours) check(added, "cuMemHostRegister_v2");
  const std::lock_guard<std::mutex> lock(mutex_);
  pinned_[static_cast<const char*>(host)] = {bytes, is_ours};
}

void Device::remove_host_memory(void* host) {
  use();
  Pinned what{};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pinned_.find(static_cast<const char*>(host));
    if (found == pinned_.end()) return;
    what = found->second;
    pinned_.erase(found);
  }
  if (what.is_ours) check(driver_.cuMemHostUnregister(host), "cuMemHostUnregister");
}

bool Device::is_pinned(const void* host, uint64_t bytes) {
  const char* const begin = static_cast<const char*>(host);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto next = pinned_.upper_bound(begin);
  if (next == pinned_.begin()) return false;
  const auto& [start, what] = *std::prev(next);
  const auto before = static_cast<uint64_t>(begin - start);
  return before < what.bytes && bytes <= what.bytes - before;
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
  // Without this attribute, a block cannot get more shared memory than a kernel may declare.
  int declared = 0;
  check(driver_.cuFuncGetAttribute(&declared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), "cuFuncGetAttribute");
  if (declared == 0)
    check(driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most_shared_bytes_),
          "cuFuncSetAttribute");
  return reinterpret_cast<Handle>(function);
}

void Device::launch(const Launch& what) {
  thread_local std::vector<void*> parameters;  // kept to save allocations, because launches are frequent
  parameters.clear();
  for (uint32_t i = 0; i < what.argument_count; ++i) parameters.push_back(const_cast<uint64_t*>(what.arguments + i));
  thread_local std::vector<CUtensorMap> maps;
  maps.clear();
  timed(compute_, what.name->c_str(), what.run_id, 0, [&] {
    if (what.maps) check(append_tensor_maps(driver_, *what.maps, what.arguments, &maps), "cuTensorMapEncodeTiled");
    for (CUtensorMap& map : maps) parameters.push_back(&map);
    check(driver_.cuLaunchKernel(reinterpret_cast<CUfunction>(what.kernel), what.blocks, 1, 1, what.block_threads, 1, 1,
                                 what.shared_bytes, compute_.stream, parameters.data(), nullptr),
          "cuLaunchKernel");
  });
}

codegen::GridDevice::Handle Device::keep_sequence(const Sequence& what) {
  constexpr size_t kLeast = 3;  // shorter sequences are started as fast one by one
  if (!options_.graphs || what.items.size() < kLeast) return 0;
  use();
  const auto checked = [this](CUresult result, const char* function) { check(result, function); };
  const auto capture = [this](Handle way, const uint64_t* addresses) {
    return library_calls_->capture(way, addresses);
  };
  try {
    return reinterpret_cast<Handle>(new Graph(driver_, checked, capture, context_, what));
  } catch (const kernel::Error& error) {
    // A library may do what a capture does not allow; then its calls are not part of a graph.
    const bool has_calls =
        std::any_of(what.items.begin(), what.items.end(), [](const Sequence::Item& item) { return item.way != 0; });
    if (!has_calls || error.code() == COLLET_UNAVAILABLE) throw;
    return 0;
  }
}

void Device::start_sequence(Handle sequence, const std::vector<uint64_t>& arguments) {
  use();
  reinterpret_cast<Graph*>(sequence)->launch(arguments, compute_.stream);
}

void Device::drop_sequence(Handle sequence) noexcept {
  driver_.cuCtxSetCurrent(context_);
  delete reinterpret_cast<Graph*>(sequence);
}

std::vector<codegen::GridDevice::Handle> Device::prepare(const codegen::LibraryCall& what) {
  use();
  return library_calls_->prepare(what);
}

void Device::drop_prepared(Handle way) noexcept {
  driver_.cuCtxSetCurrent(context_);
  library_calls_->drop(way);
}

void Device::launch_library(const LibraryLaunch& what) {
  timed(compute_, what.name->c_str(), what.run_id, 0, [&] {
    try {
      library_calls_->launch(what.way, what.addresses);
    } catch (const kernel::Error&) {
      // A library does not report that the device is lost, but the driver does.
      const CUresult state = driver_.cuStreamQuery(compute_.stream);
      if (state != CUDA_ERROR_NOT_READY) check(state, "cuStreamQuery");
      throw;
    }
  });
}

}  // namespace collet::gpu
