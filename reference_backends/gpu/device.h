// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_backend.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"
#include "reference_backends/gpu/library/communicators.h"
#include "reference_backends/gpu/library/exchanger.h"
#include "reference_backends/gpu/library/library_calls.h"
#include "reference_backends/gpu/staging.h"

namespace collet::gpu {

/// Throws kernel::Error unless `result` is success: RESOURCE_EXHAUSTED if memory is missing, UNAVAILABLE if the device
/// is lost (it then stays lost), else INTERNAL. `what` is the name of the driver's function.
void check(const Driver& driver, CUresult result, const char* what);

/// The compute capability whose matrix instructions work on warpgroups. Later ones have others in their place.
inline constexpr int kWithWarpgroups = 90;

/// Facts about a device, from the driver.
struct DeviceFacts {
  std::string name;
  int capability = 0;  ///< 10 * major + minor
  uint64_t memory_bytes = 0;
  double memory_bytes_per_ns = 0;  ///< memory bandwidth; 0 if unknown
  codegen::GridLimits grid;
};

/// Reads the facts about a device. Throws as `check` does.
DeviceFacts read_facts(const Driver& driver, int ordinal);

/// A GPU that is used through a CUDA driver. Kernels, and all work that must be in order with them, run on one stream;
/// uploads and downloads run on two others. Copies from and to host memory that is not pinned go through pieces of
/// pinned memory.
class Device final : public codegen::GridDevice {
 public:
  /// The options of a device.
  struct Options {
    bool graphs = true;              ///< sequences of kernels become CUDA graphs
    bool prefers_libraries = false;  ///< see codegen::GridDevice
    uint64_t poll_ns = 0;            ///< see kernel::Backend::queue_poll_ns
    std::shared_ptr<const Libraries> libraries = std::make_shared<Libraries>();  ///< empty unless libraries were opened
    /// Shared by the devices of a backend; null if NCCL was not opened.
    std::shared_ptr<Communicators> communicators{};
    /// Likewise; null if NCCL has no communicators over several processes.
    std::shared_ptr<Exchanger> exchanger{};
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
  bool may_be_in_sequence(Handle way) override { return options_.graphs && library_calls_->may_be_captured(way); }
  void launch_library(const LibraryLaunch& what) override;
  bool prefers_libraries() const override { return options_.prefers_libraries; }
  void follow(GridDevice& other) override;
  bool start_copy_to(GridDevice& other, kernel::Memory to, kernel::Memory from, uint64_t bytes) override;
  void launch_collective(const CollectiveLaunch& what) override;

  /// Returns what exchanges between processes need of a Device. Throws kernel::Error if it is lost.
  static Exchanger::Place place_of(kernel::Device& device);

 private:
  /// Like the function `check`, for this device. Once the device is lost, all later calls report that.
  void check(CUresult result, const char* what) const;
  void use() const;  ///< makes the context current in the calling thread; throws if the device is lost
  void close() noexcept;
  CUstream make_stream() const;
  void synchronize(CUstream stream) const;
  CUevent take_event();
  /// Blocks until what was recorded in the event has ended; polls first.
  CUresult await_event(CUevent event) const;

  /// A kernel or a copy between two events that measure its time.
  struct Timed {
    CUevent begin;
    CUevent end;
    kernel::Record record;
  };
  /// A stream, and its work that is to be recorded, in order.
  struct Lane {
    const char* name;
    CUstream stream = nullptr;
    std::deque<Timed> timed{};
    /// The begin of earlier work from which times are measured, and its time; null: they are measured from origin_.
    CUevent origin = nullptr;
    uint64_t origin_ns = 0;
  };
  /// A part of a copy to the host that has reached pinned memory. The thread that waits for the copy copies it on.
  struct Landing {
    Staging::Block* block;
    char* to;
    uint64_t bytes;
  };
  /// Devices with which this one has exchanged data, each with the number of its last collective with it.
  using Partners = std::map<const Device*, uint64_t>;
  struct Mark {
    CUevent event;
    std::vector<Landing> landings;
    Partners partners;  ///< devices whose data the marked work has received
  };
  /// Calls `start`, which puts work on the lane's stream. The record of the work is made when it has ended.
  template <class Start>
  void timed(Lane& lane, const char* name, uint64_t run_id, uint64_t bytes, const Start& start);
  /// Makes the records of all work that has ended.
  void drain();
  CUevent timing_event();
  /// Makes the event from which times are measured, again after a pause: it must not be far away, because a float, in which
  /// they are measured, has 24 bits. The caller must hold the mutex.
  void set_origin();

  /// Puts a copy to the device on a stream. `from` may be overwritten when this returns.
  void send(CUstream stream, CUdeviceptr to, const char* from, uint64_t bytes);
  /// Copies to the host after all work on the lane. Returns when the data have arrived.
  void fetch(Lane& lane, CUdeviceptr from, char* to, uint64_t bytes);
  void fetch_staged(CUstream stream, CUdeviceptr from, char* to, uint64_t bytes);
  void land(const Landing& one);
  /// Calls `start`, by which the device copies from or to the host's memory on a stream. If it throws, the copy has ended.
  template <class Start>
  auto host_copy(CUstream stream, const Start& start);
  uint64_t add_mark(CUstream stream, std::vector<Landing> landings, Partners partners = {});
  void give_back_event(CUevent event);
  void start_collective(const CollectiveLaunch& what);
  /// Throws if a device from which data came has failed, because then the data may be missing.
  static void check_partners(const Partners& partners);
  bool is_pinned(const void* host, uint64_t bytes);

  const Options options_;
  const std::shared_ptr<const Driver> library_;
  const Driver& driver_;
  const int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  int most_shared_bytes_ = 0;                         ///< most shared memory of a block, in bytes
  mutable std::atomic<CUresult> lost_{CUDA_SUCCESS};  ///< the error by which the device was lost
  CUmemoryPool pool_ = nullptr;                       ///< the device's default memory pool
  Lane compute_{"compute"};
  Lane upload_{"upload"};
  Lane download_{"download"};
  /// Stream of allocations: nothing else runs on it, so that they are available immediately.
  CUstream memory_ = nullptr;
  Staging staging_;
  std::unique_ptr<LibraryCalls> library_calls_;
  std::mutex mutex_;  ///< guards the fields below, and the lanes' work to be recorded
  struct Pinned {
    uint64_t bytes;
    bool is_ours;  ///< true if this device has registered the memory; false if it was registered before
  };
  std::map<const char*, Pinned> pinned_;  ///< memory of add_host_memory, by address
  std::map<kernel::Memory, CUdeviceptr>
      bases_;  ///< for memory with a larger alignment than the driver's: the address that the driver returned
  /// The partners of collectives for which no wait() has confirmed yet that the partner was not lost.
  Partners partners_;
  uint64_t collectives_ = 0;  ///< number of collectives so far
  /// By thread, while there are partners: the number of the last collective before the last mark that it made. Each thread
  /// gets the partners since then, because any of them may be the one that waits for the collective.
  std::map<std::thread::id, uint64_t> marked_;
  uint64_t last_mark_ = 0;
  std::map<uint64_t, Mark> marks_;
  std::vector<CUevent> spare_events_;
  std::vector<CUevent> order_events_;  ///< events that are recorded on the compute stream alone, see follow
  std::vector<CUevent> spare_timing_events_;
  CUevent origin_ = nullptr;  ///< event that is recorded when records are first requested
  uint64_t origin_ns_ = 0;    ///< time of origin_ on the system's clock
  uint64_t timed_ns_ = 0;     ///< time at which work that is to be recorded was started last
  unsigned starting_ = 0;     ///< number of threads that start such work now
};

}  // namespace collet::gpu
