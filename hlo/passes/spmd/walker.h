// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tuple>
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

/// Which of them are still to be summed.
std::vector<bool> opened(std::span<const Value> values);

/// How the arrays of a value lie: Value's leaves and open.
struct Lie {
  std::vector<Tiling> leaves;
  std::vector<Column> open;
};

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
  std::string meshes = {};  ///< the module's, as text
  std::vector<bool> markers =
      {};           ///< by computation: it, or one that it calls, holds what only a partitioner understands
  size_t most = 0;  ///< instructions that the module may come to
  int depth = 0;    ///< of computations that are being walked
  /// How the result of a computation lies where its argument lies so, among partitions of such domains.
  using Question = std::tuple<CompId, std::vector<int64_t>, std::vector<Tiling>, std::vector<Column>>;
  std::map<Question, Lie> answers = {};
};

/// Shape of the tiles.
Shape local_shape(const Shape& shape, std::span<const Tiling> leaves, size_t& at);

/// Writes what one partition does of a computation, op by op, to where an emitter stands.
class Walker {
 public:
  /// `trial`: only to see how the result lies. Loops and branches inside are then stood in for.
  Walker(Shared& shared, Emitter& emitter, const World& world, bool trial = false)
      : shared_(shared), m_(shared.module), e_(emitter), b_(emitter.builder()), world_(world), trial_(trial) {}

  /// The root's value.
  Expected<Value> walk(CompId from, std::vector<Value> arguments);
  /// The same, tiled by `to`; sums that are open stay so.
  Value reshard(Value value, std::span<const Tiling> to);
  /// How the program wants leaf `index` of `instr` to lie, whose dimensions are `dims` and which lies as `now`; nothing
  /// where it says nothing. What does not fit is left out, or nothing is.
  std::optional<Wish> wanted(const Instruction& instr, const Shape& leaf, size_t index, const Tiling& now) const;
  /// The same to the letter, and which dimensions may be split further; nothing where it says nothing that is
  /// understood.
  std::optional<Wish> stated(const Instruction& instr, const Shape& leaf, size_t index, std::vector<bool>* open) const;
  /// Summed where sums are open.
  Value settled(Value value);

 private:
  using Operands = std::vector<Value>;
  /// `asked`: how the program wants the result to lie, where it says so.
  Expected<Value> one(InstrId id, const Instruction& instr, const Operands& in, const Wish& asked);
  Expected<Value> plain(const Instruction& instr, Operands in, const Wish& asked);
  static Value whole_value(InstrId id, const Shape& shape);
  Value copied(const Instruction& instr, const Operands& in);
  Value replicated(const Instruction& instr, Operands in);
  /// Everybody has all of it; what is each partition's own affair stays so.
  Value made_whole(Value value);
  /// The device that alone is to do it, where a sharding says so.
  std::optional<int64_t> one_device(const Instruction& instr) const;
  Value on_one(const Instruction& instr, const Operands& in, int64_t device);
  Status check_marker(const Instruction& instr, const Operands& in) const;
  bool holds_markers(CompId computation) const { return shared_.markers[index_of(computation)]; }
  Expected<Value> by_rule(const Instruction& instr, Operands in, Rule rule, const Wish& asked);
  /// What instructions and the constraints behind them say, to the letter.
  std::unordered_map<uint32_t, Wish> asked_of(std::span<const InstrId> order) const;
  /// The op goes through the sums that are open in its operands, and its result is asked to be one.
  bool stays_open(const Instruction& instr, const Operands& in, const Column& asked) const;
  Value tuple(const Instruction& instr, const Operands& in);
  Value element(const Instruction& instr, const Value& in);
  Value constrained(const Instruction& instr, Value value);
  /// An array, to lie as it is wanted.
  Value granted(Value value, const Wish& wish);
  /// Array by array.
  Value laid(Value value, std::span<const Tiling> to, std::span<const Column> open);
  Expected<Value> collective(const Instruction& instr, Operands in);
  Expected<Value> custom_call(const Instruction& instr, const Operands& in);
  Expected<Value> enter(const Instruction& instr, const Operands& in);
  Expected<Value> leave(const Instruction& instr, const Operands& in);
  Expected<Value> call(InstrId id, const Instruction& instr, const Operands& in);
  Expected<Value> loop(const Instruction& instr, const Value& init);
  Expected<Value> conditional(const Instruction& instr, Operands in);
  struct Body {
    CompId computation = CompId::None;
    Lie result;
  };
  Expected<Body> body(CompId from, const Shape& global, const Lie& argument, bool with_number, const Lie* result,
                      bool give_number, bool trial = false);
  /// How the result of `from` lies, by trial.
  Expected<Lie> result_of(CompId from, const Shape& global, const Lie& argument, bool with_number);
  Value stand_in(const Instruction& instr, InstrId operand, Lie lie);
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
  const bool trial_;
  std::unordered_map<uint32_t, InstrId> markers_;  // of calls that are manual: the custom call that says so
};

/// Of each computation of the module whether it, or one that it calls, holds what only a partitioner understands.
std::vector<bool> find_markers(const Module& module);

}  // namespace collet::hlo::spmd
