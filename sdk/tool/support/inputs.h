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
/// `random:SEED`, `zeros`, one file for each parameter (of numpy.save if it ends in .npy, else raw: row-major and
/// little-endian), or one file of numpy.savez, .npz, with an array for each parameter. `names` are those of the parameters, by
/// which such arrays may be called; empty if they are unknown.
Expected<std::vector<hlo::Literal>> make_inputs(const std::vector<std::string>& how, const std::string& program,
                                                const std::vector<hlo::Shape>& parameters,
                                                std::vector<std::string> names = {});

}  // namespace collet::tool
