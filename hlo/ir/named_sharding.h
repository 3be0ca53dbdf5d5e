// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace collet::hlo {

/// True if the text inside of a sharding's braces is a sharding on a mesh of named axes: checks the grammar, and that
/// the mesh has the axes.
bool is_named_sharding(std::string_view text);

}  // namespace collet::hlo
