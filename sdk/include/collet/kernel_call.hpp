/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_CALL_HPP
#define COLLET_KERNEL_CALL_HPP

/** \file
 * What a kernel sees: a device, an op, and the arrays that it reads and writes. First of the headers for backends that are a
 * table of kernels; kernel_backend.hpp is the one to include.
 */

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "program.h"

namespace collet {
/** Backends that are a table of kernels. */
namespace kernel {

/** What a backend's own code throws. At the joint it becomes a status and a message. */
class Error : public std::runtime_error {
 public:
  /** `code` is one of COLLET_*, not COLLET_OK. */
  Error(collet_status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /** The status. */
  collet_status code() const { return code_; }

 private:
  collet_status code_;
};

/** A set of element types: TypeSet{COLLET_TYPE_F32, COLLET_TYPE_S32}. */
class TypeSet {
 public:
  constexpr TypeSet() = default;
  /** The types listed. */
  constexpr TypeSet(std::initializer_list<uint32_t> types) {
    for (uint32_t type : types) bits_ |= UINT64_C(1) << (type % COLLET_TYPE_LIMIT);
  }
  /** Is `type` in it? */
  constexpr bool has(uint32_t type) const { return type < COLLET_TYPE_LIMIT && (bits_ >> type & 1) != 0; }
  /** Both together. */
  constexpr TypeSet operator|(TypeSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  uint64_t bits_ = 0;
};

/** The integer types that indices may have. */
constexpr TypeSet index_types{COLLET_TYPE_S8, COLLET_TYPE_S16, COLLET_TYPE_S32, COLLET_TYPE_S64,
                              COLLET_TYPE_U8, COLLET_TYPE_U16, COLLET_TYPE_U32, COLLET_TYPE_U64};

/** A piece of device memory, by the name that the device gave it: a number, never an address that anyone else follows. */
using Memory = uint64_t;

/** No memory: that of arrays without elements. */
constexpr Memory no_memory = 0;

/** A dense, row-major array in device memory. While an op is only asked about, `memory` is no_memory. */
struct Array {
  Memory memory = no_memory;
  uint64_t offset = 0;           /**< bytes from the start of the memory */
  uint32_t type = 0;             /**< COLLET_TYPE_* */
  uint32_t rank = 0;             /**< number of dimensions */
  const int64_t* dims = nullptr; /**< extents, outermost first */
  uint64_t elements = 0;         /**< product of the extents */
  uint64_t bytes = 0;            /**< of its data */
};

/** What a vendor writes first: memory. Every function may throw Error or std::bad_alloc, `free` excepted, and may be called
 * from any thread unless the backend says COLLET_TRAIT_SERIAL. */
class Device {
 public:
  virtual ~Device() = default;
  /** New memory of `bytes` (at least 1), its start a multiple of `alignment`. Never no_memory. */
  virtual Memory allocate(uint64_t bytes, uint64_t alignment) = 0;
  /** Gives it back. */
  virtual void free(Memory memory) noexcept = 0;
  /** Copies from the host to `to`. The host's data may go away when it returns. */
  virtual void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) = 0;
  /** Copies to the host, behind all that was started before; returns when the data are there. */
  virtual void read(Memory from, uint64_t offset, void* to, uint64_t bytes) = 0;
  /** Copies within the device, behind all that was started before. The two pieces do not overlap. */
  virtual void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) = 0;
  /** Returns when all that was started is done. Devices whose kernels block need not override it. */
  virtual void finish() {}
};

/** An op with its arrays. In `takes` and its like the arrays have types and no memory; in `run` they have both. */
class Op {
 public:
  /** Operands first, then results, in `arrays`, which must outlive this. */
  Op(const collet_program* program, const collet_op* op, const Array* arrays, Array scratch = {})
      : program_(program), op_(op), arrays_(arrays), scratch_(scratch) {}

  /** COLLET_OP_*. */
  uint32_t opcode() const { return op_->opcode; }
  /** How many operands. */
  uint32_t operand_count() const { return op_->operands.count; }
  /** How many results. */
  uint32_t result_count() const { return op_->results.count; }
  /** Operand number `i`. */
  const Array& operand(uint32_t i) const { return arrays_[i]; }
  /** Result number `i`. */
  const Array& result(uint32_t i = 0) const { return arrays_[op_->operands.count + i]; }
  /** Device memory for the kernel's own use, of the size that Kernel::scratch asked for. */
  const Array& scratch() const { return scratch_; }

  /** The attribute record, such as attributes<collet_dot_attrs>(). */
  template <class Attributes>
  Attributes attributes() const {
    Attributes out;
    collet_read_attributes(program_, op_, &out, sizeof out);
    return out;
  }
  /** The integers of a list attribute; list.count of them. */
  const int64_t* list(collet_range list) const { return collet_integers(program_, list); }
  /** How many regions. */
  uint32_t region_count() const { return op_->regions.count; }
  /** What region `i` does with its two scalars: COLLET_COMBINE_*. */
  uint32_t combine(uint32_t i = 0) const { return collet_region_at(program_, op_->regions.first + i)->combine; }
  /** Its name in the program, for messages. */
  std::string name() const { return std::string(collet_string(program_, op_->name), op_->name.count); }
  /** The program, for what has no shortcut here: the ops in a region, say. */
  const collet_program* program() const { return program_; }
  /** The op in the program. */
  const collet_op& raw() const { return *op_; }

 private:
  const collet_program* program_;
  const collet_op* op_;
  const Array* arrays_;
  Array scratch_;
};

}  // namespace kernel
}  // namespace collet

#endif
