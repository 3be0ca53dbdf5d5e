// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/eval/kernels.h"

#include <bit>

namespace collet::hlo::eval {
namespace {

template <typename T>
void select(const KernelArgs& k) {
  auto* pred = static_cast<const int64_t*>(k.in[0]);
  auto* a = static_cast<const T*>(k.in[1]);
  auto* b = static_cast<const T*>(k.in[2]);
  auto* out = static_cast<T*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = pred[i] ? a[i] : b[i];
}

template <Direction kDirection, typename T>
bool holds(const T& a, const T& b) {
  if constexpr (kDirection == Direction::EQ) return a == b;
  if constexpr (kDirection == Direction::NE) return !(a == b);
  if constexpr (!std::is_same_v<T, Cx>) {
    if constexpr (kDirection == Direction::GE) return a >= b;
    if constexpr (kDirection == Direction::GT) return a > b;
    if constexpr (kDirection == Direction::LE) return a <= b;
    if constexpr (kDirection == Direction::LT) return a < b;
  }
  return false;
}

template <Direction kDirection, typename T>
void compare(const KernelArgs& k) {
  auto* a = static_cast<const T*>(k.in[0]);
  auto* b = static_cast<const T*>(k.in[1]);
  auto* out = static_cast<int64_t*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = holds<kDirection>(a[i], b[i]);
}

// Compares the bits of doubles in total order: the bits of negative numbers are inverted.
template <Direction kDirection>
void compare_total(const KernelArgs& k) {
  const auto key = [](int64_t bits) { return bits < 0 ? bits ^ INT64_MAX : bits; };
  auto* a = static_cast<const int64_t*>(k.in[0]);
  auto* b = static_cast<const int64_t*>(k.in[1]);
  auto* out = static_cast<int64_t*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = holds<kDirection>(key(a[i]), key(b[i]));
}

template <Direction kDirection>
Kernel compare_as(CompareType compare_type, Type type) {
  switch (kind_of(type)) {
    case Kind::Complex:
      return compare<kDirection, Cx>;
    case Kind::Float:
      return compare_type == CompareType::TOTALORDER ? &compare_total<kDirection> : &compare<kDirection, double>;
    case Kind::Signed:
      return compare<kDirection, int64_t>;
    default:
      return compare<kDirection, uint64_t>;
  }
}

}  // namespace

Kernel find_compare(Direction direction, CompareType compare_type, Type type) {
  switch (direction) {
    case Direction::EQ:
      return compare_as<Direction::EQ>(compare_type, type);
    case Direction::NE:
      return compare_as<Direction::NE>(compare_type, type);
    case Direction::GE:
      return compare_as<Direction::GE>(compare_type, type);
    case Direction::GT:
      return compare_as<Direction::GT>(compare_type, type);
    case Direction::LE:
      return compare_as<Direction::LE>(compare_type, type);
    case Direction::LT:
      return compare_as<Direction::LT>(compare_type, type);
  }
  return nullptr;
}

Kernel find_kernel(Op op, Type type) {
  if (op == Op::SELECT) return wide_of(type) == Wide::Complex ? &select<Cx> : &select<uint64_t>;
  switch (kind_of(type)) {
    case Kind::Float:
      return real_kernel(op, type == Type::F64);
    case Kind::Complex:
      return complex_kernel(op, type == Type::C128);
    case Kind::Opaque:
      return nullptr;
    default:
      return int_kernel(op, kind_of(type));
  }
}

}  // namespace collet::hlo::eval
