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

/// A compiled program, shared by the handles that callers hold.
struct Compiled {
  std::shared_ptr<PJRT_Client> compiler;  ///< of a program compiled for a topology: the client, which lives as long
  PJRT_Client* client = nullptr;
  collet_executable* handle = nullptr;
  CompileOptions options;
  std::string raw_options;  ///< as they came
  std::string code;         ///< as it came
  std::string format;       ///< likewise
  std::string name;
  std::string fingerprint;
  std::string assignment;  ///< DeviceAssignmentProto
  std::once_flag asked_optimized;
  std::string optimized;  ///< once asked_optimized has been called: HloModuleProtoWithConfig; empty: as it came

  std::vector<HostFunctionUse> host_functions;  ///< those that the program calls

  uint32_t arguments = 0;
  std::vector<uint32_t> token_arguments;  ///< which of them are tokens: frontends give anything without data for those
  uint64_t code_bytes = 0;                ///< 0: unknown
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<Memory*> output_memories;  ///< of result i on participant p: i * devices + p
  std::vector<const char*> output_kinds;
  std::vector<size_t> output_kind_sizes;
  std::vector<const char*> parameter_kinds;
  std::vector<size_t> parameter_kind_sizes;
  std::vector<PJRT_Layouts_MemoryLayout*> output_layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layouts;
  std::vector<std::string> shardings;  ///< OpSharding messages, parameters then outputs; kept for the views below
  std::vector<const char*> parameter_shardings, output_shardings;  ///< empty where nothing was partitioned
  std::vector<size_t> parameter_sharding_sizes, output_sharding_sizes;
  std::vector<PJRT_Device*> devices;
  std::vector<int> logical_ids;  ///< replica, partition; replica, partition; ...
  std::vector<PJRT_NamedValue> costs;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { collet_executable_release(handle); }
};

/// A program in one of the formats, and perhaps what an earlier compilation made of it.
struct Source {
  std::string_view format, code, options;
  std::string_view name = {}, compiled = {};  ///< as libcollet serialized it; empty: there is none
};

/// Compiles a program, or takes what was compiled before where that still fits.
PJRT_Error* compile(PJRT_Client& client, const Source& source, std::shared_ptr<Compiled>& out);

}  // namespace collet::pjrt

struct PJRT_Executable {
  std::shared_ptr<collet::pjrt::Compiled> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<collet::pjrt::Compiled> program;
  std::atomic<bool> deleted = false;
};
