// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <mutex>

#include "sdk/pjrt/client.h"
#include "sdk/pjrt/error.h"
#include "sdk/pjrt/layouts.h"

/// An array in a memory of a device. Owns a reference to a buffer of libcollet.
struct PJRT_Buffer {
  collet_buffer* handle = nullptr;
  collet::pjrt::Memory* memory = nullptr;
  collet_array_type type{};
  PJRT_Layouts_MemoryLayout* layout;  ///< the layout that the frontend requested; the data are row-major

  std::mutex mutex;
  int views = 0;  ///< number of holders of the raw pointer; the data stay until there are none
  /// Number of runs that are about to use the data as donated; meanwhile there must be no new views.
  int donations = 0;
  std::atomic<bool> deleted = false;  ///< deletion was requested, perhaps while there are views

  /// Makes a buffer; a null `order` means row-major.
  PJRT_Buffer(collet_buffer* reference, collet::pjrt::Memory* place, PJRT_Layouts_MemoryLayout* order = nullptr)
      : handle(reference),
        memory(place),
        type(collet_buffer_type(reference)),
        layout(order ? order : collet::pjrt::row_major(type.rank)) {}
  PJRT_Buffer(const PJRT_Buffer&) = delete;
  PJRT_Buffer& operator=(const PJRT_Buffer&) = delete;
  ~PJRT_Buffer() { collet_buffer_release(handle); }

  /// True if the buffer is deleted or donated.
  bool is_deleted() const { return deleted || collet_buffer_is_deleted(handle); }
  /// True if the data are in the order of the layout.
  bool is_as_told() const { return collet::pjrt::is_row_major(layout); }
};

namespace collet::pjrt {

/// Returns the error for a deleted buffer.
PJRT_Error* deleted_error();
/// Returns the error for direct access to data whose order is not that of the array's layout.
PJRT_Error* reordered_error();
/// Creates a buffer whose contents come later; `out` gets the caller's reference.
PJRT_Error* promise(Memory& memory, PJRT_Buffer_Type element, const int64_t* dims, size_t rank, collet_buffer*& out);
/// Fails the promise.
PJRT_Error* fail_promise(collet_buffer* buffer, PJRT_Error_Code code, const char* message, size_t size);

}  // namespace collet::pjrt
