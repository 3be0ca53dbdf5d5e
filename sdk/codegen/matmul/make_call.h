// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/target.h>

#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// Chooses the blocking of a product for the caches and threads of a target. The caller sets the function numbers.
/// `by_batch`: each batch is one job.
MatmulCall make_matmul_call(const Product& product, const Target& target, bool by_batch = false);

}  // namespace collet::codegen
