// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/fusion/fusion.h"

namespace collet::codegen {

/// The fusion groups of a block as text, for people, in the order in which they run. Values are named as print_graph does.
std::string print_groups(const Graph& graph, const std::vector<FusionGroup>& groups);

}  // namespace collet::codegen
