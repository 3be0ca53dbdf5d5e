// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/pjrt/api/basics.h"

namespace collet::pjrt {

/// The fields of a CompileOptionsProto that matter here.
struct CompileOptions {
  uint32_t replicas = 1;
  uint32_t partitions = 1;
  std::vector<uint32_t> assignment;  ///< device of replica * partitions + partition; empty: not said
  bool partition = false;            ///< the program is written for whole arrays, to be partitioned
  bool portable = false;             ///< compiled for no device in particular
  int64_t device_ordinal = -1;
};

/// Reads one; INVALID_ARGUMENT where the bytes are none, or name an option that nobody knows.
PJRT_Error* read_compile_options(std::string_view bytes, CompileOptions& out);
/// A DeviceAssignmentProto.
std::string write_assignment(const CompileOptions& options);

}  // namespace collet::pjrt
