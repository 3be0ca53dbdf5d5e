// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/lower/routines.h"
#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// A micro-kernel with the epilogue of its registers, if any; without rows, the epilogue alone.
struct MicroSource {
  MicroKernel kernel;
  std::optional<Epilogue> epilogue;
};

/// What one function of a program is compiled from: a KernelFunction, a MicroFunction or a CompareFunction.
struct FunctionSource {
  std::string name;
  std::variant<Kernel, MicroSource, Comparator> body;
  /// Many programs have a function of this name, which is the same in all.
  bool shared = false;
};

}  // namespace collet::codegen
