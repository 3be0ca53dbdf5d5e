// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu {

/// Elements as NCCL counts them.
struct NcclElements {
  ncclDataType_t type = ncclInt8;
  int64_t each = 1;  ///< elements of NCCL's type for one of the array
};

/// Returns the type as which NCCL copies elements of `type`: bytes.
NcclElements moved_by_nccl(uint32_t type);

/// How NCCL combines elements.
struct NcclCombination {
  NcclElements elements;
  ncclRedOp_t operation = ncclSum;
};
/// Returns how NCCL combines elements of `type` (COLLET_TYPE_*) by `combine` (COLLET_COMBINE_*). Complex numbers are added
/// part by part, and the and or the or of pred is the minimum or the maximum of bytes. Returns nullopt where NCCL does not
/// combine, or does it in another way than programs: its minimum and maximum of floats drop NaN.
std::optional<NcclCombination> combined_by_nccl(uint32_t type, uint32_t combine);

/// Returns the text of a result, with what NCCL says of its last error.
std::string nccl_text(const Libraries& nccl, ncclResult_t result, const char* what);

}  // namespace collet::gpu
