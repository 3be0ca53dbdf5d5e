/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_DESCRIBE_HPP
#define COLLET_KERNEL_DESCRIBE_HPP

/** \file
 * What a vendor fills in: rows of a kernel table, and the description of a backend. All of it is optional but for a name,
 * types and a way to open a device. Included by kernel_backend.hpp.
 */

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "kernel_call.hpp"

namespace collet {
namespace kernel {

/** The opset that these headers were written for. What is newer is declined, whatever Backend::opset says. */
constexpr uint32_t header_opset = 1;

/** What Kernel::takes answers: true, false, or a reason why not: `return "only rows of at most 1024 elements";`. */
class Taken {
 public:
  /** Yes or no. */
  Taken(bool yes) : yes_(yes) {}
  /** No, for a reason. */
  Taken(const char* reason) : yes_(false), reason_(reason) {}
  /** No, for a reason. */
  Taken(std::string reason) : yes_(false), reason_(std::move(reason)) {}
  /** Is it yes? */
  explicit operator bool() const { return yes_; }
  /** Why not; may be empty. */
  const std::string& reason() const { return reason_; }

 private:
  bool yes_;
  std::string reason_;
};

/** An operand that a kernel would rather have in a form of its own, made once and kept: weights. Used where the operand is a
 * constant of the program, or an argument that nothing else reads ("residency" of tables.h). The kernel must take both
 * forms: Array::packed says which one it got. */
struct Packing {
  uint32_t operand = 0;
  /** Bytes of the packed form; 0: not this one. Empty: the kernel packs nothing. */
  std::function<uint64_t(const Op& op)> bytes = nullptr;
  /** Makes it: reads op.operand(operand), the only array of the op with memory, and writes `packed`. */
  std::function<void(Device& device, const Op& op, const Array& packed)> make = nullptr;
};

/** A row of the kernel table. The first row that takes an op runs it. */
struct Kernel {
  uint32_t opcode;  /**< COLLET_OP_* */
  TypeSet operands; /**< the type of every operand is in this set */
  TypeSet results;  /**< the type of every result is in this one */
  /** Runs the op. It need not wait: what comes later runs behind it. */
  std::function<void(Device& device, const Op& op)> run;
  /** Looks at attributes, shapes and regions. Empty: any, but an op with regions needs one that looked at them. */
  std::function<Taken(const Op& op)> takes = nullptr;
  /** Bytes of scratch memory that run wants. Empty: none. */
  std::function<uint64_t(const Op& op)> scratch = nullptr;
  /** Estimate of its time in nanoseconds. Empty: unknown. */
  std::function<double(const Op& op)> cost_ns = nullptr;
  /** Called once for each device when a program is compiled: what `run` would otherwise work out each time (loops, command
   * lists, tables). `run` finds the result in op.state<T>(). Arrays have no memory yet, but Array::host where they are
   * constants. */
  std::function<std::any(Device& device, const Op& op)> prepare = nullptr;
  /** With COLLET_OP_CALL: the pattern (docs/patterns.md) or composite that it runs. The SDK then asks for it. */
  std::string pattern = {};
  /** An operand to be kept in a form of its own. */
  Packing packing = {};
  /** Fills `layout` with how operand number `index`, or result `index - operand_count`, should lie; all zero: dense. It is
   * what the array has where nothing else in the program reads or writes it (then Array::layout is set), so that the kernel
   * must take dense arrays, too. `layout` is zeroed before. */
  std::function<void(const Op& op, uint32_t index, collet_layout* layout)> layout = nullptr;
};

/** What open was told. */
struct Options {
  uint32_t device_count = 0;                 /**< devices wanted, where the backend can make them; 0: its own choice */
  std::string target;                        /**< one of Backend::targets, or empty: the machine's own devices */
  std::map<std::string, std::string> values; /**< by key, each one of Backend::options */
};

/** A memory space besides the default one. */
struct Space {
  std::string kind;        /**< "pinned_host", or a name of the backend's own; at most 31 characters */
  uint64_t bytes = 0;      /**< capacity; 0: unknown */
  uint32_t alignment = 64; /**< a power of two */
  uint32_t flags = 0;      /**< COLLET_SPACE_HOST_VISIBLE, or 0 */
};

/** Everything that the SDK needs to know of a device maker's work. Zeros mean "unknown", and the SDK then estimates; it takes a
 * link without figures for free. */
struct Backend {
  std::string name;          /**< short, lower case: "acme" */
  std::string version = "0"; /**< part of every cache key: change it with the code */
  /** The opset that the kernels were written for. Raise it when `takes` of every row has been read again with the attributes
   * and types that came since in mind; until then newer ops are never offered. */
  uint32_t opset = 1;
  std::string device_kind;   /**< the model: "Acme T1" */
  std::string fingerprint;   /**< what compiled code depends on: revision, firmware */
  uint32_t device_count = 1; /**< devices present */
  uint32_t traits = 0; /**< COLLET_TRAIT_SERIAL, ..._FLUSHES_DENORMALS; control flow and collectives are the SDK's */
  std::vector<collet_type_support> types; /**< what is not listed is never offered */
  uint64_t memory_bytes = 0;
  uint32_t alignment = 64; /**< of every array; a power of two */
  double link_latency_ns = 0;
  double link_bytes_per_ns = 0;
  double launch_ns = 0;
  double memory_bytes_per_ns = 0;
  double flops_per_ns = 0;
  uint32_t smallest_cluster = 0;
  bool fusions = false; /**< take a fusion whose ops all have kernels, and run them one by one */
  std::vector<Kernel> kernels;
  /** Makes device number `number`, from 0 to device_count - 1. */
  std::function<std::unique_ptr<Device>(uint32_t number)> open_device;

  bool queues = false;       /**< work of queues runs on threads of the helper's: see Device::mark */
  bool host_visible = false; /**< the default space is COLLET_SPACE_HOST_VISIBLE: Device::host_pointer says where */
  std::vector<Space> more_spaces;   /**< numbers 1, 2, ...: see Device::allocate_in */
  bool profile = false;             /**< hand out records of what ran: see Device::record */
  bool host_memory = false;         /**< Device::add_host_memory is there */
  std::vector<std::string> options; /**< keys that open accepts; others are refused */
  std::vector<std::string> targets; /**< names of targets that can be compiled for without hardware */
  /** Called by open with this instance's copy of the description, which it may change: device_count, open_device, kernels.
   * Throws Error where an option has a value that cannot be. */
  std::function<void(const Options& options, Backend* backend)> configure;
  /** Describes the way from one device to another ("links" of tables.h). Empty: devices reach each other by the host. */
  std::function<void(uint32_t from, uint32_t to, collet_link* link)> link;
};

}  // namespace kernel
}  // namespace collet

#endif
