// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/product.h"

#include "hlo/ops/eval/kernels.h"

namespace collet::hlo::eval {

bool fits_doubles(Type a, Type b, int64_t k) {
  const auto bits = [](Type type) { return kind_of(type) == Kind::Pred ? 1 : type_info(type).bits; };
  int depth = 0;
  while (depth < 62 && (int64_t{1} << depth) < k) ++depth;
  return bits(a) + bits(b) + depth <= 52;
}

Product::Product(Type a, Type b, Type result, int64_t work, int64_t k, bool other) : wide_(wide_of(result)) {
  through_doubles_ = wide_ == Wide::Int && wide_of(a) == Wide::Int && wide_of(b) == Wide::Int && fits_doubles(a, b, k);
  if (through_doubles_) wide_ = Wide::Real;
  const bool steps = is_short(k) != other;
  precise_ = result == Type::F64 && work < (int64_t{1} << 27) && !steps;
  narrow_ = steps && result != Type::F64 && result != Type::C128 && !through_doubles_;
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
  if (!through_doubles_) return sums;
  WideArray words(Wide::Int, sums.count());
  for (int64_t i = 0; i < sums.count(); ++i)
    words.words()[i] = static_cast<uint64_t>(static_cast<int64_t>(sums.reals()[i]));
  return words;
}

}  // namespace collet::hlo::eval
