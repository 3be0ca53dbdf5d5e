/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TABLES_H
#define COLLET_TABLES_H

/** \file
 * Optional tables that a backend may hand out from `query`. None is needed to be correct. Each begins with its size and
 * follows the rules at the head of backend.h.
 */

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of queues. */
enum {
  COLLET_QUEUE_COMPUTE = 0, /**< executes, and copies within a device */
  COLLET_QUEUE_UPLOAD = 1,  /**< copies from the host, and from other devices */
  COLLET_QUEUE_DOWNLOAD = 2 /**< copies to the host */
};

/** "queue", version 1: asynchronous work. Without it every call of the core table blocks, and the SDK overlaps on threads.
 *
 * A queue is an ordered list of work on one device, with a counter that starts at 0. The SDK puts work there by passing a
 * collet_sync to copy or to a launch of execute; that call returns as soon as the work is queued.
 * - Order: work on one queue has the effects that it would have if each piece began after the one before it had ended.
 *   Work on different queues has no order except for the points that a sync waits for.
 * - Points: `sync->signals` is one point of `sync->queue` itself, greater than all signalled there before. The counter
 *   takes that value when the work has ended. `sync->waits` are points of queues of the same instance, signalled by work
 *   that has already been put there; the work begins when all of them are reached.
 * - Memory: what the call points to (launches, arguments, regions, the sync) is the SDK's again when the call returns.
 *   The SDK keeps the buffers, the executable, the workspace and the host memory of regions alive and undisturbed until
 *   the signalled point is reached or the queue has failed.
 * - Failure: work that fails after the call returned fails its queue. A failed queue runs nothing more: its counter keeps
 *   its value, points up to that value stay reached, and all others end with the failure. Work on another queue that waits
 *   for a point of a failed queue which is not reached fails its own queue with the same status and message. A queue
 *   reports its failure when nothing put there reads or writes memory any more. Other queues of the device go on, unless
 *   the device is lost: then all of them fail with COLLET_UNAVAILABLE.
 * - An error that the call itself returns concerns that call alone: nothing was queued, and the queue has not failed.
 * - Room: a call may block until the queue has room, but only for work that was put there earlier.
 * - Threads: wait and abort may be called at any time from any thread, also where the device has COLLET_TRAIT_SERIAL.
 * - Calls of copy and execute with null `sync` have no order with work on queues; the SDK waits where it needs one. */
struct collet_queue_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Makes a queue on a device; `kind` is one of COLLET_QUEUE_*. Several of one kind may exist. */
  collet_status (*create)(collet_backend_instance* instance, uint32_t device, uint32_t kind,
                          collet_backend_queue** out_queue, struct collet_error* error);
  /** Destroys a queue whose work has all ended, or which has failed and reported that. Not its instance's last call: close
   * comes later. */
  void (*destroy)(collet_backend_queue* queue);
  /** Blocks until the counter is at least `value` or `timeout_ns` have passed (0: only looks; UINT64_MAX: for ever): then
   * COLLET_DEADLINE_EXCEEDED. COLLET_OK where the point was reached, also if the queue failed later; else the failure. */
  collet_status (*wait)(collet_backend_queue* queue, uint64_t value, uint64_t timeout_ns, struct collet_error* error);
  void (*reserved_1)(void); /**< not called; null in new backends */
  void (*reserved_2)(void); /**< not called; null in new backends */
  /** Fails the queue with `status` and `message`, unless it has failed already: work that has not begun does not begin,
   * and running work ends as soon as it can. Does not wait for that. */
  void (*abort)(collet_backend_queue* queue, collet_status status, const char* message);
};

/** "aot", version 1: executables as bytes, for the cache on disk. */
struct collet_aot_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Writes the executable to `out`, of `capacity` bytes; *out_bytes is what it takes. Too small a capacity writes
   * nothing and succeeds. */
  collet_status (*serialize)(collet_backend_executable* executable, void* out, uint64_t capacity, uint64_t* out_bytes,
                             struct collet_error* error);
  /** Makes an executable from such bytes, which are checked: COLLET_DATA_LOSS, or COLLET_FAILED_PRECONDITION where they
   * are another version's or device's. */
  collet_status (*load)(collet_backend_instance* instance, const void* bytes, uint64_t size,
                        const struct collet_compile_options* options, collet_backend_executable** out_executable,
                        struct collet_executable_info* info, struct collet_error* error);
};

/** "memory_stats", version 1. */
struct collet_memory_stats {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  uint64_t bytes_in_use;
  uint64_t peak_bytes_in_use;
  uint64_t bytes_limit; /**< 0: unknown */
  uint64_t allocations; /**< alive now */
};

/** "memory_stats", version 1. */
struct collet_memory_stats_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Fills `stats` for one memory space of a device. */
  collet_status (*get)(collet_backend_instance* instance, uint32_t device, uint32_t space,
                       struct collet_memory_stats* stats, struct collet_error* error);
};

/** "artifacts", version 1: what a compilation left for people to read. */
struct collet_artifacts_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Artifact number `index` of an executable: its file name ("kernels.ll") and contents, valid until release.
   * COLLET_OUT_OF_RANGE past the last. */
  collet_status (*get)(collet_backend_executable* executable, uint32_t index, const char** out_name,
                       const void** out_bytes, uint64_t* out_size, struct collet_error* error);
};

#ifdef __cplusplus
}
#endif

#endif
