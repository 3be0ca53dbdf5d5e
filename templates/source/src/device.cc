// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace acme {

using collet::kernel::Error;

namespace {

char* at(Memory memory, uint64_t offset) {
  return reinterpret_cast<char*>(static_cast<uintptr_t>(memory + offset));
}

}  // namespace

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

// The stand-in's compiler makes shared libraries. They are loaded from files.
uint64_t Device::load_code(const std::string& code, const std::string& function) {
  char path[] = "/tmp/acme_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) throw Error(COLLET_RESOURCE_EXHAUSTED, "no file can be written to /tmp");
  const bool written = ::write(file, code.data(), code.size()) == static_cast<ssize_t>(code.size());
  close(file);
  void* const library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  void* const address = library ? dlsym(library, function.c_str()) : nullptr;
  if (!address)
    throw Error(COLLET_INTERNAL, "code cannot be loaded: " + std::string(written ? dlerror() : "/tmp is full"));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto handle = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
  libraries_[handle] = library;
  return handle;
}

void Device::free_code(uint64_t handle) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = libraries_.find(handle);
  if (found == libraries_.end()) return;
  dlclose(found->second);
  libraries_.erase(found);
}

// On a real device this passes the function and the slots to the device and returns immediately: see Device::mark in
// <collet/kernel_call.hpp>.
void Device::launch(uint64_t handle, const std::vector<uint64_t>& slots, const std::string&, uint64_t) {
  std::vector<char*> addresses;
  addresses.reserve(slots.size());
  for (const uint64_t slot : slots) addresses.push_back(at(slot, 0));
  reinterpret_cast<void (*)(char* const*)>(static_cast<uintptr_t>(handle))(addresses.data());
}

}  // namespace acme
