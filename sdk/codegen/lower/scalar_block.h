// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// Returns the reason why a block with scalar arguments and results, such as the body of a map, reduce or sort, cannot
/// be computed inside a kernel; empty if it can. The block may contain branches, loops over scalars, and small arrays.
std::string scalar_block_refusal(const Graph& graph, const Block& block);

bool is_scalar_block(const Graph& graph, const Block& block);

/// True if a scalar block takes tens of instructions.
bool is_expensive_block(const Graph& graph, const Block& block);

}  // namespace collet::codegen
