// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// \file
/// Errors as values. Status is one pointer, null for OK; Expected<T> is a T or a Status that is not OK.

namespace collet {

/// The codes of collet/types.h.
enum class Code : collet_status {
  Ok = COLLET_OK,
  Cancelled = COLLET_CANCELLED,
  Unknown = COLLET_UNKNOWN,
  InvalidArgument = COLLET_INVALID_ARGUMENT,
  DeadlineExceeded = COLLET_DEADLINE_EXCEEDED,
  NotFound = COLLET_NOT_FOUND,
  AlreadyExists = COLLET_ALREADY_EXISTS,
  PermissionDenied = COLLET_PERMISSION_DENIED,
  ResourceExhausted = COLLET_RESOURCE_EXHAUSTED,
  FailedPrecondition = COLLET_FAILED_PRECONDITION,
  Aborted = COLLET_ABORTED,
  OutOfRange = COLLET_OUT_OF_RANGE,
  Unimplemented = COLLET_UNIMPLEMENTED,
  Internal = COLLET_INTERNAL,
  Unavailable = COLLET_UNAVAILABLE,
  DataLoss = COLLET_DATA_LOSS,
};

/// Returns the name of a code, such as "INVALID_ARGUMENT".
std::string_view code_name(Code code);

/// OK, or a code and a message that says where the error is and, if there is one, how to fix it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return !rep_; }
  Code code() const { return rep_ ? rep_->code : Code::Ok; }
  const std::string& message() const;
  /// Returns "INVALID_ARGUMENT: message", or "OK".
  std::string to_string() const;
  /// Returns the same error with `prefix` before its message; OK stays OK.
  Status with_prefix(std::string_view prefix) const;

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status ok_status() {
  return Status();
}
/// An error of the caller or user.
Status invalid_argument(std::string message);
/// A feature that is not supported; the caller may then use a fallback.
Status unimplemented(std::string message);
Status not_found(std::string message);
Status resource_exhausted(std::string message);
Status failed_precondition(std::string message);
/// A defect in Collet itself.
Status internal_error(std::string message);

/// Fills a caller-owned error of the C interface; returns its code.
collet_status to_c(const Status& status, collet_error* error);
/// Converts an error of the C interface to a Status; `where` names the function that failed.
Status from_c(collet_status code, const collet_error& error, std::string_view where);

/// A T, or an error.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : has_(true) { new (&value_) T(std::move(value)); }
  Expected(Status status) : has_(false) { new (&status_) Status(std::move(status)); }
  template <typename U>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status> && !std::is_same_v<std::remove_cvref_t<U>, Expected<T>>)
  Expected(U&& value) : has_(true) {
    new (&value_) T(std::forward<U>(value));
  }
  Expected(Expected&& other) noexcept : has_(other.has_) {
    if (has_)
      new (&value_) T(std::move(other.value_));
    else
      new (&status_) Status(std::move(other.status_));
  }
  Expected& operator=(Expected&& other) noexcept {
    if (this == &other) return *this;
    this->~Expected();
    new (this) Expected(std::move(other));
    return *this;
  }
  Expected(const Expected&) = delete;
  Expected& operator=(const Expected&) = delete;
  ~Expected() {
    if (has_)
      value_.~T();
    else
      status_.~Status();
  }

  bool ok() const { return has_; }
  explicit operator bool() const { return has_; }
  T& operator*() & { return value_; }
  const T& operator*() const& { return value_; }
  T&& operator*() && { return std::move(value_); }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  Status status() const { return has_ ? Status() : status_; }

 private:
  bool has_;
  union {
    T value_;
    Status status_;
  };
};

}  // namespace collet

#define COLLET_CONCAT_INNER(a, b) a##b
#define COLLET_CONCAT(a, b) COLLET_CONCAT_INNER(a, b)
/// Returns from the function with the error, if `expression` (a Status) is one.
#define COLLET_TRY(expression)                                                                       \
  do {                                                                                               \
    if (::collet::Status collet_status_ = (expression); !collet_status_.ok()) return collet_status_; \
  } while (false)
/// COLLET_ASSIGN(auto x, f()) declares or assigns the value, or returns from the function with the error.
#define COLLET_ASSIGN(target, expression) \
  COLLET_ASSIGN_INNER(COLLET_CONCAT(collet_expected_, __LINE__), target, expression)
#define COLLET_ASSIGN_INNER(temporary, target, expression) \
  auto temporary = (expression);                           \
  if (!temporary.ok()) return temporary.status();          \
  target = *std::move(temporary)
