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

/** "queue", version 1: asynchronous work. Without it every call of the core table blocks, and the SDK overlaps on threads. */
struct collet_queue_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Makes a queue on a device; its counter starts at 0. `kind`: 0 compute, 1 upload, 2 download. */
  collet_status (*create)(collet_backend_instance* instance, uint32_t device, uint32_t kind,
                          collet_backend_queue** out_queue, struct collet_error* error);
  /** Destroys a queue on which no work is pending. */
  void (*destroy)(collet_backend_queue* queue);
  /** Blocks until the counter is at least `value` or `timeout_ns` have passed (UINT64_MAX: for ever): then
   * COLLET_DEADLINE_EXCEEDED. A failed queue returns its failure. */
  collet_status (*wait)(collet_backend_queue* queue, uint64_t value, uint64_t timeout_ns, struct collet_error* error);
  /** Calls `done(user, status, message)` once, on any thread, when the counter reaches `value` or the queue fails. It
   * may come before this returns. */
  collet_status (*on_reach)(collet_backend_queue* queue, uint64_t value,
                            void (*done)(void* user, collet_status status, const char* message), void* user,
                            struct collet_error* error);
  /** Sets the counter from the host. */
  collet_status (*signal)(collet_backend_queue* queue, uint64_t value, struct collet_error* error);
  /** Fails the queue: what waits on it ends with `status` and `message`. */
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
