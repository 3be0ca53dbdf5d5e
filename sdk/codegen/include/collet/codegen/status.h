// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <string>
#include <utility>

namespace collet::codegen {

/// Success, or an error code of collet/types.h with a readable message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(collet_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == COLLET_OK; }
  collet_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  collet_status code_ = COLLET_OK;
  std::string message_;
};

/// Returns from the calling function with the status of `expression` unless that is OK.
#define COLLET_CODEGEN_TRY(expression)                                     \
  do {                                                                     \
    if (::collet::codegen::Status status_ = (expression); !status_.ok()) { \
      return status_;                                                      \
    }                                                                      \
  } while (false)

}  // namespace collet::codegen
