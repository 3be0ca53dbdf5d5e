// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Executables as bytes: a head with a checksum, then the target, the program and the object code of its modules.
/// Reading them makes the launch plan again, which is fast, and links the object code instead of compiling.

#include <collet/codegen/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collet::cpu {

/// A program block, as 8-byte words for its alignment.
using ProgramBlock = std::vector<uint64_t>;

struct StoredExecutable {
  std::string target;  ///< everything that the code depends on except the program
  ProgramBlock program;
  std::vector<std::string> objects;
};

std::string write_executable(std::string_view target, const ProgramBlock& program,
                             const std::vector<std::string>& objects);
/// Returns DATA_LOSS for damaged bytes, and FAILED_PRECONDITION for those of another target.
codegen::Status read_executable(std::string_view bytes, std::string_view target, StoredExecutable& out);

}  // namespace collet::cpu
