/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_RANGES_H
#define COLLET_RANGES_H

/** \file
 * The check that copy and execute owe (backend.h): is what a place or argument names inside its buffer? C11, nothing to link.
 */

#include <stdint.h>

/** 1 where something of `size` bytes has `bytes` bytes from `offset` on, whatever the numbers are; else 0. */
static inline int collet_has_range(uint64_t size, uint64_t offset, uint64_t bytes) {
  return offset <= size && bytes <= size - offset;
}

#endif
