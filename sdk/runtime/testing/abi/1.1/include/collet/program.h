/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_PROGRAM_H
#define COLLET_PROGRAM_H

/** \file
 * The program view: what a backend is asked about and compiles.
 *
 * A program is one block of `total_bytes` bytes, 8-byte aligned, little-endian, without a pointer in it: it may be copied,
 * stored and sent to another process. It begins with struct collet_program, whose arrays say by offset from the block's
 * start where their elements are. Elements of arrays never change size; attribute records may grow (their size stands
 * with the op). Nothing needs to be linked to read it: the functions below are static inline.
 *
 * Reading a program is three nested loops:
 *
 *     const struct collet_region* entry = collet_region_at(p, 0);
 *     for (uint32_t i = 0; i < entry->ops.count; ++i) {
 *       const struct collet_op* op = collet_op_at(p, entry->ops.first + i);
 *       for (uint32_t j = 0; j < op->operands.count; ++j) use(collet_operand(p, op, j));
 *       for (uint32_t j = 0; j < op->results.count; ++j) define(op->results.first + j);
 *     }
 *
 * Every program has these properties: no tuples, static shapes, dense row-major arrays (but see "layout" of tables.h), regions that
 * see nothing but their own arguments, operands defined before their use, and a schedule: the order of a region's ops.
 *
 * A bounded dynamic dimension (f32[<=8]) never comes here. The SDK makes a padded array of the bound's size of it and,
 * for each such dimension, a scalar of s32 that says how much is in use; ops that would see the padding get it masked
 * first, by iota, compare and select. A backend needs to do nothing for them. At the program's border an argument fills
 * its bound, and a result is zero outside of its size.
 */

#include <string.h>

#include "attributes.h"

#define COLLET_PROGRAM_MAGIC UINT32_C(0x50544c43) /**< "CLTP" */

/** The place of an array of the program. `stride` is the element's size, frozen for each array. */
struct collet_array {
  uint64_t offset; /**< from the start of the block; a multiple of 8 */
  uint32_t count;
  uint32_t stride; /**< bytes */
};

/** The head of a program. */
struct collet_program {
  uint32_t magic;       /**< COLLET_PROGRAM_MAGIC */
  uint32_t struct_size; /**< bytes of this head */
  uint64_t total_bytes; /**< of the whole block */
  uint32_t opset;       /**< opset that the program was written with */
  uint32_t flags;       /**< zero */

  struct collet_array types;     /**< struct collet_type */
  struct collet_array values;    /**< struct collet_value */
  struct collet_array ops;       /**< struct collet_op */
  struct collet_array regions;   /**< struct collet_region; number 0 is the entry */
  struct collet_array constants; /**< struct collet_constant */
  struct collet_array aliases;   /**< struct collet_alias */
  struct collet_array refs;      /**< uint32_t: value ids, for operands and results of regions */
  struct collet_array integers;  /**< int64_t: shapes and lists of attributes */
  struct collet_array records;   /**< uint8_t: attribute records, each 8-byte aligned */
  struct collet_array bytes;     /**< uint8_t: strings, not zero-ended */
  struct collet_array data;      /**< uint8_t: inline constants, each 64-byte aligned from the start of the array */

  struct collet_range name; /**< bytes: the module's name */
  uint64_t arena_bytes;     /**< advice: with each value at its `offset`, this much memory holds all intermediates */
  uint32_t arena_alignment; /**< of the arena and of each offset */
  uint32_t replica_count;   /**< at least 1 */
  uint32_t partition_count; /**< at least 1 */
  uint32_t reserved[3];     /**< zero */
};

/** An array type. */
struct collet_type {
  uint32_t element; /**< COLLET_TYPE_* */
  uint32_t layout;  /**< 0: dense, row-major. Anything else must be refused unless the layout table was agreed. */
  struct collet_range dims; /**< integers, outermost first; count is the rank */
  uint64_t elements;        /**< product of the dimensions */
  uint64_t bytes;           /**< elements * collet_type_bytes(element) */
  uint64_t reserved;        /**< zero */
};

/** Kinds of values. */
enum {
  COLLET_VALUE_ARGUMENT = 1, /**< defined by its region */
  COLLET_VALUE_CONSTANT = 2, /**< an entry argument that always holds the same data: see struct collet_constant */
  COLLET_VALUE_SCALAR = 4    /**< an entry argument of at most 16 bytes that may come by value in the launch */
};

/** A value: an argument of a region or a result of an op. */
struct collet_value {
  uint32_t type;            /**< index in types */
  uint32_t flags;           /**< COLLET_VALUE_* */
  uint32_t definition;      /**< index of the op, or of the region for an argument */
  uint32_t index;           /**< which of its results or arguments */
  struct collet_range name; /**< bytes */
  uint64_t offset;          /**< advice: place in the arena; COLLET_NONE64 for entry arguments and results */
  uint64_t reserved;        /**< zero */
};

/** An op. */
struct collet_op {
  uint32_t opcode;              /**< COLLET_OP_* */
  uint32_t flags;               /**< zero */
  struct collet_range operands; /**< refs */
  struct collet_range results;  /**< values, consecutive */
  struct collet_range regions;  /**< regions, consecutive */
  uint32_t record;              /**< byte offset of the attribute record in records */
  uint32_t record_bytes;        /**< its size; 0 for none */
  struct collet_range name;     /**< bytes: the instruction's name, for messages */
  uint32_t since;               /**< smallest opset that means all that this op says */
  uint32_t reserved;            /**< zero */
};

/** Operations of a region that combines two scalars, so that nobody needs to match patterns. */
enum {
  COLLET_COMBINE_OTHER = 0, /**< walk the region */
  COLLET_COMBINE_ADD = 1,   /**< commutative in its two arguments, as are all up to XOR */
  COLLET_COMBINE_MULTIPLY = 2,
  COLLET_COMBINE_MINIMUM = 3,
  COLLET_COMBINE_MAXIMUM = 4,
  COLLET_COMBINE_AND = 5,
  COLLET_COMBINE_OR = 6,
  COLLET_COMBINE_XOR = 7,
  COLLET_COMBINE_FIRST = 8,   /**< the first argument: keep */
  COLLET_COMBINE_SECOND = 9,  /**< the second argument: assign */
  COLLET_COMBINE_LESS = 10,   /**< comparator of sort: first < second on its first pair, by the ops own compare type */
  COLLET_COMBINE_GREATER = 11 /**< comparator of sort: first > second on its first pair */
};

/** A region: a computation that an op calls, or the entry. Its ops follow one another in ops. */
struct collet_region {
  struct collet_range ops;       /**< ops, in the order of the schedule */
  struct collet_range arguments; /**< values, consecutive */
  struct collet_range results;   /**< refs */
  uint32_t op;                   /**< the op that calls it; COLLET_NONE for the entry */
  uint32_t combine;              /**< COLLET_COMBINE_* */
  struct collet_range name;      /**< bytes */
  uint64_t reserved;             /**< zero */
};

/** Data of a constant op (inline), or of an entry argument that is constant (then `bytes` lie elsewhere). */
struct collet_constant {
  uint32_t type;          /**< index in types */
  uint32_t argument;      /**< COLLET_NONE: inline at `offset`; else the entry argument through which it comes */
  uint64_t offset;        /**< in data; COLLET_NONE64 when it comes as an argument */
  uint64_t bytes;         /**< of the data */
  uint64_t content_id[2]; /**< half of the SHA-256 of the data: equal ids mean equal data */
};

/** How an entry result shares memory with an entry argument. */
enum {
  COLLET_ALIAS_MAY = 0, /**< the launch decides: the buffers are identical or disjoint, never partly overlapping */
  COLLET_ALIAS_MUST = 1 /**< the launch passes the same buffer for both */
};

/** A pair of an entry result and the entry argument whose buffer it may or must take over. */
struct collet_alias {
  uint32_t result;
  uint32_t argument;
  uint32_t kind;     /**< COLLET_ALIAS_* */
  uint32_t reserved; /**< zero */
};

/** Element `i` of array `a`. */
static inline const void* collet_array_at(const struct collet_program* p, struct collet_array a, uint32_t i) {
  return (const char*)p + a.offset + (uint64_t)i * a.stride;
}
/** Type number `i`. */
static inline const struct collet_type* collet_type_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_type*)collet_array_at(p, p->types, i);
}
/** Value number `i`. */
static inline const struct collet_value* collet_value_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_value*)collet_array_at(p, p->values, i);
}
/** Op number `i`. */
static inline const struct collet_op* collet_op_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_op*)collet_array_at(p, p->ops, i);
}
/** Region number `i`; 0 is the entry. */
static inline const struct collet_region* collet_region_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_region*)collet_array_at(p, p->regions, i);
}
/** Constant number `i`. */
static inline const struct collet_constant* collet_constant_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_constant*)collet_array_at(p, p->constants, i);
}
/** Alias number `i`. */
static inline const struct collet_alias* collet_alias_at(const struct collet_program* p, uint32_t i) {
  return (const struct collet_alias*)collet_array_at(p, p->aliases, i);
}
/** Value id number `i` of the refs. */
static inline uint32_t collet_ref_at(const struct collet_program* p, uint32_t i) {
  return *(const uint32_t*)collet_array_at(p, p->refs, i);
}
/** The integers of `r`; r.count of them. */
static inline const int64_t* collet_integers(const struct collet_program* p, struct collet_range r) {
  return (const int64_t*)collet_array_at(p, p->integers, r.first);
}
/** The characters of `r`; r.count of them, not zero-ended. */
static inline const char* collet_string(const struct collet_program* p, struct collet_range r) {
  return (const char*)collet_array_at(p, p->bytes, r.first);
}
/** Value id of operand `i` of `op`. */
static inline uint32_t collet_operand(const struct collet_program* p, const struct collet_op* op, uint32_t i) {
  return collet_ref_at(p, op->operands.first + i);
}
/** Type of the value with id `value`. */
static inline const struct collet_type* collet_value_type(const struct collet_program* p, uint32_t value) {
  return collet_type_at(p, collet_value_at(p, value)->type);
}
/** Data of an inline constant, 64-byte aligned if the block is; null if it comes as an argument. */
static inline const void* collet_constant_data(const struct collet_program* p, const struct collet_constant* c) {
  return c->argument == COLLET_NONE ? (const char*)p + p->data.offset + c->offset : NULL;
}
/** Copies the attribute record of `op` to `out`, a struct of `bytes` bytes; what the program lacks becomes zero. */
static inline void collet_read_attributes(const struct collet_program* p, const struct collet_op* op, void* out,
                                          size_t bytes) {
  size_t n = op->record_bytes < bytes ? op->record_bytes : bytes;
  memset(out, 0, bytes);
  if (n) memcpy(out, (const char*)p + p->records.offset + op->record, n);
}

#endif
