// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>

#include "hlo/base/status.h"

namespace collet::runtime {

/// What `body` returns, or the exception that it ended with: none leaves the library, nor ends a thread of its own.
template <typename Body>
Status caught(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of host memory");
  } catch (const std::exception& e) {
    return internal_error(std::string("unexpected: ") + e.what());
  }
}

}  // namespace collet::runtime
