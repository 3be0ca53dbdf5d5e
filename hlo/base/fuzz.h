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

/// Text that is honestly large: a list of devices or elements that a few digits stand for. Reading it takes as long as
/// the list is, which teaches a fuzzer nothing; tests of the readers hold such numbers.
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
