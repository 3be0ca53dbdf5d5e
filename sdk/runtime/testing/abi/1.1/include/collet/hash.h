/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_HASH_H
#define COLLET_HASH_H

/** \file
 * The hash of 64 bits that tables, caches and checksums use. It tells damage, not forgery. C11, nothing to link.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Returns the hash of what `hash` stands for, followed by `number`. Different numbers give different results. */
static inline uint64_t collet_hash_number(uint64_t hash, uint64_t number) {
  hash = (hash ^ number) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

/** Returns the hash of what `hash` stands for (0: nothing), followed by `size` bytes. It depends on the byte order of the machine. */
static inline uint64_t collet_hash_bytes(uint64_t hash, const void* bytes, size_t size) {
  const char* from = (const char*)bytes;
  uint64_t word;
  hash = collet_hash_number(hash, size);
  for (; size >= sizeof word; from += sizeof word, size -= sizeof word) {
    memcpy(&word, from, sizeof word);
    hash = collet_hash_number(hash, word);
  }
  if (size > 0) {
    word = 0;
    memcpy(&word, from, size);
    hash = collet_hash_number(hash, word);
  }
  return hash;
}

#endif
