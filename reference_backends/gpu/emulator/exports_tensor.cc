// SPDX-License-Identifier: Apache-2.0
// Implements descriptors of arrays of which kernels copy boxes.
#include <algorithm>
#include <cstring>

#include "reference_backends/gpu/emulator/operations.h"
#include "reference_backends/gpu/emulator/tensor_map.h"

namespace collet::gpu {
namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 32;
constexpr uint64_t kMostStride = uint64_t{1} << 40;
constexpr unsigned int kMostBox = 256;
constexpr unsigned int kMostSwizzled = 128;  ///< bytes of the contiguous dimension of a swizzled box
constexpr uint64_t kAlignment = 16;

unsigned bytes_of(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : type == CU_TENSOR_MAP_DATA_TYPE_UINT16 ? 2 : 4;
}

/// Returns what is wrong with a descriptor; null if nothing is.
const char* problem_of(const emulator::TensorMapData& map, const unsigned int* steps) {
  if (map.address % kAlignment != 0) return "the array begins at no multiple of 16 bytes";
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.sizes[d] == 0 || map.sizes[d] > kMostSize) return "a size is 0 or larger than 2^32";
    if (map.box[d] == 0 || map.box[d] > kMostBox) return "a box has 1 to 256 elements in each dimension";
    if (steps[d] != 1) return "only boxes of neighbours are known";
    if (d + 1 < map.rank && (map.strides[d] % kAlignment != 0 || map.strides[d] >= kMostStride))
      return "a stride is no multiple of 16 bytes, or too large";
  }
  const unsigned inner = map.box[0] * map.element_bytes;
  if (inner % kAlignment != 0) return "a row of a box is no multiple of 16 bytes";
  if (map.is_swizzled && inner > kMostSwizzled) return "a row of a swizzled box has at most 128 bytes";
  if (map.is_swizzled && inner != kMostSwizzled) return "the emulator knows swizzled boxes with rows of 128 bytes only";
  return nullptr;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, unsigned int rank, void* address,
                                const uint64_t* sizes, const uint64_t* strides, const unsigned int* box,
                                const unsigned int* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return emulator::in_context([&](emulator::Entry& e) -> CUresult {
    emulator::State* const s = e.state;
    e.lock.unlock();
    const auto refuse = [&](const char* why) {
      s->report(std::string("cuTensorMapEncodeTiled: ") + why);
      return CUDA_ERROR_INVALID_VALUE;
    };
    if (e.options().sm < 90) return CUDA_ERROR_NOT_SUPPORTED;
    if (!map || !sizes || !box || !steps || rank == 0 || rank > 5 || (rank > 1 && !strides))
      return CUDA_ERROR_INVALID_VALUE;
    const bool is_swizzled = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (!is_swizzled && swizzle != CU_TENSOR_MAP_SWIZZLE_NONE))
      return refuse("this layout is not known");
    emulator::TensorMapData made;
    made.magic = emulator::TensorMapData::kMagic;
    made.address = reinterpret_cast<uint64_t>(address);
    made.rank = static_cast<uint8_t>(rank);
    made.element_bytes = static_cast<uint8_t>(bytes_of(type));
    made.is_swizzled = is_swizzled;
    made.rounds_to_tf32 = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    std::copy_n(sizes, rank, made.sizes);
    if (rank > 1) std::copy_n(strides, rank - 1, made.strides);
    for (unsigned d = 0; d < rank; ++d) made.box[d] = static_cast<uint16_t>(std::min(box[d], 2 * kMostBox));
    if (const char* why = problem_of(made, steps)) return refuse(why);
    *map = {};
    std::memcpy(map->opaque, &made, sizeof made);
    return CUDA_SUCCESS;
  });
}

}  // namespace collet::gpu
