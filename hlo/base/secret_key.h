// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"

/// \file
/// The key with which bytes are signed that are stored and later run as code.

namespace collet {

/// A secret key, or none. Copies are independent.
class SecretKey {
 public:
  /// Bytes of a signature.
  static constexpr size_t kBytes = 32;

  /// No key.
  SecretKey() = default;
  /// Reads the file that COLLET_KEY_FILE names: all its bytes, 16 to 4096 of them, are the key. No key if the variable is not set or
  /// empty. Returns PERMISSION_DENIED for a file of another user than this one and root, or that others may read or write, and
  /// INVALID_ARGUMENT for one that cannot be read or has another length. The variable does not count in set-user-ID programs.
  static Expected<SecretKey> of_environment();

  /// True if there is a key.
  explicit operator bool() const { return !key_.empty(); }
  /// Returns the HMAC-SHA-256 of `purpose`, a zero byte and `bytes`, kBytes bytes long; empty without a key. The purpose says what
  /// the bytes are, so that a signature is of no use for others.
  std::string sign(std::string_view purpose, std::string_view bytes) const;
  /// True without a key, or if `signature` is that of `purpose` and `bytes`. The time does not tell where they differ.
  bool accepts(std::string_view purpose, std::string_view bytes, std::string_view signature) const;

 private:
  std::string key_;
};

}  // namespace collet
