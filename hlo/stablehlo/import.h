// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo {

struct ImportOptions {
  std::string_view entry = "main";  ///< the function that becomes the entry; when there is none of that name and just
                                    ///< one public function, that one
};

/// Translates a StableHLO program (with ops of func, chlo and check, and shardings) to a module. Quantized arithmetic
/// becomes plain arithmetic. Ops of dynamic shape become static ops if their result is static, otherwise custom calls
/// named after them. Values that a region uses from outside become operands. Checks stay as custom calls
/// ("check.expect_eq", ...). The module has not been verified. Errors name the op and its line.
Expected<std::unique_ptr<Module>> import_program(const mlir::Program& program, const ImportOptions& options = {});

/// Returns all functions of the program that take no arguments, in order. The tests of StableHLO's interpreter are
/// written as such functions.
std::vector<std::string_view> functions_without_arguments(const mlir::Program& program);

}  // namespace collet::hlo
