// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/buffer.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/event.h"
#include "sdk/pjrt/host_layout.h"

namespace collet::pjrt {

namespace {
constexpr const char* kDeleted = "the buffer was deleted or donated";
}

PJRT_Error* deleted_error() {
  return failed_precondition(kDeleted);
}

PJRT_Error* reordered_error() {
  return unimplemented("raw data of an array in another layout than row-major");
}

namespace {

PJRT_Error* place_of(PJRT_Device* device, PJRT_Memory* memory, Memory*& out) {
  if (memory) {
    out = static_cast<Memory*>(memory);
  } else if (device) {
    if (!device->is_own) return of_another_process(*device);
    out = device->default_memory;
  } else {
    return invalid_argument("neither a device nor a memory is named");
  }
  return nullptr;
}

// The state for the event at which the host's data are no longer needed.
struct HostUse {
  std::shared_ptr<Signal> signal = std::make_shared<Signal>();
};

void host_done(void* user) {
  const std::unique_ptr<HostUse> use(static_cast<HostUse*>(user));
  use->signal->set({});
}

// A copy to the host in another order than row-major; it is done when the data are complete.
struct Reordering {
  collet_buffer* buffer;
  std::vector<int64_t> dims, strides;
  std::vector<char> dense;
  char* out;
  std::shared_ptr<Signal> done = std::make_shared<Signal>();
  ~Reordering() { collet_buffer_release(buffer); }
};

void finish_reordering(void* user, collet_status status, const char* message) {
  const std::unique_ptr<Reordering> r(static_cast<Reordering*>(user));
  if (status == COLLET_OK) {
    const collet_array_type type = {collet_buffer_type(r->buffer).element, static_cast<uint32_t>(r->dims.size()),
                                    r->dims.data()};
    scatter(type, r->strides, r->dense.data(), r->out);
  }
  r->done->set({status, message ? message : ""});
}

PJRT_Error* to_host_reordered(PJRT_Buffer& buffer, std::vector<int64_t> strides, void* out, PJRT_Event*& done) {
  auto r = std::make_unique<Reordering>();
  collet_buffer_retain(buffer.handle);
  r->buffer = buffer.handle;
  r->dims.assign(buffer.type.dims, buffer.type.dims + buffer.type.rank);
  r->strides = std::move(strides);
  r->dense.resize(collet_buffer_bytes(buffer.handle));
  r->out = static_cast<char*>(out);
  collet_event* come = nullptr;
  COLLET_PJRT_TRY(collet_buffer_to_host(buffer.handle, r->dense.data(), r->dense.size(), &come, &failure));
  done = event_of(r->done);
  collet_event_on_ready(come, finish_reordering, r.release());
  collet_event_release(come);
  return nullptr;
}

PJRT_Error* copy_to(PJRT_Buffer& buffer, Memory* memory, PJRT_Buffer*& out) {
  if (buffer.is_deleted()) return deleted_error();
  collet_buffer* copy = nullptr;
  COLLET_PJRT_TRY(collet_buffer_copy(buffer.handle, memory->device->number, memory->space, &copy, &failure));
  out = new PJRT_Buffer(copy, memory, buffer.layout);
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
  // Frameworks reuse their arrays once this buffer is ready, whatever they have said, so it is no view of them.
  array.semantics = std::min<uint32_t>(static_cast<uint32_t>(args.host_buffer_semantics), COLLET_HOST_UNTIL_DONE);
  PJRT_Layouts_MemoryLayout* layout = nullptr;
  COLLET_PJRT_CHECK(to_layout(args.device_layout, {array.element, array.rank, array.dims}, layout));

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
  (void)use.release();  // host_done owns it now
  args.buffer = new PJRT_Buffer(handle, memory, layout);
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
  args.layout = to_struct(*args.buffer->layout);
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
  if (buffer.deleted.exchange(true)) return nullptr;  // or donated: then its data belong to another buffer
  if (!buffer.views) collet_buffer_delete(buffer.handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IsDeleted_Args& args) {
  const std::lock_guard lock(args.buffer->mutex);
  args.is_deleted = args.buffer->is_deleted();
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_CopyToDevice_Args& args) {
  if (!args.dst_device->is_own) return of_another_process(*args.dst_device);
  return copy_to(*args.buffer, args.dst_device->default_memory, args.dst_buffer);
}

PJRT_Error* call(PJRT_Buffer_CopyToMemory_Args& args) {
  return copy_to(*args.buffer, static_cast<Memory*>(args.dst_memory), args.dst_buffer);
}

PJRT_Error* call(PJRT_Buffer_ToHostBuffer_Args& args) {
  PJRT_Buffer& buffer = *args.src;
  if (buffer.is_deleted()) return deleted_error();
  // If the host requests no layout, the array's own layout is used.
  const PJRT_Buffer_MemoryLayout layout = args.host_layout ? *args.host_layout : to_struct(*buffer.layout);
  bool usual = is_row_major_of_another_rank(layout, buffer.type.rank);
  if (!usual) COLLET_PJRT_CHECK(check_layout(&layout, buffer.type, usual));
  std::vector<int64_t> strides;
  uint64_t bytes = collet_buffer_bytes(buffer.handle);
  if (!usual) {
    strides = strides_of(layout, buffer.type);
    COLLET_PJRT_CHECK(strided_bytes(buffer.type, strides, bytes));
  }
  if (!args.dst) {
    args.dst_size = bytes;
    return nullptr;
  }
  if (args.dst_size < bytes)
    return invalid_argument("room for " + std::to_string(args.dst_size) + " bytes; the array takes " +
                            std::to_string(bytes));
  if (!usual) return to_host_reordered(buffer, std::move(strides), args.dst, args.event);
  collet_event* event = nullptr;
  COLLET_PJRT_TRY(collet_buffer_to_host(buffer.handle, args.dst, args.dst_size, &event, &failure));
  args.event = event_of(event);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_CopyRawToHost_Args& args) {
  if (args.offset < 0 || args.transfer_size < 0) return invalid_argument("a negative offset or size");
  if (args.buffer->is_deleted()) return deleted_error();
  if (!args.buffer->is_as_told()) return reordered_error();
  collet_event* event = nullptr;
  COLLET_PJRT_TRY(collet_buffer_to_host_range(args.buffer->handle, static_cast<uint64_t>(args.offset),
                                              static_cast<uint64_t>(args.transfer_size), args.dst, &event, &failure));
  args.event = event_of(event);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IsOnCpu_Args& args) {
  // True only if the caller can read the elements at the host pointer, in the array's layout.
  args.is_on_cpu = args.buffer->is_as_told() && collet_buffer_host_pointer(args.buffer->handle) != nullptr;
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_ReadyEvent_Args& args) {
  if (!args.buffer->is_deleted()) {
    args.event = event_of(collet_buffer_ready(args.buffer->handle));
    return nullptr;
  }
  // XLA's client of this interface ends the process if the call fails.
  const auto failed = std::make_shared<Signal>();
  failed->set({COLLET_FAILED_PRECONDITION, kDeleted});
  args.event = event_of(failed);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_UnsafePointer_Args& args) {
  if (args.buffer->is_deleted()) return deleted_error();
  const void* pointer = collet_buffer_host_pointer(args.buffer->handle);
  // Frontends only compare these pointers. For memory that the host cannot access, an address that must not be
  // dereferenced stands for it.
  args.buffer_pointer = reinterpret_cast<uintptr_t>(pointer ? pointer : args.buffer->handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  if (args.buffer->is_deleted()) return deleted_error();
  if (!args.buffer->is_as_told()) return reordered_error();
  const void* pointer = collet_buffer_host_pointer(args.buffer->handle);
  if (!pointer && collet_buffer_bytes(args.buffer->handle))
    return unimplemented("the host does not see this memory, or there is none left");
  args.device_memory_ptr = const_cast<void*>(pointer);
  return nullptr;
}

static PJRT_Error* hold(PJRT_Buffer& buffer) {
  const std::lock_guard lock(buffer.mutex);
  if (buffer.is_deleted() || buffer.donations) return deleted_error();
  ++buffer.views;
  return nullptr;
}

static PJRT_Error* drop(PJRT_Buffer& buffer) {
  const std::lock_guard lock(buffer.mutex);
  if (!buffer.views) return invalid_argument("more references were dropped than taken");
  if (--buffer.views == 0 && buffer.deleted) collet_buffer_delete(buffer.handle);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  return hold(*args.buffer);
}

PJRT_Error* call(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  return drop(*args.buffer);
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

// Foreign memory that a buffer uses, and the callback that reports when it is no longer used.
struct View {
  void* data;
  void (*on_delete)(void* data, void* user);
  void* user;
};

void end_view(void* user) {
  const std::unique_ptr<View> view(static_cast<View*>(user));
  if (view->on_delete) view->on_delete(view->data, view->user);
}

// Checks that pointers into a memory are valid on the host. The device is asked once.
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
  (void)view.release();  // end_view owns it now
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
  COLLET_PJRT_CHECK(require_row_major(args.layout, {element, static_cast<uint32_t>(args.num_dims), args.dims}));
  return view_of(*memory, element, args.dims, args.num_dims,
                 {args.device_buffer_ptr, args.on_delete_callback, args.on_delete_callback_arg}, args.buffer);
}

// Copies the bytes to an array of another type: directly, or through the host.
static PJRT_Error* bitcast(PJRT_Buffer& buffer, collet_host_array& array, PJRT_Buffer*& out) {
  std::vector<char> bytes;
  array.data = collet_buffer_host_pointer(buffer.handle);
  if (!array.data) {
    bytes.resize(collet_buffer_bytes(buffer.handle));
    COLLET_PJRT_TRY(collet_buffer_to_host(buffer.handle, bytes.data(), bytes.size(), nullptr, &failure));
    array.data = bytes.data();
  }
  array.semantics = COLLET_HOST_COPIED;
  Memory& memory = *buffer.memory;
  collet_buffer* handle = nullptr;
  COLLET_PJRT_TRY(collet_buffer_from_host(memory.device->client->handle, memory.device->number, memory.space, &array,
                                          &handle, &failure));
  out = new PJRT_Buffer(handle, &memory);
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_Bitcast_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  if (buffer.is_deleted()) return deleted_error();
  if (!buffer.is_as_told()) return reordered_error();
  const uint32_t element = to_collet(args.element_type);
  if (element == COLLET_TYPE_INVALID)
    return unimplemented("element type " + std::to_string(args.element_type) + " is not supported");
  if (args.num_dims > kMaxRank) return invalid_argument("an array of rank " + std::to_string(args.num_dims));
  const collet_array_type type = {element, static_cast<uint32_t>(args.num_dims), args.dims};
  COLLET_PJRT_CHECK(require_row_major(args.device_layout, type));
  uint64_t bytes = 0;
  COLLET_PJRT_CHECK(dense_bytes(type, bytes));
  if (bytes != collet_buffer_bytes(buffer.handle))
    return invalid_argument("the array has " + std::to_string(collet_buffer_bytes(buffer.handle)) + " bytes, not " +
                            std::to_string(bytes));
  collet_event* ready = collet_buffer_ready(buffer.handle);
  collet_error waited{};
  const collet_status status = collet_event_wait(ready, &waited);
  collet_event_release(ready);
  if (status != COLLET_OK) return from_collet(status, waited.message);
  // While the buffer is held, its data are neither deleted nor donated.
  COLLET_PJRT_CHECK(hold(buffer));
  collet_host_array array{};
  array.struct_size = sizeof array;
  array.element = element;
  array.dims = args.dims;
  array.rank = static_cast<uint32_t>(args.num_dims);
  PJRT_Error* error = bitcast(buffer, array, args.out_buffer);
  (void)drop(buffer);
  return error;
}

}  // namespace collet::pjrt
