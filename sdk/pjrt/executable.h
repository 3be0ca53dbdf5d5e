// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/client.h"
#include "sdk/pjrt/compile_options.h"
#include "sdk/pjrt/host_functions.h"

namespace collet::pjrt {

/// A dimension of a result whose size the data decide.
struct DynamicDimension {
  uint32_t result, dimension;
};

/// A compiled program, shared by the handles that callers hold.
struct Compiled {
  /// The client, if it was compiled for a topology; it lives as long as the program.
  std::shared_ptr<PJRT_Client> compiler;
  PJRT_Client* client = nullptr;
  collet_executable* handle = nullptr;
  CompileOptions options;
  std::string raw_options;    ///< the compile options as they were passed
  std::string code;           ///< the program as it was passed; empty if it is long and libcollet can write it again
  std::string format;         ///< the format of `code`; "hlo" if that is empty
  bool names_shardy = false;  ///< MLIR that may have ops of Shardy
  std::string name;
  std::string fingerprint;
  std::string assignment;  ///< as a DeviceAssignmentProto
  std::once_flag asked_optimized;
  /// Valid after asked_optimized has been called: HloModuleProtoWithConfig; empty if the program runs as it was passed.
  std::string optimized;

  std::vector<HostFunctionUse> host_functions;  ///< host functions that the program calls

  uint32_t arguments = 0;
  /// Indices of arguments that are tokens, for which frontends pass any array without data.
  std::vector<uint32_t> token_arguments;
  uint64_t code_bytes = 0;  ///< 0: unknown
  /// Of the results that follow those of the frontend's program: the dimensions whose sizes they are. Empty unless the client wants
  /// real sizes.
  std::vector<DynamicDimension> sizes;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<Memory*> output_memories;  ///< memory of result i on participant p: i * devices + p
  std::vector<const char*> output_kinds;
  std::vector<size_t> output_kind_sizes;
  std::vector<const char*> parameter_kinds;
  std::vector<size_t> parameter_kind_sizes;
  std::vector<PJRT_Layouts_MemoryLayout*> output_layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layouts;
  /// OpSharding messages of parameters, then of outputs; the pointers below refer to them.
  std::vector<std::string> shardings;
  std::vector<const char*> parameter_shardings, output_shardings;  ///< empty if the program was not partitioned
  std::vector<size_t> parameter_sharding_sizes, output_sharding_sizes;
  std::vector<PJRT_Device*> devices;  ///< of the participants in this process
  std::vector<int> logical_ids;       ///< pairs of replica and partition
  std::vector<PJRT_NamedValue> costs;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { collet_executable_release(handle); }
};

/// A program in one of the formats, and optionally the result of an earlier compilation.
struct Source {
  std::string_view format, code, options;
  std::string_view name = {}, compiled = {};  ///< `compiled`: the bytes that libcollet serialized; empty: none
};

/// Compiles a program, or loads the result of an earlier compilation if it is still usable.
PJRT_Error* compile(PJRT_Client& client, const Source& source, std::shared_ptr<Compiled>& out);

}  // namespace collet::pjrt

struct PJRT_Executable {
  std::shared_ptr<collet::pjrt::Compiled> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<collet::pjrt::Compiled> program;
  std::atomic<bool> deleted = false;
};
