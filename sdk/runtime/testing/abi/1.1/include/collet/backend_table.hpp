/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_BACKEND_TABLE_HPP
#define COLLET_BACKEND_TABLE_HPP

/** \file
 * Makes the table of a backend that is written in C++ on the functions of backend.h. C++17, nothing to link. A namespace
 * with these functions ends with `constexpr collet_backend kTable = collet::backend_table(open, close, ..., query);`.
 */

#include "backend.h"

namespace collet {

/** Returns a table with the size and the version of these headers. The functions come in the order of collet_backend, all of
 * them; nullptr leaves out an optional one. */
template <class... Functions>
constexpr collet_backend backend_table(Functions... functions) {
  static_assert(sizeof...(Functions) == 11, "from open to query");
  return {sizeof(collet_backend), COLLET_ABI_MAJOR, COLLET_ABI_MINOR, 0, functions...};
}

}  // namespace collet

#endif
