// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "conformance/contract/instance.h"

/// \file
/// What is said of bytes that are not those that were expected.

namespace collet::conformance {

/// Returns a text such as "byte 17 is 0x3f and should be 0x0; 3 of 300 bytes are others"; empty if all are as expected.
inline std::string difference_text(std::span<const uint8_t> got, std::span<const uint8_t> expected) {
  const size_t first = first_difference(got, expected), common = std::min(got.size(), expected.size());
  if (first == SIZE_MAX) return {};
  if (got.size() != expected.size())
    return fmt::format("there are {} bytes and should be {}", got.size(), expected.size());
  size_t count = 0;
  for (size_t i = first; i < common; ++i) count += got[i] != expected[i];
  return fmt::format("byte {} is {:#x} and should be {:#x}; {} of {} bytes are others", first, got[first],
                     expected[first], count, common);
}

}  // namespace collet::conformance
