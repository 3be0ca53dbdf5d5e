// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/passes/spmd/collectives.h"
#include "hlo/passes/spmd/propagation.h"
#include "hlo/passes/spmd/strategy.h"

/// \file
/// Materialisation: from a module and the shardings of its values to what one partition does.

namespace collet::hlo::spmd {

/// A value of the whole program, as one partition has it.
struct TiledValue {
  InstrId id = InstrId::None;
  std::vector<ArraySharding> leaves;  ///< tuples flattened; rank 0 for what is no array
  bool manual = false;                ///< the program itself says what each partition does with it
};

/// The state that the materializers of all computations of a module share.
struct MaterializeContext {
  Module& module;
  const ProgramRegions& regions;
  const ShardingTable& table;
  int64_t replicas = 1;
  int64_t channels = 0;
};

/// The shape of the tiles of a value; `at` counts its leaves.
Shape local_shape(const Shape& shape, std::span<const ArraySharding> leaves, size_t& at);

/// Writes what one partition does of a computation, op by op in one pass, to where a tile builder stands. Every value gets
/// the sharding that the table has for it.
class Materializer {
 public:
  Materializer(MaterializeContext& context, TileBuilder& tiles, const DeviceGroups& groups)
      : context_(context), m_(context.module), t_(tiles), b_(tiles.builder()), groups_(groups) {}

  /// The root's value.
  Expected<TiledValue> run(CompId from, std::vector<TiledValue> arguments);
  /// The same value, of other shardings.
  TiledValue reshard(TiledValue value, const Shape& shape, std::span<const ArraySharding> to);

 private:
  using Operands = std::vector<TiledValue>;

  Expected<TiledValue> instruction(InstrId id, const Instruction& instr, const Operands& in);
  Expected<TiledValue> plain(InstrId id, const Instruction& instr, const Operands& in);
  /// An op with a sharding rule.
  Expected<TiledValue> by_rule(InstrId id, const Instruction& instr, const ShardingRule& rule, const Operands& in);
  /// The op as it stands, on operands that are replicated or each partition's own.
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

/// An op on tiles, as a rule of materialisation has to write it.
struct TiledOp {
  Module& module;
  TileBuilder& tiles;
  Builder& b;
  const Instruction& instr;
  const ShardingRule& rule;
  const OpStrategy& strategy;
  const DeviceGroups& groups;
  std::vector<InstrId> operands;  ///< of the shardings of `strategy`
  Shape result;                   ///< of a tile

  const Shape& whole(size_t k) const { return module[instr.operand(k)].shape; }
  /// The factor of a dimension of operand `k` that is split and of that kind; -1 where there is none.
  int split_factor(size_t k, size_t d, ShardingRule::Kind kind) const;
  bool is_split(size_t k, size_t d) const { return strategy.operands[k].dimensions[d].is_split(); }
};

/// Writes the op; by the table of rules, or as it stands with the attributes for tiles.
InstrId materialize_op(TiledOp& op);

}  // namespace collet::hlo::spmd
