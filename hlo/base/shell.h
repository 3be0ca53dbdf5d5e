// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace collet {

/// Returns a word in the form in which a POSIX shell reads it as one argument: unchanged if no character is special,
/// else quoted.
std::string shell_word(std::string_view word);

}  // namespace collet
