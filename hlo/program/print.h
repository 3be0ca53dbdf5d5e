// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <string>

#include "hlo/base/status.h"

namespace collet::hlo {

/// Prints a program as readable text: one line per op, with regions indented below the op that calls them. Checks the
/// program first.
Expected<std::string> print_program(const void* bytes, size_t size);

}  // namespace collet::hlo
