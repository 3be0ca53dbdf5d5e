// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace collet::conformance {

/// Returns text escaped for XML and HTML, including attributes. Bytes that are not valid UTF-8 or not characters of XML
/// become blanks.
std::string escape_markup(std::string_view text);

}  // namespace collet::conformance
