// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <string>

namespace collet::codegen {

/// Returns a library call as text: what is computed, and of which types. The distances of a matrix are printed in the
/// order batch, row, column.
std::string print_library_call(const LibraryCall& call);

/// Returns the launch plan as readable text: sizes, then the steps with their places.
std::string print_launch_plan(const LaunchPlan& plan);

}  // namespace collet::codegen
