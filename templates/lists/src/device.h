// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <mutex>
#include <vector>

namespace acme {

// The device. This one is a stand-in made of host memory, so that the project runs before your driver does: replace the
// bodies in device.cc by calls of your driver, one after another. The SDK holds handles of memory, never addresses;
// only kernels need addresses, which `at` returns.
class Device final : public collet::kernel::Device {
 public:
  ~Device() override;
  collet::kernel::Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(collet::kernel::Memory memory) noexcept override;
  void write(collet::kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(collet::kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(collet::kernel::Memory to, uint64_t to_offset, collet::kernel::Memory from, uint64_t from_offset,
            uint64_t bytes) override;

  // Returns the address of an array, for kernels; null for an array without elements. Throws if it is not inside its
  // memory.
  void* at(const collet::kernel::Array& array);

 private:
  struct Slot {
    char* data = nullptr;
    uint64_t bytes = 0;
    uint64_t alignment = 0;
    uint32_t generation = 1;  // counts how often the slot was used, so that an old handle is recognised
  };

  char* find(collet::kernel::Memory memory, uint64_t offset, uint64_t bytes);

  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> unused_;
};

}  // namespace acme
