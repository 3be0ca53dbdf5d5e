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

/// Translates a StableHLO program (with the ops of func, chlo and check, and shardings, which are dropped) to a module.
/// Quantized arithmetic becomes plain arithmetic; ops of dynamic shape whose result is static become static ops, the
/// others custom calls named after them; values that a region takes from outside become operands. Checks stay as custom
/// calls ("check.expect_eq", ...). The module has not been verified. Errors name the op and its line.
Expected<std::unique_ptr<Module>> import_program(const mlir::Program& program, const ImportOptions& options = {});

/// All functions of the program that take no arguments, in order: StableHLO's interpreter tests are such.
std::vector<std::string_view> functions_without_arguments(const mlir::Program& program);

}  // namespace collet::hlo
