/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_DESCRIBE_HPP
#define COLLET_KERNEL_DESCRIBE_HPP

/** \file
 * The data that a vendor fills in: rows of a kernel table, and the description of a backend. Everything is optional
 * except a name, types and a function that opens a device. Included by kernel_backend.hpp.
 */

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "kernel_call.hpp"
#include "kernel_compiler.hpp"
#include "tables.h"

namespace collet {
namespace kernel {

/** The opset for which these headers were written. Newer ops are declined, whatever Backend::opset is. */
constexpr uint32_t header_opset = 1;

struct Move;

/** The answer of Kernel::takes, from which the op's collet_verdict is made: true, false, or a reason why not:
 * `return "only rows of at most 1024 elements";`. An op that no row takes runs on the fallback, if that supports it. With `return Verdict::expand();` the SDK rewrites it into
 * simpler ops, for which the table is asked in turn. */
class Verdict {
 public:
  /** Makes the answer true or false. */
  Verdict(bool yes) : yes_(yes) {}
  /** Makes the answer false, with a reason. */
  Verdict(const char* reason) : yes_(false), reason_(reason) {}
  /** Makes the answer false, with a reason. */
  Verdict(std::string reason) : yes_(false), reason_(std::move(reason)) {}
  /** Makes the answer false, and asks the SDK to rewrite the op into simpler ones (COLLET_EXPAND). If the SDK has no
   * expansion of it, the op is declined. A later row that takes the op has precedence. */
  static Verdict expand(std::string reason = {}) {
    Verdict out(std::move(reason));
    out.expand_ = true;
    return out;
  }
  /** True if the op is taken. */
  explicit operator bool() const { return yes_; }
  /** Returns the reason why it is not taken; may be empty. */
  const std::string& reason() const { return reason_; }
  /** True if the answer is expand(). */
  bool wants_expansion() const { return expand_; }

 private:
  bool yes_;
  bool expand_ = false;
  std::string reason_;
};

/** The former name of Verdict. */
using Taken [[deprecated("it is called Verdict")]] = Verdict;

/** An operand, typically weights, for which a kernel needs its own form, which is made once and kept. It is used if the
 * operand is a constant of the program; then the form is made during compile. It is also used for an argument that
 * nothing else reads ("residency" of tables.h); then it is made at the second consecutive run with the same array, and
 * again for another array. The kernel must accept both forms: Array::packed tells which one it received. The records of
 * a device ("pack dot ...") show when the form is made. */
struct Packing {
  uint32_t operand = 0;
  /** Returns the bytes of the packed form; 0 if this operand is not packed. If the function is empty, the kernel packs
   * nothing. */
  std::function<uint64_t(const Op& op)> bytes = nullptr;
  /** Makes the packed form: reads op.operand(operand), the only array of the op with memory, and writes `packed`. */
  std::function<void(Device& device, const Op& op, const Array& packed)> make = nullptr;
};

/** A row of the kernel table. The first row that takes an op runs it. */
struct Kernel {
  uint32_t opcode;  /**< COLLET_OP_* */
  TypeSet operands; /**< the types that operands may have */
  TypeSet results;  /**< the types that results may have */
  /** Runs the op. It may return before the work has ended; later work runs after it. */
  std::function<void(Device& device, const Op& op)> run;
  /** Checks attributes, shapes and regions. If empty, the row takes all ops with its types, except ops with regions. */
  std::function<Verdict(const Op& op)> takes = nullptr;
  /** Returns the bytes of scratch memory that `run` needs. Empty: none. */
  std::function<uint64_t(const Op& op)> scratch = nullptr;
  /** Returns the estimated time in nanoseconds. Empty: unknown. */
  std::function<double(const Op& op)> cost_ns = nullptr;
  /** Called once for each device when a program is compiled, for work that `run` would otherwise repeat (loops, command
   * lists, tables). `run` finds the result in op.state<T>(). Arrays have no memory yet, but constants have Array::host. */
  std::function<std::any(Device& device, const Op& op)> prepare = nullptr;
  /** For COLLET_OP_CALL: the name of the pattern (docs/patterns.md) or composite that the row implements. The SDK then
   * searches programs for the pattern. */
  std::string pattern = {};
  /** An operand that is kept in a packed form. */
  Packing packing = {};
  /** Fills `layout` with the preferred layout of operand `index`, or of result `index - operand_count`; all zero: dense.
   * An array gets it if nothing else in the program reads or writes the array (then Array::layout is set), so the kernel
   * must accept dense arrays, too. `layout` is zeroed before the call. */
  std::function<void(const Op& op, uint32_t index, collet_layout* layout)> layout = nullptr;
  /** Replaces `run` for a collective, with Backend::collectives. Called once for each group of participants, in the order
   * of the group, when all members have reached the op. It may call all of their devices; work that was started on them
   * before may still be running. When it returns, the members continue: work that it has started need not have ended, as
   * long as each device runs its later work after it. */
  std::function<void(const std::vector<Member>& group)> run_together = nullptr;
  /** For COLLET_OP_CUSTOM_CALL: the target that the row implements, such as the name in `jax.ffi.ffi_call`. Empty: all.
   * Op::dictionary() has the attributes of a typed call. */
  std::string target = {};
  /** For `pattern`, where it is one of the backend's own: the text that defines it, HLO with variables (docs/patterns.md).
   * Rows of one pattern have the same text, or one of them has it. */
  std::string pattern_text = {};
  /** For a quantized pattern: COLLET_FEATURE_* of the attributes that the row reads. Groups that need others do not reach it.
   * QuantizedGroup::kFeatures is what QuantizedGroup computes. */
  uint32_t features = 0;
};

/** Returns a row for ops that the SDK should rewrite into simpler ones: Verdict::expand(). */
inline Kernel expanded(uint32_t opcode, TypeSet operands, TypeSet results) {
  Kernel row{opcode, operands, results,
             [](Device&, const Op& op) { throw Error(COLLET_INTERNAL, op.name() + " was to be expanded"); }};
  row.takes = [](const Op&) { return Verdict::expand(); };
  return row;
}

/** An op of a program that is compiled, for Backend::prepare. */
struct Preparation {
  const Kernel* row; /**< the row that runs it */
  Op op; /**< valid until Backend::prepare returns; arrays have no memory yet, but constants have Array::host */
  std::any* state; /**< empty; `run` finds in op.state<T>() what is put here */
};

/** The options of open. */
struct Options {
  /** Number of devices requested, if the backend can make virtual ones; 0: the backend's choice. */
  uint32_t device_count = 0;
  std::string target;                        /**< one of Backend::targets; empty: the machine's own devices */
  std::map<std::string, std::string> values; /**< values of options by key; each key is in Backend::options */
};

/** A memory space in addition to the default one. */
struct Space {
  std::string kind;        /**< "pinned_host", or a name of the backend's own; at most 31 characters */
  uint64_t bytes = 0;      /**< capacity; 0: unknown */
  uint32_t alignment = 64; /**< a power of two */
  uint32_t flags = 0;      /**< COLLET_SPACE_HOST_VISIBLE, or 0 */
};

/** A member of an exchange between devices of several processes. */
struct ExchangeMember {
  uint32_t process; /**< its process, by rank in the group of the exchange */
  uint32_t number;  /**< of its device in that process */
  Device* device;   /**< null if it is in another process, as is the memory of `from` and `to` */
  Piece from, to;   /**< operand and result */
};

/** Runs collectives between devices of several processes, by links that the devices have. Thread-safe. */
class Exchanger {
 public:
  virtual ~Exchanger() = default;
  /** Answers collet_exchange_table::takes. */
  virtual bool takes(const collet_exchange& exchange) = 0;
  /** Runs an exchange as collet_exchange_table::run does. `members` stand in place of those of `exchange`. Throws Error. */
  virtual void run(const collet_exchange& exchange, const std::vector<ExchangeMember>& members) = 0;
};

/** Describes a backend to the SDK. Zeros mean "unknown"; the SDK then estimates, and treats a link without figures as
 * free. */
struct Backend {
  std::string name;          /**< short, lower case: "acme" */
  std::string version = "0"; /**< part of every cache key: change it with the code */
  /** The opset for which the kernels were written. Raise it after checking `takes` of every row against the attributes
   * and types that were added since; until then newer ops are never offered. */
  uint32_t opset = 1;
  std::string device_kind;                /**< the model: "Acme T1" */
  std::string fingerprint;                /**< everything that compiled code depends on: revision, firmware */
  uint32_t device_count = 1;              /**< number of devices */
  uint32_t traits = 0;                    /**< COLLET_TRAIT_SERIAL, ..._FLUSHES_DENORMALS */
  std::vector<collet_type_support> types; /**< what is not listed is never offered */
  uint64_t memory_bytes = 0;
  uint32_t alignment = 64; /**< alignment of every array; a power of two */
  double link_latency_ns = 0;
  double link_bytes_per_ns = 0;
  double launch_ns = 0;
  double memory_bytes_per_ns = 0;
  double flops_per_ns = 0;        /**< peak of f32 multiply-add, counted as two */
  std::vector<collet_peak> peaks; /**< of other kinds of work and types: see collet_device_info */
  uint32_t smallest_cluster = 0;
  bool fusions = false; /**< accept a fusion whose ops all have kernels, and run them one by one */
  /** Accept while, conditional and call whose ops all have kernels. The helper interprets them itself, so that no data
   * leaves the device between iterations. Loop variables are not copied: a result of the body overwrites the value that
   * it replaces, or the two exchange their memory. If a condition can be computed from scalars that the host knows, or
   * if the trip count is known, there is no wait. Otherwise the condition's byte is read when all started work has
   * ended, and a failure ends the loop. */
  bool control_flow = false;
  /** Accept arithmetic on single integers and pred for which there is no row. The host computes it from values that it
   * knows, or from values that it reads from the device after all started work has ended. This serves loop counters and
   * start indices on a device without integers. The types must be among `types`. */
  bool host_scalars = false;
  /** Accept all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute and collective-broadcast between the
   * devices of the instance, and replica-id and partition-id. Data is copied by Device::copy_to, or through the host if
   * that returns false, and combined by the rows of the table for add, maximum and so on: a collective whose type and
   * combination have no such row is declined. A row with `run_together` replaces this. */
  bool collectives = false;
  /** Makes a move within a device, as for add_moves. Returns false if it does not support such elements. Collectives
   * along an inner dimension use it to gather rows that are not adjacent; without it they copy row by row. */
  std::function<bool(Device& device, const Move& move, const Array& from, const Array& to)> move;
  std::vector<Kernel> kernels;
  /** Takes the place of Kernel::prepare: called once for each device when a program is compiled, with all ops that rows run, those that
   * combine values of collectives first, then in the order of the program. A slow compiler can so be called once for a program.
   * prepare_by_threads (kernel_prepare.hpp) calls the rows' own functions at the same time. */
  std::function<void(Device& device, const std::vector<Preparation>& all)> prepare = nullptr;
  /** Compiles whole programs, in place of `kernels` and everything that the helper does with them: control flow, fusions,
   * collectives, layouts, packed weights. The helper still provides memory, copies, queues, checks, records and
   * statistics. */
  std::shared_ptr<const ProgramCompiler> compiler;
  /** Opens device number `number`, from 0 to device_count - 1. */
  std::function<std::unique_ptr<Device>(uint32_t number)> open_device;

  bool queues = false; /**< run the work of queues on threads of the helper: see Device::mark */
  /** For tests: delays the begin of each piece of work of a queue, and the report of its end, by random times of up to
   * this many nanoseconds, so that missing waits become visible. 0: no delay. */
  uint64_t queue_jitter_ns = 0;
  /** Time in nanoseconds for which a thread that waits for a queue polls before it sleeps. Waking a thread takes longer
   * than a short kernel, but polling occupies a processor of the host. 0: threads sleep at once. */
  uint64_t queue_poll_ns = 0;
  /** The default space is COLLET_SPACE_HOST_VISIBLE: Device::host_pointer returns the address. */
  bool host_visible = false;
  std::vector<Space> more_spaces;   /**< numbers 1, 2, ...: see Device::allocate_in */
  bool profile = false;             /**< provide records of what ran: see Device::record */
  bool host_memory = false;         /**< Device::add_host_memory is implemented */
  bool host_buffers = false;        /**< Device::wrap is implemented */
  std::vector<std::string> options; /**< keys that open accepts; others are refused */
  std::vector<std::string> targets; /**< names of targets for which programs can be compiled without hardware */
  /** Called by open with this instance's copy of the description, in which it may change device_count, open_device and
   * kernels. Throws Error if the value of an option is invalid. */
  std::function<void(const Options& options, Backend* backend)> configure;
  /** Describes the link from one device to another ("links" of tables.h). Empty: devices reach each other through the
   * host. */
  std::function<void(uint32_t from, uint32_t to, collet_link* link)> link;
  /** Runs collectives over several processes by links of the devices ("exchange" of tables.h). Null: data go through the host. */
  std::shared_ptr<Exchanger> exchanger;
};

}  // namespace kernel
}  // namespace collet

#endif
