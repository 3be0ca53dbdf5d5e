// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/source/text.h"

namespace collet::codegen::source {

/// Adds the function `static void name(char *const *buffers, int64_t begin, int64_t end, int64_t worker)`, which runs jobs of the
/// product `source`, and the micro-kernels that it calls, which are in `sources`.
void write_product(Unit& unit, const FunctionSource& source, const std::vector<FunctionSource>& sources);

}  // namespace collet::codegen::source
