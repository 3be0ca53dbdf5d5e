/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_CALL_HPP
#define COLLET_KERNEL_CALL_HPP

/** \file
 * The arguments of a kernel: a device, an op, and the arrays that it reads and writes. A part of kernel_backend.hpp,
 * which backends include.
 */

#include <any>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "dictionary.hpp"
#include "kernel_records.hpp"
#include "program.h"
#include "ranges.h"
#include "tables.h"

namespace collet {
/** Backends that are a table of kernels. */
namespace kernel {

/** The exception that a backend's own code throws. At the ABI boundary it becomes a status and a message. */
class Error : public std::runtime_error {
 public:
  /** `code` is a COLLET_* status other than COLLET_OK. */
  Error(collet_status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /** Returns the status. */
  collet_status code() const { return code_; }

 private:
  collet_status code_;
};

/** A set of element types: TypeSet{COLLET_TYPE_F32, COLLET_TYPE_S32}. */
class TypeSet {
 public:
  constexpr TypeSet() = default;
  /** Makes the set of the listed types. */
  constexpr TypeSet(std::initializer_list<uint32_t> types) {
    for (uint32_t type : types) bits_ |= UINT64_C(1) << (type % COLLET_TYPE_LIMIT);
  }
  /** True if `type` is in the set. */
  constexpr bool has(uint32_t type) const { return type < COLLET_TYPE_LIMIT && (bits_ >> type & 1) != 0; }
  /** Returns the union of two sets. */
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

/** A piece of device memory: a number that the device chose for it. The helper never uses it as an address. */
using Memory = uint64_t;

/** No memory: that of arrays without elements. */
constexpr Memory no_memory = 0;

/** A dense, row-major array in device memory. `memory` is no_memory while the kernel is only asked whether it takes an
 * op. */
struct Array {
  Memory memory = no_memory;
  uint64_t offset = 0;           /**< bytes from the start of the memory */
  uint32_t type = 0;             /**< COLLET_TYPE_* */
  uint32_t rank = 0;             /**< number of dimensions */
  const int64_t* dims = nullptr; /**< extents, outermost first */
  uint64_t elements = 0;         /**< product of the extents */
  uint64_t bytes = 0;            /**< bytes of its data */
  /** The array's data on the host if they are known there: for a constant of the program, a scalar that is passed by
   * value, or scalars computed from those. Otherwise null. Valid until Kernel::run returns. */
  const void* host = nullptr;
  bool packed = false;                   /**< true if the memory holds the form that Kernel::packing made */
  const collet_layout* layout = nullptr; /**< the layout that Kernel::layout asked for; null: dense and row-major */
};

/** A device of the backend. A vendor implements its memory first. Every function may throw Error or std::bad_alloc, `free` excepted, and may be called
 * from any thread unless the backend says COLLET_TRAIT_SERIAL. */
class Device {
 public:
  virtual ~Device() = default;
  /** Allocates `bytes` (at least 1) of memory at a multiple of `alignment`. Never returns no_memory. */
  virtual Memory allocate(uint64_t bytes, uint64_t alignment) = 0;
  /** Frees memory. */
  virtual void free(Memory memory) noexcept = 0;
  /** Copies from the host to `to`, after all work that was started before. The host's data may be freed when it returns. */
  virtual void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) = 0;
  /** Copies to the host, after all work that was started before. Returns when the data have arrived. */
  virtual void read(Memory from, uint64_t offset, void* to, uint64_t bytes) = 0;
  /** Copies within the device, after all work that was started before. The two ranges do not overlap. */
  virtual void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) = 0;
  /** Returns when all work that was started has ended. Devices whose kernels block need not override it. An exception
   * from it fails the call that waits, unless that call has failed already. Called by the thread of an execution or copy
   * that blocks, by threads of the queues, and while a program is compiled. */
  virtual void finish() {}

  /** \name Queues
   * Used if Backend::queues is set. The defaults are correct; a device overrides them to run several things at the same
   * time.
   * @{ */
  /** Puts a mark after all kernels and copies that were started, and returns its number, which is not 0. Alternatively
   * waits for them, throws their errors, and returns 0. The helper also ends blocking calls in this way. Called by the
   * thread that started the work: that of the call, or the queue's. */
  virtual uint64_t mark() {
    finish();
    return 0;
  }
  /** Returns when all work that was started before the mark has ended. Throws the error of work that the thread that
   * called `mark` has started since its previous call of `mark`, every time that it is called for the mark: several
   * threads may have received the same mark. Called by that thread or, for a queue, by a second thread that does nothing
   * else. */
  virtual void wait(uint64_t mark) { static_cast<void>(mark); }
  /** Like `write`, but independent of kernels and other copies, none of which uses this memory. Returns when the data
   * have arrived. */
  virtual void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) { write(to, offset, from, bytes); }
  /** Like `read`, but independent of kernels and other copies, none of which writes to this memory. */
  virtual void download(Memory from, uint64_t offset, void* to, uint64_t bytes) { read(from, offset, to, bytes); }
  /** Like `upload`, but may return before the copy has ended; then `wait` for the returned mark waits for it. Returns 0
   * if the copy has ended. The host's data stay valid until then. */
  virtual uint64_t start_upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
    upload(to, offset, from, bytes);
    return 0;
  }
  /** Like `download`, with the same rules as start_upload. */
  virtual uint64_t start_download(Memory from, uint64_t offset, void* to, uint64_t bytes) {
    download(from, offset, to, bytes);
    return 0;
  }
  /** @} */

  /** \name More memory
   * @{ */
  /** Allocates memory in space number `space`, from 1 on: a space of Backend::more_spaces. */
  virtual Memory allocate_in(uint32_t space, uint64_t bytes, uint64_t alignment) {
    static_cast<void>(bytes), static_cast<void>(alignment);
    throw Error(COLLET_OUT_OF_RANGE, "there is no memory space " + std::to_string(space));
  }
  /** Returns the address at which the host may read and write memory of a space that is COLLET_SPACE_HOST_VISIBLE. */
  virtual void* host_pointer(Memory memory) {
    static_cast<void>(memory);
    return nullptr;
  }
  /** Copies to another device of the backend, after all work that was started on this one; returns when the copy has
   * ended. Returns false if the devices cannot reach each other; then the helper copies through the host. */
  virtual bool copy_to(Device& other, Memory to, uint64_t to_offset, Memory from, uint64_t from_offset,
                       uint64_t bytes) {
    static_cast<void>(other), static_cast<void>(to), static_cast<void>(to_offset);
    static_cast<void>(from), static_cast<void>(from_offset), static_cast<void>(bytes);
    return false;
  }
  /** Prepares host memory for copies ("host_memory" of tables.h). Called if Backend::host_memory is set. */
  virtual void add_host_memory(void* host, uint64_t bytes) { static_cast<void>(host), static_cast<void>(bytes); }
  /** Undoes add_host_memory. */
  virtual void remove_host_memory(void* host) { static_cast<void>(host); }
  /** Returns host memory at a multiple of the default space's alignment as memory of this device, without a copy ("host_buffers" of
   * tables.h). It is only read. Called if Backend::host_buffers is set. Throws Error with COLLET_UNIMPLEMENTED where the
   * device does not reach it. */
  virtual Memory wrap(const void* host, uint64_t bytes) {
    static_cast<void>(host), static_cast<void>(bytes);
    throw Error(COLLET_UNIMPLEMENTED, "this device has no buffers of host memory");
  }
  /** Ends the use of what `wrap` returned, in place of `free`. The host memory stays as it is. */
  virtual void end_wrap(Memory memory) noexcept { static_cast<void>(memory); }
  /** @} */

  /** \name Records
   * The records that Backend::profile returns. The helper records kernels and copies by the host's clock, from call to return, unless
   * the device records better ones itself.
   * @{ */
  /** True if the device calls `record` itself. */
  virtual bool records_itself() const { return false; }
  /** Stores a record if records are wanted. May be called from any thread. */
  void record(const Record& one) {
    if (recorder_ && recorder_->is_on()) recorder_->add(one);
  }
  /** True if records are wanted at this time. */
  bool wants_records() const { return recorder_ && recorder_->is_on(); }
  /** Called by the helper only. */
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }
  /** @} */

 private:
  Recorder* recorder_ = nullptr;
};

/** The inputs of an op other than its arrays. */
struct OpContext {
  Array scratch;
  const std::any* state = nullptr;
  uint64_t run_id = 0;
};

/** An op with its arrays. In `takes` and its like the arrays have types and no memory; in `run` they have both.
 *
 * It is a view, as are its arrays: valid until the function that received it returns. A kernel that runs later copies
 * what it needs of them (memory, offset, what Array::host points to), or keeps an OwnedOp (kernel_later.hpp). In `run`
 * and Packing::make, program(), raw(), the targets of `dims` and `layout` of arrays, and the state live as long as the
 * executable, and thus until all work that was started has ended; so does the memory. */
class Op {
 public:
  /** `arrays` has the operands, then the results, and must outlive this object. */
  Op(const collet_program* program, const collet_op* op, const Array* arrays, OpContext context = {})
      : program_(program), op_(op), arrays_(arrays), rest_(context) {}

  /** COLLET_OP_*. */
  uint32_t opcode() const { return op_->opcode; }
  /** Returns the number of operands. */
  uint32_t operand_count() const { return op_->operands.count; }
  /** Returns the number of results. */
  uint32_t result_count() const { return op_->results.count; }
  /** Operand number `i`. */
  const Array& operand(uint32_t i) const { return arrays_[i]; }
  /** Result number `i`. */
  const Array& result(uint32_t i = 0) const { return arrays_[op_->operands.count + i]; }
  /** Returns the operands, followed by the results. */
  const Array* arrays() const { return arrays_; }
  /** Returns the inputs other than arrays, for code that makes another Op from this one. */
  const OpContext& context() const { return rest_; }
  /** Device memory for the kernel's own use, of the size that Kernel::scratch asked for. */
  const Array& scratch() const { return rest_.scratch; }
  /** Returns what Kernel::prepare returned for this op on this device. `T` is exactly the type that it returned. */
  template <class T>
  const T& state() const {
    const T* out = rest_.state ? std::any_cast<T>(rest_.state) : nullptr;
    if (!out) throw Error(COLLET_INTERNAL, name() + " has no state of this type");
    return *out;
  }
  /** Returns the number of the execution, for records; 0 if there is none. */
  uint64_t run_id() const { return rest_.run_id; }

  /** Returns the attribute record, such as attributes<collet_dot_attrs>(). */
  template <class Attributes>
  Attributes attributes() const {
    Attributes out;
    collet_read_attributes(program_, op_, &out, sizeof out);
    return out;
  }
  /** Returns the list.count integers of a list attribute. */
  const int64_t* list(collet_range list) const { return collet_integers(program_, list); }
  /** Returns the number of regions. */
  uint32_t region_count() const { return op_->regions.count; }
  /** Returns how region `i` combines its two scalars: COLLET_COMBINE_*. */
  uint32_t combine(uint32_t i = 0) const { return collet_region_at(program_, op_->regions.first + i)->combine; }
  /** Returns the name of the pattern or composite that a call stands for; empty for other ops. */
  std::string pattern() const {
    if (op_->opcode != COLLET_OP_CALL) return {};
    const collet_range name = attributes<collet_call_attrs>().name;
    return std::string(collet_string(program_, name), name.count);
  }
  /** Returns the target of a custom call; empty for other ops. */
  std::string target() const {
    if (op_->opcode != COLLET_OP_CUSTOM_CALL) return {};
    const collet_range range = attributes<collet_custom_call_attrs>().target;
    return std::string(collet_string(program_, range), range.count);
  }
  /** Returns the attributes of a pattern, a composite or a typed custom call; none for other ops, and for a custom call
   * whose configuration is no dictionary: collet_custom_call_attrs::config has its text. */
  std::vector<DictionaryEntry> dictionary() const {
    collet_range range{0, 0};
    if (op_->opcode == COLLET_OP_CALL) range = attributes<collet_call_attrs>().attributes;
    if (op_->opcode == COLLET_OP_CUSTOM_CALL) range = attributes<collet_custom_call_attrs>().config;
    std::vector<DictionaryEntry> out;
    read_dictionary(std::string(collet_string(program_, range), range.count), &out);
    return out;
  }
  /** Returns attribute `key` of dictionary() as text without quotes and type: "1e-05" for {epsilon = 1e-05 : f64}. Empty
   * if there is none, and for arrays and the like. */
  std::string pattern_attribute(const std::string& key) const {
    for (const DictionaryEntry& entry : dictionary()) {
      if (entry.name == key) return entry.text;
    }
    return {};
  }
  /** Returns the attribute as a number, or `otherwise` if there is none. */
  double pattern_number(const std::string& key, double otherwise) const {
    for (const DictionaryEntry& entry : dictionary()) {
      if (entry.name == key && entry.kind == DictionaryEntry::kScalar) return entry.number();
    }
    return otherwise;
  }
  /** Returns the op's name in the program, for messages. */
  std::string name() const { return std::string(collet_string(program_, op_->name), op_->name.count); }
  /** Returns the program, for data that has no accessor here, such as the ops in a region. */
  const collet_program* program() const { return program_; }
  /** Returns the op in the program. */
  const collet_op& raw() const { return *op_; }

 private:
  const collet_program* program_;
  const collet_op* op_;
  const Array* arrays_;
  OpContext rest_;
};

/** A participant of a collective: its device, and the op with its arrays there. */
struct Member {
  Device& device;
  Op op;
};

}  // namespace kernel
}  // namespace collet

#endif
