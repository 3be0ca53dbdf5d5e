// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/code_backend.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "../device/protocol.h"

namespace riscv {

using collet::kernel::Memory;

// The settings with which a device is started.
struct Settings {
  std::string emulator;  // empty: the usual names are tried
  std::string program;   // device/device.c, compiled; empty: the file in this library's folder
  uint32_t vlen = 128;   // bits of a vector register
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t fail_at = 0;  // the command that fails, from 1; 0: none
};

// An allocator for a range of addresses: first fit.
class Arena {
 public:
  void add(uint64_t begin, uint64_t bytes) { free_[begin] = bytes; }
  // Returns 0 if there is not enough memory.
  uint64_t allocate(uint64_t bytes, uint64_t alignment);
  void free(uint64_t begin);

 private:
  std::map<uint64_t, uint64_t> free_, used_;  // bytes of the free and the used pieces, by address
};

// A device in another process. Its memory is a file that both processes have mapped; a Memory is an address in that
// process. Launches, copies within the device, small writes and code go through a ring of commands (device/protocol.h),
// in order; other data is copied through the mapping. A mark is a position in the ring. A thread sleeps until the
// device sends a byte. When the socket is closed, the device is lost, and every later call fails.
class Device final : public collet::codegen::CodeDevice {
 public:
  explicit Device(const Settings& settings);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(Memory memory) noexcept override;
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override;
  void finish() override { wait(mark()); }

  uint64_t mark() override;
  void wait(uint64_t mark) override;
  void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void download(Memory from, uint64_t offset, void* to, uint64_t bytes) override;

  Memory allocate_code(uint64_t bytes, uint64_t alignment) override;
  void load_code(Memory code, const void* image, uint64_t bytes) override;
  void free_code(Memory code) noexcept override;
  uint64_t find_function(const std::string& name) const override;
  void launch(uint64_t function, const std::vector<uint64_t>& slots, const std::string& name, uint64_t run_id) override;

 private:
  void start(const Settings& settings);
  void listen();
  void stop() noexcept;
  void submit(uint64_t code, std::initializer_list<uint64_t> words, const void* data, uint64_t bytes);
  void check_alive() const;  // the caller must hold the mutex
  Memory allocate_from(Arena& arena, uint64_t bytes, uint64_t alignment);
  template <class Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition condition);

  const Settings settings_;
  int file_ = -1, socket_ = -1;
  pid_t process_ = 0;
  char* shared_ = nullptr;
  RiscvControl* control_ = nullptr;
  char* memory_ = nullptr;  // address at which this process has mapped the memory
  std::thread listener_;

  std::mutex mutable mutex_;  // guards the fields below
  std::condition_variable changed_;
  std::string lost_;  // why the device is lost; empty if it is not
  uint64_t submitted_ = 0, commands_ = 0;
  Arena memory_arena_, code_arena_;
};

}  // namespace riscv
