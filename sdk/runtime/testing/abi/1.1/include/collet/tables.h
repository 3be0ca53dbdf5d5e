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
 * - Memory: what the call points to (launches, arguments, regions, the sync) is the SDK's again when the call returns. Buffers,
 *   executable, workspace and host memory of regions stay alive and undisturbed until the signalled point is reached or the
 *   queue has failed. Work reads and writes memory, that of the host among it, only once it has begun.
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
  /** Not called; null in new backends. */
  void (*reserved_1)(void);
  /** Not called; null in new backends. */
  void (*reserved_2)(void);
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

/** How the elements of an array are placed in device memory. Never changes size. All fields zero: dense and row-major.
 *
 * `order` names the dimensions from the outermost to the innermost in memory. Tile 0, of rank k, divides the k innermost
 * of them: in place of sizes d and a tile of sizes t stand ceil(d / t), and, innermost, t; what is beyond d is padding of
 * any value. Tile 1 divides the k innermost sizes of the result in the same way; its rank is at most that of tile 0. This
 * is how XLA's layouts say it: {1,0:T(8,128)(2,1)} has order {0, 1} and tiles {8, 128} and {2, 1}. */
struct collet_layout {
  uint64_t bytes;        /**< of the whole array, with padding */
  uint32_t rank;         /**< of the array; at most 8 */
  uint32_t element_bits; /**< 0: the usual bytes of an element; 4 or 2: so many bits of elements of that width, the
                                 first in the low bits of a byte */
  uint8_t order[8];      /**< `rank` of them */
  uint32_t tile_rank[2]; /**< 0: there is no such tile */
  uint32_t tile[2][4];   /**< sizes, outermost first */
  uint64_t reserved[2];  /**< zero */
};

/** "layout", version 1: arguments and results that are not dense and row-major in device memory. The SDK converts where
 * values come from the host, from the fallback or from an executable of another layout, and keeps the layout where the
 * next executable wants it. */
struct collet_layout_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Fills `layout` with what an executable wants of entry argument number `index`, or, with `is_result` 1, gives for
   * entry result number `index`. `layout` is zeroed before. Always the same answer. Constants that come as arguments and
   * scalars by value have none. A result that may or must share an argument's memory has the layout of that argument.
   * Launches have 1 in `layout` of each argument and result for which the answer was not all zero, and `bytes` of the
   * layout. */
  collet_status (*of)(collet_backend_executable* executable, uint32_t is_result, uint32_t index,
                      struct collet_layout* layout, struct collet_error* error);
  /** Null, or converts an array within a device from one layout to another; either may be all zero. `from` and `to` name
   * buffers and do not overlap. Where it is null, and where it returns COLLET_UNIMPLEMENTED, the host converts. */
  collet_status (*convert)(collet_backend_instance* instance, uint32_t device, uint32_t element, uint32_t rank,
                           const int64_t* dims, const struct collet_place* from,
                           const struct collet_layout* from_layout, const struct collet_place* to,
                           const struct collet_layout* to_layout, const struct collet_sync* sync,
                           struct collet_error* error);
};

/** "residency", version 1: arguments that stay the same from run to run, weights most often, that an executable reads in a
 * form of its own: packed, or in the order in which a kernel reads them. */
struct collet_residency_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** 1 where the executable gains from having entry argument number `index` prepared. Always the same answer. */
  uint32_t (*wants)(collet_backend_executable* executable, uint32_t index);
  /** Makes the prepared form of an argument, whose value is there: a buffer, to be freed like any other, that later launches
   * of this executable on this device get in place of the argument, flagged COLLET_ARG_PREPARED, as long as the argument
   * holds the same array. Returns when it is made. COLLET_RESOURCE_EXHAUSTED: not now. */
  collet_status (*prepare)(collet_backend_executable* executable, uint32_t device, uint32_t index,
                           const struct collet_argument* value, collet_backend_buffer** out_prepared,
                           struct collet_error* error);
};

/** What the groups of a quantized pattern may have beyond a product or sum of one scale, one bias and plain rounding: bits of
 * collet_patterns_table::features, and of the attribute `features` of a group. docs/patterns.md has the attributes. */
enum {
  COLLET_FEATURE_CHANNELS = 1 << 0,     /**< scales and zero points that are arrays, one for each channel or row */
  COLLET_FEATURE_BLOCKS = 1 << 1,       /**< scales and zero points that differ along what is summed */
  COLLET_FEATURE_ZERO_POINTS = 1 << 2,  /**< zero points of operands: `lhs_zero_point`, `weights_zero_point`, ... */
  COLLET_FEATURE_SHORT_FLOATS = 1 << 3, /**< steps that are rounded to bf16 or f16: `scale_type`, `step_type` */
  COLLET_FEATURE_PADDING = 1 << 4,      /**< an operand that the group pads: `lhs_pad_value` and what goes with it */
  COLLET_FEATURE_TERMS = 1 << 5,        /**< `second_bias`, and what is subtracted: `bias_sign`, `rhs_sign`, ... */
  /** Of a device that computes the ops of the region and reads no attributes: also what later versions add. */
  COLLET_FEATURE_ALL = 0x7fffffff
};

/** "patterns", version 1: groups of ops that a backend takes as one. The SDK looks for them in the canonical form of a
 * program and offers each as a call whose attribute `name` is the pattern's; the region has the ops. Declined, the ops are
 * offered one by one. docs/patterns.md has the names, and the operands and attributes of each. */
struct collet_patterns_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Name number `index` of the patterns that a device wants to be asked for: one of docs/patterns.md, or that of a StableHLO
   * composite, and then perhaps "@" and its version. Null past the last. Lives as long as the instance. */
  const char* (*name)(collet_backend_instance* instance, uint32_t device, uint32_t index);
  /** Null, or gives the text that defines pattern number `index`, one of the backend's own: HLO with variables, as
   * docs/patterns.md describes, zero-ended. The name after its first HloModule is that of the pattern. Null for a pattern of
   * docs/patterns.md, and for a composite. Always the same answer. Lives as long as the instance. A text that the SDK cannot
   * read is left out, with a warning. */
  const char* (*text)(collet_backend_instance* instance, uint32_t device, uint32_t index);
  /** Null, which stands for 0, or gives COLLET_FEATURE_* of pattern number `index`: a group that needs one that is missing is
   * not offered. Always the same answer. */
  uint32_t (*features)(collet_backend_instance* instance, uint32_t device, uint32_t index);
};

/** Something that a device did. Never changes size. */
struct collet_profile_record {
  uint64_t start_ns; /**< since 1970, by the system's clock */
  uint64_t duration_ns;
  uint64_t run_id;      /**< of the execution; 0: of none */
  uint64_t bytes;       /**< moved; 0: unknown */
  char name[64];        /**< what ran, for people: a kernel, "copy to device"; zero-ended */
  char engine[32];      /**< what it ran on: "compute 0", "dma"; zero-ended */
  uint64_t reserved[2]; /**< zero */
};

/** "profile", version 1: what ran on which engine of a device, and when. */
struct collet_profile_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Begins (`on` 1) or ends (0) recording on a device. Ending keeps what was recorded. */
  collet_status (*enable)(collet_backend_instance* instance, uint32_t device, uint32_t on, struct collet_error* error);
  /** Hands out recorded work that has ended, oldest first, at most `capacity` records, and forgets it. *out_count is 0 when
   * there is no more. */
  collet_status (*read)(collet_backend_instance* instance, uint32_t device, struct collet_profile_record* records,
                        uint32_t capacity, uint32_t* out_count, struct collet_error* error);
};

/** "host_memory", version 1: host memory that a device's copies reach without a detour, because its pages are pinned or
 * mapped. */
struct collet_host_memory_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Prepares host memory of the caller's for copies. It stays where it is until `remove`. COLLET_ALREADY_EXISTS where
   * a part of it is registered. */
  collet_status (*add)(collet_backend_instance* instance, void* host, uint64_t bytes, struct collet_error* error);
  /** Undoes `add`, by the same address. No copy is using the memory. COLLET_NOT_FOUND where it is not registered. */
  collet_status (*remove)(collet_backend_instance* instance, void* host, struct collet_error* error);
};

/** "host_buffers", version 1: buffers that are memory of the caller's, for devices whose memory is the host's. Without it, large
 * constants of a program are copied. */
struct collet_host_buffers_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Makes a buffer of `bytes` bytes (at least 1) of host memory, at a multiple of the alignment of memory space `space`, which is
   * host-visible. The buffer is only read: nobody writes to it or to the memory, which stays where it is, until `free` of the
   * buffer, which leaves the memory as it is. COLLET_UNIMPLEMENTED where the device does not reach the memory; the caller copies
   * it then. */
  collet_status (*wrap)(collet_backend_instance* instance, uint32_t device, uint32_t space, const void* host,
                        uint64_t bytes, collet_backend_buffer** out_buffer, struct collet_error* error);
};

/** A way from one device to another. */
struct collet_link {
  uint32_t struct_size;
  uint32_t hops;       /**< devices and switches on the way, at least 1; 0: there is no way but by the host */
  double latency_ns;   /**< of one copy; 0: unknown */
  double bytes_per_ns; /**< bandwidth; 0: unknown */
};

/** The processes of an exchange, and how they tell each other what its devices need to find each other. */
struct collet_group {
  uint32_t struct_size;
  uint32_t rank;     /**< of this process, below `size` */
  uint32_t size;     /**< processes */
  uint32_t reserved; /**< zero */
  void* user;
  /** Hands `bytes` bytes of this process to all, and gets those of all, by rank: `out` has room for `size` times `bytes`. All
   * processes call it, in the same order and with the same `bytes`. Blocks. */
  collet_status (*exchange)(void* user, const void* mine, uint64_t bytes, void* out, struct collet_error* error);
};

/** "links", version 1: how devices reach each other. */
struct collet_links_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** Describes the link between two different devices of the instance. `link` is zeroed but for struct_size. Always the same
   * answer. */
  collet_status (*between)(collet_backend_instance* instance, uint32_t from, uint32_t to, struct collet_link* link,
                           struct collet_error* error);
  /** Deprecated since minor version 1: not called, null in new backends. The table "exchange" is for several processes. */
  collet_status (*join)(collet_backend_instance* instance, const struct collet_group* group,
                        struct collet_error* error);
};

/** What an exchange over several processes does. */
enum {
  COLLET_EXCHANGE_COPIES = 0,         /**< bytes of members' operands come to results of members */
  COLLET_EXCHANGE_ALL_REDUCE = 1,     /**< each result is the combination of all operands */
  COLLET_EXCHANGE_REDUCE_SCATTER = 2, /**< the result of member m is block m of the combination of all operands */
  COLLET_EXCHANGE_ALL_GATHER = 3      /**< each result is all operands, by member */
};

/** A device that takes part in an exchange. Never changes size. */
struct collet_exchange_member {
  uint32_t process; /**< the device's process, by rank in the exchange's group */
  uint32_t device;  /**< its number in that process */
  /** Operand and result of a member in this process, dense, in the default space. The result overlaps no operand. The buffers
   * are null for members in other processes, and where nothing is read or written. */
  struct collet_place from, to;
};

/** Bytes that an exchange copies. Never changes size. */
struct collet_exchange_copy {
  uint32_t from, to;               /**< members */
  uint64_t from_offset, to_offset; /**< bytes from the start of the operand, and of the result */
  uint64_t bytes;                  /**< at least 1 */
};

/** One exchange between devices of several processes, as one of them sees it. All of them make the same call, but for the
 * buffers. */
struct collet_exchange {
  uint32_t struct_size;
  uint32_t kind;    /**< COLLET_EXCHANGE_* */
  uint32_t element; /**< COLLET_TYPE_*; of no meaning for copies */
  uint32_t combine; /**< COLLET_COMBINE_ADD to COLLET_COMBINE_XOR for ALL_REDUCE and REDUCE_SCATTER */
  uint64_t count;   /**< elements of the smaller of operand and result, at least 1; 0 for copies */
  const struct collet_exchange_member* members; /**< in the order in which they count, not by process */
  const struct collet_exchange_copy* copies;    /**< all of them, also those between other processes */
  uint32_t member_count;
  uint32_t copy_count;
  uint32_t timeout_ms; /**< longest wait for another process */
  uint32_t reserved;   /**< zero */
  /** The processes that have members, ascending. `exchange` may be called during `run`, when all of these processes call it. */
  const struct collet_group* group;
  /** The numbers of these processes in the client, as many as the group has: with `device` they name a member. */
  const uint32_t* processes;
  void* user;
  /** To be asked from time to time while `run` waits, from any thread: 1 if it is to give up, because another process is lost. */
  uint32_t (*is_over)(void* user);
};

/** "exchange", version 1: collectives over the devices of several processes, by links that the devices have. Without it, for
 * what `takes` refuses, and for a device with COLLET_TRAIT_SERIAL, data go through host memory and the transport of the processes. */
struct collet_exchange_table {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  /** 1 if `run` takes such an exchange. The members have no buffers, and `group`, `processes`, `user` and `is_over` are null. It depends on
   * the exchange and the kinds of the devices alone, so that all processes get the same answer. */
  uint32_t (*takes)(collet_backend_instance* instance, const struct collet_exchange* exchange);
  /** Runs an exchange and returns when the results of the members in this process are complete and nobody reads their operands any
   * more; neither the group nor `is_over` is called later. The operands are complete before,
   * and no work on queues uses the results. Calls with the same members follow each other, in the same order in all processes; others
   * may come at the same time. COLLET_UNAVAILABLE where another process is lost, COLLET_DEADLINE_EXCEEDED after `timeout_ms`; nothing
   * reads or writes the members' memory any more then, and the group is used no more. All members of an all-reduce get the same bits. */
  collet_status (*run)(collet_backend_instance* instance, const struct collet_exchange* exchange,
                       struct collet_error* error);
};

#ifdef __cplusplus
}
#endif

#endif
