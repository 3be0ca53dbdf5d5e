// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <string>

namespace collet::codegen {

/// The call as text: what is computed, of which types. Distances of matrices: batch, row, column.
std::string print_library_call(const LibraryCall& call);

/// The launch plan as text, for people: sizes, then the steps with their places.
std::string print_launch_plan(const LaunchPlan& plan);

}  // namespace collet::codegen
