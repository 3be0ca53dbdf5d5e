// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <memory>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// A program converted to a module. As in HLO text, ops with several results return tuples, and control flow passes
/// tuples.
struct ReadProgram {
  std::unique_ptr<Module> module;
  std::vector<InstrId> ops;  ///< by op: its instruction
};

/// Checks the block (check_program) and creates a module. All arguments, including constant ones, become parameters.
/// The result is well formed but not verified; the caller runs the verifier. Data of inline constants is copied.
Expected<ReadProgram> read_program(const void* bytes, size_t size);

}  // namespace collet::hlo
