// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tool {

/// Returns the op table as `text`, `md`, `json` or `c`.
std::string op_table(const std::string& format);

}  // namespace collet::tool
