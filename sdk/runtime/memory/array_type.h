// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"

namespace collet::runtime {

/// An array type. There is one object per type in the process, which is never freed, so its dimensions outlive all
/// users.
struct ArrayType {
  uint32_t element = 0;
  std::vector<int64_t> dims;
  uint64_t elements = 0;
  uint64_t bytes = 0;

  collet_array_type to_c() const { return {element, static_cast<uint32_t>(dims.size()), dims.data()}; }
  std::string to_string() const;
};

/// Returns the type; INVALID_ARGUMENT for unknown elements, and for negative or too large dimensions.
Expected<const ArrayType*> array_type(uint32_t element, std::span<const int64_t> dims);
/// Returns the type of an array, token or opaque shape. Dynamic dimensions have their bounds.
Expected<const ArrayType*> array_type(const hlo::Shape& shape);

}  // namespace collet::runtime
