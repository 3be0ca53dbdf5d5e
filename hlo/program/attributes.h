// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Attribute records of the IR to those of the ABI boundary and back, both driven by abi_fields().

namespace collet::hlo {

/// Collects the lists and strings of records.
struct AttributePools {
  std::vector<int64_t> integers;
  std::vector<char> bytes;

  collet_range add(std::span<const int64_t> list);
  collet_range add(std::string_view text);
};

/// The C record of `instr`; lists and strings go to `pools`. Everything that the IR may leave unsaid is stated.
std::vector<char> write_attributes(const Module& module, const Instruction& instr, AttributePools& pools);
/// The smallest opset that means all that `instr`'s record says.
uint32_t attributes_since(const Instruction& instr);

/// Entries of the program's pools that records may still name: no entry is named twice, so that the work and memory that
/// a block asks for grow no faster than its size.
struct PoolBudget {
  uint64_t integers = 0;
  uint64_t bytes = 0;
};

/// Whether the record of `op` names only what is there: ranges, enumeration values, sizes. The block's arrays have been
/// checked before. Takes what it names from `budget`.
Status check_attributes(const collet_program* program, const collet_op& op, PoolBudget& budget);
/// The IR's record in `module`'s arena, from a record that passed check_attributes. Null for none.
const void* read_attributes(const collet_program* program, const collet_op& op, Module& module);

}  // namespace collet::hlo
