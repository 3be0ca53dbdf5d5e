// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "hlo/ir/literal.h"
#include "hlo/program/block.h"
#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/memory/event.h"
#include "sdk/runtime/memory/in_flight.h"
#include "sdk/runtime/memory/memory.h"
#include "sdk/runtime/memory/queue.h"
#include "sdk/runtime/memory/worker.h"
#include "sdk/runtime/plan/executable_cache.h"
#include "sdk/runtime/processes/processes.h"

namespace collet::runtime {

class CompiledProgram;
struct ExecutableCore;

/// What a reference for work, which continues when the caller has released all that he had, adds to a number of references: the low half
/// counts references, the high half those for work.
inline constexpr uint64_t kWorkReference = (uint64_t{1} << 32) + 1;
inline bool only_for_work(uint64_t references) {
  return static_cast<uint32_t>(references) == static_cast<uint32_t>(references >> 32);
}

/// A device of a backend as the client uses it: its memory, its threads and its queues.
class Device {
 public:
  /// `run_limit` is the largest number of runs in flight.
  Device(std::shared_ptr<Backend> backend, uint32_t index, uint32_t run_limit, const Pool::MakeRoom& make_room,
         const Pool::KeepsMuch& keeps_much);

  Backend& backend() const { return *backend_; }
  const std::shared_ptr<Backend>& shared_backend() const { return backend_; }
  uint32_t index() const { return index_; }
  const DeviceFacts& facts() const { return backend_->devices()[index_]; }
  Pool& pool(uint32_t space) { return *pools_[space]; }
  Pool& default_pool() { return *pools_[facts().default_space]; }
  bool is_host_visible(uint32_t space) const { return facts().spaces[space].flags & COLLET_SPACE_HOST_VISIBLE; }
  size_t space_count() const { return pools_.size(); }
  Worker& compute() { return compute_; }
  Worker& upload() { return upload_; }
  Worker& download() { return download_; }
  void trim();
  /// Calls Pool::decay for all memory spaces and returns the sum.
  uint64_t decay();

  /// True if copies and launches can be put on queues. Otherwise they block, and are done by worker threads.
  bool has_queues() const { return backend_->queue_table() && !facts().has(COLLET_TRAIT_VIRTUAL); }
  /// Returns the queue of a kind (COLLET_QUEUE_*). It lives as long as the device; if it has failed, the next call
  /// creates another. Null if the device has no queues.
  Expected<Queue*> queue(uint32_t kind);
  /// Cancels all work on the queues.
  void abort_queues(const Status& reason);

  /// The runs that were started on the device and have not ended.
  InFlight& runs() { return runs_; }

 private:
  std::shared_ptr<Backend> backend_;
  uint32_t index_;
  InFlight runs_;
  std::mutex queues_mutex_;  // guards the following members
  std::vector<std::unique_ptr<Queue>> all_queues_;
  std::atomic<Queue*> queues_[3] = {};
  // Declared after the queues, because memory refers to the queues that used it.
  std::vector<std::unique_ptr<Pool>> pools_;
  Worker compute_, upload_, download_;  // declared after the pools, because tasks hold memory
};

/// An opened backend with its fallback. All objects created from it hold a reference, so they may be released in any
/// order.
class Client {
 public:
  static Expected<Client*> open(const collet_client_options& options);
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() { drop(1); }
  /// Called when the caller releases the client: drops the caller's reference. If work holds all other references, cancels
  /// what can be cancelled, waits until the work has ended, and destroys the client; on a thread of the library it does not
  /// wait.
  void close();

  Backend& backend() const { return *backend_; }
  const std::shared_ptr<Backend>& shared_backend() const { return backend_; }
  /// The fallback backend; null if there is none.
  const std::shared_ptr<Backend>& fallback() const { return fallback_; }
  /// Makes the client's process one of several; once, before anything is compiled. See collet_client_join.
  Status join(const collet_processes& group);
  /// The processes that the client has joined; null if none.
  Processes* processes() const { return processes_.get(); }
  /// Threads for copies of arrays between processes.
  WorkerPool& transfers() { return transfers_; }
  size_t device_count() const { return devices_.size(); }
  Device& device(uint32_t index) { return *devices_[index]; }
  /// Returns the device of the fallback. There must be a fallback.
  Device& fallback_device() { return *fallback_device_; }
  Status check_device(uint32_t device) const;
  /// Checks and returns the number of a memory space; COLLET_NONE stands for the default one.
  Expected<uint32_t> check_space(uint32_t device, uint32_t space) const;
  void trim();
  /// Drops the constants that are no longer used.
  void drop_constants();

  /// Constants from so many bytes on are worth sharing: between the host and the device, and between executables and programs.
  static constexpr uint64_t kLargeConstant = uint64_t{1} << 16;
  /// Returns a constant on a device, which all executables share: its bytes themselves, if the device reads the host's memory, else a
  /// copy. It is kept as long as an executable uses it.
  Expected<MemoryRef> constant(Device& device, const hlo::ContentId& id, const hlo::Literal& value);

  /// Returns what the device has of a constant, if there is one that the host can read; else an empty reference.
  MemoryRef readable_constant(Device& device, const hlo::ContentId& id);

  /// Returns the compiled program with this content, which all executables of the client share.
  std::shared_ptr<CompiledProgram> find_compiled(const hlo::ContentId& key);
  void keep_compiled(const hlo::ContentId& key, const std::shared_ptr<CompiledProgram>& program);
  /// Returns a kept executable for the key of a program; null if there is none.
  std::shared_ptr<ExecutableCore> find_executable(const hlo::ContentId& key);
  void keep_executable(const hlo::ContentId& key, std::shared_ptr<ExecutableCore> core);
  /// Called when an executable was released. Drops kept executables if there are too many.
  void executable_released();

  /// Passes `task` to a worker of a device of this client when none of `events` is late any more, and retains the
  /// client for this work. Takes no reference to the events; the task must hold them.
  void add_after(Worker& worker, std::span<Event* const> events, std::function<void()> task);

  /// Takes a reference to the client for work that continues and cannot be observed once the client is closed.
  void retain_for_work() { refs_.fetch_add(kWorkReference, std::memory_order_relaxed); }
  void release_after_work() { drop(kWorkReference); }
  /// Makes a reference of the caller's one for work, and the reverse.
  void make_for_work() { refs_.fetch_add(kWorkReference - 1, std::memory_order_relaxed); }
  void make_for_caller() { refs_.fetch_sub(kWorkReference - 1, std::memory_order_relaxed); }

  uint64_t next_run_id() { return next_run_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // The last reference of a client for whose end a thread waits, which then destroys it.
  struct Closing {
    std::mutex mutex;
    std::condition_variable changed;
    bool unreferenced = false;
  };
  Client() = default;
  ~Client();
  void drop(uint64_t references);
  std::unique_ptr<Device> make_device(const std::shared_ptr<Backend>& backend, uint32_t index);
  void drop_executables();
  void start_decay();
  void decay();
  void stop_decay();

  struct ConstantKey {
    Device* device;
    hlo::ContentId id;
    bool operator==(const ConstantKey&) const = default;
  };
  struct ConstantKeyHash {
    size_t operator()(const ConstantKey& k) const { return k.id.words[0] ^ reinterpret_cast<uintptr_t>(k.device); }
  };

  std::atomic<uint64_t> refs_{1};
  std::shared_ptr<Closing> closing_;  // written by the caller of close, before it drops its reference
  std::atomic<uint64_t> next_run_{1};
  uint32_t run_limit_ = 0;
  LogFunction log_ = nullptr;
  void* log_user_ = nullptr;
  std::shared_ptr<Backend> backend_, fallback_;
  std::unique_ptr<Processes> processes_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Device> fallback_device_;
  WorkerPool transfers_;  // destroyed before the devices, because its tasks hold memory

  // The thread that returns unused memory to backends. It runs while pools keep much.
  std::mutex decay_mutex_;  // guards the following members
  std::condition_variable decay_changed_;
  std::thread decay_thread_;
  bool decaying_ = false, stop_decay_ = false;

  std::mutex mutex_;  // guards the following members
  std::unordered_map<ConstantKey, MemoryRef, ConstantKeyHash> constants_;
  std::unordered_map<hlo::ContentId, std::weak_ptr<CompiledProgram>, hlo::ContentIdHash> compiled_;
  ExecutableCache executables_;
};

}  // namespace collet::runtime
