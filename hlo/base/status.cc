// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/status.h"

#include <collet/error.h>

#include <cstring>
#include <iterator>

#include "hlo/base/utf8.h"

namespace collet {

std::string_view code_name(Code code) {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS"};
  static_assert(std::size(kNames) == COLLET_DATA_LOSS + 1, "by number");
  const auto number = static_cast<size_t>(code);
  return number < std::size(kNames) ? kNames[number] : "UNKNOWN";
}

Status::Status(Code code, std::string message) {
  if (code != Code::Ok) rep_ = std::make_unique<Rep>(Rep{code, std::move(message)});
}

Status::Status(const Status& other) {
  if (other.rep_) rep_ = std::make_unique<Rep>(*other.rep_);
}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  return std::string(code_name(code())) + ": " + rep_->message;
}

Status Status::with_prefix(std::string_view prefix) const {
  if (ok()) return Status();
  return Status(code(), std::string(prefix) + rep_->message);
}

Status invalid_argument(std::string message) {
  return {Code::InvalidArgument, std::move(message)};
}
Status unimplemented(std::string message) {
  return {Code::Unimplemented, std::move(message)};
}
Status not_found(std::string message) {
  return {Code::NotFound, std::move(message)};
}
Status resource_exhausted(std::string message) {
  return {Code::ResourceExhausted, std::move(message)};
}
Status failed_precondition(std::string message) {
  return {Code::FailedPrecondition, std::move(message)};
}
Status internal_error(std::string message) {
  return {Code::Internal, std::move(message)};
}

collet_status to_c(const Status& status, collet_error* error) {
  const auto code = static_cast<collet_status>(status.code());
  return status.ok() || !error ? code : collet_set_error(error, code, printable(status.message()).c_str());
}

Status from_c(collet_status code, const collet_error& error, std::string_view where) {
  if (code == COLLET_OK) return Status();
  const bool known = code > COLLET_OK && code <= COLLET_DATA_LOSS;
  const size_t n = strnlen(error.message, sizeof error.message);
  std::string message(where);
  message += n ? ": " + std::string(error.message, n) : ": no error message was given";
  if (!known) message += " (unknown code " + std::to_string(code) + ")";
  return {known ? static_cast<Code>(code) : Code::Unknown, std::move(message)};
}

}  // namespace collet
