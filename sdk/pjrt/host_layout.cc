// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/host_layout.h"

#include <cstring>
#include <string>

#include "sdk/pjrt/element_types.h"

namespace collet::pjrt {
namespace {

std::vector<int64_t> dense_strides(const collet_array_type& type, const int64_t* minor_to_major) {
  std::vector<int64_t> strides(type.rank);
  int64_t next = collet_type_bytes(type.element);
  for (uint32_t i = 0; i < type.rank; ++i) {
    const auto d = static_cast<size_t>(minor_to_major[i]);
    strides[d] = next;
    if (__builtin_mul_overflow(next, type.dims[d], &next)) next = 0;  // more than fits memory: dense_bytes reports this
  }
  return strides;
}

bool is_permutation(const int64_t* minor_to_major, size_t rank) {
  std::vector<bool> seen(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (minor_to_major[i] < 0 || static_cast<size_t>(minor_to_major[i]) >= rank ||
        seen[static_cast<size_t>(minor_to_major[i])])
      return false;
    seen[static_cast<size_t>(minor_to_major[i])] = true;
  }
  return true;
}

// True for the order of a row-major array.
bool is_descending(const int64_t* minor_to_major, size_t rank) {
  for (size_t i = 0; i < rank; ++i)
    if (minor_to_major[i] != static_cast<int64_t>(rank - 1 - i)) return false;
  return true;
}

// Calls `copy` with the offset of each element in the strided array, in row-major order.
template <typename Copy>
void walk(const collet_array_type& type, const std::vector<int64_t>& strides, uint32_t dim, int64_t place,
          const Copy& copy) {
  if (dim == type.rank) return copy(place);
  for (int64_t i = 0; i < type.dims[dim]; ++i) walk(type, strides, dim + 1, place + i * strides[dim], copy);
}

PJRT_Error* too_large() {
  return invalid_argument("an array of more bytes than there can be");
}

}  // namespace

PJRT_Error* check_layout(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type, bool& usual) {
  usual = true;
  if (!layout) return nullptr;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    if (layout->strides.num_byte_strides != type.rank) return invalid_argument("a layout of another rank");
    const std::vector<int64_t> dense = dense_strides(type, descending(type.rank));
    for (uint32_t d = 0; d < type.rank; ++d)
      if (type.dims[d] > 1 && layout->strides.byte_strides[d] != dense[d]) usual = false;
    return nullptr;
  }
  if (layout->tiled.num_tiles) return unimplemented("tiled layouts");
  if (layout->tiled.minor_to_major_size != type.rank || !is_permutation(layout->tiled.minor_to_major, type.rank))
    return invalid_argument("a layout that is no permutation of the dimensions");
  usual = is_descending(layout->tiled.minor_to_major, type.rank);
  return nullptr;
}

bool is_row_major_of_another_rank(const PJRT_Buffer_MemoryLayout& layout, uint32_t rank) {
  if (layout.type != PJRT_Buffer_MemoryLayout_Type_Tiled || layout.tiled.num_tiles) return false;
  const size_t n = layout.tiled.minor_to_major_size;
  return n != rank && is_descending(layout.tiled.minor_to_major, n);
}

PJRT_Error* to_layout(const PJRT_Buffer_MemoryLayout* asked, const collet_array_type& type,
                      PJRT_Layouts_MemoryLayout*& out) {
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(asked, type, usual));
  if (!usual && asked->type == PJRT_Buffer_MemoryLayout_Type_Strides)
    return unimplemented("arrays on the device are dense; other strides were asked for");
  out = usual
            ? row_major(type.rank)
            : layout_of({asked->tiled.minor_to_major, asked->tiled.minor_to_major + asked->tiled.minor_to_major_size});
  return nullptr;
}

PJRT_Error* require_row_major(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type) {
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(layout, type, usual));
  return usual ? nullptr : unimplemented("arrays on the device are row-major; another layout was asked for");
}

PJRT_Error* dense_bytes(const collet_array_type& type, uint64_t& out) {
  out = collet_type_bytes(type.element);
  for (uint32_t d = 0; d < type.rank; ++d)
    if (type.dims[d] < 0) return invalid_argument("dimension " + std::to_string(d) + " is negative");
  for (uint32_t d = 0; d < type.rank; ++d)
    if (type.dims[d] == 0) return out = 0, nullptr;
  for (uint32_t d = 0; d < type.rank; ++d)
    if (__builtin_mul_overflow(out, static_cast<uint64_t>(type.dims[d]), &out)) return too_large();
  return nullptr;
}

std::vector<int64_t> strides_of(const PJRT_Buffer_MemoryLayout& layout, const collet_array_type& type) {
  if (layout.type != PJRT_Buffer_MemoryLayout_Type_Strides) return dense_strides(type, layout.tiled.minor_to_major);
  return {layout.strides.byte_strides, layout.strides.byte_strides + type.rank};
}

PJRT_Error* strided_bytes(const collet_array_type& type, const std::vector<int64_t>& strides, uint64_t& out) {
  for (uint32_t d = 0; d < type.rank; ++d)
    if (type.dims[d] == 0) return out = 0, nullptr;
  out = collet_type_bytes(type.element);
  for (uint32_t d = 0; d < type.rank; ++d) {
    if (type.dims[d] == 1) continue;
    if (strides[d] < 0) return invalid_argument("a negative stride would lead out of the host's array");
    uint64_t reach = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(type.dims[d] - 1), static_cast<uint64_t>(strides[d]), &reach) ||
        __builtin_add_overflow(out, reach, &out))
      return too_large();
  }
  return nullptr;
}

void scatter(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to) {
  const size_t bytes = collet_type_bytes(type.element);
  walk(type, strides, 0, 0, [&](int64_t place) {
    std::memcpy(to + place, from, bytes);
    from += bytes;
  });
}

void gather(const collet_array_type& type, const std::vector<int64_t>& strides, const char* from, char* to) {
  const size_t bytes = collet_type_bytes(type.element);
  walk(type, strides, 0, 0, [&](int64_t place) {
    std::memcpy(to, from + place, bytes);
    to += bytes;
  });
}

}  // namespace collet::pjrt
