// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::conformance {

/// Prints the module, reads the text and prints it again: both texts must be equal.
Status check_round_trip(const hlo::Module& module);

/// Returns the bytes of a file that holds a program; NOT_FOUND if it cannot be read.
Expected<std::string> contents(const std::string& path);
/// Returns the first line of the text.
std::string first_line(std::string text);

}  // namespace collet::conformance
