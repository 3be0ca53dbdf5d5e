// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/bench/measure.h"
#include "hlo/base/status.h"
#include "sdk/tool/support/elided.h"

namespace collet::tool {

/// The programs of `collet bench --cases`: each path is a program, or a folder of which every .hlo, .mlir and .mlirbc is
/// taken, sub-folders included. A case's name is the path inside the folder without the ending; its family is the
/// sub-folder, or else the name up to the first `_` or `-`. Sorted by name within a folder.
/// INVALID_ARGUMENT where a folder has no program, or two programs have the same name.
Expected<std::vector<bench::Case>> read_bench_cases(const std::vector<std::string>& paths, const ElidedChoice& elided);

}  // namespace collet::tool
