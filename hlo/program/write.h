// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/program/block.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {

/// Options for writing a program.
struct ProgramOptions {
  /// Constants of the entry above this many bytes become arguments flagged CONSTANT.
  size_t inline_limit = 4096;
  /// All of them do, for a backend that takes no constant ops.
  bool constants_as_arguments = false;
  /// Arguments of the entry of at most 16 bytes and rank 0 that share no memory with a result are flagged SCALAR.
  bool scalars_by_value = false;
  /// The program is for one participant, whatever the module says.
  bool single_participant = false;
  /// Names of values, ops and regions are left out: equal programs then have equal bytes.
  bool without_names = false;
  /// Advice: place of a leaf in the arena, COLLET_NONE64 for none. May be empty.
  std::function<uint64_t(Leaf)> arena_offset = {};
  uint32_t arena_alignment = 64;
};

/// A result that may or must take over an argument's buffer; indices are those of the program.
struct ProgramAlias {
  uint32_t result = 0;
  uint32_t argument = 0;
  bool must = false;
};

/// Part of a computation, to be written as a program of its own. Transparent instructions (tuples) need not be named.
struct Cluster {
  CompId computation = CompId::None;
  std::span<const InstrId> members;  ///< operands before users
  std::span<const Leaf> inputs;      ///< resolved; one entry argument each
  std::span<const Leaf> outputs;     ///< resolved; one entry result each
  std::span<const ProgramAlias> aliases;
};

/// An entry argument that holds a constant.
struct ConstantArgument {
  uint32_t argument = 0;
  InstrId instr = InstrId::None;
  ContentId id;
};

/// A written program, and what its numbers mean.
struct Program {
  Block block;
  std::vector<InstrId> ops;                 ///< instruction of each op
  std::vector<ConstantArgument> constants;  ///< arguments after the inputs
  const collet_program* get() const { return block.program(); }
};

/// The whole module: entry parameters are the arguments, the root's leaves the results, tuples flattened; aliases as the
/// header says. The module has been verified. UNIMPLEMENTED for what cannot stand at the ABI boundary (dynamic dimensions).
Expected<Program> write_program(const Module& module, const ProgramOptions& options = {});
/// A cluster. Operands of members are inputs or other members.
Expected<Program> write_cluster(const Module& module, const Cluster& cluster, const ProgramOptions& options = {});

/// The flat number of the leaf that {`number`, `index`} names among `shapes` flattened; COLLET_NONE where it names none.
uint32_t flat_leaf(std::span<const Shape> shapes, int64_t number, std::span<const int64_t> index);
/// input_output_alias of the header by flat numbers.
std::vector<ProgramAlias> entry_aliases(const Module& module);
/// Flat numbers of the arguments that the header donates (aliases and buffer_donor), ascending.
std::vector<uint32_t> donated_arguments(const Module& module);

}  // namespace collet::hlo
