// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace collet::hlo {

/// Whether the inside of a sharding's braces is one on a mesh of named axes: its grammar, and axes that the mesh has.
bool is_named_sharding(std::string_view text);

}  // namespace collet::hlo
