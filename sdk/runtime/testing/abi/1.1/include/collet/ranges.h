/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_RANGES_H
#define COLLET_RANGES_H

/** \file
 * The check of bounds that copy and execute must make (backend.h): is a place or an argument inside its buffer? C11,
 * nothing to link.
 */

#include <stdint.h>

/** Returns 1 if something of `size` bytes has `bytes` bytes from `offset` on, else 0. No sum overflows. */
static inline int collet_has_range(uint64_t size, uint64_t offset, uint64_t bytes) {
  return offset <= size && bytes <= size - offset;
}

#endif
