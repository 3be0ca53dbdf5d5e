// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::tool {

/// The module in a form that check_form() takes: "hlo", "artifact", "artifact=1.13.0", "svg", ... The module may be
/// normalised on the way.
Expected<std::string> emit_module(hlo::Module& module, std::string_view form);

/// INVALID_ARGUMENT where there is no such form, or where it takes no parameter and has one.
Status check_form(std::string_view form);

/// The forms by name, for help.
std::vector<std::string_view> emit_forms();

}  // namespace collet::tool
