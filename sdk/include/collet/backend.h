/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_BACKEND_H
#define COLLET_BACKEND_H

/** \file
 * The interface that a vendor implements: one shared library that exports one symbol, collet_backend_entry, which returns one
 * table of functions. C11, no dependency, nothing to link.
 *
 * Six functions make a device that holds data (open, close, device_info, alloc, free, copy): with them every program runs,
 * all its ops on the fallback. supports, compile, execute and release let the device compute. The rest is optional.
 *
 * Rules for the whole table
 * - Threads: any function may be called from any thread at any time, several at once, unless the device's traits say
 *   COLLET_TRAIT_SERIAL_COMPILE (no two of supports and compile at once) or COLLET_TRAIT_SERIAL (no two calls at once).
 * - Errors: a function that can fail returns COLLET_OK or a code, and then fills `error`, which is never null. It has then
 *   changed nothing that the caller can see. close, free and release cannot fail. Since minor version 1: after an error an
 *   out argument of a handle is untouched or null.
 * - Ownership: handles belong to the backend; the SDK only hands them back. Pointers passed in are valid for the call
 *   alone; pointers handed out live as long as the comment says. Nothing allocated on one side is freed on the other.
 * - No C++ exception, signal or longjmp may leave a function. No callback may call back into the backend.
 * - Floating-point arithmetic: functions are called, and their threads started, with rounding to nearest, no traps and subnormal numbers
 *   kept, whatever the application has set for its threads. Since minor version 1.
 * - Structs that begin with struct_size grow at their end: read no more than struct_size bytes, and let missing fields be
 *   zero. Reserved fields are zero; a backend refuses a program whose reserved fields are not.
 * - The library is never unloaded. close may never come: the process may just end.
 */

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define COLLET_EXPORT __declspec(dllexport)
#else
#define COLLET_EXPORT __attribute__((visibility("default")))
#endif

/** An opened backend. */
typedef struct collet_backend_instance collet_backend_instance;
/** A piece of device memory. Opaque: never an address that the SDK would follow. */
typedef struct collet_backend_buffer collet_backend_buffer;
/** A compiled program. */
typedef struct collet_backend_executable collet_backend_executable;
/** A queue, from the optional table "queue". */
typedef struct collet_backend_queue collet_backend_queue;

/** Severity of a log message. */
enum { COLLET_LOG_DEBUG = 0, COLLET_LOG_INFO = 1, COLLET_LOG_WARNING = 2, COLLET_LOG_ERROR = 3 };

/** Facts that the SDK tells a backend about itself. Lives as long as the process. */
struct collet_host {
  uint32_t struct_size;
  uint32_t abi_major; /**< COLLET_ABI_MAJOR of the SDK */
  uint32_t abi_minor; /**< COLLET_ABI_MINOR of the SDK */
  uint32_t opset;     /**< COLLET_OPSET of the SDK */
  void* user;         /**< first argument of the functions below */
  /** Writes a message for people to the SDK's log. Any thread; does not block; `message` is copied. */
  void (*log)(void* user, int32_t severity, const char* message);
};

/** Options of open. */
struct collet_open_options {
  uint32_t struct_size;
  /** Virtual devices wanted where the backend can make them; 0: its own choice. A backend that cannot make so many opens as
   * many as it has, or refuses; instance_info says how many there are. */
  uint32_t device_count;
  const char* target; /**< a named target to compile for without hardware, by virtual devices; null: the machine's own
                                devices. Since minor version 1: an unknown one is refused with COLLET_NOT_FOUND. */
  const char* const* keys; /**< further options of the backend's own, `pairs` of them; unknown ones are refused */
  const char* const* values;
  uint32_t pairs;
  uint32_t reserved; /**< zero */
};

/** The result of open. The strings live as long as the instance. */
struct collet_instance_info {
  uint32_t struct_size;
  uint32_t opset; /**< the opset that the backend was written for; newer ops are never offered to it */
  uint32_t device_count;
  uint32_t reserved; /**< zero */
  /** "acme": 1 to 64 lower-case letters, digits, '-', '_' and '.', a letter first. Others are not opened. */
  const char* name;
  const char* version; /**< of the backend; part of every cache key */
};

/** Abilities of a device for an element type. */
enum {
  COLLET_MAY_STORE = 1,  /**< hold and copy */
  COLLET_MAY_MOVE = 2,   /**< rearrange: slice, transpose, gather ... */
  COLLET_MAY_COMPUTE = 4 /**< arithmetic */
};

/** An element type that a device knows. Never changes size. */
struct collet_type_support {
  uint32_t type;  /**< COLLET_TYPE_* */
  uint32_t flags; /**< COLLET_MAY_* */
};

/** Properties of a memory space. */
enum {
  COLLET_SPACE_HOST_VISIBLE = 1, /**< alloc gives a host pointer */
  COLLET_SPACE_DEFAULT = 2       /**< where arguments and results live; exactly one */
};

/** A memory space of a device. Never changes size. */
struct collet_memory_space {
  uint64_t bytes;       /**< capacity; 0: unknown */
  uint32_t alignment;   /**< smallest that alloc gives and kernels want; a power of two */
  uint32_t flags;       /**< COLLET_SPACE_* */
  char kind[32];        /**< "device", "pinned_host", "unpinned_host", or a name of the backend's own */
  uint64_t reserved[2]; /**< zero */
};

/** Traits of a device. */
enum {
  COLLET_TRAIT_SERIAL = 1,         /**< one call at a time into the whole table */
  COLLET_TRAIT_SERIAL_COMPILE = 2, /**< one of supports and compile at a time */
  COLLET_TRAIT_CONTROL_FLOW = 4,   /**< while, conditional and call may stand in a program; else the SDK runs them */
  COLLET_TRAIT_COLLECTIVES = 8,    /**< collectives may stand in a program of several participants; in a region of
                                        control flow only with COLLET_TRAIT_CONTROL_FLOW */
  COLLET_TRAIT_FLUSHES_DENORMALS = 16, /**< tested accordingly */
  COLLET_TRAIT_VIRTUAL = 32,           /**< no hardware behind it: compile, do not execute */
  COLLET_TRAIT_SHARED_CODE =
      64,                     /**< an executable of one participant may be launched on any device of the instance with
                                      the same fingerprint, not only on the one of its assignment */
  COLLET_TRAIT_SCALARS = 128, /**< programs may have arguments flagged COLLET_VALUE_SCALAR, which come by value */
  COLLET_TRAIT_INLINE_CONSTANTS =
      256, /**< constants of every size stand in the program, where they are accepted as ops; without it those above a
                limit of the SDK's (4 KiB) come as arguments flagged COLLET_VALUE_CONSTANT */
  COLLET_TRAIT_UNROLLED_LOOPS =
      512 /**< a loop whose number of iterations is known is unrolled up to a limit of the SDK's for models (256
               iterations that become 32,768 instructions), not only where it is small: for devices that take a program
               as one list of commands */
};

/** Kinds of work whose peak a device may state. */
enum {
  COLLET_PEAK_PRODUCT = 1, /**< multiply-add of dot and convolution, counted as two operations */
  COLLET_PEAK_ARITHMETIC =
      2,                   /**< an operation for each element: add, compare, select, convert, the terms of a reduce */
  COLLET_PEAK_FUNCTION = 3 /**< a value of exp, tanh, rsqrt and other ops that are not exact */
};

/** A peak of a device. Never changes size. */
struct collet_peak {
  uint32_t work;     /**< COLLET_PEAK_* */
  uint32_t type;     /**< COLLET_TYPE_* of the first operand */
  double per_ns;     /**< operations per nanosecond; more than 0 */
  uint64_t reserved; /**< zero */
};

/** The result of device_info: immutable. Arrays and strings live as long as the instance. */
struct collet_device_info {
  uint32_t struct_size;
  uint32_t traits;         /**< COLLET_TRAIT_* */
  const char* kind;        /**< the model of the device: "Acme T1" */
  const char* fingerprint; /**< all that compiled code depends on (features of the CPU, revision ...); in cache keys */
  uint8_t uuid[16];        /**< zeros where there is none */
  int32_t coordinates[4];  /**< place in a mesh; zeros where there is none */
  const struct collet_memory_space* spaces;
  const struct collet_type_support* types; /**< what is not listed is not known */
  uint32_t space_count;
  uint32_t type_count;
  const uint32_t* peers; /**< devices of this instance that copy reaches directly */
  uint32_t peer_count;
  uint32_t compute_units;     /**< for people; 0: unknown */
  double link_latency_ns;     /**< of one copy between host and device; 0: unknown, taken as none */
  double link_bytes_per_ns;   /**< bandwidth of that link; 0: unknown, taken as no limit */
  double launch_ns;           /**< fixed cost of one execute */
  double memory_bytes_per_ns; /**< bandwidth of the device's own memory; 0: unknown */
  double flops_per_ns;        /**< peak of f32 multiply-add, counted as two; 0: unknown */
  uint32_t smallest_cluster;  /**< ops; a smaller cluster is not worth a launch; 0: no opinion */
  uint32_t reserved;          /**< zero */
  const struct collet_peak*
      peaks; /**< where the peak is not flops_per_ns; each pair of work and type at most once. What
                                        is not listed is taken to run at flops_per_ns. */
  uint32_t peak_count;
  uint32_t reserved_2; /**< zero */
};

/** One end of a copy: a buffer, or host memory where buffer is null. */
struct collet_place {
  collet_backend_buffer* buffer;
  void* host;
  uint64_t offset; /**< bytes from the start of either */
};

/** One contiguous copy. Never changes size. Source and destination do not overlap. */
struct collet_copy_region {
  struct collet_place from;
  struct collet_place to;
  uint64_t bytes; /**< may be 0 */
};

/** A point on a queue's timeline. */
struct collet_point {
  collet_backend_queue* queue;
  uint64_t value; /**< reached when the queue's counter is at least this */
};

/** When a copy or launch starts and what it signals; the rules stand at the table "queue" in tables.h. Null in place of it,
 * and always where the backend has no such table: the call blocks until the work is done. */
struct collet_sync {
  collet_backend_queue* queue;      /**< where the work is put; of the launch's device, and for a copy of a device that
                                         the copy touches */
  const struct collet_point* waits; /**< reached before the work begins; of any queues of the instance */
  const struct collet_point* signals; /**< one point, of `queue`: reached when the work has ended */
  uint32_t wait_count;
  uint32_t signal_count; /**< 1 */
};

/** Answers of supports. */
enum {
  COLLET_DECLINE = 0, /**< the op runs on the fallback */
  COLLET_ACCEPT = 1,  /**< the device runs it, with exactly these types, shapes and attributes */
  COLLET_EXPAND = 2   /**< please rewrite it into simpler ops, and ask again for those */
};

/** Answer for one op. Never changes size. Filled with zeros before the call: decline. */
struct collet_verdict {
  uint32_t answer;   /**< COLLET_DECLINE, COLLET_ACCEPT or COLLET_EXPAND */
  uint32_t group;    /**< 0: on its own; ops with the same number are taken together or not at all */
  double cost_ns;    /**< estimate of its time on the device; 0: unknown, the SDK estimates */
  uint64_t reserved; /**< zero */
  char reason[104];  /**< for people, zero-ended; may stay empty */
};

/** Options of compile. */
struct collet_compile_options {
  uint32_t struct_size;
  uint32_t optimization;       /**< 0 fastest to compile ... 3 fastest to run; 2 is usual */
  const uint32_t* assignment;  /**< device of participant replica * partition_count + partition */
  uint32_t participants;       /**< replica_count * partition_count of the program */
  uint32_t intermediate_check; /**< 1: keep what "artifacts" shows */
  void* user;
  /** Null, or called now and then by the compiling thread; `done` runs from 0 to 1. Not 0: give up, return
   * COLLET_CANCELLED. */
  int32_t (*progress)(void* user, double done, const char* stage);
};

/** Facts that compile returns about the executable. */
struct collet_executable_info {
  uint32_t struct_size;
  uint32_t absorbed_count; /**< in: room in `absorbed`; out: how many constants the executable holds itself */
  uint64_t
      workspace_bytes; /**< per execution, in the default space, aligned to workspace_alignment; the SDK supplies it */
  uint64_t workspace_alignment; /**< a power of two, or 0 for the space's own */
  uint64_t resident_bytes;      /**< device memory that the executable itself holds */
  uint64_t code_bytes;          /**< for people */
  uint32_t kernels;             /**< launches of kernels in one execution, for people and tests; 0: unknown. What stands
                                     in the body of a loop counts once, here and in traffic_bytes. */
  uint32_t reserved;            /**< zero */
  uint64_t traffic_bytes;       /**< bytes that its kernels read and write in one execution; 0: unknown */
  uint32_t* absorbed;           /**< filled with indices of constants: the SDK stops passing data for those arguments */
  double estimated_ns;          /**< time of one execution, as the compiler estimates it; 0: unknown. Loops of unknown
                                     length count as the compiler chooses. */
  double energy_nj;             /**< energy of one execution in nanojoule, estimated likewise; 0: unknown */
  uint64_t cycles;              /**< of the device's clock, estimated likewise; 0: unknown */
};

/** Ops that compile could not take together. */
struct collet_rejection {
  uint32_t struct_size;
  uint32_t count; /**< in: room in `ops`; out: how many were named */
  uint32_t* ops;  /**< ids of ops: the SDK cuts the program there and compiles the parts */
};

/** Flags of an argument or result. */
enum {
  COLLET_ARG_DONATED = 1,   /**< the executable may overwrite it */
  COLLET_ARG_IMMEDIATE = 2, /**< the value stands in `immediate`, buffer is null; for values flagged SCALAR alone */
  COLLET_ARG_ABSENT = 4,    /**< an absorbed constant: there is no buffer */
  COLLET_ARG_PREPARED = 8   /**< a form that "residency" of tables.h made; `offset` is 0, `bytes` that of the value */
};

/** A buffer of one launch. Never changes size. */
struct collet_argument {
  collet_backend_buffer* buffer; /**< null where bytes is 0 */
  uint64_t offset;               /**< bytes; a multiple of the space's alignment */
  uint64_t bytes;                /**< of the value */
  uint32_t flags;                /**< COLLET_ARG_* */
  uint32_t layout;               /**< 0: dense and row-major; 1: as "layout" of tables.h says */
  uint8_t immediate[16];
};

/** One participant's part in an execution. Never changes size. */
struct collet_launch {
  uint32_t device;
  uint32_t participant;                    /**< replica * partition_count + partition */
  const struct collet_argument* arguments; /**< one per entry argument */
  const struct collet_argument* results;   /**< one per entry result; disjoint from each other, and from the arguments
                                                except where an alias holds */
  uint32_t argument_count;
  uint32_t result_count;
  struct collet_argument workspace; /**< bytes 0 where none was asked for */
  const struct collet_sync* sync;   /**< null: execute returns when the results are there */
  uint64_t reserved[2];             /**< zero */
};

/** The table. Static and immortal. A null pointer is an optional function that is not there. */
struct collet_backend {
  uint32_t struct_size;
  uint32_t abi_major; /**< COLLET_ABI_MAJOR that the backend was compiled with */
  uint32_t abi_minor;
  uint32_t reserved; /**< zero */

  /** Opens the backend. Required. May block. `info` is zeroed but for struct_size. Several instances may be open. */
  collet_status (*open)(const struct collet_open_options* options, collet_backend_instance** out_instance,
                        struct collet_instance_info* info, struct collet_error* error);

  /** Closes it. Required. All its buffers and executables have been freed and released, and no call is running. */
  void (*close)(collet_backend_instance* instance);

  /** Describes device number `device`. Required. Always the same answer. `info` is zeroed but for struct_size. */
  collet_status (*device_info)(collet_backend_instance* instance, uint32_t device, struct collet_device_info* info,
                               struct collet_error* error);

  /** Allocates `bytes` (at least 1) in memory space number `space` of a device, at a multiple of `alignment`. Required.
   * Contents are undefined. In a host-visible space *out_host_pointer is where the host may read and write while no
   * launch or copy uses the buffer; otherwise null. COLLET_RESOURCE_EXHAUSTED when there is no room. Since minor version 1:
   * a device or memory space that is not there is refused with COLLET_INVALID_ARGUMENT, COLLET_NOT_FOUND or
   * COLLET_OUT_OF_RANGE. */
  collet_status (*alloc)(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                         uint64_t alignment, collet_backend_buffer** out_buffer, void** out_host_pointer,
                         struct collet_error* error);

  /** Frees a buffer that no running work uses. Required. */
  void (*free)(collet_backend_instance* instance, collet_backend_buffer* buffer);

  /** Copies `count` regions, in any order: host to device, device to host, within and between devices. Required.
   * Null `sync`: returns when all is copied. Since minor version 1: a place that is not wholly inside its buffer is refused
   * with COLLET_OUT_OF_RANGE or COLLET_INVALID_ARGUMENT, and then no region has been copied. */
  collet_status (*copy)(collet_backend_instance* instance, const struct collet_copy_region* regions, uint32_t count,
                        const struct collet_sync* sync, struct collet_error* error);

  /** Asks for `count` ops of a program, by id, what device `device` makes of them. Optional: null declines everything.
   * Pure: the same question has the same answer. An op with regions is asked for as a whole, with what is in them. A
   * yes is a promise for the op; limits of the whole program show in compile. Shape-only questions come with a program of
   * one op. Since minor version 1: an op whose `since` is above the instance's opset is declined, or the question refused. */
  collet_status (*supports)(collet_backend_instance* instance, uint32_t device, const struct collet_program* program,
                            const uint32_t* ops, uint32_t count, struct collet_verdict* verdicts,
                            struct collet_error* error);

  /** Compiles a program of which every op in the entry was accepted. Required where supports is there. May take long;
   * `options->progress` may stop it. The program is valid for the call alone. On COLLET_UNIMPLEMENTED or
   * COLLET_RESOURCE_EXHAUSTED, `rejection` may name the ops at which to cut. `info` is zeroed but for sizes and room. */
  collet_status (*compile)(collet_backend_instance* instance, const struct collet_program* program,
                           const struct collet_compile_options* options, collet_backend_executable** out_executable,
                           struct collet_executable_info* info, struct collet_rejection* rejection,
                           struct collet_error* error);

  /** Runs an executable: one launch per participant of this process, all at once. Required where compile is there. With
   * queues the launches of one call are queued together: the work of another call stands before or after all of them, on
   * every queue, so that participants who wait for each other meet. After
   * an error nothing was started and donated arguments are intact; once started they are gone. The one exception, since
   * minor version 1: COLLET_DATA_LOSS says that work had been started and that all of it has ended; the contents of donated
   * arguments and of results are lost, and those of other arguments are intact. With null sync it returns when the results
   * are there. `run_id` is the same for all participants of one run, in all processes. Since minor version 1: a launch with
   * another number of arguments or results than the program has, or with an argument, result or workspace that is too small
   * or reaches beyond the end of its buffer, or for a device that is not there, is refused with COLLET_INVALID_ARGUMENT,
   * COLLET_NOT_FOUND or COLLET_OUT_OF_RANGE. */
  collet_status (*execute)(collet_backend_executable* executable, const struct collet_launch* launches, uint32_t count,
                           uint64_t run_id, struct collet_error* error);

  /** Releases an executable of which no execution is running. Required where compile is there. */
  void (*release)(collet_backend_executable* executable);

  /** Hands out an optional table (tables.h) by name and version, immortal like this one; null when there is none.
   * Optional. */
  const void* (*query)(collet_backend_instance* instance, const char* name, uint32_t version);
};

/** The one exported symbol. Called once per load, before anything else. Checks host->abi_major, stores its table in
 * *out_backend; COLLET_FAILED_PRECONDITION when it cannot work with this host. */
COLLET_EXPORT collet_status collet_backend_entry(const struct collet_host* host,
                                                 const struct collet_backend** out_backend, struct collet_error* error);

/** Type of collet_backend_entry. */
typedef collet_status (*collet_backend_entry_fn)(const struct collet_host*, const struct collet_backend**,
                                                 struct collet_error*);

#ifdef __cplusplus
}
#endif

#endif
