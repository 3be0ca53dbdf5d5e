// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/array_type.h>

#include <utility>

namespace collet::codegen {

ArrayType make_type(uint32_t element, Dims dims) {
  ArrayType t{element, std::move(dims), 1};
  for (int64_t d : t.dims) t.elements *= d;
  return t;
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size());
  int64_t s = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = s;
    s *= dims[i];
  }
  return strides;
}

}  // namespace collet::codegen
