// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen {

/// The elements that the lanes of an access read or write: lane i has element scalar + stride * i + vec[i].
struct Lanes {
  llvm::Value* scalar = nullptr;  ///< i64: index of the first lane's element
  int64_t stride = 0;
  llvm::Value* vec = nullptr;  ///< null, or a vector of i64: offsets of the lanes
  int count = 1;
  int64_t aligned = 1;           ///< `scalar` is a multiple of this, and the memory is aligned to as many elements
  bool bypasses_caches = false;  ///< stores need not leave the elements in the caches

  bool uniform() const { return count == 1 || (stride == 0 && !vec); }
};

/// Loads adjacent bf16 elements as f32: first all at even, then all at odd distances from the first. This takes fewer
/// operations than to keep their order, because a word of two elements needs no unpacking.
llvm::Value* load_halves(Ir& ir, llvm::Value* base, const Lanes& where);

/// Loads the elements at `where`. The result is zero in lanes in which `mask` is false; `mask` is null, an i1, or a vector of i1.
/// A uniform access returns a scalar.
Val load_lanes(Ir& ir, llvm::Value* base, uint32_t type, const Lanes& where, llvm::Value* mask);

/// Stores the lanes in which `mask` is true.
void store_lanes(Ir& ir, llvm::Value* base, uint32_t type, const Lanes& where, const Val& value, llvm::Value* mask);

/// Returns the element index of each lane, as i64.
llvm::Value* lane_indices(Ir& ir, const Lanes& where);

}  // namespace collet::codegen
