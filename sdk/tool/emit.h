// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::tool {

/// The module in one of emit_forms(): "hlo", "hlo-proto", "stablehlo", "artifact", "artifact=1.13.0", "dot", "svg". The module may be normalised
/// on the way.
Expected<std::string> emit_module(hlo::Module& module, std::string_view form);

/// The forms by name, for help and checks.
std::vector<std::string_view> emit_forms();

}  // namespace collet::tool
