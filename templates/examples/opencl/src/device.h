// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <collet/codegen/grid_device.hpp>
#include <deque>
#include <map>
#include <mutex>

#include "driver.h"

namespace opencl {

namespace kernel = collet::kernel;
using kernel::Memory;

// A device of OpenCL. A Memory is a cl_mem. Kernels and copies of the device run in order in one queue; copies to and from the host that
// depend on none of these have queues of their own.
class Device final : public collet::codegen::GridDevice {
 public:
  // `fail_at`: number, from 1, of the launch at which the device is lost, to test how that is reported; 0 for none.
  Device(std::shared_ptr<const Driver> driver, uint32_t number, uint64_t fail_at);
  ~Device() override;

  Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(Memory memory) noexcept override {
    clReleaseMemObject(reinterpret_cast<cl_mem>(static_cast<uintptr_t>(memory)));
  }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    transfer(compute_, true, to, offset, const_cast<void*>(from), bytes, "compute");
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    transfer(compute_, false, from, offset, to, bytes, "compute");
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override;
  void finish() override;

  uint64_t mark() override;
  void wait(uint64_t mark) override;
  void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    transfer(up_, true, to, offset, const_cast<void*>(from), bytes, "upload");
  }
  void download(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    transfer(down_, false, from, offset, to, bytes, "download");
  }
  bool copy_to(kernel::Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
               uint64_t bytes) override;
  bool records_itself() const override { return true; }

  bool is_opaque() const override { return true; }
  Handle load_module(const std::string& code, const std::string& name) override;
  void unload_module(Handle module) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    modules_.erase(module);
  }
  Handle find_kernel(Handle module, const std::string& name) override;
  void launch(const Launch& what) override;

 private:
  using Event = Shared<cl_event>;
  // A command whose times are to be recorded when it has ended.
  struct Timed {
    Event event;
    kernel::Record record;
  };
  struct Module {
    Program program;
    std::vector<Shared<cl_kernel>> kernels;
  };

  void use() const;  // throws if the device is lost
  [[noreturn]] void lose(cl_int result, const char* what) const;
  // Puts a command on a queue: `start` gets where to store its event, if that is wanted. `waits`: it waits for work as well.
  template <class Start>
  void put(const char* name, const char* engine, uint64_t run_id, uint64_t bytes, const char* what, bool waits,
           const Start& start);
  void transfer(const Shared<cl_command_queue>& queue, bool to_device, Memory memory, uint64_t offset, void* host,
                uint64_t bytes, const char* engine);
  uint64_t keep(Event event);
  void drain();  // records the commands that have ended

  std::shared_ptr<const Driver> driver_;
  cl_device_id device_;
  Shared<cl_command_queue> compute_, up_, down_;
  int64_t clock_offset_ns_ = 0;  // the system's clock less that of the device
  std::atomic<uint64_t> launches_{0};
  const uint64_t fail_at_;
  mutable std::atomic<bool> is_lost_{false};
  std::mutex launch_mutex_;  // the arguments of a kernel belong to the cl_kernel
  std::mutex mutex_;         // guards what follows
  std::map<uint64_t, Event> marks_;
  uint64_t last_mark_ = 0;
  std::deque<Timed> timed_;
  std::map<Handle, Module> modules_;
};

}  // namespace opencl
