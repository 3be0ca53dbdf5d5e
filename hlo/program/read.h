// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <memory>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// A program as a module, in the form that HLO text has: ops of several results give tuples, control flow carries them.
struct ReadProgram {
  std::unique_ptr<Module> module;
  std::vector<InstrId> ops;  ///< instruction of each op
};

/// Checks the block (check_program) and makes a module of it. Arguments become parameters, constant ones too. The result
/// is well formed but not verified: the caller runs the verifier. Data of inline constants is copied.
Expected<ReadProgram> read_program(const void* bytes, size_t size);

}  // namespace collet::hlo
