// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/target.h>

#include "sdk/codegen/matmul/blocked_product.h"
#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// Chooses the blocking of a product for the caches and threads of a target. The caller sets the names of functions.
/// `by_batch`: each batch is one job.
BlockedProduct choose_blocking(const Product& product, const Target& target, bool by_batch = false);

}  // namespace collet::codegen
