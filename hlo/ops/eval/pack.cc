// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/pack.h"

#include <algorithm>
#include <numeric>

#include "hlo/ops/eval/strided.h"

namespace collet::hlo::eval {

WideArray::WideArray(Wide wide, int64_t count) : wide_(wide), count_(count) {
  words_ = std::make_unique<uint64_t[]>(static_cast<size_t>(count) * lane_bytes(wide) / 8);
}

WideArray pack(const Literal& literal, std::span<const int64_t> order) {
  const Codec& source = codec(literal.type());
  WideArray out(wide_of(literal.type()), literal.element_count());
  const Ints from = row_major_strides(literal.shape().dims());
  Ints dims, strides;
  for (int64_t d : order) {
    dims.push_back(literal.shape().dim(static_cast<int>(d)));
    strides.push_back(from[static_cast<size_t>(d)]);
  }
  if (out.count() == 0) return out;
  std::vector<Ints> both{strides};
  merge_dims(dims, both);
  const int64_t n = dims.empty() ? 1 : dims.back(), stride = dims.empty() ? 1 : both[0].back();
  if (!dims.empty()) {
    dims.pop_back();
    both[0].pop_back();
  }
  int64_t at = 0;
  for (IndexIterator it(dims, both); !it.done(); it.next(), at += n)
    source.load(literal.bytes() + it.offset(0) * source.bytes, stride, out.at(at), n);
  return out;
}

WideArray pack(const Literal& literal) {
  Ints order(static_cast<size_t>(literal.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  return pack(literal, order);
}

void unpack(const WideArray& array, int64_t first, int64_t count, Type type, uint8_t* bytes, int64_t to) {
  const Codec& target = codec(type);
  target.store(array.at(first), bytes + to * target.bytes, 1, count);
}

Literal unpack(const WideArray& array, const Shape& shape) {
  Literal out = Literal::uninitialized(shape);
  unpack(array, 0, array.count(), shape.type(), out.mutable_bytes(), 0);
  return out;
}

WideArray widen_to(WideArray array, Wide wide, Type from) {
  if (array.wide() == wide) return array;
  const Type to = wide == Wide::Complex ? Type::C128 : wide == Wide::Real ? Type::F64 : Type::S64;
  WideArray out(wide, array.count());
  for (int64_t i = 0; i < array.count(); i += kLanes)
    convert_lanes(from, to, array.at(i), out.at(i), std::min(kLanes, array.count() - i));
  return out;
}

}  // namespace collet::hlo::eval
