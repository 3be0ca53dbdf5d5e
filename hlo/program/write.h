// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/program/block.h"
#include "hlo/program/content_ids.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {

/// Options for writing a program.
struct ProgramOptions {
  /// Constants of the entry above this many bytes become arguments flagged CONSTANT.
  size_t inline_limit = 4096;
  /// All constants of the entry become arguments, for a backend without support for constant ops.
  bool constants_as_arguments = false;
  /// Arguments of the entry of at most 16 bytes and rank 0 that share no memory with a result are flagged SCALAR.
  bool scalars_by_value = false;
  /// The program is for one participant, even if the module is for several.
  bool single_participant = false;
  /// Omits names of values, ops and regions, so that equal programs have equal bytes.
  bool without_names = false;
  /// A suggestion for the backend: the offset of a leaf in the arena, or COLLET_NONE64. May be empty.
  std::function<uint64_t(Leaf)> arena_offset = {};
  uint32_t arena_alignment = 64;
  /// Where ids of constants are looked up; null: they are computed anew.
  ContentIds* content_ids = nullptr;
};

/// A result that may or must use an argument's buffer; indices are those of the program.
struct ProgramAlias {
  uint32_t result = 0;
  uint32_t argument = 0;
  bool must = false;
};

/// A part of a computation that is written as a program of its own. Transparent instructions (tuples) need not be
/// listed.
struct Cluster {
  CompId computation = CompId::None;
  std::span<const InstrId> members;  ///< operands before users
  std::span<const Leaf> inputs;      ///< resolved leaves; each becomes one entry argument
  std::span<const Leaf> outputs;     ///< resolved leaves; each becomes one entry result
  std::span<const ProgramAlias> aliases;
};

/// An entry argument that holds a constant.
struct ConstantArgument {
  uint32_t argument = 0;
  InstrId instr = InstrId::None;
  ContentId id;
};

/// A written program, and the meaning of its numbers.
struct Program {
  Block block;
  std::vector<InstrId> ops;                 ///< by op: its instruction
  std::vector<ConstantArgument> constants;  ///< arguments after the inputs
  const collet_program* get() const { return block.program(); }
};

/// Writes the whole module: entry parameters are the arguments, the root's leaves are the results, with tuples
/// flattened; aliases are those of the header. The module has been verified. Returns UNIMPLEMENTED for features that
/// cannot be expressed at the ABI boundary (dynamic dimensions).
Expected<Program> write_program(const Module& module, const ProgramOptions& options = {});
/// Writes a cluster. Operands of its members must be inputs or other members.
Expected<Program> write_cluster(const Module& module, const Cluster& cluster, const ProgramOptions& options = {});

/// Returns the flat number of the leaf {`number`, `index`} when `shapes` are flattened; COLLET_NONE if there is no such
/// leaf.
uint32_t flat_leaf(std::span<const Shape> shapes, int64_t number, std::span<const int64_t> index);
/// Returns input_output_alias of the header with flat numbers.
std::vector<ProgramAlias> entry_aliases(const Module& module);
/// Returns the flat numbers of the arguments that the header donates (aliases and buffer_donor), ascending.
std::vector<uint32_t> donated_arguments(const Module& module);

}  // namespace collet::hlo
