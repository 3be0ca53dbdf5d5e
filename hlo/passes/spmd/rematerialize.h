// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/builder.h"

namespace collet::hlo::spmd {

/// Computes a slice of `x` without computing all of `x`. The slice has `size` elements of dimension `dim` from `start`, a
/// scalar of b.index_type(), on. This is possible if `x` is computed from iotas and constants by elementwise ops and data movement;
/// returns InstrId::None otherwise. A partition that needs one tile of random bits then computes that tile only.
InstrId rematerialize(Builder& b, InstrId x, size_t dim, InstrId start, int64_t size);

}  // namespace collet::hlo::spmd
