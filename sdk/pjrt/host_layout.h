// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <vector>

#include "sdk/pjrt/api/base.h"
#include "sdk/pjrt/error.h"
#include "sdk/pjrt/layouts.h"

/// \file
/// Orders in which the host's arrays lie. Those on a device are dense and row-major.

namespace collet::pjrt {

/// Whether `layout` (null: none is asked for) is dense and row-major for the type; an error where it is no layout of it.
PJRT_Error* check_layout(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type, bool& usual);
/// The layout that is to be kept with an array; row-major where none is asked for. An error where it is no order of the
/// type's dimensions.
PJRT_Error* to_layout(const PJRT_Buffer_MemoryLayout* asked, const collet_array_type& type,
                      PJRT_Layouts_MemoryLayout*& out);
/// UNIMPLEMENTED for any other layout than that.
PJRT_Error* require_row_major(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type);

/// Bytes of a dense array; INVALID_ARGUMENT for negative dimensions and for more than there can be.
PJRT_Error* dense_bytes(const collet_array_type& type, uint64_t& out);
/// Byte strides of an array in a layout that check_layout has found right.
std::vector<int64_t> strides_of(const PJRT_Buffer_MemoryLayout& layout, const collet_array_type& type);
/// Bytes from an array's first element to the end of its last; INVALID_ARGUMENT for negative strides and for more than
/// there can be.
PJRT_Error* strided_bytes(const collet_array_type& type, const std::vector<int64_t>& strides, uint64_t& out);

/// Copies a dense array to a strided one.
void scatter(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to);
/// Copies a strided array to a dense one.
void gather(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to);

}  // namespace collet::pjrt
