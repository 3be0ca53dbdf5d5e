/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_COMPILER_HPP
#define COLLET_KERNEL_COMPILER_HPP

/** \file
 * The interface of a compiler of whole programs, which replaces the table of kernels: see Backend::compiler. The
 * compiler is the vendor's own, or that of <collet/codegen/code_backend.hpp>. Included by kernel_backend.hpp.
 */

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel_call.hpp"
#include "tables.h"

namespace collet {
namespace kernel {

/** The memory of an array of a launch. */
struct Piece {
  Memory memory = no_memory; /**< no_memory if the array has no bytes */
  uint64_t offset = 0;       /**< bytes from the start of the memory */
  bool is_packed = false;    /**< an argument in the form that WholeProgram::pack made */
  bool has_layout = false;   /**< an array in the layout that the program states, not dense */
};

/** An argument that a program reads in a form of its own. */
struct PackedArgument {
  uint32_t argument; /**< number of the entry argument */
  uint64_t bytes;    /**< of that form */
};

/** The participants of an execution, as one of them sees them. The helper implements it. */
class Participants {
 public:
  virtual ~Participants() = default;
  /** Number of this participant: replica * partition count + partition. */
  virtual uint32_t number() const = 0;
  /** Waits until all participants of `group`, of which this is one, have come to `place` (a number in the program), each
   * with data of its own, `mine`. The last one to come calls `act` with the data of all of them, in the order of the
   * group; then all continue. `name` is for messages. Throws if a participant does not come, because it has ended, has
   * failed or takes another way through the program; an exception of `act` is thrown in all of them. */
  virtual void meet(uint64_t place, const std::string& name, const std::vector<uint32_t>& group, const void* mine,
                    const std::function<void(const std::vector<const void*>&)>& act) = 0;
};

/** A compiled program that is loaded on one device. It is destroyed before the device. */
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  /** Starts the program after all work that was started on the device before. `pieces` are the arguments, the results and the
   * workspace, in this order. The call need not wait; the memory stays allocated until the launch has ended. */
  virtual void launch(Device& device, const std::vector<Piece>& pieces, uint64_t run_id) = 0;
  /** Like `launch`, and called in its place, for a program that has to know which participant it is, or meets others.
   * `participants` is valid until this returns. */
  virtual void launch_participant(Device& device, const std::vector<Piece>& pieces, uint64_t run_id,
                                  Participants& participants) {
    static_cast<void>(participants);
    launch(device, pieces, run_id);
  }
};

/** A program that was compiled as a whole. */
class WholeProgram {
 public:
  virtual ~WholeProgram() = default;
  /** Measures on `device` which of several ways to compute the same is the fastest, and selects it. Called by compile,
   * once, before `load`, unless the devices are virtual; other work may run on the device at the same time. Returns the
   * result of the measurements as text, which is stored with the executable in caches. When the executable comes from a
   * cache, `known` is that text, and nothing is measured if it is sufficient. Empty if nothing was measured. */
  virtual std::string tune(Device& device, const std::string& known) {
    static_cast<void>(device), static_cast<void>(known);
    return {};
  }
  /** Loads the code on a device. Called by compile, once for each device on which the program may run. The helper destroys the
   * result before the device. */
  virtual std::unique_ptr<DeviceProgram> load(Device& device) = 0;
  /** Returns the program as bytes, from which ProgramCompiler::restore makes it again without compiling. They are kept with the
   * executable in caches and files. Empty: it is compiled again. Called after `tune` and `load`. */
  virtual std::string serialize() const { return {}; }
  /** Starts to make, at `to`, the form of entry argument number `argument` that `packed_arguments` announces, of the array at `from`.
   * Work that was started before comes first. */
  virtual void pack(Device& device, uint32_t argument, const Piece& from, const Piece& to) {
    static_cast<void>(device), static_cast<void>(argument), static_cast<void>(from), static_cast<void>(to);
    throw Error(COLLET_UNIMPLEMENTED, "this program packs no arguments");
  }

  /** Arguments that stay the same from run to run, weights most often, of which the program wants a packed form: "residency" of
   * tables.h. Launches have it where the argument has not changed, and the array itself where it has: see Piece::is_packed. The
   * compiler says packs_arguments. */
  std::vector<PackedArgument> packed_arguments;
  /** Layouts that the program wants of its arguments and gives its results, by number: "layout" of tables.h. `bytes` is 0 for a
   * dense one; empty: all are dense. Launches may have dense arrays, too: see Piece::has_layout. The compiler says has_layouts. */
  std::vector<collet_layout> argument_layouts, result_layouts;
  /** Numbers of constants of the program whose data the program holds itself: launches have no memory for them. */
  std::vector<uint32_t> absorbed;
  uint64_t workspace_bytes = 0; /**< device memory that a launch needs as workspace */
  uint64_t resident_bytes = 0;  /**< memory that the program holds on each device */
  uint64_t code_bytes = 0;      /**< bytes of machine code, for information */
  uint64_t traffic_bytes = 0;   /**< bytes that a launch reads and writes; 0: unknown */
  uint32_t kernels = 0;         /**< kernels that a launch runs; 0: unknown */
  double estimated_ns = 0;      /**< time of a launch, as the compiler estimates it; 0: unknown */
  double energy_nj = 0;         /**< energy of a launch in nanojoule, likewise; 0: unknown */
  uint64_t cycles = 0;          /**< of the device's clock, likewise; 0: unknown */
  /** True if the participants of an execution meet. Then each of them is launched by a thread of its own, and the
   * compiler's backend has COLLET_TRAIT_COLLECTIVES. */
  bool meets = false;
  /** File names and contents of the stages of compilation, if they were requested. */
  std::vector<std::pair<std::string, std::string>> artifacts;
};

/** A compiler of whole programs. May be called from several threads at once. Throws Error or std::bad_alloc. */
class ProgramCompiler {
 public:
  virtual ~ProgramCompiler() = default;
  /** Answers `supports` of backend.h: fills in the answer, the reason and optionally the cost of each verdict. */
  virtual void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
                      collet_verdict* verdicts) const = 0;
  /** Compiles a program. Returns null, with the ids of ops in `rejected`, if it cannot compile these ops in this program. */
  virtual std::unique_ptr<WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const = 0;
  /** Makes a program of what WholeProgram::serialize returned for the same program and a compiler of the same name, version and
   * fingerprint. Returns null where it cannot: then the program is compiled. */
  virtual std::unique_ptr<WholeProgram> restore(const collet_program* program, const std::string& bytes) const {
    static_cast<void>(program), static_cast<void>(bytes);
    return nullptr;
  }
  /** True if programs may have layouts other than dense. Always the same answer. */
  virtual bool has_layouts() const { return false; }
  /** True if programs may have packed arguments. Always the same answer. */
  virtual bool packs_arguments() const { return false; }
  /** Returns name number `index` of the patterns and composites that the compiler takes as one, for "patterns" of
   * tables.h; null past the last. */
  virtual const char* pattern(uint32_t index) const {
    (void)index;
    return nullptr;
  }
  /** Returns the text that defines pattern number `index` where it is one of the backend's own, HLO with variables
   * (docs/patterns.md); null for others. */
  virtual const char* pattern_text(uint32_t index) const {
    (void)index;
    return nullptr;
  }
  /** Returns COLLET_FEATURE_* of the attributes that the compiler reads of pattern number `index`, a quantized one. Groups that
   * need others are not offered. Always the same answer. */
  virtual uint32_t pattern_features(uint32_t index) const {
    (void)index;
    return 0;
  }
};

}  // namespace kernel
}  // namespace collet

#endif
