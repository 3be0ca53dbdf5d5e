// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

/// \file
/// How long the steps of a launch plan take.

namespace collet::codegen {

/// A step of a launch plan that has run.
struct StepTime {
  /// The functions that it called, "kernel3" or "kernel3+kernel4"; "product0" for a matrix product, with its number in the plan; the name of
  /// the op of a routine; or "copy". It lives during the call of the listener.
  const char* name = nullptr;
  uint64_t start_ns = 0;  ///< since 1970, by the system's clock
  uint64_t duration_ns = 0;
};

/// Called after each step, on the thread that runs the program.
using StepListener = std::function<void(const StepTime&)>;

}  // namespace collet::codegen
