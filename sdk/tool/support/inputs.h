// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

namespace collet::tool {

/// Checks a word after `--inputs` without the program. Returns what is wrong, or an empty string.
std::string check_inputs_word(const std::string& word);

/// Makes the values of `--inputs`: `rule` (that of a case.json next to the program, else by element type),
/// `random:SEED`, `zeros`, or one raw file for each parameter, row-major and little-endian.
Expected<std::vector<hlo::Literal>> make_inputs(const std::vector<std::string>& how, const std::string& program,
                                                const std::vector<hlo::Shape>& parameters);

}  // namespace collet::tool
