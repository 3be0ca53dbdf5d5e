// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <string>
#include <vector>

#include "sdk/codegen/compile/function_source.h"
#include "sdk/codegen/source/text.h"

namespace collet::codegen::source {

/// Adds the function `static void name(char *const *buffers, int64_t begin, int64_t end, int64_t worker)`, which runs jobs of a
/// product, and the micro-kernels that it calls.
void write_matmul(Unit& unit, const MatmulCall& call, const std::vector<FunctionSource>& sources,
                  const std::string& name);

}  // namespace collet::codegen::source
