// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace collet::conformance {

/// Returns the names of the functions and data that a library exports besides collet_backend_entry, sorted, from its ELF
/// file. In a process with other libraries such names may be taken for equal ones of theirs, and theirs for the
/// library's own. Empty if the file cannot be read or is no ELF file of this machine's word size and byte order.
std::vector<std::string> more_exports(const std::string& path);

}  // namespace collet::conformance
