// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Modules in XLA's binary form: HloModuleProto, and HloProto, HloSnapshot and HloUnoptimizedSnapshot around it. Read
/// only. Left out on the way in, as they mean nothing to a result: original values and their recovery table,
/// statistics, metadata of shardings. Refused as not supported: shardings and replica groups over named meshes, slices of in-place permutes.

namespace collet::hlo {

/// The module in `bytes`, whichever of the messages they are. Errors name the computation, the instruction and the
/// field.
Expected<std::unique_ptr<Module>> read_proto(std::string_view bytes);

}  // namespace collet::hlo
