// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// Why a block of scalar arguments and results, the body of a map, reduce or sort, cannot be computed inside a kernel;
/// empty where it can. It may branch and loop over scalars, and hold small arrays of its own.
std::string scalar_block_refusal(const Graph& graph, const Block& block);

bool is_scalar_block(const Graph& graph, const Block& block);

/// Whether a scalar block takes tens of instructions.
bool is_expensive_block(const Graph& graph, const Block& block);

}  // namespace collet::codegen
