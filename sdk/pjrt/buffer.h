// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <mutex>

#include "sdk/pjrt/client.h"
#include "sdk/pjrt/error.h"
#include "sdk/pjrt/layouts.h"

/// An array in a memory of a device. Owns a reference of libcollet's buffer.
struct PJRT_Buffer {
  collet_buffer* handle = nullptr;
  collet::pjrt::Memory* memory = nullptr;
  collet_array_type type{};
  PJRT_Layouts_MemoryLayout* layout;  ///< as it was asked for; the data are row-major

  std::mutex mutex;
  int views = 0;                      ///< holders of the raw pointer: until there are none, the data stay
  int donations = 0;                  ///< runs that are about to take the data: no views any more
  std::atomic<bool> deleted = false;  ///< asked for, perhaps while there are views

  /// `order` null: row-major.
  PJRT_Buffer(collet_buffer* reference, collet::pjrt::Memory* place, PJRT_Layouts_MemoryLayout* order = nullptr)
      : handle(reference),
        memory(place),
        type(collet_buffer_type(reference)),
        layout(order ? order : collet::pjrt::row_major(type.rank)) {}
  PJRT_Buffer(const PJRT_Buffer&) = delete;
  PJRT_Buffer& operator=(const PJRT_Buffer&) = delete;
  ~PJRT_Buffer() { collet_buffer_release(handle); }

  /// Deleted or donated.
  bool is_deleted() const { return deleted || collet_buffer_is_deleted(handle); }
  /// Whether the data lie as the layout says.
  bool is_as_told() const { return collet::pjrt::is_row_major(layout); }
};

namespace collet::pjrt {

/// The error for a buffer that is no longer there.
PJRT_Error* deleted_error();
/// The error for a look at data that do not lie as the array's layout says.
PJRT_Error* reordered_error();
/// A buffer that gets its contents later: the caller's reference.
PJRT_Error* promise(Memory& memory, PJRT_Buffer_Type element, const int64_t* dims, size_t rank, collet_buffer*& out);
/// Breaks the promise.
PJRT_Error* fail_promise(collet_buffer* buffer, PJRT_Error_Code code, const char* message, size_t size);

}  // namespace collet::pjrt
