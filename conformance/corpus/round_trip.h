// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Prints the module, reads that, prints it again: the two texts must be the same.
Status check_round_trip(const hlo::Module& module);

/// The bytes of a file that holds a program; NOT_FOUND where it cannot be read.
Expected<std::string> contents(const std::string& path);
/// Up to the end of the first line.
std::string first_line(std::string text);

}  // namespace collet::conformance
