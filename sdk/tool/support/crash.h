// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace collet::tool {

/// Sets the text of the message that a crash prints: "collet: Segmentation fault while running on acme". The signal
/// still ends the process. An empty text switches the message off.
void blame_crashes_on(std::string_view what);

}  // namespace collet::tool
