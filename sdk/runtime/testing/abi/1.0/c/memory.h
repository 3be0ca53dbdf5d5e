/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ACME_MEMORY_H
#define ACME_MEMORY_H

#include <collet/backend.h>

/* The device's memory. This one is a stand-in made of host memory: replace the bodies in memory.c by calls of your driver.
 * A buffer's handle is the name of a slot, not an address; names of freed buffers are recognised. */

/* 0 where there is no room. */
collet_backend_buffer* acme_memory_new(uint64_t bytes, uint64_t alignment);
void acme_memory_free(collet_backend_buffer* buffer);

/* Where `bytes` bytes of a buffer lie, from `offset` on; null if they are not all inside it. For copies and kernels alone. */
void* acme_memory_at(collet_backend_buffer* buffer, uint64_t offset, uint64_t bytes);

/* Fills in an error and returns its code. */
collet_status acme_fail(struct collet_error* error, collet_status code, const char* message);

#endif
