// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/pjrt/api/basics.h"

namespace collet::pjrt {

/// The fields of a CompileOptionsProto that this library uses.
struct CompileOptions {
  uint32_t replicas = 1;
  uint32_t partitions = 1;
  std::vector<uint32_t> assignment;  ///< device of participant replica * partitions + partition; empty: not stated
  bool partition = false;            ///< the program is written for whole arrays and must be partitioned
  bool portable = false;             ///< compiled for no particular device
  int64_t device_ordinal = -1;
};

/// Reads the message; INVALID_ARGUMENT if it is malformed, or has an unknown option.
PJRT_Error* read_compile_options(std::string_view bytes, CompileOptions& out);
/// Returns a DeviceAssignmentProto.
std::string write_assignment(const CompileOptions& options);

}  // namespace collet::pjrt
