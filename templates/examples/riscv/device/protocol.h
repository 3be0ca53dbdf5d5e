/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RISCV_PROTOCOL_H
#define RISCV_PROTOCOL_H

/* The data that the backend and the device process share: a file with this struct, followed by the device's memory. C11
 * and C++. */

#include <stdint.h>

/* Functions of the device that code may call. */
/* clang-format off */
#define RISCV_FUNCTIONS(F)                              \
  F(memcpy) F(memset) F(memmove)                        \
  F(fma) F(fmod) F(floor) F(ceil) F(rint) F(round) F(trunc) \
  F(fmaf) F(fmodf) F(floorf) F(ceilf) F(rintf) F(roundf) F(truncf)
/* clang-format on */

enum RiscvSizes {
  RISCV_PAGE = 4096,
  RISCV_RING = 1 << 17, /* words */
  RISCV_MOST_FUNCTIONS = 32
};

/* A command is a row of words in the ring, not across its end. The first is its code and, from bit 8, how many words it has. */
enum RiscvCode {
  RISCV_SKIP = 1, /* to the end of the ring */
  RISCV_WRITE,    /* address, bytes, data */
  RISCV_COPY,     /* to, from, bytes */
  RISCV_FLUSH,    /* address, bytes: code was written there */
  RISCV_LAUNCH    /* function, slots */
};

/* Positions count the words of the ring since the start: a command is done when `done` has reached its end. A side that
 * is about to sleep sets its flag and then checks the positions once more. The other side, after it has advanced its
 * position, clears the flag and sends a byte. */
struct RiscvControl {
  uint64_t memory_bytes, code_bytes; /* the backend says */
  uint64_t memory, code;             /* the device says: addresses */
  uint64_t functions[RISCV_MOST_FUNCTIONS];
  uint32_t is_ready; /* the size of this struct, when all this is there */
  uint32_t host_sleeps, device_sleeps;
  uint64_t submitted, done;
  uint64_t ring[RISCV_RING];
};

/* Size of the struct in bytes, rounded up to pages; the device's memory follows. */
#define RISCV_CONTROL_BYTES ((sizeof(struct RiscvControl) + RISCV_PAGE - 1) / RISCV_PAGE * RISCV_PAGE)

#endif
