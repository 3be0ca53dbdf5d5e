/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_ERROR_H
#define COLLET_ERROR_H

/** \file
 * Fills the error of a function that fails, as types.h demands. C11, nothing to link.
 */

#include <stddef.h>
#include <string.h>

#include "types.h"

/** Copies the zero-terminated string `from` to `to`, which has `capacity` bytes (at least one). A longer string is truncated
 * between two UTF-8 characters. The bytes after the string are set to zero. */
static inline void collet_copy_text(char* to, size_t capacity, const char* from) {
  size_t size = strlen(from);
  if (size >= capacity) {
    size = capacity - 1;
    while (size > 0 && ((unsigned char)from[size] & 0xC0) == 0x80) --size;
  }
  memcpy(to, from, size);
  memset(to + size, 0, capacity - size);
}

/** Stores `code` and `message` in `error`, which must not be null, and returns `code`. */
static inline collet_status collet_set_error(struct collet_error* error, collet_status code, const char* message) {
  error->code = code;
  error->reserved = 0;
  collet_copy_text(error->message, sizeof error->message, message);
  return code;
}

#endif
