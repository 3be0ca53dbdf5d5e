// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace collet {

/// A word as a shell of POSIX reads it: as it is where that is plain, else quoted.
std::string shell_word(std::string_view word);

}  // namespace collet
