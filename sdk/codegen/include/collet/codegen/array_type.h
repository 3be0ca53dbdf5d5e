// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/types.h>

#include <cstdint>
#include <vector>

namespace collet::codegen {

using Dims = std::vector<int64_t>;

/// The type of an array: dense, row-major, with static dimensions.
struct ArrayType {
  uint32_t element = 0;
  Dims dims;
  int64_t elements = 1;

  int64_t bytes() const { return elements * collet_type_bytes(element); }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

/// Makes a type; `elements` is the product of `dims`.
ArrayType make_type(uint32_t element, Dims dims);

/// Returns the row-major strides of an array, in elements.
Dims strides_of(const Dims& dims);

}  // namespace collet::codegen
