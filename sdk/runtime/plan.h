// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/program/write.h"
#include "sdk/runtime/backend.h"
#include "sdk/runtime/memory.h"
#include "sdk/runtime/partition.h"

namespace collet::runtime {

/// A program as a backend compiled it. Shared by all clusters that are equal.
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
  /// The hash of everything that it depends on. Other processes find its bytes under this name.
  const hlo::ContentId& key() const { return key_; }

 private:
  std::shared_ptr<Backend> backend_;
  collet_backend_executable* handle_;
  CompiledFacts facts_;
  hlo::ContentId key_;
};

class Residency;

/// A cluster, ready to launch. Where participants run apart, each has its own compiled program and constants.
struct CompiledCluster {
  Side side = Side::Device;
  struct Local {
    std::shared_ptr<CompiledProgram> program;
    std::vector<MemoryRef> constants;     ///< arguments after the inputs; empty where absorbed
    std::vector<uint8_t> absorbed;        ///< per constant: the program holds it itself
    std::shared_ptr<Residency> prepared;  ///< null where the program wants no argument prepared
  };
  std::vector<Local> locals;             ///< one, or one per participant
  std::vector<uint64_t> argument_bytes;  ///< inputs, then constants
  std::vector<uint64_t> result_bytes;
  std::vector<uint8_t> by_value;  ///< per argument: a scalar that may come by value
  std::vector<hlo::ProgramAlias> aliases;
  std::vector<hlo::ProgramAlias> updates;  ///< further ones, that hold where nobody else has the argument's memory
  // For people.
  std::string label;  ///< its costliest op, and how many more
  uint32_t ops = 0;
  double cost_ns = 0;
  bool shared = false;  ///< equal to a unit before it
  std::string text;     ///< the program, when it is wanted
};

/// A place for a value while a sequence runs.
struct Slot {
  Side side = Side::Device;
  uint64_t bytes = 0;
};

/// One thing that the runtime does.
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
  uint32_t unit = 0;  ///< Launch: which; Constant: index in Plan::constants; HostCall: in the core's functions
  std::vector<uint32_t> in, out;   ///< slots; Conditional: in[0] is the choice
  std::vector<uint32_t> sequence;  ///< While: condition, body; Conditional: branches; Call: one
  std::vector<uint32_t> dead;      ///< slots that nothing needs after this step
  /// Per input: nothing else needs its slot, neither later nor as another input (of the same branch): it may be taken over.
  std::vector<uint8_t> is_last_use;
  uint32_t choice_bytes = 0;  ///< Conditional: 1 for pred, 4 for s32
  hlo::InstrId instr = hlo::InstrId::None;
};

/// A computation as the runtime runs it.
struct Sequence {
  std::string name;
  std::vector<Slot> slots;
  std::vector<uint32_t> arguments;
  std::vector<uint32_t> results;
  std::vector<Step> steps;
};

/// A constant that the host puts somewhere, apart from those that clusters take as arguments.
struct PlanConstant {
  Side side = Side::Device;
  hlo::Literal value;
  hlo::ContentId id;
  std::vector<MemoryRef> memory;  ///< per participant
};

/// The plan that execution follows. Immutable once made.
struct Plan {
  std::vector<Sequence> sequences;  ///< 0 is the entry
  std::vector<CompiledCluster> units;
  std::vector<PlanConstant> constants;
  double cost_ns = 0;
  bool device_only = false;  ///< the host takes no part: on a device with queues a run does not wait for the device
  /// Result number r of the entry takes over argument number a, by a launch's alias.
  struct Donation {
    uint32_t result, argument;
    bool must;
  };
  std::vector<Donation> donations;
  /// Layouts of the entry's results; empty where all are dense, else null for one that is.
  std::vector<const Layout*> result_layouts;
  const Layout* result_layout(size_t i) const { return i < result_layouts.size() ? result_layouts[i] : nullptr; }
};

/// The steps of a partitioned module; units are numbered as their clusters are met. Clusters of units are in `clusters`.
struct Lowered {
  Plan plan;
  struct UnitSource {
    hlo::CompId computation;
    const ClusterPlan* cluster;
  };
  std::vector<UnitSource> sources;  ///< one per unit
};
Expected<Lowered> lower(const hlo::Module& module, const Partition& partition);

}  // namespace collet::runtime
