// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <vector>

#include "sdk/pjrt/api/base.h"
#include "sdk/pjrt/error.h"
#include "sdk/pjrt/layouts.h"

/// \file
/// Handles layouts of arrays on the host. Arrays on a device are dense and row-major.

namespace collet::pjrt {

/// Returns whether a layout is row-major, of arrays of another rank than `rank`. TensorFlow changes the dimensions of an array
/// without a program, and then reads it with a layout for the new ones.
bool is_row_major_of_another_rank(const PJRT_Buffer_MemoryLayout& layout, uint32_t rank);

/// Sets `usual` if `layout` (null: none is requested) is dense and row-major for the type; an error if it is not a
/// layout of the type.
PJRT_Error* check_layout(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type, bool& usual);
/// Returns the layout to be stored with an array; row-major if none is requested. An error if it is not an order of the
/// type's dimensions.
PJRT_Error* to_layout(const PJRT_Buffer_MemoryLayout* asked, const collet_array_type& type,
                      PJRT_Layouts_MemoryLayout*& out);
/// Returns UNIMPLEMENTED for any layout but row-major.
PJRT_Error* require_row_major(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type);

/// Computes the bytes of a dense array; INVALID_ARGUMENT for negative dimensions and on overflow.
PJRT_Error* dense_bytes(const collet_array_type& type, uint64_t& out);
/// Returns the byte strides of an array in a layout that check_layout has accepted.
std::vector<int64_t> strides_of(const PJRT_Buffer_MemoryLayout& layout, const collet_array_type& type);
/// Computes the bytes from an array's first element to the end of its last; INVALID_ARGUMENT for negative strides and
/// on overflow.
PJRT_Error* strided_bytes(const collet_array_type& type, const std::vector<int64_t>& strides, uint64_t& out);

/// Copies a dense array to a strided one.
void scatter(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to);
/// Copies a strided array to a dense one.
void gather(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to);

}  // namespace collet::pjrt
