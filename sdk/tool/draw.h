// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Pictures of programs: a cluster for each computation. Constants of one element stand in the boxes of their users; bodies of one
/// op, such as a sum's, in that of their caller.

namespace collet::tool {

/// A graph in Graphviz' language.
std::string to_dot(const hlo::Module& module);

/// That graph as Graphviz' `dot` draws it. NOT_FOUND where `dot` cannot be run.
Expected<std::string> to_svg(const hlo::Module& module);

}  // namespace collet::tool
