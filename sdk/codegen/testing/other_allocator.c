/* SPDX-License-Identifier: Apache-2.0
 * An allocator that a test puts before the C library's by LD_PRELOAD, as processes do with jemalloc. What it returns is no memory that the
 * C library's free takes. The original address and the size stand before each piece. */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>

void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* memalign(size_t alignment, size_t bytes) {
  if (alignment < 16) alignment = 16;
  if (bytes > (size_t)-1 - alignment) return NULL;
  char* const all = __libc_memalign(alignment, bytes + alignment);
  if (all == NULL) return NULL;
  void** const out = (void**)(all + alignment);
  out[-1] = all;
  ((size_t*)out)[-2] = bytes;
  return out;
}

void* malloc(size_t bytes) {
  return memalign(16, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

void free(void* memory) {
  if (memory != NULL) __libc_free(((void**)memory)[-1]);
}

size_t malloc_usable_size(void* memory) {
  return memory == NULL ? 0 : ((const size_t*)memory)[-2];
}

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}

void* calloc(size_t count, size_t bytes) {
  if (bytes != 0 && count > (size_t)-1 / bytes) return NULL;
  void* const out = malloc(count * bytes);
  return out ? memset(out, 0, count * bytes) : NULL;
}

void* realloc(void* memory, size_t bytes) {
  const size_t had = malloc_usable_size(memory);
  void* const out = malloc(bytes);
  if (out == NULL || memory == NULL) return out;
  memcpy(out, memory, had < bytes ? had : bytes);
  free(memory);
  return out;
}
