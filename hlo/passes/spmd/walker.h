// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/passes/spmd/emitter.h"
#include "hlo/passes/spmd/rules.h"

namespace collet::hlo::spmd {

/// A value of the whole program, as one partition has it.
struct Value {
  InstrId id = InstrId::None;
  std::vector<Tiling> leaves;  ///< tuples flattened; no dimensions for tokens
  std::vector<Column> open;    ///< of each leaf: whole, or along what it is still to be summed; may be shorter
  bool manual = false;         ///< the program itself says what each partition does with it
};

inline const Column& open_of(const Value& value, size_t leaf) {
  static const Column kWhole;
  return leaf < value.open.size() ? value.open[leaf] : kWhole;
}

/// How a program wants a value to lie.
struct Wish {
  Tiling tiling;
  Column open;
};

/// What all walkers of a module share.
struct Shared {
  Module& module;
  int64_t replicas = 1;
  int64_t channels = 0;
  std::string meshes;  ///< the module's, as text
};

/// Shape of the tiles.
Shape local_shape(const Shape& shape, std::span<const Tiling> leaves, size_t& at);

/// Writes what one partition does of a computation, op by op, to where an emitter stands.
class Walker {
 public:
  Walker(Shared& shared, Emitter& emitter, const World& world)
      : shared_(shared), m_(shared.module), e_(emitter), b_(emitter.builder()), world_(world) {}

  /// The root's value.
  Expected<Value> walk(CompId from, std::vector<Value> arguments);
  /// The same, tiled by `to`.
  Value reshard(const Value& value, std::span<const Tiling> to);
  /// How the program wants leaf `index` of `instr` to lie, whose dimensions are `dims` and which lies as `now`; nothing
  /// where it says nothing.
  std::optional<Wish> wanted(const Instruction& instr, const Shape& leaf, size_t index, const Tiling& now) const;
  /// Summed where sums are open.
  Value settled(Value value);

 private:
  using Operands = std::vector<Value>;
  Expected<Value> one(InstrId id, const Instruction& instr, const Operands& in);
  Expected<Value> plain(const Instruction& instr, Operands in);
  Value copied(const Instruction& instr, const Operands& in);
  Value replicated(const Instruction& instr, Operands in);
  Expected<Value> by_rule(const Instruction& instr, Operands in, Rule rule);
  Value tuple(const Instruction& instr, const Operands& in);
  Value element(const Instruction& instr, const Value& in);
  Value constrained(const Instruction& instr, Value value);
  /// An array, to lie as it is wanted.
  Value granted(Value value, const Wish& wish);
  Expected<Value> collective(const Instruction& instr, Operands in);
  Expected<Value> custom_call(const Instruction& instr, const Operands& in);
  Expected<Value> enter(const Instruction& instr, const Operands& in);
  Expected<Value> leave(const Instruction& instr, const Operands& in);
  Expected<Value> call(InstrId id, const Instruction& instr, const Operands& in);
  Expected<Value> loop(const Instruction& instr, const Value& init);
  Expected<Value> conditional(const Instruction& instr, Operands in);
  struct Body {
    CompId computation = CompId::None;
    std::vector<Tiling> leaves;  ///< of its result
  };
  Expected<Body> body(CompId from, const Shape& global, const std::vector<Tiling>& leaves, bool with_number,
                      const std::vector<Tiling>* result, bool give_number);
  /// The world inside of a manual computation.
  struct Manual {
    NamedMesh mesh;
    std::vector<bool> axes;  ///< of the mesh: manual
    World world;
  };
  Expected<Manual> manual(const Instruction& marker) const;
  Expected<NamedMesh> mesh(const NamedSharding& sharding) const;

  Shared& shared_;
  Module& m_;
  Emitter& e_;
  Builder& b_;
  const World& world_;
  std::unordered_map<uint32_t, InstrId> markers_;  // of calls that are manual: the custom call that says so
};

/// The computation, or one that it calls, holds what only a partitioner understands.
bool holds_markers(const Module& module, CompId computation);

}  // namespace collet::hlo::spmd
