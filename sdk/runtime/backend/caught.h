// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <source_location>
#include <string>
#include <string_view>

#include "hlo/base/no_memory.h"
#include "hlo/base/status.h"

namespace collet::runtime {

/// Returns the name of the function without its types: "collet_compile".
inline std::string function_of(const std::source_location& place) {
  std::string_view name = place.function_name();
  name = name.substr(0, name.find('('));
  return std::string(name.substr(name.rfind(' ') + 1));
}

/// Returns the result of `body`, or converts the exception that it throws to an error, so that no exception leaves the
/// library or ends one of its threads. The message names the calling function.
template <typename Body>
Status caught(const Body& body, const std::source_location& place = std::source_location::current()) {
  try {
    return body();
  } catch (const std::bad_alloc& e) {
    return resource_exhausted(memory_message(e) + ", in " + function_of(place));
  } catch (const std::exception& e) {
    return internal_error(std::string("unexpected: ") + e.what() + ", in " + function_of(place));
  }
}

}  // namespace collet::runtime
