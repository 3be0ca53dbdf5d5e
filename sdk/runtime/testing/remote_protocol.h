// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace collet::remote {

/// What the backend asks of the process that owns the memory.
enum class Verb : uint32_t { Alloc, Free, Write, Read, Copy, Compile, Run, Release, MakeQueue, EndQueue, Abort };

/// Followed by `waits` of Wait, and by the payload: the data of Write, the program of Compile, `count` of Slot of Run, the message
/// of Abort.
///
/// With queue 0, and for verbs that are no work, it is served at once, in the order of the requests. Otherwise it is put on that
/// queue.
struct Request {
  Verb verb;
  uint32_t count = 0;                    ///< Run: buffers
  uint64_t id = 0;                       ///< of the answer; 0: none is wanted
  uint64_t buffer = 0, offset = 0;       ///< Copy: from; Run, Release: buffer is the program's number
  uint64_t other = 0, other_offset = 0;  ///< Copy: to; Abort: the status
  uint64_t bytes = 0;                    ///< of what is copied; of the payload of Compile and Abort
  uint64_t queue = 0;
  uint64_t signal = 0;  ///< value of the queue's counter when the work has ended; 0: unchanged
  uint64_t waits = 0;
};

/// A point that work waits for.
struct Wait {
  uint64_t queue, value;
};

/// An answer, or news of a queue, or both. Followed by `bytes` bytes: the data of Read; the message of a failure.
struct Answer {
  uint64_t id = 0;     ///< of the request; 0: only news
  uint64_t queue = 0;  ///< whose counter is now `value`, or which has failed with `status`; 0: no news
  uint64_t value = 0;
  uint64_t number = 0;  ///< Alloc, Compile, MakeQueue: the new number
  uint64_t bytes = 0;
  int32_t status = 0;
  uint32_t unused = 0;
};

/// One argument or result of a run: a buffer by number.
struct Slot {
  uint64_t buffer, offset;
};

/// The other process: serves `socket` until it closes.
void serve(int socket);

/// All of `bytes`; false when the other end is gone.
bool send_all(int socket, const void* data, uint64_t bytes);
bool receive_all(int socket, void* data, uint64_t bytes);

}  // namespace collet::remote
