// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdk/pjrt/buffer.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/event.h"
#include "sdk/pjrt/host_layout.h"

/// \file
/// Buffers whose contents come later: in pieces from the host, from another buffer, or never.

namespace collet::pjrt {

PJRT_Error* promise(Memory& memory, PJRT_Buffer_Type element, const int64_t* dims, size_t rank, collet_buffer*& out) {
  const uint32_t type = to_collet(element);
  if (type == COLLET_TYPE_INVALID)
    return unimplemented("element type " + std::to_string(element) + " is not supported");
  if (rank > kMaxRank) return invalid_argument("an array of rank " + std::to_string(rank));
  const collet_array_type array = {type, static_cast<uint32_t>(rank), dims};
  COLLET_PJRT_TRY(collet_buffer_promise(memory.device->client->handle, memory.device->number, memory.space, &array,
                                        &out, &failure));
  return nullptr;
}

PJRT_Error* fail_promise(collet_buffer* buffer, PJRT_Error_Code code, const char* message, size_t size) {
  const std::string text(message ? message : "", message ? size : 0);
  // Not every code of PJRT is one of Collet's, and the promise must fail in any case.
  const bool known = code > PJRT_Error_Code_OK && static_cast<int>(code) <= static_cast<int>(COLLET_DATA_LOSS);
  const collet_status status = known ? static_cast<collet_status>(code) : COLLET_UNKNOWN;
  COLLET_PJRT_TRY(collet_buffer_fail(buffer, status, text.c_str(), &failure));
  return nullptr;
}

}  // namespace collet::pjrt

/// Arrays that the host sends in pieces. The caller owns each of them after it has retrieved it.
struct PJRT_AsyncHostToDeviceTransferManager {
  collet::pjrt::Memory* memory = nullptr;
  std::vector<collet_buffer*> buffers;
  std::mutex mutex;
  std::vector<bool> given;

  PJRT_AsyncHostToDeviceTransferManager() = default;
  PJRT_AsyncHostToDeviceTransferManager(const PJRT_AsyncHostToDeviceTransferManager&) = delete;
  PJRT_AsyncHostToDeviceTransferManager& operator=(const PJRT_AsyncHostToDeviceTransferManager&) = delete;
  ~PJRT_AsyncHostToDeviceTransferManager() {
    for (collet_buffer* buffer : buffers) {
      // Does nothing if the data are complete.
      (void)collet_buffer_fail(buffer, COLLET_CANCELLED, "the transfer manager was destroyed before the data came",
                               nullptr);
      collet_buffer_release(buffer);
    }
  }
};

/// The handle that fulfils an alias buffer, once.
struct PJRT_FulfillAliasBufferCallback {
  collet_buffer* buffer = nullptr;
};

namespace collet::pjrt {
namespace {

using Manager = PJRT_AsyncHostToDeviceTransferManager;

PJRT_Error* buffer_of(Manager& manager, int index, collet_buffer*& out) {
  if (index < 0 || static_cast<size_t>(index) >= manager.buffers.size())
    return invalid_argument("array " + std::to_string(index) + " of " + std::to_string(manager.buffers.size()));
  out = manager.buffers[static_cast<size_t>(index)];
  return nullptr;
}

PJRT_Error* fulfil(collet_buffer* buffer, collet_buffer* source) {
  COLLET_PJRT_TRY(collet_buffer_fulfil(buffer, source, &failure));
  return nullptr;
}

bool has_failed(collet_buffer* buffer) {
  collet_event* ready = collet_buffer_ready(buffer);
  const bool failed = collet_event_is_ready(ready) && collet_event_wait(ready, nullptr) != COLLET_OK;
  collet_event_release(ready);
  return failed;
}

// Fulfils a promise or, after an error, fails it, because waiting threads must learn one or the other. An error of the
// source is delivered through the promise and is no error of this call.
PJRT_Error* settle(collet_buffer* buffer, collet_buffer* source) {
  PJRT_Error* error = fulfil(buffer, source);
  if (!error) return nullptr;
  std::unique_ptr<Error> why(static_cast<Error*>(error));
  PJRT_Error* second = fail_promise(buffer, why->code, why->message.data(), why->message.size());
  const bool settled_before = second != nullptr;
  delete static_cast<Error*>(second);
  return !settled_before && has_failed(source) ? nullptr : why.release();
}

PJRT_Error* write(collet_buffer* buffer, int64_t offset, int64_t size, const void* data, bool last) {
  if (offset < 0 || size < 0) return invalid_argument("a negative offset or size");
  COLLET_PJRT_TRY(
      collet_buffer_write(buffer, static_cast<uint64_t>(offset), static_cast<uint64_t>(size), data, &failure));
  return last ? fulfil(buffer, nullptr) : nullptr;
}

}  // namespace

PJRT_Error* call(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  if (!args.memory) return invalid_argument("no memory is named");
  auto manager = std::make_unique<Manager>();
  manager->memory = static_cast<Memory*>(args.memory);
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const PJRT_ShapeSpec spec = args.shape_specs[i];
    collet_buffer* buffer = nullptr;
    COLLET_PJRT_CHECK(promise(*manager->memory, spec.element_type, spec.dims, spec.num_dims, buffer));
    manager->buffers.push_back(buffer);
    if (args.device_layouts && i < args.num_device_layouts)
      COLLET_PJRT_CHECK(require_row_major(args.device_layouts[i], collet_buffer_type(buffer)));
  }
  manager->given.resize(manager->buffers.size());
  args.transfer_manager = manager.release();
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args& args) {
  delete args.transfer_manager;
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  collet_buffer* buffer = nullptr;
  COLLET_PJRT_CHECK(buffer_of(*args.transfer_manager, args.buffer_index, buffer));
  COLLET_PJRT_CHECK(write(buffer, args.offset, args.transfer_size, args.data, args.is_last_transfer));
  args.done_with_h2d_transfer = ready_event();
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  collet_buffer* buffer = nullptr;
  COLLET_PJRT_CHECK(buffer_of(*args.transfer_manager, args.buffer_index, buffer));
  const collet_array_type type = collet_buffer_type(buffer);
  const bool same = type.element == to_collet(args.shape_element_type) && type.rank == args.shape_num_dims &&
                    std::equal(type.dims, type.dims + type.rank, args.shape_dims);
  if (!same) return invalid_argument("a literal of another shape than the array");
  const auto bytes = static_cast<int64_t>(collet_buffer_bytes(buffer));
  bool usual = true;
  COLLET_PJRT_CHECK(check_layout(args.shape_layout, type, usual));
  std::vector<char> dense;
  const void* data = args.data;
  if (!usual && data) {
    dense.resize(static_cast<size_t>(bytes));
    const std::vector<int64_t> strides = strides_of(*args.shape_layout, type);
    uint64_t reach = 0;
    COLLET_PJRT_CHECK(strided_bytes(type, strides, reach));
    gather(type, strides, static_cast<const char*>(data), dense.data());
    data = dense.data();
  }
  COLLET_PJRT_CHECK(write(buffer, 0, bytes, data, true));
  args.done_with_h2d_transfer = ready_event();
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  Manager& manager = *args.transfer_manager;
  collet_buffer* buffer = nullptr;
  COLLET_PJRT_CHECK(buffer_of(manager, args.buffer_index, buffer));
  const std::lock_guard lock(manager.mutex);
  if (manager.given[static_cast<size_t>(args.buffer_index)])
    return failed_precondition("the buffer was retrieved before");
  manager.given[static_cast<size_t>(args.buffer_index)] = true;
  collet_buffer_retain(buffer);
  args.buffer_out = new PJRT_Buffer(buffer, manager.memory);
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_Device_Args& args) {
  args.device_out = args.transfer_manager->memory->device;
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args& args) {
  args.buffer_count = args.transfer_manager->buffers.size();
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  collet_buffer* buffer = nullptr;
  COLLET_PJRT_CHECK(buffer_of(*args.transfer_manager, args.buffer_index, buffer));
  args.buffer_size = collet_buffer_bytes(buffer);
  return nullptr;
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  collet_buffer* buffer = nullptr;
  COLLET_PJRT_CHECK(buffer_of(*args.transfer_manager, args.buffer_index, buffer));
  return fail_promise(buffer, args.error_code, args.error_message, args.error_message_size);
}

PJRT_Error* call(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args&) {
  return nullptr;  // a hint for progress displays, which are not supported
}

PJRT_Error* call(PJRT_Client_CreateErrorBuffer_Args& args) {
  if (!args.memory) return invalid_argument("no memory is named");
  auto* memory = static_cast<Memory*>(args.memory);
  collet_buffer* handle = nullptr;
  COLLET_PJRT_CHECK(promise(*memory, args.shape_element_type, args.shape_dims, args.shape_num_dims, handle));
  auto buffer = std::make_unique<PJRT_Buffer>(handle, memory);
  COLLET_PJRT_CHECK(fail_promise(handle, args.error_code, args.error_message, args.error_message_size));
  args.buffer = buffer.release();
  return nullptr;
}

PJRT_Error* call(PJRT_Client_CreateAliasBuffer_Args& args) {
  if (!args.memory) return invalid_argument("no memory is named");
  auto* memory = static_cast<Memory*>(args.memory);
  collet_buffer* handle = nullptr;
  COLLET_PJRT_CHECK(promise(*memory, args.shape_element_type, args.shape_dims, args.shape_num_dims, handle));
  collet_buffer_retain(handle);
  args.fulfill_alias_buffer_cb = new PJRT_FulfillAliasBufferCallback{handle};
  args.alias_buffer = new PJRT_Buffer(handle, memory);
  return nullptr;
}

PJRT_Error* call(PJRT_Client_FulfillAliasBuffer_Args& args) {
  const std::unique_ptr<PJRT_FulfillAliasBufferCallback> end(args.fulfill_alias_buffer_cb);
  if (!end) return invalid_argument("no alias buffer is named");
  PJRT_Error* error = nullptr;
  if (args.status_code != PJRT_Error_Code_OK) {
    error = fail_promise(end->buffer, args.status_code, args.error_message, args.error_message_size);
  } else if (args.buffer) {
    error = settle(end->buffer, args.buffer->handle);
  } else {
    constexpr std::string_view kWhy = "neither a buffer nor an error fulfils the alias";
    error = fail_promise(end->buffer, PJRT_Error_Code_INVALID_ARGUMENT, kWhy.data(), kWhy.size());
    if (!error) error = invalid_argument(std::string(kWhy));
  }
  collet_buffer_release(end->buffer);
  return error;
}

namespace {

// A read whose destination the caller provides later.
struct Read {
  collet_buffer* buffer;
  uint64_t offset, bytes;
  std::shared_ptr<Signal> done;
};

void finish_read(void* user, collet_status status, const char* message) {
  const std::unique_ptr<std::shared_ptr<Signal>> done(static_cast<std::shared_ptr<Signal>*>(user));
  (*done)->set({status, message ? message : ""});
}

void start_read(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  const std::unique_ptr<Read> read(static_cast<Read*>(args->callback_data));
  if (args->error_code != PJRT_Error_Code_OK) {
    read->done->set({static_cast<collet_status>(args->error_code),
                     std::string(args->error_message ? args->error_message : "", args->error_message_size)});
  } else {
    collet_event* event = nullptr;
    collet_error failure{};
    const collet_status status =
        collet_buffer_to_host_range(read->buffer, read->offset, read->bytes, args->dst, &event, &failure);
    if (status != COLLET_OK) {
      read->done->set({status, failure.message});
    } else {
      collet_event_on_ready(event, finish_read, new std::shared_ptr<Signal>(read->done));
      collet_event_release(event);
    }
  }
  collet_buffer_release(read->buffer);
}

// A donation that is done when another event is set.
struct Donation {
  collet_buffer* from;
  collet_buffer* to;
};

void donate(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) {
  const std::unique_ptr<Donation> donation(static_cast<Donation*>(args->callback_data));
  PJRT_Error* error = args->error_code == PJRT_Error_Code_OK
                          ? settle(donation->to, donation->from)
                          : fail_promise(donation->to, args->error_code, args->error_message, args->error_message_size);
  delete static_cast<Error*>(error);  // the awaited buffer reports this error
  collet_buffer_release(donation->from);
  collet_buffer_release(donation->to);
}

}  // namespace

PJRT_Error* call(PJRT_Buffer_CopyRawToHostFuture_Args& args) {
  if (args.offset < 0 || args.transfer_size < 0) return invalid_argument("a negative offset or size");
  if (args.buffer->is_deleted()) return deleted_error();
  if (!args.buffer->is_as_told()) return reordered_error();
  auto signal = std::make_shared<Signal>();
  collet_buffer_retain(args.buffer->handle);
  args.callback_data = new Read{args.buffer->handle, static_cast<uint64_t>(args.offset),
                                static_cast<uint64_t>(args.transfer_size), signal};
  args.future_ready_callback = start_read;
  args.event = event_of(std::move(signal));
  return nullptr;
}

PJRT_Error* call(PJRT_Buffer_DonateWithControlDependency_Args& args) {
  PJRT_Buffer& buffer = *args.buffer;
  const std::lock_guard lock(buffer.mutex);
  if (buffer.is_deleted()) return deleted_error();
  if (buffer.views) return failed_precondition("the buffer is in use outside and cannot be donated");
  collet_buffer* later = nullptr;
  COLLET_PJRT_CHECK(
      promise(*buffer.memory, from_collet(buffer.type.element), buffer.type.dims, buffer.type.rank, later));
  collet_buffer_retain(buffer.handle);
  collet_buffer_retain(later);
  args.callback_data = new Donation{buffer.handle, later};
  args.dependency_ready_callback = donate;
  args.out_buffer = new PJRT_Buffer(later, buffer.memory, buffer.layout);
  buffer.deleted = true;
  return nullptr;
}

}  // namespace collet::pjrt
