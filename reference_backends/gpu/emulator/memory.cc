// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace collet::gpu::emulator {
namespace {

constexpr uint64_t kAlign = 256;
/// Unused bytes between allocations, so that an access past the end of one does not reach the next.
constexpr uint64_t kGap = 256;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kNull = 1 << 20;  ///< invalid addresses below this are probably null pointers plus an offset

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t span_of(uint64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign + kGap;
}

}  // namespace

void DeviceMemory::Gaps::add(uint64_t address, uint64_t bytes) {
  auto next = by_address.lower_bound(address);
  if (next != by_address.end() && next->first == address + bytes) {
    bytes += next->second;
    by_bytes.erase({next->second, next->first});
    next = by_address.erase(next);
  }
  if (next != by_address.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      by_bytes.erase({before->second, before->first});
      by_address.erase(before);
    }
  }
  by_address[address] = bytes;
  by_bytes.emplace(bytes, address);
}

uint64_t DeviceMemory::Gaps::take(uint64_t bytes) {
  const auto found = by_bytes.lower_bound({bytes, 0});
  if (found == by_bytes.end()) return 0;
  const auto [size, address] = *found;
  by_bytes.erase(found);
  by_address.erase(address);
  if (size > bytes) add(address + bytes, size - bytes);
  return address;
}

DeviceMemory* DeviceMemory::create(unsigned devices, uint64_t bytes_each, uint64_t quarantine, std::string& problem) {
  auto* m = new DeviceMemory;
  m->bytes_each_ = bytes_each;
  m->size_ = devices * bytes_each;
  m->most_quarantined_ = quarantine;
  const int file = memfd_create("collet_cuda_emulator", MFD_CLOEXEC);
  const auto fail = [&](const char* what) {
    problem = std::string("the CUDA emulator could not ") + what + ": " + std::strerror(errno);
    if (file >= 0) close(file);
    delete m;
    return nullptr;
  };
  if (file < 0 || ftruncate(file, static_cast<off_t>(m->size_)) != 0) return fail("make device memory");
  const auto map = [](uint64_t bytes, int protection, int flags, int fd) -> void* {
    void* p = mmap(nullptr, bytes, protection, flags | MAP_NORESERVE, fd, 0);
    return p == MAP_FAILED ? nullptr : p;
  };
  void* const range = map(m->size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  void* const host = map(m->size_, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  void* const states = map(m->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  void* const records = map(m->size_ * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!range || !host || !states || !records) return fail("reserve addresses");
  close(file);
  // Huge pages, because a large allocation marks the states of all of its bytes.
  madvise(states, m->size_, MADV_HUGEPAGE);
  m->base_ = reinterpret_cast<uint64_t>(range);
  m->host_ = static_cast<uint8_t*>(host);
  m->states_ = static_cast<uint8_t*>(states);
  m->records_ = static_cast<std::atomic<uint64_t>*>(records);
  m->gaps_.resize(devices);
  for (unsigned i = 0; i < devices; ++i) m->gaps_[i].add(m->base_ + i * bytes_each + kGap, bytes_each - kGap);
  return m;
}

void DeviceMemory::clear_records() {
  madvise(static_cast<void*>(records_), size_ * 2, MADV_DONTNEED);
}

uint64_t DeviceMemory::reserve(unsigned device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > bytes_each_) return 0;
  for (;;) {
    if (const uint64_t at = gaps_[device].take(span_of(bytes))) {
      blocks_[at] = {bytes, Block::State::kReserved};
      used_[device] += bytes;
      return at;
    }
    if (quarantine_.empty()) return 0;
    release_oldest();
  }
}

void DeviceMemory::mark_allocated(uint64_t address) {
  std::lock_guard lock(mutex_);
  Block& b = blocks_.at(address);
  if (b.state == Block::State::kReserved) b.state = Block::State::kUsed;  // or it has been freed on a stream already
  std::memset(states(address), kByteAllocated, b.bytes);
}

bool DeviceMemory::begin_free(uint64_t address, std::string& problem) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) {
    problem = hex(address) + " is not the begin of an allocation";
    return false;
  }
  Block& b = found->second;
  if (b.state == Block::State::kFreeing || b.state == Block::State::kFreed) {
    problem = "the allocation at " + hex(address) + " of " + std::to_string(b.bytes) + " bytes is freed twice";
    return false;
  }
  b.state = Block::State::kFreeing;
  return true;
}

void DeviceMemory::finish_free(uint64_t address) {
  std::lock_guard lock(mutex_);
  Block& b = blocks_.at(address);
  b.state = Block::State::kFreed;
  used_[device_of(address)] -= b.bytes;
  // Bytes that are not allocated have state 0. Whole pages are returned to the system.
  uint64_t held = b.bytes;
  const uint64_t first = (address + kPage - 1) / kPage * kPage, last = (address + b.bytes) / kPage * kPage;
  if (last > first && last - first >= 16 * kPage) {
    std::memset(states(address), 0, first - address);
    std::memset(states(last), 0, address + b.bytes - last);
    madvise(states(first), last - first, MADV_DONTNEED);
    madvise(host(first), last - first, MADV_REMOVE);
    madvise(reinterpret_cast<void*>(record(first)), (last - first) * 2, MADV_DONTNEED);
    held -= last - first;
  } else {
    std::memset(states(address), 0, b.bytes);
  }
  held = std::max(held, kAlign);  // the emulator's own data about the allocation counts, too
  quarantine_.push_back({address, held});
  quarantined_ += held;
  while (quarantined_ > most_quarantined_) release_oldest();
}

void DeviceMemory::end_quarantine() {
  std::lock_guard lock(mutex_);
  while (!quarantine_.empty()) release_oldest();
}

void DeviceMemory::release_oldest() {
  const Freed oldest = quarantine_.front();
  quarantine_.pop_front();
  quarantined_ -= oldest.held;
  const auto found = blocks_.find(oldest.address);
  gaps_[device_of(oldest.address)].add(oldest.address, span_of(found->second.bytes));
  blocks_.erase(found);
}

std::optional<DeviceMemory::Allocation> DeviceMemory::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return std::nullopt;
  --next;
  return Allocation{next->first, next->second.bytes, next->second.state >= Block::State::kFreeing};
}

uint64_t DeviceMemory::free_bytes(unsigned device) const {
  std::lock_guard lock(mutex_);
  const auto found = used_.find(device);
  return bytes_each_ - (found == used_.end() ? 0 : found->second);
}

std::pair<size_t, uint64_t> DeviceMemory::in_use(unsigned device) const {
  std::lock_guard lock(mutex_);
  std::pair<size_t, uint64_t> sum{0, 0};
  for (const auto& [address, block] : blocks_) {
    if (device_of(address) != device || block.state >= Block::State::kFreeing) continue;
    ++sum.first;
    sum.second += block.bytes;
  }
  return sum;
}

uint64_t DeviceMemory::first_in_use(unsigned device) const {
  std::lock_guard lock(mutex_);
  for (const auto& [address, block] : blocks_) {
    if (device_of(address) == device && block.state < Block::State::kFreeing) return address;
  }
  return 0;
}

std::string DeviceMemory::problem_of(uint64_t address, uint64_t bytes, bool is_write, bool initialised) const {
  const std::string what =
      (is_write ? "a write of " : "a read of ") + std::to_string(bytes) + " bytes at " + hex(address);
  if (address < base_ || bytes > size_ || address - base_ > size_ - bytes) {
    return what + ": no memory of a device" + (address < kNull ? " (a null pointer?)" : "");
  }
  const uint8_t* const s = states(address);
  uint64_t i = 0;
  while (i < bytes && (s[i] & kByteAllocated)) ++i;
  if (i == bytes) {
    const bool none_written = std::none_of(s, s + bytes, [](uint8_t b) { return (b & kByteWritten) != 0; });
    if (!is_write && initialised && bytes && none_written) return what + ": nobody wrote these bytes before";
    return {};
  }
  const auto near = find(address + i);
  if (!near) return what + ": out of bounds, before all allocations";
  const std::string allocation = "the allocation of " + std::to_string(near->bytes) + " bytes at " + hex(near->address);
  if (address + i < near->address + near->bytes) {
    return what + (near->is_freed ? ": use after free, inside " : ": before it is allocated on its stream, inside ") +
           allocation;
  }
  return what + ": out of bounds, " + std::to_string(address + i - near->address - near->bytes) +
         " bytes after the end of " + allocation;
}

bool HostMemory::add(void* memory, uint64_t bytes, bool is_ours) {
  std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uint64_t>(memory);
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.end() && next->first < begin + bytes) return false;
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > begin) return false;
  }
  ranges_[begin] = {bytes, is_ours};
  return true;
}

bool HostMemory::remove(void* memory, bool is_ours, uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  const auto found = ranges_.find(reinterpret_cast<uint64_t>(memory));
  if (found == ranges_.end() || found->second.is_ours != is_ours) return false;
  if (bytes) *bytes = found->second.bytes;
  ranges_.erase(found);
  return true;
}

bool HostMemory::contains(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return false;
  --next;
  return address - next->first < next->second.bytes && bytes <= next->second.bytes - (address - next->first);
}

}  // namespace collet::gpu::emulator
