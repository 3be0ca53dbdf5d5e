// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::tool {

/// Returns the module in a form that check_form() accepts: "hlo", "artifact", "artifact=1.13.0", "svg", ... This may
/// normalise the module.
Expected<std::string> emit_module(hlo::Module& module, std::string_view form);

/// Returns INVALID_ARGUMENT for an unknown form, or for a parameter of a form that has none.
Status check_form(std::string_view form);

/// Returns the names of the forms, for help texts.
std::vector<std::string_view> emit_forms();

}  // namespace collet::tool
