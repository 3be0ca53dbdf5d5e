// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Executables as bytes: a head with a checksum, then the target, the program and the object code of its modules. Reading
/// them plans the program again, which is quick, and links the code instead of making it.

#include <collet/codegen/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collet::cpu {

/// A block of 8-byte words, as programs are aligned.
using ProgramBlock = std::vector<uint64_t>;

struct StoredExecutable {
  std::string target;  ///< all that the code depends on, the program aside
  ProgramBlock program;
  std::vector<std::string> objects;
};

std::string write_executable(std::string_view target, const ProgramBlock& program,
                             const std::vector<std::string>& objects);
/// DATA_LOSS for damaged bytes; FAILED_PRECONDITION for those of another target.
codegen::Status read_executable(std::string_view bytes, std::string_view target, StoredExecutable& out);

}  // namespace collet::cpu
