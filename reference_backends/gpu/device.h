// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_backend.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/library/library_calls.h"
#include "reference_backends/gpu/staging.h"

namespace collet::gpu {

/// Throws kernel::Error unless `result` is success. RESOURCE_EXHAUSTED where memory is missing, UNAVAILABLE where the device is lost,
/// which it then stays; else INTERNAL. `what` is the driver's function.
void check(const Driver& driver, CUresult result, const char* what);

/// Facts about a device, from the driver.
struct DeviceFacts {
  std::string name;
  int capability = 0;  ///< 10 * major + minor
  uint64_t memory_bytes = 0;
  double memory_bytes_per_ns = 0;  ///< 0: unknown
  codegen::GridLimits grid;
};

/// Reads them; throws as check does.
DeviceFacts read_facts(const Driver& driver, int ordinal);

/// A GPU behind a CUDA driver. Kernels and what belongs in their order run on one stream, uploads and downloads on two others. Copies
/// from and to memory of the host that is not pinned go through pieces of pinned memory.
class Device final : public codegen::GridDevice {
 public:
  /// The options of a device.
  struct Options {
    bool graphs = true;              ///< sequences of kernels become graphs of the driver's
    bool prefers_libraries = false;  ///< see codegen::GridDevice
    std::shared_ptr<const Libraries> libraries = std::make_shared<Libraries>();  ///< none, unless they were opened
  };
  Device(std::shared_ptr<const Driver> driver, int ordinal, Options options);
  Device(std::shared_ptr<const Driver> driver, int ordinal) : Device(std::move(driver), ordinal, Options()) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() override;

  kernel::Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(kernel::Memory memory) noexcept override;
  void write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) override;
  void finish() override;
  uint64_t mark() override;
  void wait(uint64_t mark) override;
  void upload(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void download(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  uint64_t start_upload(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  uint64_t start_download(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  bool copy_to(kernel::Device& other, kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset,
               uint64_t bytes) override;
  bool records_itself() const override { return true; }
  void add_host_memory(void* host, uint64_t bytes) override;
  void remove_host_memory(void* host) override;

  Handle load_module(const std::string& text, const std::string& name) override;
  void unload_module(Handle module) noexcept override;
  Handle find_kernel(Handle module, const std::string& name) override;
  void launch(const Launch& what) override;
  Handle keep_sequence(const Sequence& what) override;
  void start_sequence(Handle sequence, const std::vector<uint64_t>& arguments) override;
  void drop_sequence(Handle sequence) noexcept override;
  std::vector<Handle> prepare(const codegen::LibraryCall& what) override;
  void drop_prepared(Handle way) noexcept override;
  void launch_library(const LibraryLaunch& what) override;
  bool prefers_libraries() const override { return options_.prefers_libraries; }

 private:
  /// The function of the same name, for this device. One that was lost stays lost, whatever the driver says later.
  void check(CUresult result, const char* what) const;
  void use() const;  ///< makes the context that of the calling thread; throws where the device is lost
  void close() noexcept;
  CUstream make_stream() const;
  void synchronize(CUstream stream) const;
  CUevent take_event();

  /// A kernel or a copy between two events.
  struct Timed {
    CUevent begin;
    CUevent end;
    kernel::Record record;
  };
  /// A stream, and what of it is to be recorded, in its order.
  struct Lane {
    const char* name;
    CUstream stream = nullptr;
    std::deque<Timed> timed{};
  };
  /// Part of a copy to the host that ends in memory of ours; the rest of the way is left to who waits for it.
  struct Landing {
    Staging::Block* block;
    char* to;
    uint64_t bytes;
  };
  struct Mark {
    CUevent event;
    std::vector<Landing> landings;
  };
  /// Runs `start`, which puts work on the lane's stream; its record is made when the work has ended.
  template <class Start>
  void timed(Lane& lane, const char* name, uint64_t run_id, uint64_t bytes, const Start& start);
  /// Makes records of what has ended.
  void drain();
  CUevent timing_event();

  /// Puts a copy on a stream. Of `from` nothing is needed afterwards.
  void send(CUstream stream, CUdeviceptr to, const char* from, uint64_t bytes);
  /// Copies behind what is on the lane; returns when the data are there.
  void fetch(Lane& lane, CUdeviceptr from, char* to, uint64_t bytes);
  void fetch_staged(CUstream stream, CUdeviceptr from, char* to, uint64_t bytes);
  void land(const Landing& one);
  uint64_t add_mark(CUstream stream, std::vector<Landing> landings);
  bool is_pinned(const void* host, uint64_t bytes);

  const Options options_;
  const std::shared_ptr<const Driver> library_;
  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  int most_shared_bytes_ = 0;                         ///< of a block
  mutable std::atomic<CUresult> lost_{CUDA_SUCCESS};  ///< what ended it
  CUmemoryPool pool_ = nullptr;                       ///< the device's default one
  Lane compute_{"compute"};
  Lane upload_{"upload"};
  Lane download_{"download"};
  CUstream memory_ = nullptr;  ///< of allocations: nothing else runs there, so that they are there at once
  Staging staging_;
  std::unique_ptr<LibraryCalls> library_calls_;
  std::mutex mutex_;  ///< of what follows, and of what lanes are to record
  struct Pinned {
    uint64_t bytes;
    bool is_ours;  ///< registered by this device, and not by another one before
  };
  std::map<const char*, Pinned> pinned_;  ///< memory of add_host_memory
  std::map<kernel::Memory, CUdeviceptr>
      bases_;  ///< of memory that is aligned to more than the driver does: what the driver gave
  uint64_t last_mark_ = 0;
  std::map<uint64_t, Mark> marks_;
  std::vector<CUevent> spare_events_;
  std::vector<CUevent> spare_timing_events_;
  CUevent origin_ = nullptr;  ///< recorded when records were first wanted
  uint64_t origin_ns_ = 0;    ///< the system's clock then
};

}  // namespace collet::gpu
