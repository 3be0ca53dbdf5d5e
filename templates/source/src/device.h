// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/source_backend.hpp>
#include <map>
#include <mutex>

namespace acme {

using collet::kernel::Memory;

// The device. This one is a stand-in, so that the project runs before your driver does: its memory is host memory, and
// its processor is the host's. Replace the bodies in device.cc by calls of your driver, one after another. A Memory is
// the address at which code on the device finds it; the host reads and writes it only through these functions.
class Device final : public collet::codegen::SourceDevice {
 public:
  Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(Memory memory) noexcept override;
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override;

  uint64_t load_code(const std::string& code, const std::string& function) override;
  void free_code(uint64_t handle) noexcept override;
  void launch(uint64_t handle, const std::vector<uint64_t>& slots, const std::string& name, uint64_t run_id) override;

 private:
  std::mutex mutex_;
  std::map<uint64_t, void*> libraries_;  // what was loaded, by the address of the function
};

}  // namespace acme
