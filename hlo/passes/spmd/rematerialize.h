// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/builder.h"

namespace collet::hlo::spmd {

/// The part of dimension `dim` of `x` that is `size` long and starts at `start`, a scalar s32, computed by itself: where
/// `x` follows from iotas and constants alone, by elementwise ops and movement. None where it does not. A partition that
/// needs a tile of random bits then computes that tile alone.
InstrId rematerialize(Builder& b, InstrId x, size_t dim, InstrId start, int64_t size);

}  // namespace collet::hlo::spmd
