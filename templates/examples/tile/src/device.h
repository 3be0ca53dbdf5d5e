// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include "machine.h"

namespace tile {

// Adapts the machine to the functions that the SDK's header calls. A kernel::Memory is a word address.
//
// The five functions for memory and `finish` are all that a device needs. The functions after them allow work in
// parallel: command lists are queued (mark, wait), and copies to and from the host run at the same time (upload,
// download).
class Device final : public collet::kernel::Device {
 public:
  using Memory = collet::kernel::Memory;

  explicit Device(uint64_t fail_at);

  Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(Memory memory) noexcept override { machine_.free(memory); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override;
  void finish() override { machine_.drain(); }

  uint64_t mark() override { return machine_.mark(); }
  void wait(uint64_t mark) override { machine_.wait(mark); }
  void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void download(Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  bool copy_to(collet::kernel::Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
               uint64_t bytes) override;
  bool records_itself() const override { return true; }

  // Queues a command list after those before it, and returns.
  void submit(Commands commands, std::string name, uint64_t run_id);

 private:
  Machine machine_;
};

}  // namespace tile
