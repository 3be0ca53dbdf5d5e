// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <string_view>

namespace collet {

/// Thrown if a large block of host memory cannot be allocated; its message says how large the block is.
class NoMemory : public std::bad_alloc {
 public:
  explicit NoMemory(uint64_t bytes) : text_("no host memory for " + std::to_string(bytes) + " bytes") {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Returns a message that says which resource ran out, for any std::bad_alloc.
inline std::string memory_message(const std::bad_alloc& error) {
  const std::string_view text = error.what();
  return std::string(text.starts_with("no host memory") ? text : "out of host memory");
}

}  // namespace collet
