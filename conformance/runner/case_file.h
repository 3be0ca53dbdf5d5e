// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "hlo/base/status.h"

/// \file
/// Cases as a text file, so that the cases of a program can be run again without the program. The first line is a head;
/// each other line is a case, in the form of encode_fields.

namespace collet::conformance {

/// True if the text begins like a file of cases.
bool is_case_file(std::string_view text);
std::string case_file_text(const std::vector<Case>& cases);
/// Reads a file of case_file_text. INVALID_ARGUMENT names the line that is wrong; `name` is for messages.
Expected<std::vector<Case>> read_case_file(const std::string& name, std::string_view text);

}  // namespace collet::conformance
