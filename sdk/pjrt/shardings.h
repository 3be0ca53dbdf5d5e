// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sdk/pjrt/api/extensions.h"

namespace collet::pjrt {

/// An OpSharding of what collet.h says of an argument or result: "{replicated}", "{devices=[2,1]0,1}". Empty where the
/// text is of another form.
std::string write_op_sharding(std::string_view text);
/// The shardings extension, followed by `next`.
PJRT_Extension_Base* shardings_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
