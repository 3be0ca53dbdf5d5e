// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/graph/graph.h"

namespace collet::codegen {

/// Returns a type as text, such as "f32[4,64]".
std::string type_text(const ArrayType& type);

/// Returns the graph as readable text: each block with its nodes, in the form "%7: f32[4,32] = add(%5, %6)".
std::string print_graph(const Graph& graph);

}  // namespace collet::codegen
