// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace collet::conformance {

/// Returns text escaped for XML and HTML, including attributes. Bytes that are not valid UTF-8 or not characters of XML
/// become blanks.
std::string escape_markup(std::string_view text);

/// Returns the relative link from a page to a file of its folder: all but letters, digits, '-', '.', '_' and '~' as "%" and two
/// digits, so that no part of the name is a scheme, a folder or a fragment.
std::string link_to_file(std::string_view name);

}  // namespace collet::conformance
