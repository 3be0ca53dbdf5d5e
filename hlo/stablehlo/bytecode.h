// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// True if the bytes begin like MLIR bytecode.
bool is_bytecode(std::string_view bytes);

/// Reads a portable artifact: MLIR bytecode of versions 0 to 6, with VHLO ops of the StableHLO versions from 0.9.0 to
/// the newest in vhlo.def, and ops of the dialects builtin, func, chlo, sdy and check. For any input it returns a
/// program, or an error that names the offset. The program keeps no reference to `bytes`.
Expected<std::unique_ptr<Program>> read_bytecode(std::string_view bytes);

}  // namespace collet::hlo::mlir
