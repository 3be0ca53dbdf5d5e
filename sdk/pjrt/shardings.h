// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sdk/pjrt/api/extensions.h"

namespace collet::pjrt {

/// Converts a sharding that collet.h returns for an argument or result, such as "{replicated}" or "{devices=[2,1]0,1}",
/// to an OpSharding. Empty if the text has another form.
std::string write_op_sharding(std::string_view text);
/// Returns the shardings extension, followed by `next`.
PJRT_Extension_Base* shardings_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
