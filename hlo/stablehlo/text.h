// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// Reads StableHLO text: the generic form of any op, and the pretty forms that StableHLO, func, chlo and check print.
/// Reports errors to `diagnostics` with line, column and caret, and returns null then. The text may be malformed in any
/// way.
std::unique_ptr<Program> read_text(std::string_view text, Diagnostics& diagnostics);
/// Does the same; an error status holds the diagnostics.
Expected<std::unique_ptr<Program>> read_text(std::string_view text, std::string_view file);

/// True if the text is StableHLO's rather than HLO's: it begins like an MLIR program, or has an op of StableHLO near
/// its start.
bool looks_like_text(std::string_view text);

/// Reads one attribute, such as a dictionary that a string holds; `program` owns it.
Expected<AttrRef> read_attribute(std::string_view text, Program& program);

/// Splits a file of several programs at lines of `// -----`.
std::vector<std::string_view> split_programs(std::string_view text);

}  // namespace collet::hlo::mlir
