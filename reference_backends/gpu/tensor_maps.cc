// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/tensor_maps.h"

#include <collet/collet.h>

#include <algorithm>

namespace collet::gpu {
namespace {

constexpr size_t kMostDimensions = 5;

/// Returns the driver's type for elements that are copied as they are, or rounded to tf32.
CUtensorMapDataType type_of(const codegen::TensorMap& map) {
  if (map.rounds_to_tf32) return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  switch (collet_type_bytes(map.element_type)) {
    case 1:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case 2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

}  // namespace

CUresult append_tensor_maps(const Driver& driver, const std::vector<codegen::TensorMap>& maps,
                            const uint64_t* arguments, std::vector<CUtensorMap>* out) {
  for (const codegen::TensorMap& map : maps) {
    const size_t rank = map.sizes.size();
    if (rank == 0 || rank > kMostDimensions) return CUDA_ERROR_INVALID_VALUE;
    uint64_t sizes[kMostDimensions] = {}, strides[kMostDimensions] = {};
    unsigned int box[kMostDimensions] = {}, steps[kMostDimensions] = {1, 1, 1, 1, 1};
    std::copy(map.sizes.begin(), map.sizes.end(), sizes);
    std::copy(map.strides.begin(), map.strides.end(), strides);
    std::copy(map.box.begin(), map.box.end(), box);
    CUtensorMap made;
    const CUresult result =
        driver.cuTensorMapEncodeTiled(&made, type_of(map), static_cast<unsigned int>(rank),
                                      reinterpret_cast<void*>(arguments[map.place] + map.offset), sizes, strides, box,
                                      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) return result;
    out->push_back(made);
  }
  return CUDA_SUCCESS;
}

}  // namespace collet::gpu
