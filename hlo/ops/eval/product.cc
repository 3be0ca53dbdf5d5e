// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/product.h"

#include <algorithm>

#include "hlo/ops/eval/kernels.h"

namespace collet::hlo::eval {

bool fits_doubles(Type a, Type b, int64_t k) {
  const auto bits = [](Type type) { return kind_of(type) == Kind::Pred ? 1 : type_info(type).bits; };
  int depth = 0;
  while (depth < 62 && (int64_t{1} << depth) < k) ++depth;
  return bits(a) + bits(b) + depth <= 52;
}

Product::Product(Type a, Type b, Type result, int64_t work, int64_t k, bool other)
    : wide_(std::max({wide_of(a), wide_of(b), wide_of(result)})), result_(result) {
  // The sum of numbers of a wider kind than the result's is converted at the end.
  const Type sum = wide_ == wide_of(result) ? result : type_info(a).bits >= type_info(b).bits ? a : b;
  through_doubles_ = wide_ == Wide::Int && fits_doubles(a, b, k);
  if (through_doubles_) wide_ = Wide::Real;
  const bool steps = is_short(k) != other;
  precise_ = sum == Type::F64 && work < (int64_t{1} << 27) && !steps;
  narrow_ = steps && sum != Type::F64 && sum != Type::C128 && !through_doubles_;
}

void Product::add(int64_t m, int64_t n, int64_t k, WideArray& a, int64_t a_at, WideArray& b, int64_t b_at, WideArray& c,
                  int64_t c_at) const {
  if (wide_ == Wide::Int)
    gemm(m, n, k, a.words() + a_at, b.words() + b_at, c.words() + c_at);
  else if (narrow_ && wide_ == Wide::Real)
    gemm_narrow(m, n, k, a.reals() + a_at, b.reals() + b_at, c.reals() + c_at);
  else if (narrow_)
    gemm_narrow(m, n, k, a.complexes() + a_at, b.complexes() + b_at, c.complexes() + c_at);
  else if (wide_ == Wide::Complex)
    gemm(m, n, k, a.complexes() + a_at, b.complexes() + b_at, c.complexes() + c_at);
  else if (precise_)
    gemm_wide(m, n, k, a.reals() + a_at, b.reals() + b_at, c.reals() + c_at);
  else
    gemm(m, n, k, a.reals() + a_at, b.reals() + b_at, c.reals() + c_at);
}

WideArray Product::finish(WideArray sums) const {
  if (!through_doubles_ && wide_ == wide_of(result_)) return sums;
  if (!through_doubles_) {
    WideArray out(wide_of(result_), sums.count());
    for (int64_t i = 0; i < sums.count(); i += kLanes)
      convert_lanes(wide_ == Wide::Complex ? Type::C128 : Type::F64, result_, sums.at(i), out.at(i),
                    std::min(kLanes, sums.count() - i));
    return out;
  }
  WideArray words(Wide::Int, sums.count());
  for (int64_t i = 0; i < sums.count(); ++i)
    words.words()[i] = static_cast<uint64_t>(static_cast<int64_t>(sums.reals()[i]));
  return words;
}

}  // namespace collet::hlo::eval
