// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

/// \file
/// Compilers whose libraries a test can open. A test for another machine, which runs in an emulator, gets them from its environment:
/// COLLET_TEST_CC and COLLET_TEST_CLANG_FLAGS, which the build sets.

namespace collet::codegen::testing {

/// Returns the command of the system's C compiler.
inline std::string c_compiler() {
  const char* const own = std::getenv("COLLET_TEST_CC");
  return own ? own : "cc";
}

/// Returns the command of a version of clang, "clang-16" say, with the flags that it needs.
inline std::string clang_compiler(const std::string& name) {
  const char* const flags = std::getenv("COLLET_TEST_CLANG_FLAGS");
  return flags ? name + " " + flags : name;
}

}  // namespace collet::codegen::testing
