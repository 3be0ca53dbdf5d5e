// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/instance.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <numeric>
#include <thread>

#include "hlo/base/json.h"
#include "hlo/base/utf8.h"

namespace collet::conformance {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  owner_ = other.owner_;
  handle_ = std::exchange(other.handle_, nullptr);
  host_ = other.host_;
  bytes_ = other.bytes_;
  device_ = other.device_;
  return *this;
}

void Buffer::reset() {
  if (handle_ != nullptr) owner_->table().free(owner_->handle(), handle_);
  handle_ = nullptr;
}

uint32_t Device::type_flags(uint32_t type) const {
  uint32_t flags = 0;
  for (const collet_type_support& one : types)
    if (one.type == type) flags |= one.flags;
  return flags;
}

OpenOptions::OpenOptions(const Plugin& plugin) {
  for (const auto& [key, value] : plugin.options()) add(key.c_str(), value.c_str());
}

void OpenOptions::add(const char* key, const char* value) {
  keys_.push_back(key);
  values_.push_back(value);
}

collet_open_options* OpenOptions::get() {
  options_.struct_size = sizeof options_;
  options_.pairs = static_cast<uint32_t>(keys_.size());
  options_.keys = keys_.empty() ? nullptr : keys_.data();
  options_.values = values_.empty() ? nullptr : values_.data();
  return &options_;
}

std::unique_ptr<Instance> Instance::open(Contract& c, uint32_t device_count, bool or_fewer) {
  std::unique_ptr<Instance> instance(new Instance(c));
  OpenOptions options(c.plugin());
  options.get()->device_count = device_count;
  collet_instance_info info{};
  info.struct_size = sizeof info;
  std::string message;
  const collet_status status = checked_call(
      c, "open",
      [&](collet_error* error) { return instance->table().open(options.get(), &instance->handle_, &info, error); },
      &message);
  // A backend may refuse a number of devices that it cannot make, or open those that it has.
  if (status != COLLET_OK && device_count > 1) {
    if (or_fewer) return open(c);
    c.skip(fmt::format("open made no {} devices: {}", device_count, message));
    return nullptr;
  }
  if (!c.check(status == COLLET_OK, Promise::OPEN, "open failed: {}", message)) return nullptr;
  if (!c.check(instance->handle_ != nullptr, Promise::OPEN, "open succeeded without an instance")) return nullptr;
  if (!c.check(info.struct_size == sizeof info, Promise::SIZED, "open changed the struct_size of its info"))
    return nullptr;
  const bool has_strings = info.name != nullptr && info.version != nullptr && *info.name != '\0';
  if (!c.check(has_strings, Promise::INSTANCE_STRINGS, "open gave no name, or no version")) return nullptr;
  if (!c.check(is_plain_name(info.name), Promise::INSTANCE_STRINGS,
               "the name {} is not 1 to 64 lower-case letters, digits, '-', '_' and '.', a letter first",
               quoted(info.name)))
    return nullptr;
  if (!c.check(info.opset >= 1, Promise::OPSET, "open stated the opset {}", info.opset)) return nullptr;
  instance->opset_ = info.opset;
  for (uint32_t i = 0; i < info.device_count; ++i)
    if (!instance->describe(i)) return nullptr;
  if (!c.check(!instance->devices_.empty(), Promise::OPEN, "open gave an instance without a device")) return nullptr;
  return instance;
}

Instance::~Instance() {
  if (handle_ != nullptr) table().close(handle_);
}

bool Instance::describe(uint32_t number) {
  collet_device_info info{};
  info.struct_size = sizeof info;
  std::string message;
  const collet_status status = checked_call(
      c_, "device_info", [&](collet_error* error) { return table().device_info(handle_, number, &info, error); },
      &message);
  if (!c_.check(status == COLLET_OK, Promise::DEVICE_NUMBER, "device_info of device {} failed: {}", number, message))
    return false;
  Device device;
  device.traits = info.traits;
  if (!c_.check(info.kind != nullptr && info.fingerprint != nullptr && info.spaces != nullptr,
                Promise::DEVICE_IMMUTABLE, "device {} has no kind, fingerprint or memory spaces", number))
    return false;
  device.kind = info.kind;
  device.fingerprint = info.fingerprint;
  device.spaces.assign(info.spaces, info.spaces + info.space_count);
  if (info.types) device.types.assign(info.types, info.types + info.type_count);
  if (info.peers) device.peers.assign(info.peers, info.peers + info.peer_count);
  int defaults = 0;
  for (uint32_t i = 0; i < device.spaces.size(); ++i) {
    if (device.spaces[i].flags & COLLET_SPACE_DEFAULT) {
      device.default_space = i;
      ++defaults;
    }
    if (!c_.check(std::has_single_bit(device.spaces[i].alignment), Promise::ALIGNMENT_POWER,
                  "memory space {} of device {} has an alignment of {}", i, number, device.spaces[i].alignment))
      return false;
  }
  if (!c_.check(defaults == 1, Promise::DEFAULT_SPACE, "device {} has {} default memory spaces", number, defaults))
    return false;
  devices_.push_back(std::move(device));
  return true;
}

bool Instance::serial() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& d) { return d.has(COLLET_TRAIT_SERIAL); });
}

bool Instance::executes() const {
  return std::none_of(devices_.begin(), devices_.end(), [](const Device& d) { return d.has(COLLET_TRAIT_VIRTUAL); });
}

collet_status Instance::try_alloc(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment, Buffer& out) {
  // Sentinels: a failing call must leave them, a successful call must overwrite them.
  auto* const untouched = reinterpret_cast<collet_backend_buffer*>(uintptr_t{0x5a5a5a5a});
  void* const untouched_host = reinterpret_cast<void*>(uintptr_t{0x5a5a5a5a});
  collet_backend_buffer* handle = untouched;
  void* host = untouched_host;
  const collet_status status = checked_call(c_, "alloc", [&](collet_error* error) {
    return table().alloc(handle_, device, space, bytes, alignment, &handle, &host, error);
  });
  if (status != COLLET_OK) {
    c_.check(handle == untouched || handle == nullptr, c_.out_arguments(), "alloc failed and handed out a buffer");
    return status;
  }
  if (!c_.check(handle != untouched && handle != nullptr, Promise::ALLOC_ALIGNED, "alloc succeeded without a buffer"))
    return COLLET_INTERNAL;
  const bool visible = (devices_[device].spaces[space].flags & COLLET_SPACE_HOST_VISIBLE) != 0;
  c_.check(host != untouched_host && (host != nullptr) == visible, Promise::ALLOC_HOST,
           "alloc in a space that the host {} gave {} host pointer", visible ? "sees" : "does not see",
           host == untouched_host ? "an untouched"
           : host != nullptr      ? "a"
                                  : "no");
  if (!visible || host == untouched_host) host = nullptr;
  out = Buffer(this, handle, static_cast<uint8_t*>(host), bytes, device);
  return status;
}

Buffer Instance::alloc_in(uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment) {
  Buffer out;
  const collet_status status = try_alloc(device, space, bytes, alignment, out);
  c_.check(status == COLLET_OK, Promise::ALLOC_ALIGNED, "alloc of {} bytes, aligned to {}, in space {} gave status {}",
           bytes, alignment, space, status);
  return out;
}

Buffer Instance::alloc(uint64_t bytes, uint32_t device, uint64_t alignment) {
  const Device& d = devices_[device];
  return alloc_in(device, d.default_space, std::max<uint64_t>(bytes, 1), alignment ? alignment : d.alignment());
}

bool Instance::copy(std::span<const collet_copy_region> regions) {
  std::string message;
  const collet_status status = checked_call(
      c_, "copy",
      [&](collet_error* error) {
        return table().copy(handle_, regions.data(), static_cast<uint32_t>(regions.size()), nullptr, error);
      },
      &message);
  return c_.check(status == COLLET_OK, Promise::COPY, "copy gave status {}: {}", status, message);
}

bool Instance::write(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes) {
  const collet_copy_region one = region(at_host(from), at(to, offset), bytes);
  return copy({&one, 1});
}

bool Instance::read(const Buffer& from, uint64_t offset, void* to, uint64_t bytes) {
  const collet_copy_region one = region(at(from, offset), at_host(to), bytes);
  return copy({&one, 1});
}

Bytes Instance::read(const Buffer& from) {
  Bytes out(from.bytes(), 0x77);
  read(from, 0, out.data(), out.size());
  return out;
}

const void* Instance::find_table(const char* name, uint32_t bytes) const {
  if (table().query == nullptr) return nullptr;
  const void* found = table().query(handle_, name, 1);
  uint32_t size = 0;
  if (found != nullptr) std::memcpy(&size, found, sizeof size);
  return size >= bytes ? found : nullptr;
}

collet_place at(const Buffer& buffer, uint64_t offset) {
  return {buffer.handle(), nullptr, offset};
}

collet_place at_host(const void* host, uint64_t offset) {
  return {nullptr, const_cast<void*>(host), offset};
}

collet_copy_region region(const collet_place& from, const collet_place& to, uint64_t bytes) {
  return {from, to, bytes};
}

Bytes pattern(uint64_t bytes, uint64_t seed) {
  Bytes out(bytes);
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 0x1234567;
  for (uint8_t& byte : out) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return out;
}

size_t first_difference(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  const size_t n = std::min(a.size(), b.size());
  const auto place = std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(n), b.begin()).first;
  const auto index = static_cast<size_t>(place - a.begin());
  return index == n && a.size() == b.size() ? SIZE_MAX : index;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

uint64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

uint64_t resident_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"), std::fclose);
  unsigned long long total = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &total, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The heap of a sanitizer keeps freed memory and does not count it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanMeasure = false;
#else
constexpr bool kCanMeasure = true;
#endif

Growth measure_growth(int cycles, const std::function<bool()>& cycle) {
  constexpr size_t kGroups = 16;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i)
      if (!cycle()) return false;
    return true;
  };
  if (!run(cycles) || !kCanMeasure) return {};
  const int each = std::max(1, cycles * 2 / static_cast<int>(kGroups));
  std::array<double, kGroups> heap{}, resident{};
  for (size_t group = 0; group < kGroups; ++group) {
    const auto grown = [&](uint64_t before, uint64_t after) {
      return (static_cast<double>(after) - static_cast<double>(before)) / each;
    };
    const uint64_t heap_before = heap_bytes(), resident_before = resident_bytes();
    if (!run(each)) return {};
    heap[group] = grown(heap_before, heap_bytes());
    resident[group] = grown(resident_before, resident_bytes());
  }
  const auto mean = [](const double* from) { return std::accumulate(from, from + kGroups / 2, 0.0) / (kGroups / 2); };
  const auto least = [&](const auto& all) { return std::min(mean(all.data()), mean(all.data() + kGroups / 2)); };
  Growth out{least(heap), least(resident), 0};
  out.always = *std::min_element(heap.begin(), heap.end());
  return out;
}

void on_threads(int count, const std::function<void(int)>& function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(function, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace collet::conformance
