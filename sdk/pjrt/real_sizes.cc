// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/real_sizes.h"

#include <string>
#include <vector>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/host_layout.h"
#include "sdk/pjrt/layouts.h"

namespace collet::pjrt {
namespace {

PJRT_Error* read_size(collet_buffer* buffer, int64_t bound, int64_t& out) {
  int32_t size = 0;
  COLLET_PJRT_TRY(collet_buffer_to_host(buffer, &size, sizeof size, nullptr, &failure));
  if (size < 0 || size > bound)
    return make_error(PJRT_Error_Code_INTERNAL,
                      "a result has the size " + std::to_string(size) + "; its bound is " + std::to_string(bound));
  out = size;
  return nullptr;
}

// Replaces an array by its first `dims` elements in each dimension. All of the run is done by now.
PJRT_Error* cut(const Memory& memory, collet_buffer*& buffer, const std::vector<int64_t>& dims) {
  const collet_array_type bounds = collet_buffer_type(buffer);
  const std::vector<int64_t> strides = strides_of(to_struct(*row_major(bounds.rank)), bounds);
  collet_host_array array{};
  array.struct_size = sizeof array;
  array.element = bounds.element;
  array.rank = bounds.rank;
  array.dims = dims.data();
  array.byte_strides = strides.data();
  array.semantics = COLLET_HOST_COPIED;
  std::vector<char> copied;
  array.data = collet_buffer_host_pointer(buffer);
  if (!array.data) {
    // Only rows of the first dimension that are in use, which is the dynamic one most often.
    const uint64_t bytes = bounds.rank ? static_cast<uint64_t>(dims[0] * strides[0]) : collet_buffer_bytes(buffer);
    copied.resize(bytes + 1);
    COLLET_PJRT_TRY(collet_buffer_to_host_range(buffer, 0, bytes, copied.data(), nullptr, &failure));
    array.data = copied.data();
  }
  collet_buffer* made = nullptr;
  COLLET_PJRT_TRY(collet_buffer_from_host(memory.device->client->handle, memory.device->number, memory.space, &array,
                                          &made, &failure));
  collet_buffer_release(buffer);
  buffer = made;
  return nullptr;
}

}  // namespace

PJRT_Error* cut_to_sizes(const Compiled& program, size_t device, collet_buffer** results, size_t count) {
  for (size_t i = 0; i < program.sizes.size();) {
    const uint32_t result = program.sizes[i].result;
    const collet_array_type bounds = collet_buffer_type(results[result]);
    std::vector<int64_t> dims(bounds.dims, bounds.dims + bounds.rank);
    bool smaller = false;
    for (; i < program.sizes.size() && program.sizes[i].result == result; ++i) {
      int64_t& size = dims[program.sizes[i].dimension];
      const int64_t bound = size;
      COLLET_PJRT_CHECK(read_size(results[count + i], bound, size));
      smaller |= size != bound;
    }
    if (smaller)
      COLLET_PJRT_CHECK(cut(*program.output_memories[result * program.devices.size() + device], results[result], dims));
  }
  return nullptr;
}

}  // namespace collet::pjrt
