// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <string>

#include "sdk/pjrt/api/basics.h"

namespace collet::pjrt {

/// The plugin's PJRT_Error: a code and a message; the caller destroys it.
struct Error : PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};

/// Creates an error.
PJRT_Error* make_error(PJRT_Error_Code code, std::string message);
/// Creates an error INVALID_ARGUMENT.
PJRT_Error* invalid_argument(std::string message);
/// Creates an error UNIMPLEMENTED.
PJRT_Error* unimplemented(std::string message);
/// Creates an error FAILED_PRECONDITION.
PJRT_Error* failed_precondition(std::string message);
/// Converts a failure of libcollet, with its message; null for COLLET_OK.
PJRT_Error* from_collet(collet_status status, const char* message);

/// Returns from the enclosing function if the libcollet call fails; the call can pass a variable `failure` for its
/// error.
#define COLLET_PJRT_TRY(call_)                                       \
  do {                                                               \
    collet_error failure{};                                          \
    if (const collet_status status_ = (call_); status_ != COLLET_OK) \
      return ::collet::pjrt::from_collet(status_, failure.message);  \
  } while (false)

/// Returns the error, if there is one.
#define COLLET_PJRT_CHECK(call_)                     \
  do {                                               \
    if (PJRT_Error* error_ = (call_)) return error_; \
  } while (false)

}  // namespace collet::pjrt
