// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace acme {

using collet::kernel::Error;

namespace {

char* at(Memory memory, uint64_t offset) {
  return reinterpret_cast<char*>(static_cast<uintptr_t>(memory + offset));
}

}  // namespace

Device::~Device() {
  for (const auto& [code, bytes] : code_bytes_) munmap(at(code, 0), bytes);
}

Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  if (bytes > UINT64_MAX - alignment) throw std::bad_alloc();
  void* const data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data) throw std::bad_alloc();
  return reinterpret_cast<uintptr_t>(data);
}

void Device::free(Memory memory) noexcept {
  std::free(at(memory, 0));
}

void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(at(to, offset), from, bytes);
}

void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, at(from, offset), bytes);
}

void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  std::memcpy(at(to, to_offset), at(from, from_offset), bytes);
}

Memory Device::allocate_code(uint64_t bytes, uint64_t) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  const Memory code = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard<std::mutex> lock(mutex_);
  code_bytes_[code] = bytes;
  return code;
}

void Device::load_code(Memory code, const void* image, uint64_t bytes) {
  std::memcpy(at(code, 0), image, bytes);
  if (mprotect(at(code, 0), bytes, PROT_READ | PROT_EXEC) != 0)
    throw Error(COLLET_INTERNAL, "the system does not let this process run code that it has made");
  __builtin___clear_cache(at(code, 0), at(code, bytes));
}

void Device::free_code(Memory code) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = code_bytes_.find(code);
  if (found == code_bytes_.end()) return;
  munmap(at(code, 0), found->second);
  code_bytes_.erase(found);
}

// Functions that generated code may call. On a real device they are part of the firmware.
uint64_t Device::find_function(const std::string& name) const {
  using Double = double (*)(double);
  using Float = float (*)(float);
  const auto address = [](auto function) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(function)); };
  static const std::map<std::string, uint64_t> all = {
      {"memcpy", address(&std::memcpy)},
      {"memset", address(&std::memset)},
      {"memmove", address(&std::memmove)},
      {"fma", address(static_cast<double (*)(double, double, double)>(std::fma))},
      {"fmaf", address(static_cast<float (*)(float, float, float)>(std::fma))},
      {"fmod", address(static_cast<double (*)(double, double)>(std::fmod))},
      {"fmodf", address(static_cast<float (*)(float, float)>(std::fmod))},
      {"floor", address(static_cast<Double>(std::floor))},
      {"floorf", address(static_cast<Float>(std::floor))},
      {"ceil", address(static_cast<Double>(std::ceil))},
      {"ceilf", address(static_cast<Float>(std::ceil))},
      {"rint", address(static_cast<Double>(std::rint))},
      {"rintf", address(static_cast<Float>(std::rint))},
      {"round", address(static_cast<Double>(std::round))},
      {"roundf", address(static_cast<Float>(std::round))},
      {"trunc", address(static_cast<Double>(std::trunc))},
      {"truncf", address(static_cast<Float>(std::trunc))},
  };
  const auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

// On a real device this passes the function and the slots to the device and returns immediately: see Device::mark in
// <collet/kernel_call.hpp>.
void Device::launch(uint64_t function, const std::vector<uint64_t>& slots, const std::string&, uint64_t) {
  std::vector<char*> addresses;
  addresses.reserve(slots.size());
  for (const uint64_t slot : slots) addresses.push_back(at(slot, 0));
  reinterpret_cast<void (*)(char* const*)>(static_cast<uintptr_t>(function))(addresses.data());
}

}  // namespace acme
