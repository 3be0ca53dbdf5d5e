// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/builder.h"

namespace collet::hlo::spmd {

/// A part of dimension `dim` of `x`, `size` long from `start` (a scalar s32) on, made by itself, where `x` is made of no
/// array of the program's: of iotas and constants, by elementwise ops and movement. None where it is not. So whoever has
/// a tile of random bits makes just that tile.
InstrId remake(Builder& b, InstrId x, size_t dim, InstrId start, int64_t size);

}  // namespace collet::hlo::spmd
