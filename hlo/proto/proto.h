// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Modules in XLA's binary form: HloModuleProto, and HloProto, HloSnapshot and HloUnoptimizedSnapshot around it. What is
/// read and written is what HLO text has; messages have no place for `allow_spmd_sharding_propagation_*`,
/// `alias_passthrough_params`, the origins' recovery table and a channel 0, which are left out on the way out.

namespace collet::hlo {

/// The module in `bytes`, whichever of the messages they are. Errors name the computation, the instruction and the
/// field.
Expected<std::unique_ptr<Module>> read_proto(std::string_view bytes);

/// An HloModuleProto: what `HloModule.from_serialized_hlo_module_proto` and `XlaComputation` of JAX's library take.
Expected<std::string> write_module_proto(const Module& module);
/// An HloProto.
Expected<std::string> write_proto(const Module& module);

/// The values that a snapshot has beside its program.
struct Snapshot {
  std::vector<Literal> arguments;
  Literal result;  ///< not valid: none
  std::string platform;
};
/// An HloSnapshot.
Expected<std::string> write_snapshot(const Module& module, const Snapshot& values);
/// The values of an HloSnapshot; an error for other messages.
Expected<Snapshot> read_snapshot_values(std::string_view bytes);

}  // namespace collet::hlo
