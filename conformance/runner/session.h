// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/contract/uses.h"
#include "hlo/base/status.h"
#include "hlo/ir/literal.h"

/// \file
/// A C++ interface to collet.h in which programs take and return literals.

namespace collet::conformance {

template <auto Function>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};
template <typename T, auto Function>
using Handle = std::unique_ptr<T, Releaser<Function>>;
using ClientHandle = Handle<collet_client, collet_client_close>;
using ModuleHandle = Handle<collet_module, collet_module_release>;
using ExecutableHandle = Handle<collet_executable, collet_executable_release>;
using BufferHandle = Handle<collet_buffer, collet_buffer_release>;
using BlobHandle = Handle<collet_blob, collet_blob_release>;

/// The choice of a backend and the options of opening it.
struct BackendChoice {
  std::string name = "cpu";
  bool no_fallback = false;
  std::vector<std::pair<std::string, std::string>> options = {};  ///< options that are specific to the backend
  std::string target = {};  ///< hardware to compile for if it is not present; empty: the present hardware
  uint32_t devices = 0;     ///< number of devices, if the backend can create that many; 0: its default
  /// Null, or the group of processes that the client joins; lives during Session::open.
  const collet_processes* processes = nullptr;
};

/// Options of reading and compiling a program.
struct ProgramOptions {
  std::string file = {};  ///< file name for messages
  bool floats_as_f64 = false;
  uint32_t elided = COLLET_ELIDED_REFUSE;  ///< how constants that the text omits are filled
  uint64_t seed = 0;                       ///< seed for COLLET_ELIDED_RANDOM
  bool no_cache = true;
  bool one_participant = false;  ///< runs one participant, even if the module has several replicas or partitions
  std::string dump_to = {};
  std::string dump_only = {};  ///< see collet_compile_request
  bool own_results = false;    ///< see collet_compile_request
  bool ignore_costs = false;   ///< runs everything that the device accepts there
};

hlo::Shape shape_of(const collet_array_type& type);
/// Copies a literal to a device of a client. Errors begin with `what`.
Expected<BufferHandle> copy_to_device(collet_client* client, const hlo::Literal& value, uint32_t device = 0,
                                      const std::string& what = "copy");
/// Waits for a buffer and returns its data.
Expected<hlo::Literal> fetch(collet_buffer* buffer);

/// Returns INVALID_ARGUMENT unless there is one argument for each shape of `expected`, with that shape; layouts are
/// ignored.
Status check_arguments(std::span<const hlo::Literal> arguments, const std::vector<hlo::Shape>& expected);

/// A compiled program.
class Program {
 public:
  const std::vector<hlo::Shape>& arguments() const { return arguments_; }
  const std::vector<hlo::Shape>& results() const { return results_; }
  collet_executable* handle() const { return executable_.get(); }
  Expected<collet_executable_facts> facts() const;
  Expected<std::string> explain(bool json) const;
  /// Returns the questions that compilation asked the device. Ops that run on the device count as run.
  Uses uses() const;

  /// Copies arguments to the devices on which the program expects them. They may be used several times. All
  /// participants get the same arguments. In a group of processes, participants are those of this process.
  Expected<std::vector<BufferHandle>> upload(std::span<const hlo::Literal> arguments) const;
  /// Runs once and waits; the arguments stay valid. Returns the results of all participants, one participant after
  /// another.
  Expected<std::vector<BufferHandle>> execute(std::span<const BufferHandle> arguments) const;
  /// Calls upload, execute and fetch.
  Expected<std::vector<hlo::Literal>> run(std::span<const hlo::Literal> arguments) const;

 private:
  friend class Session;
  collet_client* client_ = nullptr;
  ExecutableHandle executable_;
  std::vector<hlo::Shape> arguments_, results_;
  uint32_t participants_ = 1;
};

/// An opened backend.
class Session {
 public:
  static Expected<std::unique_ptr<Session>> open(const BackendChoice& choice);

  collet_client* client() const { return client_.get(); }
  Expected<collet_client_info> info() const;
  /// Describes device 0, a line for each of its kind, fingerprint, traits, memory spaces and element types.
  Expected<std::string> machine() const;
  /// Returns the COLLET_TRAIT_* of device 0.
  uint32_t traits() const;
  /// True if device 0 declares an element type.
  bool declares(uint32_t element) const;
  /// Reads and compiles a program. A program that cannot be read is INVALID_ARGUMENT, with all errors in the message.
  Expected<Program> compile(std::string_view bytes, const ProgramOptions& options) const;
  /// Returns why `compile` cannot read a program; OK if it can.
  static Status can_read(std::string_view bytes, const ProgramOptions& options);
  /// Returns the program of a serialized executable of this backend (collet_executable_serialize) as HLO text; bytes of
  /// another kind are returned as they are.
  std::string unpacked(std::string bytes) const;

 private:
  ClientHandle client_;
};

}  // namespace collet::conformance
