/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_COMPILER_HPP
#define COLLET_KERNEL_COMPILER_HPP

/** \file
 * A compiler of whole programs in place of a table of kernels: see Backend::compiler. The vendor's own, or that of
 * <collet/codegen/code_backend.hpp>. Included by kernel_backend.hpp.
 */

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "kernel_call.hpp"

namespace collet {
namespace kernel {

/** The place of an array of a launch. */
struct Piece {
  Memory memory = no_memory; /**< no_memory where it has no bytes */
  uint64_t offset = 0;       /**< bytes from the start of the memory */
};

/** A compiled program that is loaded on one device. It is destroyed before the device. */
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  /** Starts the program after all work that was started on the device before. `pieces` are the arguments, the results and the
   * workspace, in this order. The call need not wait; the memory stays allocated until the launch has ended. */
  virtual void launch(Device& device, const std::vector<Piece>& pieces, uint64_t run_id) = 0;
};

/** A program that was compiled as a whole. */
class WholeProgram {
 public:
  virtual ~WholeProgram() = default;
  /** Measures on `device` what decides between several ways to compute the same, and settles on the fastest. Called by compile, once,
   * before `load`, unless the devices are virtual; other work may run on the device at the same time. Returns what it found out, which is kept
   * with the executable in caches: there `known` is what it returned before, and it measures nothing if that is enough. Empty: nothing was
   * to be found out, or to be kept. */
  virtual std::string tune(Device& device, const std::string& known) {
    static_cast<void>(device), static_cast<void>(known);
    return {};
  }
  /** Loads the code on a device. Called by compile, once for each device on which the program may run. The helper destroys the
   * result before the device. */
  virtual std::unique_ptr<DeviceProgram> load(Device& device) = 0;

  uint64_t workspace_bytes = 0; /**< of device memory that a launch uses for itself */
  uint64_t resident_bytes = 0;  /**< of device memory that it holds on each device */
  uint64_t code_bytes = 0;      /**< for people */
  uint64_t traffic_bytes = 0;   /**< that a launch reads and writes; 0: unknown */
  uint32_t kernels = 0;         /**< that a launch runs; 0: unknown */
  /** File names and contents of what the compiler went through, where they were asked for. */
  std::vector<std::pair<std::string, std::string>> artifacts;
};

/** A compiler of whole programs. Any thread, several at once. Throws Error or std::bad_alloc. */
class ProgramCompiler {
 public:
  virtual ~ProgramCompiler() = default;
  /** Answers `supports` of backend.h: fills answer, reason and perhaps cost of each verdict. */
  virtual void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
                      collet_verdict* verdicts) const = 0;
  /** Compiles. Null, with their ids in `rejected`, where it cannot take some ops after all. */
  virtual std::unique_ptr<WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const = 0;
};

}  // namespace kernel
}  // namespace collet

#endif
