/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_PROCESSES_H
#define COLLET_PROCESSES_H

/** \file
 * How the clients of several processes work together: the store through which they find each other, and the transport
 * that carries data between them. Included by embedders that call collet_client_join, and by transports. C11.
 *
 * A transport is a shared library that exports COLLET_TRANSPORT_ENTRY. It moves messages of host memory between two
 * processes; the runtime makes collectives of them, for every backend. Collet has one over Gloo.
 */

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A key-value store that all processes of a group share. Keys are zero-terminated text, values are bytes. The functions
 * may be called from any thread, and throw nothing. */
struct collet_store {
  uint32_t struct_size;
  uint32_t reserved; /**< zero */
  void* user;
  /** Stores a value. COLLET_ALREADY_EXISTS if the key has one. */
  collet_status (*put)(void* user, const char* key, const void* value, uint64_t bytes, struct collet_error* error);
  /** Waits until the key has a value, at most `timeout_ms`, and calls `take` with it once. COLLET_DEADLINE_EXCEEDED
   * if there is none by then. */
  collet_status (*get)(void* user, const char* key, uint32_t timeout_ms,
                       void (*take)(void* out, const void* value, uint64_t bytes), void* out,
                       struct collet_error* error);
};

/** A group of processes, as one of them sees it. */
struct collet_processes {
  uint32_t struct_size;
  uint32_t rank; /**< number of this process, below `size` */
  uint32_t size; /**< number of processes */
  /** Longest wait for another process, in milliseconds. 0: COLLET_EXCHANGE_TIMEOUT, in seconds, else 300 seconds. */
  uint32_t timeout_ms;
  const struct collet_store* store; /**< lives during the call of collet_client_join */
  /** Name of a transport ("gloo") or path of its library. Null: COLLET_TRANSPORT, else "gloo". */
  const char* transport;
  /** Host name, address or name of the network interface at which this process is reached. Null: COLLET_TRANSPORT_ADDRESS,
   * else the loopback if all processes are on one host, else the address of the host's name. */
  const char* address;
};

/** One message between this process and another one. */
struct collet_message {
  uint32_t process;  /**< the other one */
  uint32_t reserved; /**< zero */
  uint64_t tag;      /**< a message that is sent meets the one that is received with the same tag */
  void* data;        /**< host memory; only read if the message is sent */
  uint64_t bytes;    /**< at least 1; equal in both processes */
};

/** How a transport is opened. */
struct collet_transport_options {
  uint32_t struct_size;
  uint32_t rank, size;
  uint32_t timeout_ms;              /**< longest wait for another process */
  const struct collet_store* store; /**< lives during the call */
  const char* prefix;               /**< prefix of keys that no other user of the store has */
  const char* address;              /**< see collet_processes; never null */
};

/** The functions of a transport. Any thread may call them, several at once. They throw nothing. */
struct collet_transport {
  uint32_t struct_size;
  uint32_t version; /**< 1 */
  /** Connects this process with all others; all call it. */
  collet_status (*open)(const struct collet_transport_options* options, void** out_transport,
                        struct collet_error* error);
  /** Closes all connections; no other call is running. Other processes that wait for this one get an error. */
  void (*close)(void* transport);
  /** Sends and receives messages, and returns when all have been moved. No receive waits for a send. When message
   * `index` has been received, in their order, it calls `received`; if that does not return 0, the function gives up what
   * has not been moved and returns COLLET_CANCELLED. If another process is lost it returns COLLET_UNAVAILABLE, and after
   * `timeout_ms` COLLET_DEADLINE_EXCEEDED; `*out_process` is then the process that it waited for. While it waits,
   * another thread may read there for whom, so it is written by atomic stores. After
   * COLLET_DEADLINE_EXCEEDED what was received from others until then is in its place, and the transport may refuse all further
   * messages, and end other calls. */
  collet_status (*exchange)(void* transport, const struct collet_message* sends, uint32_t send_count,
                            const struct collet_message* receives, uint32_t receive_count, uint32_t timeout_ms,
                            int32_t (*received)(void* user, uint32_t index), void* user, uint32_t* out_process,
                            struct collet_error* error);
  /** Sends a message of which the transport makes a copy, and does not wait. The copy is kept until `close`. COLLET_UNAVAILABLE if it is
   * known that the other process is lost. */
  collet_status (*post)(void* transport, const struct collet_message* message, struct collet_error* error);
  /** Tells all other processes that this one gives up, and why, without waiting for them: `close` follows soon. Where a call of theirs fails
   * because this process has closed, the error has the text. May be null; a table without it may end before it. */
  void (*leave)(void* transport, const char* why);
};

/** The symbol that a transport's library exports, and its type. */
#define COLLET_TRANSPORT_ENTRY "collet_transport_entry"
typedef const struct collet_transport* (*collet_transport_entry_fn)(void);

/** Collectives that a transport may have of its own. Collet makes its collectives of messages; these are measured beside them. */
enum {
  COLLET_OWN_ALL_REDUCE = 0,     /**< `in` and `out` have `elements`; a sum */
  COLLET_OWN_ALL_GATHER = 1,     /**< `in` has elements / size, `out` has `elements` */
  COLLET_OWN_REDUCE_SCATTER = 2, /**< `in` has `elements`, `out` has elements / size; a sum */
  COLLET_OWN_ALL_TO_ALL = 3,     /**< both have `elements`, of which each process gets one of `size` equal parts */
  COLLET_OWN_PERMUTE = 4,        /**< both have `elements`; process r sends to (r + 1) % size */
  COLLET_OWN_BROADCAST = 5       /**< both have `elements`; process 0 sends */
};

/** One call of a collective of a transport's own, over f32 arrays in host memory. All processes make the same calls. */
struct collet_own_collective {
  uint32_t struct_size;
  uint32_t kind; /**< COLLET_OWN_* */
  const float* in;
  float* out;          /**< another array than `in` */
  uint64_t elements;   /**< of the larger of the two, a multiple of the number of processes */
  uint32_t timeout_ms; /**< longest wait for another process */
  uint32_t reserved;   /**< zero */
};

/** A symbol that a transport's library may export, and its type: runs one collective on a transport that `open` has returned, on which
 * no other call is running. COLLET_UNIMPLEMENTED for a kind that the transport lacks. `collet bench --collectives` measures it. */
#define COLLET_TRANSPORT_COLLECTIVE "collet_transport_collective"
typedef collet_status (*collet_transport_collective_fn)(void* transport, const struct collet_own_collective* call,
                                                        struct collet_error* error);

/** A symbol that a transport's library may export, and its type: finds the store, number and count of the processes that a
 * launcher has started, for a tool that no frontend has told. It waits at most `timeout_ms` for the others, unless the launcher's own
 * functions wait without a limit. The store lives until the process ends. */
#define COLLET_TRANSPORT_LAUNCHED "collet_transport_launched"
typedef collet_status (*collet_transport_launched_fn)(uint32_t timeout_ms, uint32_t* out_rank, uint32_t* out_size,
                                                      const struct collet_store** out_store,
                                                      struct collet_error* error);

#ifdef __cplusplus
}
#endif

#endif
