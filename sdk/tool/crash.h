// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace collet::tool {

/// What a signal that ends the process is blamed on from now on: "collet: Segmentation fault while running on acme". It
/// still ends the process, by the same signal. Empty: nothing is said any more.
void blame_crashes_on(std::string_view what);

}  // namespace collet::tool
