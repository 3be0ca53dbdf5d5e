// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/buffer.h"

#include <memory>
#include <vector>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/event.h"

namespace collet::pjrt {

PJRT_Error* deleted_error() {
  return failed_precondition("the buffer was deleted or donated");
}

namespace {

PJRT_Error* place_of(PJRT_Device* device, PJRT_Memory* memory, Memory*& out) {
  if (memory) {
    out = static_cast<Memory*>(memory);
  } else if (device) {
    out = device->default_memory;
  } else {
    return invalid_argument("neither a device nor a memory is named");
  }
  return nullptr;
}

// Keeps the moment at which the host's data are no longer needed.
struct HostUse {
  std::shared_ptr<Signal> signal = std::make_shared<Signal>();
};

void host_done(void* user) {
  const std::unique_ptr<HostUse> use(static_cast<HostUse*>(user));
  use->signal->set({});
}

// Byte strides of an array that lies in the order `minor_to_major`.
std::vector<int64_t> strides_of(const collet_array_type& type, const int64_t* minor_to_major) {
  std::vector<int64_t> strides(type.rank);
  int64_t next = collet_type_bytes(type.element);
  for (uint32_t i = 0; i < type.rank; ++i) {
    strides[static_cast<size_t>(minor_to_major[i])] = next;
    next *= type.dims[minor_to_major[i]];
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

// Whether a layout is the one all our arrays have.
PJRT_Error* check_layout(const PJRT_Buffer_MemoryLayout* layout, const collet_array_type& type, bool& usual) {
  usual = true;
  if (!layout) return nullptr;
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    if (layout->strides.num_byte_strides != type.rank) return invalid_argument("a layout of another rank");
    const std::vector<int64_t> dense = strides_of(type, descending(type.rank));
    for (uint32_t d = 0; d < type.rank; ++d)
      if (type.dims[d] > 1 && layout->strides.byte_strides[d] != dense[d]) usual = false;
    return nullptr;
  }
  if (layout->tiled.num_tiles) return unimplemented("tiled layouts");
  if (layout->tiled.minor_to_major_size != type.rank || !is_permutation(layout->tiled.minor_to_major, type.rank))
    return invalid_argument("a layout that is no permutation of the dimensions");
  for (uint32_t d = 0; d < type.rank; ++d)
    if (layout->tiled.minor_to_major[d] != static_cast<int64_t>(type.rank - 1 - d)) usual = false;
  return nullptr;
}

void scatter(const collet_array_type& type, const std::vector<int64_t>& strides, uint32_t dim, const char*& from,
             char* to) {
  const size_t bytes = collet_type_bytes(type.element);
  if (dim == type.rank) {
    std::memcpy(to, from, bytes);
    from += bytes;
    return;
  }
  for (int64_t i = 0; i < type.dims[dim]; ++i) scatter(type, strides, dim + 1, from, to + i * strides[dim]);
}

// To the host in another order than ours, at once.
PJRT_Error* to_host_permuted(PJRT_Buffer& buffer, const PJRT_Buffer_MemoryLayout& layout, void* out) {
  std::vector<int64_t> strides;
  if (layout.type == PJRT_Buffer_MemoryLayout_Type_Strides)
    strides.assign(layout.strides.byte_strides, layout.strides.byte_strides + buffer.type.rank);
  else
    strides = strides_of(buffer.type, layout.tiled.minor_to_major);
  std::vector<char> dense(collet_buffer_bytes(buffer.handle));
  COLLET_PJRT_TRY(collet_buffer_to_host(buffer.handle, dense.data(), dense.size(), nullptr, &failure));
  const char* from = dense.data();
  scatter(buffer.type, strides, 0, from, static_cast<char*>(out));
  return nullptr;
}

PJRT_Error* copy_to(PJRT_Buffer& buffer, Memory* memory, PJRT_Buffer*& out) {
  if (buffer.is_deleted()) return deleted_error();
  collet_buffer* copy = nullptr;
  COLLET_PJRT_TRY(collet_buffer_copy(buffer.handle, memory->device->number, memory->space, &copy, &failure));
  out = new PJRT_Buffer(copy, memory);
  return nullptr;
}

}  // namespace

PJRT_Error* call(PJRT_Client_BufferFromHostBuffer_Args& args) {
  Memory* memory = nullptr;
  COLLET_PJRT_CHECK(place_of(args.device, args.memory, memory));
  collet_host_array array{};
  array.struct_size = sizeof array;
  array.element = to_collet(args.type);
  if (array.element == COLLET_TYPE_INVALID)
    return unimplemented("element type " + std::to_string(args.type) + " is not supported");
  if (args.num_dims > kMaxRank) return invalid_argument("an array of rank " + std::to_string(args.num_dims));
  if (args.num_byte_strides && args.num_byte_strides != args.num_dims)
    return invalid_argument("strides for " + std::to_string(args.num_byte_strides) + " of " +
                            std::to_string(args.num_dims) + " dimensions");
  array.dims = args.dims;
  array.rank = static_cast<uint32_t>(args.num_dims);
  array.byte_strides = args.num_byte_strides ? args.byte_strides : nullptr;
  array.data = args.data;
  array.semantics = static_cast<uint32_t>(args.host_buffer_semantics);
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(args.device_layout, {array.element, array.rank, array.dims}, usual));
  if (!usual) return unimplemented("arrays on the device are row-major; another layout was asked for");

  std::unique_ptr<HostUse> use;
  if (array.semantics != COLLET_HOST_COPIED) {
    use = std::make_unique<HostUse>();
    array.user = use.get();
    array.done = host_done;
  }
  const std::shared_ptr<Signal> signal = use ? use->signal : nullptr;
  collet_buffer* handle = nullptr;
  COLLET_PJRT_TRY(collet_buffer_from_host(memory->device->client->handle, memory->device->number, memory->space, &array,
                                          &handle, &failure));
  (void)use.release();  // host_done has it now
  args.buffer = new PJRT_Buffer(handle, memory);
  args.done_with_host_buffer = signal ? event_of(signal) : ready_event();
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Destroy_Args& args) {
  delete args.buffer;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_ElementType_Args& args) {
  args.type = from_collet(args.buffer->type.element);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Dimensions_Args& args) {
  args.dims = args.buffer->type.dims;
  args.num_dims = args.buffer->type.rank;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  args.unpadded_dims = args.buffer->type.dims;
  args.num_dims = args.buffer->type.rank;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_GetMemoryLayout_Args& args) {
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = descending(args.buffer->type.rank);
  args.layout.tiled.minor_to_major_size = args.buffer->type.rank;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = collet_buffer_bytes(args.buffer->handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Device_Args& args) {
  args.device = args.buffer->memory->device;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Memory_Args& args) {
  args.memory = args.buffer->memory;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Delete_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  const std::lock_guard lock(buffer.mutex);
  buffer.deleted = true;
  if (!buffer.views) collet_buffer_delete(buffer.handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IsDeleted_Args& args) {
  const std::lock_guard lock(args.buffer->mutex);
  args.is_deleted = args.buffer->is_deleted();
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_CopyToDevice_Args& args) {
  return copy_to(*args.buffer, args.dst_device->default_memory, args.dst_buffer);
}

PJRT_Error* call(PJRT_Buffer_CopyToMemory_Args& args) {
  return copy_to(*args.buffer, static_cast<Memory*>(args.dst_memory), args.dst_buffer);
}

PJRT_Error* call(PJRT_Buffer_ToHostBuffer_Args& args) {
  PJRT_Buffer& buffer = *args.src;
  if (buffer.is_deleted()) return deleted_error();
  const uint64_t bytes = collet_buffer_bytes(buffer.handle);
  if (!args.dst) {
    args.dst_size = bytes;
    return nullptr;
  }
  if (args.dst_size < bytes)
    return invalid_argument("room for " + std::to_string(args.dst_size) + " bytes; the array has " +
                            std::to_string(bytes));
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(args.host_layout, buffer.type, usual));
  if (!usual) {
    COLLET_PJRT_CHECK(to_host_permuted(buffer, *args.host_layout, args.dst));
    args.event = ready_event();
    return nullptr;
  }
  collet_event* event = nullptr;
  COLLET_PJRT_TRY(collet_buffer_to_host(buffer.handle, args.dst, args.dst_size, &event, &failure));
  args.event = event_of(event);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_CopyRawToHost_Args& args) {
  if (args.offset < 0 || args.transfer_size < 0) return invalid_argument("a negative offset or size");
  if (args.buffer->is_deleted()) return deleted_error();
  collet_event* event = nullptr;
  COLLET_PJRT_TRY(collet_buffer_to_host_range(args.buffer->handle, static_cast<uint64_t>(args.offset),
                                              static_cast<uint64_t>(args.transfer_size), args.dst, &event, &failure));
  args.event = event_of(event);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IsOnCpu_Args& args) {
  args.is_on_cpu = collet_buffer_host_pointer(args.buffer->handle) != nullptr;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_ReadyEvent_Args& args) {
  if (args.buffer->is_deleted()) return deleted_error();
  args.event = event_of(collet_buffer_ready(args.buffer->handle));
  return nullptr;
}

static PJRT_Error* raw_pointer(PJRT_Buffer& buffer, const void*& out) {
  if (buffer.is_deleted()) return deleted_error();
  out = collet_buffer_host_pointer(buffer.handle);
  if (!out && collet_buffer_bytes(buffer.handle)) return unimplemented("the host does not see this memory");
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_UnsafePointer_Args& args) {
  const void* pointer = nullptr;
  COLLET_PJRT_CHECK(raw_pointer(*args.buffer, pointer));
  args.buffer_pointer = reinterpret_cast<uintptr_t>(pointer);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  const void* pointer = nullptr;
  COLLET_PJRT_CHECK(raw_pointer(*args.buffer, pointer));
  args.device_memory_ptr = const_cast<void*>(pointer);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  const std::lock_guard lock(args.buffer->mutex);
  if (args.buffer->is_deleted()) return deleted_error();
  ++args.buffer->views;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  const std::lock_guard lock(buffer.mutex);
  if (!buffer.views) return invalid_argument("more references were dropped than taken");
  if (--buffer.views == 0 && buffer.deleted) collet_buffer_delete(buffer.handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  Memory* memory = nullptr;
  COLLET_PJRT_CHECK(place_of(args.device, args.memory, memory));
  collet_buffer* handle = nullptr;
  COLLET_PJRT_CHECK(promise(*memory, args.shape_element_type, args.shape_dims, args.shape_num_dims, handle));
  auto buffer = std::make_unique<PJRT_Buffer>(handle, memory);
  COLLET_PJRT_TRY(collet_buffer_fulfil(handle, nullptr, &failure));
  args.buffer = buffer.release();
  return nullptr;
}

namespace {

// Memory of somebody else that a buffer looks at, and how to say that it no longer does.
struct View {
  void* data;
  void (*on_delete)(void* data, void* user);
  void* user;
};

void end_view(void* user) {
  const std::unique_ptr<View> view(static_cast<View*>(user));
  if (view->on_delete) view->on_delete(view->data, view->user);
}

// Whether pointers into a memory are the host's too. Asked once.
PJRT_Error* check_host_sees(Memory& memory) {
  std::call_once(memory.asked_host, [&] {
    const char byte = 0;
    collet_host_array array{};
    array.struct_size = sizeof array;
    array.element = COLLET_TYPE_U8;
    array.data = &byte;
    collet_buffer* probe = nullptr;
    if (collet_buffer_from_host(memory.device->client->handle, memory.device->number, memory.space, &array, &probe,
                                nullptr) != COLLET_OK)
      return;
    memory.host_sees = collet_buffer_host_pointer(probe) != nullptr;
    collet_buffer_release(probe);
  });
  return memory.host_sees ? nullptr : unimplemented("the host does not see this memory, so no view of it can be made");
}

PJRT_Error* view_of(Memory& memory, uint32_t element, const int64_t* dims, size_t rank, const View& what,
                    PJRT_Buffer*& out) {
  COLLET_PJRT_CHECK(check_host_sees(memory));
  auto view = std::make_unique<View>(what);
  collet_host_array array{};
  array.struct_size = sizeof array;
  array.element = element;
  array.dims = dims;
  array.rank = static_cast<uint32_t>(rank);
  array.data = view->data;
  array.semantics = COLLET_HOST_ZERO_COPY;
  array.user = view.get();
  array.done = end_view;
  collet_buffer* handle = nullptr;
  COLLET_PJRT_TRY(collet_buffer_from_host(memory.device->client->handle, memory.device->number, memory.space, &array,
                                          &handle, &failure));
  (void)view.release();  // end_view has it now
  out = new PJRT_Buffer(handle, &memory);
  return nullptr;
}

}  // namespace

PJRT_Error* call(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  Memory* memory = nullptr;
  COLLET_PJRT_CHECK(place_of(args.device, args.memory, memory));
  const uint32_t element = to_collet(args.element_type);
  if (element == COLLET_TYPE_INVALID)
    return unimplemented("element type " + std::to_string(args.element_type) + " is not supported");
  if (args.num_dims > kMaxRank) return invalid_argument("an array of rank " + std::to_string(args.num_dims));
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(args.layout, {element, static_cast<uint32_t>(args.num_dims), args.dims}, usual));
  if (!usual) return unimplemented("arrays on the device are row-major; another layout was asked for");
  return view_of(*memory, element, args.dims, args.num_dims,
                 {args.device_buffer_ptr, args.on_delete_callback, args.on_delete_callback_arg}, args.buffer);
}

PJRT_Error* call(PJRT_Buffer_Bitcast_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  if (buffer.is_deleted()) return deleted_error();
  const uint32_t element = to_collet(args.element_type);
  if (element == COLLET_TYPE_INVALID)
    return unimplemented("element type " + std::to_string(args.element_type) + " is not supported");
  if (args.num_dims > kMaxRank) return invalid_argument("an array of rank " + std::to_string(args.num_dims));
  uint64_t bytes = collet_type_bytes(element);
  for (size_t d = 0; d < args.num_dims; ++d) bytes *= static_cast<uint64_t>(args.dims[d]);
  if (bytes != collet_buffer_bytes(buffer.handle))
    return invalid_argument("the array has " + std::to_string(collet_buffer_bytes(buffer.handle)) + " bytes, not " +
                            std::to_string(bytes));
  collet_event* ready = collet_buffer_ready(buffer.handle);
  collet_error waited{};
  const collet_status status = collet_event_wait(ready, &waited);
  collet_event_release(ready);
  if (status != COLLET_OK) return from_collet(status, waited.message);
  const auto release = [](void*, void* user) { collet_buffer_release(static_cast<collet_buffer*>(user)); };
  collet_buffer_retain(buffer.handle);
  void* data = const_cast<void*>(collet_buffer_host_pointer(buffer.handle));
  PJRT_Error* error =
      view_of(*buffer.memory, element, args.dims, args.num_dims, {data, release, buffer.handle}, args.out_buffer);
  if (error) collet_buffer_release(buffer.handle);
  return error;
}

}  // namespace collet::pjrt
