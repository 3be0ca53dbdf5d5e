// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sdk/pjrt/api/extensions.h"

/// \file
/// The order of dimensions that a frontend asked for, kept with an array and told when asked. The data of every array are
/// row-major: what looks at them directly is refused where another order was promised.

/// Dense, and minor to major. There is one of each, for ever: equal ones have the same address.
struct PJRT_Layouts_MemoryLayout {
  std::vector<int64_t> minor_to_major;
};

namespace collet::pjrt {

/// The layout of arrays that nobody asked another one for. Null past the highest rank.
PJRT_Layouts_MemoryLayout* row_major(size_t rank);
bool is_row_major(const PJRT_Layouts_MemoryLayout* layout);
/// The layout of this order of dimensions, which must be a permutation.
PJRT_Layouts_MemoryLayout* layout_of(std::vector<int64_t> minor_to_major);
/// Makes the layout that `text`, such as "{0,1}", describes; a row-major one if `text` is null.
PJRT_Layouts_MemoryLayout* layout_of(const char* text, size_t rank);
/// Returns the API's struct, which refers to the data of `layout`.
PJRT_Buffer_MemoryLayout to_struct(const PJRT_Layouts_MemoryLayout& layout);
/// The layouts extension, followed by `next`.
PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
