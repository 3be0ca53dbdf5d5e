// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::gpu::emulator {

/// What the emulator stores in a CUtensorMap: an array in memory, and the boxes that are copied of it.
struct TensorMapData {
  static constexpr uint64_t kMagic = 0x70616d746c6c6f63;

  uint64_t magic = 0;
  uint64_t address = 0;
  uint64_t sizes[5] = {1, 1, 1, 1, 1};  ///< elements of each dimension, the contiguous one first
  uint64_t strides[4] = {0, 0, 0, 0};   ///< bytes from one element to the next in each dimension but the first
  uint16_t box[5] = {1, 1, 1, 1, 1};    ///< elements of a box in each dimension
  uint8_t rank = 0;
  uint8_t element_bytes = 0;
  bool rounds_to_tf32 = false;  ///< copied f32 are rounded to tf32
  bool is_swizzled = false;     ///< chunks of 16 bytes are exchanged within each eight lines of 128 bytes
};
static_assert(sizeof(TensorMapData) <= 128);

}  // namespace collet::gpu::emulator
