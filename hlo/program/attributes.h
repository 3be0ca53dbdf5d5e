// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Converts attribute records of the IR to those of the ABI boundary and back; both directions use abi_fields().

namespace collet::hlo {

/// Collects the lists and strings of records.
struct AttributePools {
  std::vector<int64_t> integers;
  std::vector<char> bytes;

  collet_range add(std::span<const int64_t> list);
  collet_range add(std::string_view text);
};

/// Returns the C record of `instr`; lists and strings are added to `pools`. Values that the IR omits because they are
/// defaults are written out.
std::vector<char> write_attributes(const Module& module, const Instruction& instr, AttributePools& pools);
/// Returns the smallest opset that defines all values in `instr`'s record.
uint32_t attributes_since(const Instruction& instr);

/// The number of entries of the program's pools that records may still refer to. An entry may be used once only, so
/// that the time and memory for reading a block grow at most in proportion to its size.
struct PoolBudget {
  uint64_t integers = 0;
  uint64_t bytes = 0;
};

/// Checks that the record of `op` refers only to existing entries, enumeration values and sizes. The block's arrays
/// have been checked before. Subtracts the entries from `budget`.
Status check_attributes(const collet_program* program, const collet_op& op, PoolBudget& budget);
/// Creates the IR's record in `module`'s arena from a record that passed check_attributes. Null if the op has none.
const void* read_attributes(const collet_program* program, const collet_op& op, Module& module);

}  // namespace collet::hlo
