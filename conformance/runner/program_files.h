// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// Finds the programs that a user names.

namespace collet::conformance {

struct ProgramFile {
  std::string path;
  /// For names of cases: the path within the named folder, without the ending. Characters that a line or a glob cannot have are '_'.
  std::string name;
  /// The user's path that holds it; empty if the name follows from several of them.
  std::string argument = {};
};

/// Returns the programs of `paths`: files, and folders with all in them. In a folder these are programs: .hlo, .mlir,
/// .mlirbc, .pb, .collet (a serialized executable), and .txt that begins with "HloModule". Of one program in several
/// forms the first form of this list is taken; of a dump of XLA the programs before its optimizations, and of a dump of
/// this library (COLLET_DUMP) the programs as they were read. A folder within, of which the content may not be read, stands there as a
/// file that cannot be read. INVALID_ARGUMENT for a folder without programs.
Expected<std::vector<ProgramFile>> find_programs(const std::vector<std::string>& paths);

}  // namespace collet::conformance
