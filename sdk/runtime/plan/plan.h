// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/program/write.h"
#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/memory/memory.h"
#include "sdk/runtime/plan/partition.h"

namespace collet::runtime {

/// A program that a backend has compiled. Equal clusters share it.
class CompiledProgram {
 public:
  CompiledProgram(std::shared_ptr<Backend> backend, collet_backend_executable* handle, CompiledFacts facts,
                  const hlo::ContentId& key)
      : backend_(std::move(backend)), handle_(handle), facts_(std::move(facts)), key_(key) {}
  ~CompiledProgram() { backend_->release(handle_); }
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  Backend& backend() const { return *backend_; }
  collet_backend_executable* handle() const { return handle_; }
  const CompiledFacts& facts() const { return facts_; }
  /// The hash of everything on which it depends. Other processes find its bytes by this hash.
  const hlo::ContentId& key() const { return key_; }

 private:
  std::shared_ptr<Backend> backend_;
  collet_backend_executable* handle_;
  CompiledFacts facts_;
  hlo::ContentId key_;
};

class Residency;

/// A compiled cluster, ready to launch. If participants are launched separately, each has its own compiled program and
/// constants.
struct CompiledCluster {
  Side side = Side::Device;
  struct Local {
    std::shared_ptr<CompiledProgram> program;
    /// The arguments after the inputs, in the memory of each device that runs the program: one list, or one per participant. Empty
    /// references for absorbed constants.
    std::vector<std::vector<MemoryRef>> constants;
    std::vector<uint8_t> absorbed;        ///< per constant: the program has absorbed it
    std::shared_ptr<Residency> prepared;  ///< null if the program requests no prepared arguments

    const std::vector<MemoryRef>& constants_of(size_t participant) const {
      return constants[constants.size() == 1 ? 0 : participant];
    }
  };
  std::vector<Local> locals;             ///< one in total, or one per participant
  std::vector<uint64_t> argument_bytes;  ///< bytes of inputs, then of constants
  std::vector<uint64_t> result_bytes;
  std::vector<uint8_t> by_value;  ///< per argument: a scalar that may be passed by value
  std::vector<hlo::ProgramAlias> aliases;
  std::vector<hlo::ProgramAlias> updates;  ///< further aliases, which apply if nothing else holds the argument's memory
  // For profiles and explanations.
  std::string label;  ///< its most expensive op, and the number of others
  uint32_t ops = 0;
  double cost_ns = 0;
  bool shared = false;  ///< equal to an earlier unit
  std::string text;     ///< text of the program, if requested
};

/// A slot for a value of a sequence.
struct Slot {
  Side side = Side::Device;
  uint64_t bytes = 0;
};

/// One step that the runtime executes.
struct Step {
  enum class Kind : uint8_t {
    Launch,
    Copy,
    While,
    Conditional,
    Call,
    Constant,
    ReplicaId,
    PartitionId,
    Collective,
    HostCall
  };
  Kind kind = Kind::Launch;
  /// For Launch: the unit; for Constant: index in Plan::constants; for HostCall: index in the core's functions.
  uint32_t unit = 0;
  std::vector<uint32_t> in, out;  ///< slots; for Conditional in[0] is the branch index
  /// For While: condition and body; for Conditional: its branches; for Call: the sequence.
  std::vector<uint32_t> sequence;
  std::vector<uint32_t> dead;  ///< slots that no later step needs
  /// Per input: no later step, and no other input (of the same branch), needs its slot, so its memory may be reused.
  std::vector<uint8_t> is_last_use;
  /// For Collective: steps that do not use its results follow, so that they run while it waits for other processes.
  bool overlaps = false;
  uint32_t choice_bytes = 0;  ///< for Conditional: 1 for pred, 4 for s32
  hlo::InstrId instr = hlo::InstrId::None;
};

/// A computation that the runtime executes.
struct Sequence {
  std::string name;
  std::vector<Slot> slots;
  std::vector<uint32_t> arguments;
  std::vector<uint32_t> results;
  std::vector<Step> steps;
};

/// A constant that the host uploads, apart from those that clusters take as arguments.
struct PlanConstant {
  Side side = Side::Device;
  hlo::Literal value;
  hlo::ContentId id;
  std::vector<MemoryRef> memory;  ///< per participant
};

/// The execution plan. It does not change after it was built.
struct Plan {
  std::vector<Sequence> sequences;  ///< sequence 0 is the entry
  std::vector<CompiledCluster> units;
  std::vector<PlanConstant> constants;
  double cost_ns = 0;
  bool device_only = false;  ///< no step runs on the host: on a device with queues a run does not wait for the device
  /// Result number r of the entry uses the memory of argument number a, because of an alias of a launch.
  struct Donation {
    uint32_t result, argument;
    bool must;
  };
  std::vector<Donation> donations;
  /// Layouts of the entry's results; empty if all are dense, else null for one that is dense.
  std::vector<const Layout*> result_layouts;
  const Layout* result_layout(size_t i) const { return i < result_layouts.size() ? result_layouts[i] : nullptr; }
};

/// The steps of a partitioned module; units are numbered in the order in which their clusters occur. `clusters` holds
/// the clusters of the units.
struct Lowered {
  Plan plan;
  struct UnitSource {
    hlo::CompId computation;
    const ClusterPlan* cluster;
  };
  std::vector<UnitSource> sources;  ///< one per unit
};
Expected<Lowered> lower(const hlo::Module& module, const Partition& partition, hlo::ContentIds& ids);

}  // namespace collet::runtime
