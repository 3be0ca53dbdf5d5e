// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tool {

/// The op table in one of the forms `text`, `md`, `json`, `c`.
std::string op_table(const std::string& format);

}  // namespace collet::tool
