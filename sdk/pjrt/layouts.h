// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sdk/pjrt/api/extensions.h"

/// \file
/// Stores the order of dimensions that a frontend requested with an array, and returns it on request. The data of every
/// array are row-major: direct access to the memory is refused if the frontend requested another order.

/// A dense layout, as the order of dimensions from minor to major. There is one object for each order, which is never
/// freed, so equal layouts have equal addresses.
struct PJRT_Layouts_MemoryLayout {
  std::vector<int64_t> minor_to_major;
};

namespace collet::pjrt {

/// Returns the layout of arrays for which no other one was requested. Null if the rank exceeds the limit.
PJRT_Layouts_MemoryLayout* row_major(size_t rank);
bool is_row_major(const PJRT_Layouts_MemoryLayout* layout);
/// Returns the layout with this order of dimensions, which must be a permutation.
PJRT_Layouts_MemoryLayout* layout_of(std::vector<int64_t> minor_to_major);
/// Makes the layout that `text`, such as "{0,1}", describes; a row-major one if `text` is null.
PJRT_Layouts_MemoryLayout* layout_of(const char* text, size_t rank);
/// Returns the API's struct, which refers to the data of `layout`.
PJRT_Buffer_MemoryLayout to_struct(const PJRT_Layouts_MemoryLayout& layout);
/// Returns the layouts extension, followed by `next`.
PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
