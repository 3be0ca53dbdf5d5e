// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference_backends/gpu/driver/driver_api.h"

namespace collet::gpu {

/// A prepared way to compute a call of a library, such as an algorithm.
class LibraryWay {
 public:
  LibraryWay() = default;
  LibraryWay(const LibraryWay&) = delete;
  LibraryWay& operator=(const LibraryWay&) = delete;
  virtual ~LibraryWay() = default;
  /// Starts the call on a stream. `addresses` are those of the step's places.
  virtual void launch(const uint64_t* addresses, CUstream stream) = 0;
  /// True if `launch` only puts work on the stream, so that the stream's capture records all of it.
  virtual bool may_be_captured() const { return true; }
};

}  // namespace collet::gpu
