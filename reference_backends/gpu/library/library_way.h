// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::gpu {

/// A prepared way to compute a call of a library, such as an algorithm.
class LibraryWay {
 public:
  LibraryWay() = default;
  LibraryWay(const LibraryWay&) = delete;
  LibraryWay& operator=(const LibraryWay&) = delete;
  virtual ~LibraryWay() = default;
  /// Starts the call on the stream of the LibraryCalls that prepared it. `addresses` are those of the step's places.
  virtual void launch(const uint64_t* addresses) = 0;
  /// True if `launch` only puts work on the stream, so that the stream's capture records all of it.
  virtual bool may_be_captured() const { return true; }
};

}  // namespace collet::gpu
