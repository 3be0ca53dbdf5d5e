/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

enum { SLOTS = 1 << 16 };

struct slot {
  char* data;
  uint64_t bytes;
  uint32_t generation; /* counts the slot's lives */
  uint32_t next;       /* of the unused ones: number + 1 of the next */
};

static struct slot slots[SLOTS];
static uint32_t unused; /* number + 1 of the first slot that was freed */
static uint32_t used;   /* slots that were ever taken */
static mtx_t mutex;
static once_flag once = ONCE_FLAG_INIT;

static void make_mutex(void) {
  mtx_init(&mutex, mtx_plain);
}

static void lock(void) {
  call_once(&once, make_mutex);
  mtx_lock(&mutex);
}

collet_status acme_fail(struct collet_error* error, collet_status code, const char* message) {
  error->code = code;
  error->reserved = 0;
  snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

/* The slot of a handle, or null for a name that is not, or no longer, in use. */
static struct slot* find(collet_backend_buffer* buffer) {
  uint64_t name = (uint64_t)(uintptr_t)buffer;
  uint32_t number = (uint32_t)name - 1;
  if (number >= used || !slots[number].data || slots[number].generation != (uint32_t)(name >> 32)) return NULL;
  return &slots[number];
}

collet_backend_buffer* acme_memory_new(uint64_t bytes, uint64_t alignment) {
  if (bytes > UINT64_MAX - alignment) return NULL;
  char* data = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data) return NULL;
  uint64_t name = 0;
  lock();
  if (unused || used < SLOTS) {
    uint32_t number = unused ? unused - 1 : used++;
    struct slot* slot = &slots[number];
    unused = slot->next;
    slot->next = 0;
    slot->data = data;
    slot->bytes = bytes;
    name = (uint64_t)slot->generation << 32 | (number + 1);
  }
  mtx_unlock(&mutex);
  if (!name) free(data);
  return (collet_backend_buffer*)(uintptr_t)name;
}

void acme_memory_free(collet_backend_buffer* buffer) {
  lock();
  struct slot* slot = find(buffer);
  if (slot) {
    free(slot->data);
    slot->data = NULL;
    ++slot->generation;
    slot->next = unused;
    unused = (uint32_t)(slot - slots) + 1;
  }
  mtx_unlock(&mutex);
}

void* acme_memory_at(collet_backend_buffer* buffer, uint64_t offset, uint64_t bytes) {
  lock();
  struct slot* slot = find(buffer);
  void* at = NULL;
  if (slot && offset <= slot->bytes && bytes <= slot->bytes - offset) at = slot->data + offset;
  mtx_unlock(&mutex);
  return at;
}
