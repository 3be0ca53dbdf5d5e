// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/fusion/fusion.h"

namespace collet::codegen {

/// Returns the fusion groups of a block as readable text, in the order in which they run. Values are named as
/// print_graph names them.
std::string print_groups(const Graph& graph, const std::vector<FusionGroup>& groups);

}  // namespace collet::codegen
