/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TYPES_H
#define COLLET_TYPES_H

/** \file
 * Values, enumerations and errors that both sides of the ABI boundary share. C11, no dependency.
 *
 * Every enumeration is stored in fixed-width integers and only grows at its end. `struct_size` stands first in each struct
 * that may grow; whoever fills such a struct writes the size it was compiled with, and a reader uses no more than that.
 */

#include <stddef.h>
#include <stdint.h>

/** Major version of the ABI: both sides must have the same. */
#define COLLET_ABI_MAJOR 1u
/** Minor version: sides may differ; structs have grown at their ends, and a backend is held to a sentence marked "since minor
 * version N" only if the minor version that its table states is at least N. */
#define COLLET_ABI_MINOR 1u
/** The opset that these headers describe: the newest `since` in ops.def, types.def and attributes.def. */
#define COLLET_OPSET 1u
/** "None" for an index, an id or an offset of 32 bits. */
#define COLLET_NONE UINT32_MAX
/** "None" for an offset of 64 bits. */
#define COLLET_NONE64 UINT64_MAX

/** Result of every call that can fail: 0, or why not. The numbers are those of gRPC, Abseil and PJRT. */
typedef int32_t collet_status;

enum {
  COLLET_OK = 0,
  COLLET_CANCELLED = 1,           /**< The caller asked for it. */
  COLLET_UNKNOWN = 2,             /**< A failure that says no more. */
  COLLET_INVALID_ARGUMENT = 3,    /**< What was passed is wrong, whatever the state. */
  COLLET_DEADLINE_EXCEEDED = 4,   /**< It took too long. */
  COLLET_NOT_FOUND = 5,           /**< No such file, device, table or symbol. */
  COLLET_ALREADY_EXISTS = 6,      /**< The name is taken. */
  COLLET_PERMISSION_DENIED = 7,   /**< The system refused. */
  COLLET_RESOURCE_EXHAUSTED = 8,  /**< Out of memory or of another resource; may work later or smaller. */
  COLLET_FAILED_PRECONDITION = 9, /**< Right call, wrong state. */
  COLLET_ABORTED = 10,            /**< Given up half way; nothing was changed. */
  COLLET_OUT_OF_RANGE = 11,       /**< An index or offset beyond the end. */
  COLLET_UNIMPLEMENTED = 12,      /**< A feature that is not there; the runtime falls back. */
  COLLET_INTERNAL = 13,           /**< A defect on the side that reports it. */
  COLLET_UNAVAILABLE = 14,        /**< The device is lost; sticky. */
  COLLET_DATA_LOSS = 15           /**< Data is damaged. */
};

/** Where a message goes: owned by the caller, filled by the callee, never freed, usable when out of memory.
 * Only written on failure. `message` is UTF-8, ended by a zero byte, cut at a character boundary where too long. */
struct collet_error {
  collet_status code;
  uint32_t reserved; /**< zero */
  char message[504];
};

/** Element types: COLLET_TYPE_F32 and so on, with the numbers of types.def. */
enum {
  COLLET_TYPE_INVALID = 0,
#define COLLET_TYPE(NAME, text, value, bits, kind, since) COLLET_TYPE_##NAME = value,
#include "types.def"
  COLLET_TYPE_LIMIT = 64 /**< all type numbers lie below */
};

/** Kinds of element types. */
enum {
  COLLET_KIND_PRED = 0,
  COLLET_KIND_SIGNED = 1,
  COLLET_KIND_UNSIGNED = 2,
  COLLET_KIND_FLOAT = 3,
  COLLET_KIND_COMPLEX = 4,
  COLLET_KIND_OPAQUE = 5
};

/** Opcodes: COLLET_OP_ADD and so on, with the numbers of ops.def. */
enum {
  COLLET_OP_INVALID = 0,
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  COLLET_OP_##NAME = id,
#include "ops.def"
  COLLET_OP_LIMIT = 256 /**< all opcodes lie below */
};

/** Classes of ops: see ops.def. */
enum {
  COLLET_CLASS_CORE = 0,
  COLLET_CLASS_EXACT = 1,
  COLLET_CLASS_MATH = 2,
  COLLET_CLASS_STRUCTURED = 3,
  COLLET_CLASS_EXECUTOR = 4,
  COLLET_CLASS_COMMUNICATION = 5
};

/** Traits of ops: bits of the `traits` column. */
enum {
  COLLET_OP_COMMUTES = 1,
  COLLET_OP_BINARY = 2,
  COLLET_OP_ELEMENTWISE = 4,
  COLLET_OP_MOVES = 8,
  COLLET_OP_SIDE_EFFECT = 16,
  COLLET_OP_SHAPED = 32,
  COLLET_OP_INDEXED = 64
};

/** Bytes of one element of `type` at the ABI boundary (sub-byte types: 1; token and opaque: 0). Unknown types: 0. */
static inline uint32_t collet_type_bytes(uint32_t type) {
  switch (type) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  case value:                                             \
    return ((bits) + 7) / 8;
#include "types.def"
    default:
      return 0;
  }
}

/** Spelling of `type` in HLO text; "?" for an unknown number. Static storage. */
static inline const char* collet_type_name(uint32_t type) {
  switch (type) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  case value:                                             \
    return text;
#include "types.def"
    default:
      return "?";
  }
}

/** One of COLLET_KIND_*, or COLLET_KIND_OPAQUE for an unknown number. */
static inline uint32_t collet_type_kind(uint32_t type) {
  switch (type) {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  case value:                                             \
    return COLLET_KIND_##kind;
#include "types.def"
    default:
      return COLLET_KIND_OPAQUE;
  }
}

/** Spelling of `opcode` in HLO text; "?" for an unknown number. Static storage. */
static inline const char* collet_op_name(uint32_t opcode) {
  switch (opcode) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case id:                                                                                             \
    return text;
#include "ops.def"
    default:
      return "?";
  }
}

/** Traits of `opcode`, bits of COLLET_OP_COMMUTES and so on; 0 for an unknown number. */
static inline uint32_t collet_op_traits(uint32_t opcode) {
  switch (opcode) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case id:                                                                                             \
    return traits;
#include "ops.def"
    default:
      return 0;
  }
}

#endif
