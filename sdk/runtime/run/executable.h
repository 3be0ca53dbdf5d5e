// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sdk/runtime/client.h"
#include "sdk/runtime/memory/array_type.h"
#include "sdk/runtime/memory/buffer.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/plan/plan.h"
#include "sdk/runtime/processes/across.h"
#include "sdk/runtime/run/host_call.h"

namespace collet::runtime {

/// See collet_question.
struct Question {
  uint32_t kind = COLLET_QUESTION_OP, element = 0;
  std::string name;
  bool asked = false, accepted = false;
  uint32_t placed = 0;
  uint32_t declined = 0;    ///< number of patterns and fusions that the device declined
  std::string reason = {};  ///< reason for the first one
};

/// The result of a compilation, shared by all executables of equal programs. Belongs to one client, which outlives it.
struct ExecutableCore : std::enable_shared_from_this<ExecutableCore> {
  explicit ExecutableCore(Client& of) : client(of) {}
  ~ExecutableCore();
  ExecutableCore(const ExecutableCore&) = delete;
  ExecutableCore& operator=(const ExecutableCore&) = delete;

  Client& client;
  std::string name;  ///< name of the module
  Plan plan;
  std::vector<const ArrayType*> arguments, results;
  std::vector<uint8_t> donates;                                   ///< per argument: whether it is donated
  std::vector<std::string> argument_shardings, result_shardings;  ///< for a partitioned program
  uint32_t replicas = 1, partitions = 1;
  std::vector<uint32_t> devices;  ///< device of each participant of this process
  /// Null if all participants are in this process.
  std::unique_ptr<Across> across;
  uint32_t optimization = 2;
  bool no_fusion = false, ignore_costs = false, own_results = false;  ///< as in collet_compile_request
  bool whole_arrays = false;  ///< true if the source is written for whole arrays and was partitioned
  bool together = true;       ///< true: one call of execute for all participants; false: one launch for each
  /// The module, if the runtime runs collectives or calls the embedder, which need its attributes.
  std::shared_ptr<const hlo::Module> module;
  std::vector<HostFunction> host_functions;  ///< functions that the plan calls
  collet_executable_facts facts{};
  std::string explanation, explanation_json;
  std::vector<Question> questions;  ///< questions to the device
  /// Measured time of runs in nanoseconds, smoothed; 0 before the first.
  mutable std::atomic<uint64_t> seen_ns{0};
  mutable std::atomic<uint32_t> runs{0};
  /// The last measured run took unusually long, so the next one is measured, too.
  mutable std::atomic<bool> time_again{false};

  /// Returns the number of all participants.
  uint32_t total() const { return replicas * partitions; }
  /// Returns how many of them are in this process. Everything that is listed by participant is listed for these.
  uint32_t participants() const { return static_cast<uint32_t>(devices.size()); }
  /// Returns the number replica * partitions + partition of a participant of this process.
  uint32_t number(uint32_t participant) const { return across ? across->numbers[participant] : participant; }
  /// Returns an estimate of the memory that it holds: code, constants and texts.
  uint64_t held_bytes() const;
};

/// A program compiled for some devices of a client. Reference-counted; begins with one reference.
class Executable {
 public:
  /// Takes over a reference to `source`.
  Executable(Client& client, ProgramModule& source, std::shared_ptr<ExecutableCore> core, bool from_cache,
             uint64_t compile_ns)
      : client_(&client), source_(&source), core_(std::move(core)), from_cache_(from_cache), compile_ns_(compile_ns) {
    client.retain();
  }

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Client& client() const { return *client_; }
  /// The program that it was compiled from.
  const ProgramModule& source() const { return *source_; }
  const ExecutableCore& core() const { return *core_; }
  const std::shared_ptr<ExecutableCore>& shared_core() const { return core_; }
  collet_executable_facts facts() const;

  /// Returns the number of the memory space of results: the default one of the participants' devices.
  uint32_t result_space() const { return client_->device(core_->devices[0]).facts().default_space; }
  /// See collet_execute.
  Status execute(const collet_execute_options& options, Buffer* const* arguments, Buffer** results);

 private:
  ~Executable() {
    source_->release();  // first, because it may refer to constants that the client drops with their last executable
    core_.reset();
    client_->executable_released();
    client_->release();
  }

  std::atomic<uint32_t> refs_{1};
  Client* client_;
  ProgramModule* source_;
  std::shared_ptr<ExecutableCore> core_;
  bool from_cache_;
  uint64_t compile_ns_;
};

/// The memory of one run, by participant.
struct RunMemory {
  std::span<MemoryRef> arguments;  ///< the run moves them out when it uses them
  std::span<MemoryRef> results;    ///< set by the run
  bool* overwritten = nullptr;     ///< set when a launch with a donated argument has started
};
/// The points for which a run on queues waits, and those that mark its end.
struct RunOrder {
  std::span<const Point> after;  ///< points at which the arguments are complete
  /// output, per participant: the point at which its results are complete; no point if they are complete already.
  std::span<Point> ends;
  uint64_t launch = 0;  ///< see Processes::next_launch; 0 if all participants are in this process
};
/// Runs a plan on this thread: to its end, or, on devices with queues, until its last work is queued.
Status run_plan(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory,
                const RunOrder& order);

}  // namespace collet::runtime
