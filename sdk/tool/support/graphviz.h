// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Draws programs as graphs, with a cluster for each computation. Constants of one element are shown in the boxes of their users; bodies of one
/// op, such as a sum's, in that of their caller.

namespace collet::tool {

/// Returns the graph in Graphviz' language.
std::string to_dot(const hlo::Module& module);

/// Returns the graph as SVG, drawn by Graphviz' `dot`. NOT_FOUND if `dot` cannot be run.
Expected<std::string> to_svg(const hlo::Module& module);

}  // namespace collet::tool
