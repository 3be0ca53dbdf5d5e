// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// True when the bytes begin as MLIR bytecode does.
bool is_bytecode(std::string_view bytes);

/// Reads a portable artifact: MLIR bytecode of versions 0 to 6, with VHLO ops of StableHLO 0.9.0 to the newest row of
/// vhlo.def, and the ops of builtin, func, chlo, sdy and check that may stand beside them. Whatever the bytes, it ends
/// with a program or an error that names the offset. The program keeps no reference to `bytes`.
Expected<std::unique_ptr<Program>> read_bytecode(std::string_view bytes);

}  // namespace collet::hlo::mlir
