// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// Reads StableHLO text: the generic form of any op and the pretty forms that StableHLO, func, chlo and check print.
/// Errors go to `diagnostics` with line, column and caret; null then. Never crashes, whatever the text.
std::unique_ptr<Program> read_text(std::string_view text, Diagnostics& diagnostics);
/// The same with the complaints in the status.
Expected<std::unique_ptr<Program>> read_text(std::string_view text, std::string_view file);

/// True when text is StableHLO's rather than HLO's: it begins as a program of MLIR's does, or has an op of StableHLO's
/// near its start.
bool looks_like_text(std::string_view text);

/// One attribute, such as a dictionary that stands in a string; it lives in `program`.
Expected<AttrRef> read_attribute(std::string_view text, Program& program);

/// The pieces of a file of several programs, cut at lines of `// -----`.
std::vector<std::string_view> split_programs(std::string_view text);

}  // namespace collet::hlo::mlir
