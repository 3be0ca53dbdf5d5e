// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/array_type.h"

#include <map>
#include <memory>
#include <mutex>

#include "hlo/ir/types.h"

namespace collet::runtime {

std::string ArrayType::to_string() const {
  std::string out = collet_type_name(element);
  out += '[';
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + ']';
}

Expected<const ArrayType*> array_type(uint32_t element, std::span<const int64_t> dims) {
  if (element >= COLLET_TYPE_LIMIT || hlo::type_info(static_cast<hlo::Type>(element)).text.empty())
    return invalid_argument("there is no element type " + std::to_string(element));
  uint64_t elements = 1, bytes;
  for (int64_t d : dims) {
    if (d < 0) return invalid_argument("a dimension of " + std::to_string(d) + " cannot be");
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(d), &elements))
      return invalid_argument("the array is too large");
  }
  if (__builtin_mul_overflow(elements, uint64_t{collet_type_bytes(element)}, &bytes) || bytes > INT64_MAX)
    return invalid_argument("the array is too large");

  static std::mutex mutex;
  static auto* known = new std::map<std::vector<int64_t>, std::unique_ptr<const ArrayType>>;
  std::vector<int64_t> key(dims.begin(), dims.end());
  key.push_back(element);
  const std::lock_guard lock(mutex);
  auto& slot = (*known)[key];
  if (!slot) {
    key.pop_back();
    slot = std::make_unique<const ArrayType>(ArrayType{element, std::move(key), elements, bytes});
  }
  return slot.get();
}

Expected<const ArrayType*> array_type(const hlo::Shape& shape) {
  if (!shape.is_array() && !shape.is_token() && !shape.is_opaque())
    return unimplemented("a value of type " + shape.to_string() + " cannot be passed");
  if (shape.has_unbounded())
    return unimplemented("a value of type " + shape.to_string() + ", whose size is not known, cannot be passed");
  return array_type(static_cast<uint32_t>(shape.type()), shape.dims());
}

}  // namespace collet::runtime
