/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TRANSFERS_H
#define COLLET_TRANSFERS_H

/** \file
 * Copies of arrays between devices of several processes, without a program. Included by embedders. C11.
 *
 * One process sends and the other one receives with the same transfer. All processes have joined each other before, see
 * collet_client_join, and number the devices of all of them as described there.
 */

#include "collet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One array on its way from a device of one process to a device of another one. */
struct collet_transfer {
  uint64_t key;  /**< equal in both processes; no two transfers from `from` to `to` that are under way have the same */
  uint32_t from; /**< a device, numbered over all processes */
  uint32_t to;   /**< likewise; of another process than `from` */
};

/** Sends buffers, each from its device in this process, and returns at once. The two processes may list the arrays of a call in other
 * orders, and split them among calls in other ways. `out_events`: null, or gets an event of each: the
 * other process has the array. A buffer that fails makes the received one fail. The data may be deleted or donated afterwards:
 * they stay until they are sent.
 *
 * An event fails with COLLET_FAILED_PRECONDITION if the other process receives another type, with COLLET_DEADLINE_EXCEEDED if it
 * receives nothing within the limit of the processes, and with COLLET_UNAVAILABLE if it is lost. */
COLLET_API collet_status collet_buffers_send(collet_client* client, uint32_t count, collet_buffer* const* buffers,
                                             const struct collet_transfer* transfers, collet_event** out_events,
                                             struct collet_error* error);

/** Receives arrays of these types into the space of devices of this process (COLLET_NONE: the default one), and returns at once.
 * The buffers can be used like promised ones (collet_buffer_promise), and fail as the events of collet_buffers_send do, or
 * with the failure of the buffer that is sent. */
COLLET_API collet_status collet_buffers_receive(collet_client* client, uint32_t space, uint32_t count,
                                                const struct collet_array_type* types,
                                                const struct collet_transfer* transfers, collet_buffer** out_buffers,
                                                struct collet_error* error);

#ifdef __cplusplus
}
#endif

#endif
