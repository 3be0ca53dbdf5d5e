// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/launch/launch_plan.h"

namespace collet::codegen {

/// The launch plan as text, for people: sizes, then the steps with their places.
std::string print_launch_plan(const LaunchPlan& plan);

}  // namespace collet::codegen
