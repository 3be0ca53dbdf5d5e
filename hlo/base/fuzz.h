// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// \file
/// The functions that the fuzz targets share.

namespace collet {

[[noreturn]] inline void fail_fuzz(const std::string& why) {
  std::fputs((why + "\n").c_str(), stderr);
  std::abort();
}

/// True if the text has a large number. A few digits can stand for a long list of devices or elements; reading it takes
/// time in proportion to the list, which would slow down fuzzing without finding anything. Unit tests of the readers
/// cover such numbers.
inline bool is_huge(std::string_view text) {
  if (text.find("<=[") == std::string_view::npos && text.find("mesh") == std::string_view::npos &&
      text.find("dense") == std::string_view::npos && text.find("devices") == std::string_view::npos)
    return false;
  size_t digits = 0;
  for (char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3) return true;
  }
  return false;
}

}  // namespace collet
