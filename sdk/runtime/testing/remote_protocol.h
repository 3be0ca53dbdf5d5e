// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::remote {

/// The requests of the backend to the process that owns the memory, which answers them in their order.
/// Payload follows the request, the answer's follows the answer.
enum class Verb : uint32_t { Alloc, Free, Write, Read, Copy, Compile, Run, Release, Nothing };

struct Request {
  Verb verb;
  uint32_t count = 0;  ///< for Run: number of buffers that follow
  /// For Copy: the source; for Compile, Run, Release: `buffer` is the number of the program.
  uint64_t buffer = 0, offset = 0;
  uint64_t other = 0, other_offset = 0;  ///< for Copy: the target
  uint64_t bytes = 0;
};

struct Answer {
  int32_t status = 0;
  uint32_t unused = 0;
  uint64_t number = 0;  ///< for Alloc and Compile: the new number
};

/// One argument or result of a run, given by the number of its buffer.
struct Slot {
  uint64_t buffer, offset;
};

/// The main function of the other process: serves `socket` until it is closed.
void serve(int socket);

/// Sends all of `bytes`; false if the other end is closed.
bool send_all(int socket, const void* data, uint64_t bytes);
bool receive_all(int socket, void* data, uint64_t bytes);

}  // namespace collet::remote
