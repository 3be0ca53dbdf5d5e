// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/passes/spmd/collectives.h"
#include "hlo/passes/spmd/propagation.h"
#include "hlo/passes/spmd/strategy.h"

/// \file
/// Materialisation: writes the program of one partition from a module and the shardings of its values.

namespace collet::hlo::spmd {

/// A value of the original program, as one partition holds it.
struct TiledValue {
  InstrId id = InstrId::None;
  std::vector<ArraySharding> leaves;  ///< shardings of the leaves of the value; rank 0 for a leaf that is not an array
  bool manual = false;                ///< inside a manual computation: each partition has a value of its own
};

/// The state that the materializers of all computations of a module share.
struct MaterializeContext {
  Module& module;
  const ProgramRegions& regions;
  const ShardingTable& table;
  int64_t replicas = 1;
  int64_t channels = 0;
  Type index_type = Type::S32;  ///< of positions in arrays
};

/// Returns the shape of the tiles of a value; `at` is the index of its first leaf in `leaves` and is advanced by the
/// number of its leaves.
Shape local_shape(const Shape& shape, std::span<const ArraySharding> leaves, size_t& at);

/// Writes the ops of one partition for a computation, one instruction after the other, at the position of a tile
/// builder. Every value gets the sharding that the sharding table has for it.
class Materializer {
 public:
  Materializer(MaterializeContext& context, TileBuilder& tiles, const DeviceGroups& groups)
      : context_(context), m_(context.module), t_(tiles), b_(tiles.builder()), groups_(groups) {}

  /// Materialises computation `from` and returns the value of its root.
  Expected<TiledValue> run(CompId from, std::vector<TiledValue> arguments);
  /// Reshards a value, leaf by leaf.
  TiledValue reshard(TiledValue value, const Shape& shape, std::span<const ArraySharding> to);

 private:
  using Operands = std::vector<TiledValue>;

  Expected<TiledValue> instruction(InstrId id, const Instruction& instr, const Operands& in);
  Expected<TiledValue> plain(InstrId id, const Instruction& instr, const Operands& in);
  /// Writes an op that has a sharding rule.
  Expected<TiledValue> by_rule(InstrId id, const Instruction& instr, const ShardingRule& rule, const Operands& in);
  /// Copies an op whose operands are replicated, or manual values.
  TiledValue copied(const Instruction& instr, const Operands& in);
  TiledValue replicated(const Instruction& instr, const Operands& in);
  TiledValue replicate(const TiledValue& value, const Shape& shape);
  TiledValue tuple(const Instruction& instr, const Operands& in);
  TiledValue element(const Instruction& instr, const TiledValue& in);
  Expected<TiledValue> collective(InstrId id, const Instruction& instr, const Operands& in);

  // Markers: manual.cc.
  Expected<TiledValue> custom_call(InstrId id, const Instruction& instr, const Operands& in);
  Expected<TiledValue> enter_manual(InstrId id, const Instruction& instr, const Operands& in);
  Expected<TiledValue> leave_manual(InstrId id, const Instruction& instr, const Operands& in);
  /// Runs an op on one partition alone; an error if that cannot be.
  Expected<TiledValue> alone(const Instruction& instr, const Operands& in, int64_t device);
  TiledValue on_one_device(const Instruction& instr, const Operands& in, int64_t device);

  // Control flow: control_flow.cc.
  Expected<TiledValue> call(InstrId id, const Instruction& instr, const Operands& in);
  Expected<TiledValue> loop(InstrId id, const Instruction& instr, const TiledValue& init);
  Expected<TiledValue> conditional(InstrId id, const Instruction& instr, const Operands& in);
  Expected<CompId> body(CompId from, const Shape& argument, std::span<const ArraySharding> argument_shardings,
                        bool takes_partition_id, const std::vector<ArraySharding>* result, const Shape& result_shape);

  const std::vector<ArraySharding>& shardings(InstrId id) const { return context_.table.of(id); }

  MaterializeContext& context_;
  Module& m_;
  TileBuilder& t_;
  Builder& b_;
  const DeviceGroups& groups_;
};

/// An op on tiles, as the materialisation rule of its opcode gets it.
struct TiledOp {
  Module& module;
  TileBuilder& tiles;
  Builder& b;
  const Instruction& instr;
  const ShardingRule& rule;
  const OpStrategy& strategy;
  const DeviceGroups& groups;
  std::vector<InstrId> operands;  ///< resharded as `strategy` states
  Shape result;                   ///< shape of a tile of the result

  const Shape& whole(size_t k) const { return module[instr.operand(k)].shape; }
  /// Returns the factor of kind `kind` in dimension `d` of operand `k`, if it is split; -1 if there is none.
  int split_factor(size_t k, size_t d, ShardingRule::Kind kind) const;
  bool is_split(size_t k, size_t d) const { return strategy.operands[k].dimensions[d].is_split(); }
};

/// Writes the op: by its own materialisation rule, or as the same op with attributes for the sizes of tiles.
InstrId materialize_op(TiledOp& op);

}  // namespace collet::hlo::spmd
