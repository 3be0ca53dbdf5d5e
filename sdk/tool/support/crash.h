// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace collet::tool {

/// Sets what the message of a crash says: "collet: Segmentation fault while running on acme". The signal
/// still ends the process. An empty text switches the message off.
void blame_crashes_on(std::string_view what);

}  // namespace collet::tool
