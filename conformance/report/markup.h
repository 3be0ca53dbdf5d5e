// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace collet::conformance {

/// Text as it may stand in XML and HTML, attributes included. What is no UTF-8 or no character of XML becomes a blank.
std::string escape_markup(std::string_view text);

}  // namespace collet::conformance
