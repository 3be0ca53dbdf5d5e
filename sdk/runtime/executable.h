// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sdk/runtime/array_type.h"
#include "sdk/runtime/buffer.h"
#include "sdk/runtime/client.h"
#include "sdk/runtime/host_call.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/plan.h"

namespace collet::runtime {

/// See collet_question.
struct Question {
  uint32_t kind = COLLET_QUESTION_OP, element = 0;
  std::string name;
  bool asked = false, accepted = false;
  uint32_t placed = 0;
  uint32_t declined = 0;    ///< patterns and fusions that the device did not take
  std::string reason = {};  ///< of the first of them
};

/// The result of a compilation, shared by all executables of equal programs. Belongs to one client, which outlives it.
struct ExecutableCore {
  explicit ExecutableCore(Client& of) : client(of) {}
  ~ExecutableCore();
  ExecutableCore(const ExecutableCore&) = delete;
  ExecutableCore& operator=(const ExecutableCore&) = delete;

  Client& client;
  std::string name;  ///< of the module
  Plan plan;
  std::vector<const ArrayType*> arguments, results;
  std::vector<uint8_t> donates;                                   ///< per argument
  std::vector<std::string> argument_shardings, result_shardings;  ///< of a program that was partitioned
  uint32_t replicas = 1, partitions = 1;
  std::vector<uint32_t> devices;  ///< of each participant
  uint32_t optimization = 2;
  bool no_fusion = false;
  bool whole_arrays = false;  ///< the source is written for whole arrays: it was partitioned
  bool together = true;       ///< one execute for all participants; else a launch for each
  /// The module, if the runtime does collectives or calls the embedder: it has their attributes.
  std::shared_ptr<const hlo::Module> module;
  std::vector<HostFunction> host_functions;  ///< those that the plan calls
  collet_executable_facts facts{};
  std::string explanation, explanation_json;
  std::vector<Question> questions;  ///< to the device
  /// Nanoseconds that runs were seen to take, smoothed; 0 before the first.
  mutable std::atomic<uint64_t> seen_ns{0};
  mutable std::atomic<uint32_t> runs{0};
  mutable std::atomic<bool> time_again{false};  ///< the last that was timed took unusually long: time the next, too

  uint32_t participants() const { return replicas * partitions; }
  /// Returns an estimate of the memory that it holds: code, constants and texts.
  uint64_t held_bytes() const;
};

/// A program compiled for some devices of a client. Reference-counted; begins with one reference.
class Executable {
 public:
  Executable(Client& client, ProgramModule& source, std::shared_ptr<ExecutableCore> core, bool from_cache,
             uint64_t compile_ns)
      : client_(&client), source_(&source), core_(std::move(core)), from_cache_(from_cache), compile_ns_(compile_ns) {
    client.retain();
    source.retain();
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

  /// Number of the memory space of results: the default one of the participants' devices.
  uint32_t result_space() const { return client_->device(core_->devices[0]).facts().default_space; }
  /// See collet_execute.
  Status execute(const collet_execute_options& options, Buffer* const* arguments, Buffer** results);

 private:
  ~Executable() {
    core_.reset();
    client_->executable_released();
    source_->release();
    client_->release();
  }

  std::atomic<uint32_t> refs_{1};
  Client* client_;
  ProgramModule* source_;
  std::shared_ptr<ExecutableCore> core_;
  bool from_cache_;
  uint64_t compile_ns_;
};

/// One run: the memory that it reads and writes, per participant, one after another.
struct RunMemory {
  std::span<MemoryRef> arguments;  ///< taken out by the run as it goes
  std::span<MemoryRef> results;    ///< as they were, afterwards
  bool* overwritten = nullptr;     ///< set once a launch has begun that was given a donated argument
};
/// The points that a run on queues waits for, and those that mark its end.
struct RunOrder {
  std::span<const Point> after;  ///< the arguments are there
  std::span<Point> ends;         ///< out, per participant: its results are there; no point where they are there already
};
/// Runs a plan, on this thread: to its end, or, on devices with queues, until its last work is put there.
Status run_plan(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory,
                const RunOrder& order);

}  // namespace collet::runtime
