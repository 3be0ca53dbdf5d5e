// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/llvm/ir.h"

namespace collet::codegen {

/// Where the lanes of an access are: element scalar + stride * lane + vec[lane].
struct Lanes {
  llvm::Value* scalar = nullptr;  ///< i64
  int64_t stride = 0;
  llvm::Value* vec = nullptr;  ///< null, or i64 per lane
  int count = 1;
  int64_t aligned = 1;  ///< element `scalar` has a number that is a multiple of this, in memory that is aligned as much

  bool uniform() const { return count == 1 || (stride == 0 && !vec); }
};

/// The elements at `where`; zero in lanes where `mask` (null, i1 or a vector of it) is false. A uniform access gives a
/// scalar.
Val load_lanes(Ir& ir, llvm::Value* base, uint32_t type, const Lanes& where, llvm::Value* mask);

/// Writes lanes where `mask` is true.
void store_lanes(Ir& ir, llvm::Value* base, uint32_t type, const Lanes& where, const Val& value, llvm::Value* mask);

/// Index of each lane, as i64.
llvm::Value* lane_indices(Ir& ir, const Lanes& where);

}  // namespace collet::codegen
