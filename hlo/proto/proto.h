// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Reads and writes modules in XLA's binary form: HloModuleProto, and HloProto, HloSnapshot and HloUnoptimizedSnapshot, which
/// contain one. They hold the same information as HLO text, with four exceptions that writing drops because the messages have
/// no field for them: `allow_spmd_sharding_propagation_*`, `alias_passthrough_params`, the recovery table of origins, and
/// channel 0.

namespace collet::hlo {

/// Reads the module in `bytes`, which may be any of the four messages. Errors name the computation, the instruction and
/// the field.
Expected<std::unique_ptr<Module>> read_proto(std::string_view bytes);

/// Writes an HloModuleProto, which `HloModule.from_serialized_hlo_module_proto` and `XlaComputation` of JAX's library
/// read.
Expected<std::string> write_module_proto(const Module& module);
/// Writes an HloProto.
Expected<std::string> write_proto(const Module& module);

/// The values that a snapshot stores in addition to its program.
struct Snapshot {
  std::vector<Literal> arguments;
  Literal result;  ///< an invalid shape means that there is none
  std::string platform;
};
/// Writes an HloSnapshot.
Expected<std::string> write_snapshot(const Module& module, const Snapshot& values);
/// Reads the values of an HloSnapshot; an error for other messages.
Expected<Snapshot> read_snapshot_values(std::string_view bytes);

}  // namespace collet::hlo
