/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_CALL_HPP
#define COLLET_KERNEL_CALL_HPP

/** \file
 * What a kernel sees: a device, an op, and the arrays that it reads and writes. First of the headers for backends that are a
 * table of kernels; kernel_backend.hpp is the one to include.
 */

#include <any>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "program.h"
#include "tables.h"

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
  /** Its data on the host, where they are known there: a constant of the program, a scalar that came by value. Else null. */
  const void* host = nullptr;
  bool packed = false;                   /**< the memory holds what Kernel::packing made of it */
  const collet_layout* layout = nullptr; /**< as Kernel::layout asked for it; null: dense and row-major */
};

/** Something that a device did, for Device::record. */
struct Record {
  std::string name;      /**< what ran, for people */
  std::string engine;    /**< what it ran on: "compute 0", "dma" */
  uint64_t start_ns = 0; /**< since 1970, by the system's clock */
  uint64_t duration_ns = 0;
  uint64_t run_id = 0; /**< Op::run_id, or 0 */
  uint64_t bytes = 0;  /**< moved, or 0 */
};

/** Where a device's records go. The helper makes one for each device. */
class Recorder {
 public:
  virtual ~Recorder() = default;
  /** Does anyone want records now? */
  virtual bool is_on() const = 0;
  /** Keeps a record. From any thread. */
  virtual void add(const Record& record) = 0;
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
  /** Copies from the host to `to`, behind all that was started before. The host's data may go away when it returns. */
  virtual void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) = 0;
  /** Copies to the host, behind all that was started before; returns when the data are there. */
  virtual void read(Memory from, uint64_t offset, void* to, uint64_t bytes) = 0;
  /** Copies within the device, behind all that was started before. The two pieces do not overlap. */
  virtual void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) = 0;
  /** Returns when all that was started is done; throws what went wrong with it. Devices whose kernels block need not
   * override it. */
  virtual void finish() {}

  /** \name Queues
   * Used where Backend::queues is set. Right as they are; a device overrides them to do several things at once.
   * @{ */
  /** Puts a mark behind all kernels and copies that were started, and returns its number, not 0. Or waits for them itself,
   * throws what went wrong with them, and returns 0. The helper ends calls that block in this way, too. */
  virtual uint64_t mark() {
    finish();
    return 0;
  }
  /** Returns when all that was started before the mark has ended; throws what went wrong with what was started between the
   * mark before and this one, each time that it is asked: several threads may have got the same mark. */
  virtual void wait(uint64_t mark) { static_cast<void>(mark); }
  /** Like write, but beside kernels and other copies: none of them uses this memory. Returns when the data are there. */
  virtual void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) { write(to, offset, from, bytes); }
  /** Like read, but beside kernels and other copies: none of them writes to this memory. */
  virtual void download(Memory from, uint64_t offset, void* to, uint64_t bytes) { read(from, offset, to, bytes); }
  /** @} */

  /** \name More memory
   * @{ */
  /** Memory in space number `space`, from 1: those of Backend::more_spaces. */
  virtual Memory allocate_in(uint32_t space, uint64_t bytes, uint64_t alignment) {
    static_cast<void>(bytes), static_cast<void>(alignment);
    throw Error(COLLET_OUT_OF_RANGE, "there is no memory space " + std::to_string(space));
  }
  /** Where the host may read and write memory of a space that is COLLET_SPACE_HOST_VISIBLE. */
  virtual void* host_pointer(Memory memory) {
    static_cast<void>(memory);
    return nullptr;
  }
  /** Copies to another device of the backend, behind all that was started here; returns when it is done. False: there is no
   * way, and the helper goes by the host. */
  virtual bool copy_to(Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
                       uint64_t bytes) {
    static_cast<void>(other), static_cast<void>(to), static_cast<void>(to_offset);
    static_cast<void>(from), static_cast<void>(from_offset), static_cast<void>(bytes);
    return false;
  }
  /** Prepares host memory for copies ("host_memory" of tables.h), where Backend::host_memory is set. */
  virtual void add_host_memory(void* host, uint64_t bytes) { static_cast<void>(host), static_cast<void>(bytes); }
  /** Undoes that. */
  virtual void remove_host_memory(void* host) { static_cast<void>(host); }
  /** @} */

  /** \name Records
   * What Backend::profile hands out. The helper records kernels and copies by the host's clock, from call to return, unless
   * the device records better ones itself.
   * @{ */
  /** Does the device call `record` itself? */
  virtual bool records_itself() const { return false; }
  /** Keeps a record if anyone wants it. From any thread. */
  void record(const Record& one) {
    if (recorder_ && recorder_->is_on()) recorder_->add(one);
  }
  /** Does anyone want records now? */
  bool wants_records() const { return recorder_ && recorder_->is_on(); }
  /** Used by the helper. */
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  /** @} */

 private:
  Recorder* recorder_ = nullptr;
};

/** What an op finds besides its arrays. */
struct Surroundings {
  Array scratch;
  const std::any* state = nullptr;
  uint64_t run_id = 0;
};

/** An op with its arrays. In `takes` and its like the arrays have types and no memory; in `run` they have both. */
class Op {
 public:
  /** Operands first, then results, in `arrays`, which must outlive this. */
  Op(const collet_program* program, const collet_op* op, const Array* arrays, Surroundings surroundings = {})
      : program_(program), op_(op), arrays_(arrays), rest_(surroundings) {}

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
  const Array& scratch() const { return rest_.scratch; }
  /** What Kernel::prepare returned for this op on this device. `T` is exactly the type that it returned. */
  template <class T>
  const T& state() const {
    const T* out = rest_.state ? std::any_cast<T>(rest_.state) : nullptr;
    if (!out) throw Error(COLLET_INTERNAL, name() + " has no state of this type");
    return *out;
  }
  /** Number of the execution, for records; 0 where there is none. */
  uint64_t run_id() const { return rest_.run_id; }

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
  /** The name of the pattern or composite that a call stands for; else empty. */
  std::string pattern() const {
    if (op_->opcode != COLLET_OP_CALL) return {};
    const collet_range name = attributes<collet_call_attrs>().name;
    return std::string(collet_string(program_, name), name.count);
  }
  /** Attribute `key` of a pattern or composite, as text without quotes and type: "1e-05" of {epsilon = 1e-05 : f64}. Empty
   * where there is none. */
  std::string pattern_attribute(const std::string& key) const {
    if (op_->opcode != COLLET_OP_CALL) return {};
    const collet_range range = attributes<collet_call_attrs>().attributes;
    const std::string text(collet_string(program_, range), range.count);
    size_t at = 0;
    while ((at = text.find(key, at)) != std::string::npos) {
      const size_t begin = at, end = at + key.size();
      at = end;
      const bool starts = begin > 0 && (text[begin - 1] == '{' || text[begin - 1] == ' ' || text[begin - 1] == ',');
      size_t value = text.find_first_not_of(' ', end);
      if (!starts || value == std::string::npos || text[value] != '=') continue;
      value = text.find_first_not_of(' ', value + 1);
      if (value == std::string::npos) return {};
      if (text[value] == '"') return text.substr(value + 1, text.find('"', value + 1) - value - 1);
      return text.substr(value, text.find_first_of(" ,}", value) - value);
    }
    return {};
  }
  /** The same as a number; `otherwise` where there is none. */
  double pattern_number(const std::string& key, double otherwise) const {
    const std::string text = pattern_attribute(key);
    return text.empty() ? otherwise : std::strtod(text.c_str(), nullptr);
  }
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
  Surroundings rest_;
};

}  // namespace kernel
}  // namespace collet

#endif
