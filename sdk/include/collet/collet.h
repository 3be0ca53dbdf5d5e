/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COLLET_H
#define COLLET_COLLET_H

/** \file
 * The functions that an embedder calls to read a program, compile it for a backend and run it. C11; link libcollet.
 *
 * Objects are reference-counted where two parties may hold them (buffers, events, executables, modules): `release` drops
 * the caller's reference. Any function may be called from any thread. Functions that can fail return COLLET_OK or a code
 * and fill `error`, which may be null; their out-parameters are then untouched. Strings handed out live as long as the
 * object they come from. Option structs begin with struct_size: zero the struct, then set it to sizeof.
 *
 * Execution is asynchronous: collet_execute returns when the work is queued; each result buffer carries a ready event.
 * A failure of queued work shows in those events and in every use of the buffers, with the same code and message.
 */

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(COLLET_BUILDING_LIBRARY) || defined(__GNUC__)
#define COLLET_API __attribute__((visibility("default")))
#else
#define COLLET_API
#endif

/** A backend, opened, with its fallback. Thread-safe. */
typedef struct collet_client collet_client;
/** A program as it was read. Immutable; shared by threads. */
typedef struct collet_module collet_module;
/** A program compiled for some devices of a client. */
typedef struct collet_executable collet_executable;
/** An array in a memory space of a device, or a token. */
typedef struct collet_buffer collet_buffer;
/** A moment that comes once, with success or failure. */
typedef struct collet_event collet_event;
/** The processes of a group, see tables.h. */
struct collet_group;
/** The processes that a client joins, see processes.h. */
struct collet_processes;
/** A text or block of bytes that the library made. */
typedef struct collet_blob collet_blob;

/** Version of the library, such as "1.2.3". */
COLLET_API const char* collet_version(void);

/** @name Blobs */
/**@{*/
/** Returns the blob's bytes. A zero byte that is not counted follows them. */
COLLET_API const char* collet_blob_data(const collet_blob* blob);
/** Returns the number of the blob's bytes. */
COLLET_API uint64_t collet_blob_size(const collet_blob* blob);
/** Frees a blob; null does nothing. */
COLLET_API void collet_blob_release(collet_blob* blob);
/**@}*/

/** @name Clients */
/**@{*/

/** Options of collet_client_open. */
struct collet_client_options {
  uint32_t struct_size;
  uint32_t device_count; /**< virtual devices wanted where the backend makes them; 0: its own choice */
  /** A name ("cpu"), looked up in COLLET_BACKEND_PATH (folders, separated by colons) and the installed folder, or a path
   * to a shared library. Null: the value of the environment variable COLLET_BACKEND, or "cpu" if it is not set. */
  const char* backend;
  /** The backend that runs the ops that the chosen one declines: null for the usual one (cpu, or the interpreter if cpu was not
   * built); "none" for no fallback. The reference backends have none. */
  const char* fallback;
  const char* target;      /**< a named target to compile for without hardware; null: the machine's devices */
  const char* const* keys; /**< further options for the backend, `pairs` of them */
  const char* const* values;
  uint32_t pairs;
  /** Most runs of a device that collet_execute starts before the first of them has ended; it then waits. 0: the environment's
   * COLLET_RUNS_IN_FLIGHT, else 32. Runs that wait for a promised buffer are not counted. */
  uint32_t runs_in_flight;
  void* log_user;
  /** Null: warnings and errors go to stderr, or those from the severity on that COLLET_LOG names. Any thread; it
   * may call the library. Messages that come during a call of the library are passed on before it returns. Messages go to the log of the client that was opened last and is not yet gone; once a client is gone, no thread is in its log any more. */
  void (*log)(void* user, int32_t severity, const char* message);
  const struct collet_group* group; /**< deprecated since minor version 1: null. See collet_client_join */
};

/** Loads and opens a backend. NOT_FOUND lists the places where it was looked for; FAILED_PRECONDITION for a library that
 * is no backend or of another ABI. */
COLLET_API collet_status collet_client_open(const struct collet_client_options* options, collet_client** out_client,
                                            struct collet_error* error);
/** Makes the client's process one of several whose clients run programs together, with any backend. All processes call it,
 * once, before anything is compiled; it returns when all are connected. From then on the devices of all processes have numbers:
 * first those of process 0, then those of process 1, and so on. An assignment of collet_compile has these numbers; participants,
 * arguments and results of collet_execute are those of this process, in ascending order. The processes start the programs that
 * they have in common in the same order. Other functions number the devices of this process alone.
 *
 * COLLET_FAILED_PRECONDITION names a process that has another version of Collet or of the backend, or another kind of device.
 * COLLET_DEADLINE_EXCEEDED names one that is missing. A run that waits for another process longer than the limit, or that
 * loses it, fails with COLLET_DEADLINE_EXCEEDED or COLLET_UNAVAILABLE and names it and the collective that waits. */
COLLET_API collet_status collet_client_join(collet_client* client, const struct collet_processes* processes,
                                            struct collet_error* error);

/** A device of one of the processes that a client has joined. */
struct collet_global_device {
  uint32_t struct_size;
  uint32_t process; /**< the process that it belongs to */
  uint32_t device;  /**< its number among the devices of that process */
  uint32_t reserved;
  const char* kind; /**< model; lives as long as the client */
  int32_t coordinates[4];
};
/** Fills `device`, whose struct_size the caller has set, with device `number` of all processes. COLLET_OUT_OF_RANGE past the
 * last one; COLLET_FAILED_PRECONDITION if the client has joined no processes. */
COLLET_API collet_status collet_client_global_device_get(collet_client* client, uint32_t number,
                                                         struct collet_global_device* device,
                                                         struct collet_error* error);

/** Closes a client; its executables, buffers and events must have been released.
 *
 * It waits for the runs and copies that were started: of those on queues of the backend, what has not begun is cancelled (their
 * events come with COLLET_CANCELLED), and what has begun ends; all others are done. When it returns, the functions that were given to
 * collet_event_on_ready, the host functions, `done` of host arrays and `log` have returned and are not called any more, the
 * backend is closed, and no thread of the library is left. So the caller must not hold a lock that these functions take.
 *
 * There are two exceptions, in which what goes on may call these functions after the return; the backend is closed when it has
 * ended. Called by one of these functions, it does not wait for the run that calls. Called before the caller's last object of the
 * client is released, it leaves the client open until then. It must not be called by `log`. */
COLLET_API void collet_client_close(collet_client* client);

/** Facts about a client. */
struct collet_client_info {
  uint32_t struct_size;
  uint32_t device_count;
  const char* backend; /**< name */
  const char* backend_version;
  const char* backend_path; /**< path of the backend's library */
  const char* fallback;     /**< name; empty for none */
  uint32_t opset;           /**< the opset of the backend */
  uint32_t functions;       /**< how many functions of the core table the backend supplies */
  uint32_t abi_major; /**< version of the interface that the backend was built with: COLLET_ABI_MAJOR of backend.h */
  uint32_t abi_minor; /**< COLLET_ABI_MINOR */
};
/** Fills `info`, whose struct_size the caller has set. */
COLLET_API collet_status collet_client_info_get(collet_client* client, struct collet_client_info* info,
                                                struct collet_error* error);

/** Facts about a device of a client. */
struct collet_client_device_info {
  uint32_t struct_size;
  uint32_t traits;  /**< COLLET_TRAIT_* of backend.h */
  const char* kind; /**< model */
  const char* fingerprint;
  uint32_t space_count;
  uint32_t default_space;
  int32_t coordinates[4];
  uint64_t bytes_in_use; /**< bytes in use by this client, in all spaces of the device */
  uint64_t peak_bytes;
  uint64_t capacity; /**< capacity of the default space; 0: unknown */
  /* Statistics of the default space for all its users, as the backend's table "memory_stats" reports them (tables.h);
   * zeros if it has no such table. */
  uint64_t device_bytes_in_use;
  uint64_t device_peak_bytes;
  uint64_t device_bytes_limit; /**< 0: unknown */
  uint64_t device_allocations; /**< number of live allocations */
};
/** Fills `info` for device number `device`. */
COLLET_API collet_status collet_client_device_info_get(collet_client* client, uint32_t device,
                                                       struct collet_client_device_info* info,
                                                       struct collet_error* error);
/** Name of a memory space: "device", "pinned_host", ...; null past the last. */
COLLET_API const char* collet_client_space_kind(collet_client* client, uint32_t device, uint32_t space);
/** Returns what a device can do with an element type: COLLET_MAY_* of backend.h; 0 past the last device or type. */
COLLET_API uint32_t collet_client_type_flags(collet_client* client, uint32_t device, uint32_t element);
/** Returns the name of pattern number `index` for which a device is asked (table "patterns" of tables.h); null past the last. Where
 * `text` is not null, it receives the text that defines a pattern of the backend's own; null for any other. Both live as long
 * as the client. */
COLLET_API const char* collet_client_pattern(collet_client* client, uint32_t device, uint32_t index, const char** text);
/** Gives pooled memory that nothing uses back to the backend. */
COLLET_API void collet_client_trim(collet_client* client);
/** Prepares `bytes` bytes of the caller's memory at `host` for copies from and to devices, which are then faster. The memory
 * stays where it is until collet_client_unregister_host_memory. ALREADY_EXISTS where a part of it is registered; UNIMPLEMENTED
 * where the backend has no table "host_memory". */
COLLET_API collet_status collet_client_register_host_memory(collet_client* client, void* host, uint64_t bytes,
                                                            struct collet_error* error);
/** Undoes collet_client_register_host_memory for the same address. All copies from and to that memory must have ended.
 * Returns NOT_FOUND if it is not registered. */
COLLET_API collet_status collet_client_unregister_host_memory(collet_client* client, void* host,
                                                              struct collet_error* error);

/** How one device reaches another. */
struct collet_client_link {
  uint32_t struct_size;
  uint32_t hops;       /**< devices and switches on the way, at least 1; 0: only by the host, or unknown */
  double latency_ns;   /**< latency of one copy; 0: unknown */
  double bytes_per_ns; /**< bandwidth; 0: unknown */
};
/** Fills `link` for two different devices. All is 0 where the backend has no table "links". */
COLLET_API collet_status collet_client_link_get(collet_client* client, uint32_t from, uint32_t to,
                                                struct collet_client_link* link, struct collet_error* error);
/**@}*/

/** @name Modules */
/**@{*/

/** Forms of a program. */
enum {
  COLLET_FORMAT_AUTO = 0, /**< the format is detected from the content */
  COLLET_FORMAT_HLO_TEXT = 1,
  COLLET_FORMAT_HLO_PROTO = 2, /**< HloModuleProto or HloProto, binary */
  COLLET_FORMAT_STABLEHLO_TEXT = 3,
  COLLET_FORMAT_STABLEHLO = 4 /**< portable artifact (MLIR bytecode) */
};

/** Ways to treat a constant that is printed as {...}. */
enum {
  COLLET_ELIDED_REFUSE = 0,
  COLLET_ELIDED_ZEROS = 1,
  COLLET_ELIDED_RANDOM = 2,
  COLLET_ELIDED_COUNTER = 3 /**< as XLA fills them: a running counter of 32-bit words */
};

/** Options of collet_module_read. */
struct collet_read_options {
  uint32_t struct_size;
  uint32_t format;        /**< COLLET_FORMAT_* */
  const char* file;       /**< name for messages; may be null */
  uint32_t elided;        /**< COLLET_ELIDED_* */
  uint32_t floats_as_f64; /**< 1: f32, bf16 and f16 are read as f64 throughout, c64 as c128 */
  uint64_t seed;          /**< for COLLET_ELIDED_RANDOM */
  uint32_t max_errors;    /**< 0: 20 */
  uint32_t skip_verify;   /**< 1: do not verify after reading */
  /** 1: the program returns, after its own results, the size of each dimension of a result that the data decide: s32 scalars, in
   * the order of the results and of their dimensions. collet_module_result_is_dynamic names the dimensions. */
  uint32_t append_sizes;
  uint32_t reserved; /**< zero */
};

/** Reads a program. INVALID_ARGUMENT with the first error's place and message in `error`; all of them, with source lines
 * and carets, in *out_messages if that is not null (release it; null when there was no error). */
COLLET_API collet_status collet_module_read(const void* bytes, uint64_t size, const struct collet_read_options* options,
                                            collet_module** out_module, collet_blob** out_messages,
                                            struct collet_error* error);
/** Adds a reference. */
COLLET_API void collet_module_retain(collet_module* module);
/** Drops a reference; null does nothing. */
COLLET_API void collet_module_release(collet_module* module);
/** Writes a module in one of the formats. */
COLLET_API collet_status collet_module_write(collet_module* module, uint32_t format, collet_blob** out_blob,
                                             struct collet_error* error);

/** An array type as an embedder sees it. `dims` lives as long as the object that returned the type. */
struct collet_array_type {
  uint32_t element; /**< COLLET_TYPE_* */
  uint32_t rank;
  const int64_t* dims;
};
/** Returns the module's name as it was read. */
COLLET_API const char* collet_module_name(const collet_module* module);
/** Returns the number of entry parameters, with tuples flattened. */
COLLET_API uint32_t collet_module_parameter_count(const collet_module* module);
/** Returns the type of a flattened parameter. */
COLLET_API struct collet_array_type collet_module_parameter(const collet_module* module, uint32_t index);
/** Returns the number of entry results, with tuples flattened. */
COLLET_API uint32_t collet_module_result_count(const collet_module* module);
/** Returns the type of a flattened result. */
COLLET_API struct collet_array_type collet_module_result(const collet_module* module, uint32_t index);
/** Returns 1 if the data decide the size of a dimension of a flattened result: the array has the size of the bound, which
 * collet_module_result has, and is zero outside of its size. 0 past the last result and the last dimension. */
COLLET_API uint32_t collet_module_result_is_dynamic(const collet_module* module, uint32_t index, uint32_t dimension);
/** Returns the sharding of a flattened parameter in the form of HLO text, such as "{devices=[2,1]<=[2]}". Null if the
 * program has none for it, and past the last. */
COLLET_API const char* collet_module_parameter_sharding(const collet_module* module, uint32_t index);
/** Returns the sharding of a flattened result, likewise. */
COLLET_API const char* collet_module_result_sharding(const collet_module* module, uint32_t index);
/**@}*/

/** @name Executables */
/**@{*/

/** The operands and results of one call of an embedder's function. Arrays are dense, row-major, in host memory; tokens have none. */
struct collet_host_call {
  uint32_t struct_size;
  uint32_t participant; /**< replica * partition_count + partition */
  uint32_t operand_count;
  uint32_t result_count;
  const void* const* operands; /**< the operands, which must not be changed */
  void* const* results;        /**< the results, which the function fills */
  const struct collet_array_type* operand_types;
  const struct collet_array_type* result_types;
  uint64_t run_id;
  const char* target; /**< target of the custom call */
  const char* config; /**< its backend_config, ended by a zero byte that is not counted */
  uint64_t config_size;
};

/** A function of the embedder that programs may call: it implements custom-calls with this target. With the target
 * "infeed" or "outfeed" it implements those ops: for infeed, the results are the arrays (a tuple's elements, each by
 * itself) that the host provides, for outfeed, the operands are the arrays that the host receives; both also have the
 * token, and `config` is the op's own. They are called in the order of the program's tokens, in loops too, once for each
 * participant. */
struct collet_host_function {
  const char* target;
  void* user;
  /** Called by a thread of the library, which waits for it; other work for the device may have to wait too. For a short
   * run of one participant, it may be called by the thread that starts the run. An error fails the run. */
  collet_status (*call)(void* user, const struct collet_host_call* call, struct collet_error* error);
};

/** Options of collet_compile. */
struct collet_compile_request {
  uint32_t struct_size;
  uint32_t optimization; /**< 0 ... 3; 0 means 2 unless optimization_given */
  uint32_t optimization_given;
  uint32_t replica_count;     /**< 0: the module's */
  uint32_t partition_count;   /**< 0: the module's */
  uint32_t assignment_count;  /**< 0, or replica_count * partition_count */
  const uint32_t* assignment; /**< device of participant replica * partition_count + partition, each another one; null:
                                   0, 1, 2 ... */
  const char* dump_to;        /**< folder for the module before and after each stage, plan, artifacts; null: none */
  uint32_t no_fusion;         /**< 1: propose none (for measuring what fusion gives) */
  uint32_t no_cache;          /**< 1: neither look in the cache nor fill it */
  void* user;
  /** Null, or called by the compiling thread; not 0: give up with COLLET_CANCELLED. */
  int32_t (*progress)(void* user, double done, const char* stage);
  /** Functions that the program may call, `host_function_count` of them. Those that it does call stay in use as long as
   * the executable and its runs. Programs that are equal and call the same functions share one. */
  const struct collet_host_function* host_functions;
  uint32_t host_function_count;
  /** 1: the program is written for whole arrays, and its shardings say which part of them each partition has; arguments
   * and results of the executable are those parts. 0: it is written for one participant. */
  uint32_t partition;
  /** 1: what the device accepts runs there, also where the fallback would be faster: for tests. */
  uint32_t ignore_costs;
  uint32_t reserved; /**< zero */
  /** What the names of the files end in that dump_to gets, such as ".offered.hlo"; null: it gets all. A program with large
   * constants has a large file for each stage. */
  const char* dump_only;
  /** 1: each result is computed, also where it is an argument, a constant, or another result, so that one function may
   * write all of them: for programs that are compiled ahead of time. */
  uint32_t own_results;
};

/** Compiles. INVALID_ARGUMENT for a program that does not verify, UNIMPLEMENTED for an op that neither backend nor
 * fallback takes; both name the instruction. */
COLLET_API collet_status collet_compile(collet_client* client, collet_module* module,
                                        const struct collet_compile_request* request,
                                        collet_executable** out_executable, struct collet_error* error);
/** Adds a reference. */
COLLET_API void collet_executable_retain(collet_executable* executable);
/** Drops a reference; null does nothing. The library waits for running work. */
COLLET_API void collet_executable_release(collet_executable* executable);

/** Writes an executable as bytes: its program, how it was compiled, and what its backends hand out of compiled code
 * ("aot" of tables.h; cpu and the interpreter have it). For keeping on disk, not for wires that strangers write to: code
 * in them is run as it is. If the environment's COLLET_KEY_FILE names a key, they are signed with it, and INVALID_ARGUMENT or
 * PERMISSION_DENIED says that the key cannot be used. */
COLLET_API collet_status collet_executable_serialize(collet_executable* executable, collet_blob** out_bytes,
                                                     struct collet_error* error);
/** Makes an executable from such bytes, on a client of the same backend. Compiled code is used where it was made by the
 * same version of the backend for the same kind of device; whatever else is compiled again from the program. `facts`
 * tells: from_cache is 1 where nothing was. `request`: null, or what is to be otherwise than when it was compiled.
 * DATA_LOSS for bytes that are damaged or no executable, FAILED_PRECONDITION for another backend's or another library's.
 * PERMISSION_DENIED if COLLET_KEY_FILE names a key with which the bytes are not signed. */
COLLET_API collet_status collet_executable_load(collet_client* client, const void* bytes, uint64_t size,
                                                const struct collet_compile_request* request,
                                                collet_executable** out_executable, struct collet_error* error);

/** Facts about an executable. */
struct collet_executable_facts {
  uint32_t struct_size;
  uint32_t argument_count; /**< flattened */
  uint32_t result_count;   /**< flattened */
  uint32_t participants;   /**< replica_count * partition_count */
  uint32_t device_ops;     /**< ops that run on the backend's devices */
  uint32_t fallback_ops;   /**< ops that run on the fallback */
  uint32_t host_ops;       /**< control flow that the runtime runs itself */
  uint32_t clusters;       /**< programs that were compiled; equal ones count once */
  uint32_t kernels;    /**< kernels of one execution, each loop body counted once, as far as the backends report them */
  uint32_t from_cache; /**< 1: nothing was compiled */
  uint64_t traffic_bytes;   /**< estimated bytes that kernels read and write, counted likewise; 0: unknown */
  uint64_t workspace_bytes; /**< workspace of one execution */
  uint64_t crossing_bytes;  /**< copied between device and fallback in one execution */
  uint64_t compile_ns;
  uint64_t flops;          /**< arithmetic of one participant's execution, estimated; unknown loops count ten trips */
  uint64_t code_bytes;     /**< machine code of all clusters, as far as the backends report it */
  uint64_t resident_bytes; /**< device memory that the executable itself holds, as far as the backends report it */
  uint32_t local_participants; /**< participants of this process: all, unless the client has joined others */
  uint32_t reserved;
  /* What the backends' compilers estimate for one execution, as far as they do; each loop body counts once. 0: unknown. */
  double estimated_ns;
  double energy_nj;
  uint64_t cycles;
};
/** Fills `facts`, whose struct_size the caller has set. */
COLLET_API collet_status collet_executable_facts_get(collet_executable* executable,
                                                     struct collet_executable_facts* facts, struct collet_error* error);
/** Kinds of questions that a compilation asks a device. */
enum {
  COLLET_QUESTION_OP = 0,
  /** The question is about a pattern; patterns that the device named but the program does not contain are listed, too. */
  COLLET_QUESTION_PATTERN = 1,
  COLLET_QUESTION_FUSION = 2
};
/** The answers for all ops of one name and element type that a device was asked about. Groups of a pattern that need
 * COLLET_FEATURE_* which the device does not state are listed as well, with `asked` 0. */
struct collet_question {
  uint32_t struct_size;
  uint32_t kind;     /**< COLLET_QUESTION_* */
  uint32_t element;  /**< COLLET_TYPE_* of the first result; COLLET_TYPE_INVALID for a pattern that was not there */
  uint32_t asked;    /**< 1: the device was asked */
  uint32_t accepted; /**< 1: the device accepted at least one such op, even if the program has changed since */
  uint32_t placed;   /**< number of such ops that run on the device */
  const char* name;  /**< "add"; of a pattern its name; of a fusion the ops in it. Lives as long as the executable */
};
/** Fills `question`, whose struct_size the caller has set, with number `index` of what the compilation asked the device.
 * OUT_OF_RANGE past the last; none where the executable was loaded from bytes. */
COLLET_API collet_status collet_executable_question(collet_executable* executable, uint32_t index,
                                                    struct collet_question* question, struct collet_error* error);
/** Returns the type of a flattened argument. */
COLLET_API struct collet_array_type collet_executable_argument(const collet_executable* executable, uint32_t index);
/** Returns the type of a flattened result. */
COLLET_API struct collet_array_type collet_executable_result(const collet_executable* executable, uint32_t index);
/** Returns the number of the memory space that receives a flattened result on each participant's device; COLLET_NONE past
 * the last. */
COLLET_API uint32_t collet_executable_result_space(const collet_executable* executable, uint32_t index);
/** Returns 1 if the program donates the argument (input_output_alias, buffer_donor). */
COLLET_API uint32_t collet_executable_donates(const collet_executable* executable, uint32_t index);
/** Returns the sharding of a flattened argument over the partitions, in the form of HLO text with a list of the devices:
 * "{devices=[2,1]0,1}", "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}" or "{replicated}". Null if the program was not
 * partitioned, and past the last. */
COLLET_API const char* collet_executable_argument_sharding(const collet_executable* executable, uint32_t index);
/** Returns the sharding of a flattened result, likewise. */
COLLET_API const char* collet_executable_result_sharding(const collet_executable* executable, uint32_t index);
/** Returns the layout that the program's source states for a flattened argument: its dimensions from the fastest on, such
 * as "{0,1}". Null for row-major, if nothing is stated, and past the last. This library always exchanges row-major
 * arrays; a frontend that has promised the layout to its caller must transpose. */
COLLET_API const char* collet_executable_argument_layout(const collet_executable* executable, uint32_t index);
/** Returns the layout of a flattened result, likewise. */
COLLET_API const char* collet_executable_result_layout(const collet_executable* executable, uint32_t index);
/** Returns the target of the index-th function of the embedder that the program calls; null past the last. */
COLLET_API const char* collet_executable_host_function(const collet_executable* executable, uint32_t index);
/** Writes the program that each participant runs in a format of collet_module_write: the program as it was read or, if
 * that was written for whole arrays, the partitioned program. */
COLLET_API collet_status collet_executable_program(collet_executable* executable, uint32_t format,
                                                   collet_blob** out_blob, struct collet_error* error);
/** Describes the execution plan for readers: what runs where, why, in which order, and how many bytes are copied between
 * device and fallback. `json`: 1 for JSON, 0 for text. */
COLLET_API collet_status collet_executable_explain(collet_executable* executable, uint32_t json, collet_blob** out_text,
                                                   struct collet_error* error);
/**@}*/

/** @name Buffers */
/**@{*/

/** How long the caller's memory must stay as it is. */
enum {
  COLLET_HOST_COPIED = 0,     /**< until the call returns */
  COLLET_HOST_UNTIL_DONE = 1, /**< until `done` is called */
  /** Until `done` is called, which may be when the buffer dies: the buffer may be a view, if the backend has the table "host_buffers" and
   * the address has the alignment of the memory space. It is never written to: a donated one is copied. */
  COLLET_HOST_ZERO_COPY = 2,
  COLLET_HOST_MUTABLE_ZERO_COPY = 3 /**< as COLLET_HOST_ZERO_COPY */
};

/** An array in host memory. */
struct collet_host_array {
  uint32_t struct_size;
  uint32_t element; /**< COLLET_TYPE_* */
  const int64_t* dims;
  const int64_t* byte_strides; /**< null: dense, row-major */
  const void* data;
  uint32_t rank;
  uint32_t semantics; /**< COLLET_HOST_* */
  void* user;
  /** Null, or called once, on any thread, when `data` is no longer needed. */
  void (*done)(void* user);
};

/** Makes a buffer on a device. `space`: memory space, or COLLET_NONE for the default one. After an error `done` is not
 * called. */
COLLET_API collet_status collet_buffer_from_host(collet_client* client, uint32_t device, uint32_t space,
                                                 const struct collet_host_array* array, collet_buffer** out_buffer,
                                                 struct collet_error* error);
/** Adds a reference. */
COLLET_API void collet_buffer_retain(collet_buffer* buffer);
/** Drops a reference; null does nothing. */
COLLET_API void collet_buffer_release(collet_buffer* buffer);
/** Returns the element type and dimensions. */
COLLET_API struct collet_array_type collet_buffer_type(const collet_buffer* buffer);
/** Returns the bytes of the dense data. */
COLLET_API uint64_t collet_buffer_bytes(const collet_buffer* buffer);
/** Returns the number of the buffer's device. */
COLLET_API uint32_t collet_buffer_device(const collet_buffer* buffer);
/** Returns the number of the buffer's memory space. */
COLLET_API uint32_t collet_buffer_space(const collet_buffer* buffer);
/** Returns a new reference to the event that comes when the buffer is ready or has failed. */
COLLET_API collet_event* collet_buffer_ready(collet_buffer* buffer);
/** Returns 1 if the buffer has been donated or deleted; every further use is an error. */
COLLET_API uint32_t collet_buffer_is_deleted(const collet_buffer* buffer);
/** Frees the buffer's memory as soon as running work allows, even if there are references to it. */
COLLET_API void collet_buffer_delete(collet_buffer* buffer);
/** Copies the buffer's data, dense and row-major, to `out`, which has `size` bytes (at least collet_buffer_bytes). With
 * `out_event` null it returns when done; else *out_event tells. */
COLLET_API collet_status collet_buffer_to_host(collet_buffer* buffer, void* out, uint64_t size,
                                               collet_event** out_event, struct collet_error* error);
/** Copies `bytes` bytes of the buffer's data, from `offset` on, as collet_buffer_to_host does. */
COLLET_API collet_status collet_buffer_to_host_range(collet_buffer* buffer, uint64_t offset, uint64_t bytes, void* out,
                                                     collet_event** out_event, struct collet_error* error);
/** Makes a copy of the buffer on another device or in another space (COLLET_NONE: the default one). */
COLLET_API collet_status collet_buffer_copy(collet_buffer* buffer, uint32_t device, uint32_t space,
                                            collet_buffer** out_buffer, struct collet_error* error);
/** Makes a buffer whose data comes later: collet_buffer_write and collet_buffer_fulfil provide it, collet_buffer_fail
 * reports that it never comes. Until then it can be used like any other buffer: work that uses it waits, without
 * delaying other work. If its last reference is released before that, it fails with COLLET_CANCELLED. */
COLLET_API collet_status collet_buffer_promise(collet_client* client, uint32_t device, uint32_t space,
                                               const struct collet_array_type* type, collet_buffer** out_buffer,
                                               struct collet_error* error);
/** Copies `bytes` of its dense row-major data, from `offset` on, into a promised buffer; returns when they are read. In
 * any order; from several threads for parts that do not overlap. FAILED_PRECONDITION once it was fulfilled or failed. */
COLLET_API collet_status collet_buffer_write(collet_buffer* buffer, uint64_t offset, uint64_t bytes, const void* data,
                                             struct collet_error* error);
/** Fulfils the promise. With `source` null, the data is what was written, and other parts are undefined. Otherwise it is
 * a copy of `source` (of the same client and type, on any device), made when that is ready; a failure of `source` is
 * passed on. */
COLLET_API collet_status collet_buffer_fulfil(collet_buffer* buffer, collet_buffer* source, struct collet_error* error);
/** Breaks the promise: all work that uses the buffer fails with this code, which is not COLLET_OK, and message. */
COLLET_API collet_status collet_buffer_fail(collet_buffer* buffer, collet_status code, const char* message,
                                            struct collet_error* error);
/** Returns the address at which the host may read the buffer's data once it is ready; null if the host cannot read it
 * directly, if the buffer has failed, or if there is no memory left for a result whose run has not started yet. */
COLLET_API const void* collet_buffer_host_pointer(collet_buffer* buffer);
/**@}*/

/** @name Execution */
/**@{*/

/** Options of collet_execute. */
struct collet_execute_options {
  uint32_t struct_size;
  uint32_t keep_donated;         /**< 1: arguments that the program donates are copied and stay alive */
  uint64_t run_id;               /**< the same for all processes of one run; 0: the library assigns a number */
  const uint32_t* non_donatable; /**< arguments that must stay alive although the program donates them */
  uint32_t non_donatable_count;
  uint32_t synchronous; /**< 1: return when the results are there */
  /** Null, or receives a new reference to an event that comes when the run has ended for all participants, with its
   * failure if it failed. Also for programs without results. Untouched when the call fails. */
  collet_event** out_done;
  /** 1: an argument may have other dimensions than the program's, if its elements have the same type and number. They are
   * taken in row-major order. */
  uint32_t reshape_arguments;
  uint32_t reserved;
};

/** Runs a program. `arguments[p * argument_count + i]` is argument i of participant p, on that participant's device;
 * `results[p * result_count + i]` receives new buffers. Donated arguments are deleted. When the call fails, `results` is
 * untouched and donated arguments are intact, unless a part of the program has run and overwritten one of them: then
 * they are deleted nevertheless. Devices without queues allocate the results of a run that waits when it starts: if there is
 * no memory left then, the results fail with COLLET_RESOURCE_EXHAUSTED, and donated arguments are gone. */
COLLET_API collet_status collet_execute(collet_executable* executable, const struct collet_execute_options* options,
                                        collet_buffer* const* arguments, collet_buffer** results,
                                        struct collet_error* error);
/**@}*/

/** @name Events */
/**@{*/
/** Adds a reference. */
COLLET_API void collet_event_retain(collet_event* event);
/** Drops a reference; null does nothing. */
COLLET_API void collet_event_release(collet_event* event);
/** Returns 1 if the event has come, with success or failure. */
COLLET_API uint32_t collet_event_is_ready(collet_event* event);
/** Blocks until the event has come, and returns its outcome. */
COLLET_API collet_status collet_event_wait(collet_event* event, struct collet_error* error);
/** Like collet_event_wait, but gives up after `timeout_ns` with COLLET_DEADLINE_EXCEEDED; the event may still come. */
COLLET_API collet_status collet_event_wait_for(collet_event* event, uint64_t timeout_ns, struct collet_error* error);
/** Calls `done` once when it has come: at once on this thread, or later on a thread of the library's, where it must not
 * block. The message lives during the call. */
COLLET_API void collet_event_on_ready(collet_event* event,
                                      void (*done)(void* user, collet_status status, const char* message), void* user);
/**@}*/

/** @name Tracing */
/**@{*/

/** Kinds of spans. */
enum {
  COLLET_SPAN_COMPILE = 1,    /**< collet_compile, or collet_executable_load */
  COLLET_SPAN_RUN = 2,        /**< an execution, on the thread that runs it; the spans of its parts lie within it */
  COLLET_SPAN_LAUNCH = 3,     /**< one call of a backend's execute; the name describes the launched program */
  COLLET_SPAN_COPY = 4,       /**< one call of a backend's copy */
  COLLET_SPAN_COLLECTIVE = 5, /**< a collective that the runtime computes itself */
  COLLET_SPAN_HOST_CALL = 6,  /**< a call of a function of the embedder */
  COLLET_SPAN_DEVICE = 7 /**< something that a device recorded; reported when the listener or its client is removed */
};

/** An interval of time. The struct lives during the call that hands it out. */
struct collet_span {
  uint32_t struct_size;
  uint32_t kind; /**< COLLET_SPAN_* */
  const char* name;
  uint64_t start_ns; /**< start, in nanoseconds since 1970 by the system's clock */
  uint64_t duration_ns;
  uint64_t thread;      /**< the system's number of the thread */
  uint64_t run_id;      /**< run_id of the execution; 0: of none */
  uint64_t bytes;       /**< bytes copied; 0: not a copy */
  uint32_t device;      /**< COLLET_NONE: not of one device */
  uint32_t on_fallback; /**< 1: the fallback did it */
  const char* engine;   /**< of COLLET_SPAN_DEVICE: the part of the device that it ran on; else null */
};
/** Called at each span's end, on the thread on which it ended; it must not block, nor call the library. */
typedef void (*collet_trace_fn)(void* user, const struct collet_span* span);
/** Registers `listener` for all spans of this process that begin from now on; null unregisters it. There is one listener:
 * a later call replaces the earlier one. When it returns, an earlier listener is not called again. While a listener is
 * registered, devices of backends with the table "profile" record what they do; the earlier listener gets what they
 * recorded for it before the call returns. */
COLLET_API void collet_trace(collet_trace_fn listener, void* user);
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
