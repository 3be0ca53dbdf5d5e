// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/bench/measure.h"
#include "conformance/runner/session.h"
#include "hlo/base/status.h"
#include "sdk/tool/support/elided.h"

namespace collet::tool {

/// Reads the programs of `collet bench --cases`: each path is a program, or a folder whose .hlo, .mlir and .mlirbc
/// files are read, including those in sub-folders. A case's name is the path inside the folder without the ending; its
/// family is the sub-folder, or else the name up to the first `_` or `-`. Sorted by name within a folder. Returns
/// INVALID_ARGUMENT if a folder has no program, or if two programs have the same name.
Expected<std::vector<bench::Case>> read_bench_cases(const std::vector<std::string>& paths, const ElidedChoice& elided);

/// Makes the programs of `collet bench --from`: each op, fused group and pattern of the given programs alone, as the backend
/// is offered these, and the programs themselves (conformance::cases_of_programs). The family of an op is its name.
Expected<std::vector<bench::Case>> bench_cases_of_programs(const conformance::BackendChoice& backend,
                                                           const std::vector<std::string>& paths,
                                                           const ElidedChoice& elided);

}  // namespace collet::tool
