// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "hlo/ops/eval/kernels.h"

namespace collet::hlo::eval {
namespace {

// Each function type has of(a, b, c, bits) on 64-bit words.
template <typename F, typename T>
void run(const KernelArgs& k) {
  auto* a = static_cast<const T*>(k.in[0]);
  auto* b = static_cast<const T*>(k.in[1] ? k.in[1] : k.in[0]);
  auto* c = static_cast<const T*>(k.in[2] ? k.in[2] : k.in[0]);
  auto* out = static_cast<T*>(k.out);
  for (int64_t i = 0; i < k.n; ++i) out[i] = F::of(a[i], b[i], c[i], k.bits);
}

// Unsigned words, and ops whose arithmetic is the same for signed and unsigned words.
using U = uint64_t;
using S = int64_t;

U power(U base, U exponent) {
  U result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

#define COLLET_FUNCTION(Name, T, expression)                                                                \
  struct Name {                                                                                             \
    static T of([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c, [[maybe_unused]] int w) { \
      return expression;                                                                                    \
    }                                                                                                       \
  };

COLLET_FUNCTION(Add, U, a + b)
COLLET_FUNCTION(Subtract, U, a - b)
COLLET_FUNCTION(Multiply, U, a* b)
COLLET_FUNCTION(Negate, U, 0 - a)
COLLET_FUNCTION(And, U, a& b)
COLLET_FUNCTION(Or, U, a | b)
COLLET_FUNCTION(Xor, U, a ^ b)
COLLET_FUNCTION(Not, U, ~a)
COLLET_FUNCTION(PredNot, U, a == 0)
COLLET_FUNCTION(Identity, U, a)
COLLET_FUNCTION(Popcnt, U, static_cast<U>(std::popcount(low_bits(a, w))))
COLLET_FUNCTION(Clz, U, static_cast<U>(std::countl_zero(low_bits(a, w)) - (64 - w)))
COLLET_FUNCTION(ShiftLeft, U, low_bits(b, w) >= U(w) ? 0 : a << low_bits(b, w))
COLLET_FUNCTION(ShiftLogical, U, low_bits(b, w) >= U(w) ? 0 : low_bits(a, w) >> low_bits(b, w))
COLLET_FUNCTION(ShiftArithmetic, U, U(sign_extend(a, w) >> (low_bits(b, w) >= U(w) ? U(w) - 1 : low_bits(b, w))))

COLLET_FUNCTION(UDivide, U, b == 0 ? ~U{0} : a / b)
COLLET_FUNCTION(URemainder, U, b == 0 ? a : a % b)
COLLET_FUNCTION(UMaximum, U, a > b ? a : b)
COLLET_FUNCTION(UMinimum, U, a < b ? a : b)
COLLET_FUNCTION(UClamp, U, std::min(std::max(a, b), c))
COLLET_FUNCTION(USign, U, a != 0)
COLLET_FUNCTION(UPower, U, power(a, b))

COLLET_FUNCTION(SDivide, S, b == 0 ? -1 : b == -1 ? S(0 - U(a)) : a / b)
COLLET_FUNCTION(SRemainder, S, b == 0 ? a : b == -1 ? 0 : a % b)
COLLET_FUNCTION(SMaximum, S, a > b ? a : b)
COLLET_FUNCTION(SMinimum, S, a < b ? a : b)
COLLET_FUNCTION(SClamp, S, std::min(std::max(a, b), c))
COLLET_FUNCTION(SSign, S, (a > 0) - (a < 0))
COLLET_FUNCTION(SAbs, S, a < 0 ? S(0 - U(a)) : a)
COLLET_FUNCTION(SPower, S, b >= 0 ? S(power(U(a), U(b))) : a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0)
#undef COLLET_FUNCTION

// clamp's operands are (low, value, high).
template <typename F, typename T>
void run_clamp(const KernelArgs& k) {
  run<F, T>({k.out, {k.in[1], k.in[0], k.in[2]}, k.n, k.bits});
}

Kernel common(Op op) {
  switch (op) {
    case Op::ADD:
      return run<Add, U>;
    case Op::SUBTRACT:
      return run<Subtract, U>;
    case Op::MULTIPLY:
      return run<Multiply, U>;
    case Op::NEGATE:
      return run<Negate, U>;
    case Op::AND:
      return run<And, U>;
    case Op::OR:
      return run<Or, U>;
    case Op::XOR:
      return run<Xor, U>;
    case Op::NOT:
      return run<Not, U>;
    case Op::POPCNT:
      return run<Popcnt, U>;
    case Op::COUNT_LEADING_ZEROS:
      return run<Clz, U>;
    case Op::SHIFT_LEFT:
      return run<ShiftLeft, U>;
    case Op::SHIFT_RIGHT_LOGICAL:
      return run<ShiftLogical, U>;
    case Op::SHIFT_RIGHT_ARITHMETIC:
      return run<ShiftArithmetic, U>;
    default:
      return nullptr;
  }
}

Kernel pred_kernel(Op op) {
  switch (op) {
    case Op::ADD:
    case Op::OR:
    case Op::MAXIMUM:
      return run<Or, U>;
    case Op::MULTIPLY:
    case Op::AND:
    case Op::MINIMUM:
      return run<And, U>;
    case Op::XOR:
    case Op::SUBTRACT:
      return run<Xor, U>;
    case Op::NOT:
      return run<PredNot, U>;
    case Op::CLAMP:
      return run_clamp<UClamp, U>;
    case Op::ABS:
    case Op::SIGN:
    case Op::NEGATE:
    case Op::REAL:
      return run<Identity, U>;
    default:
      return nullptr;
  }
}

Kernel unsigned_kernel(Op op) {
  switch (op) {
    case Op::DIVIDE:
      return run<UDivide, U>;
    case Op::REMAINDER:
      return run<URemainder, U>;
    case Op::MAXIMUM:
      return run<UMaximum, U>;
    case Op::MINIMUM:
      return run<UMinimum, U>;
    case Op::CLAMP:
      return run_clamp<UClamp, U>;
    case Op::ABS:
      return run<Identity, U>;
    case Op::SIGN:
      return run<USign, U>;
    case Op::POWER:
      return run<UPower, U>;
    default:
      return common(op);
  }
}

Kernel signed_kernel(Op op) {
  switch (op) {
    case Op::DIVIDE:
      return run<SDivide, S>;
    case Op::REMAINDER:
      return run<SRemainder, S>;
    case Op::MAXIMUM:
      return run<SMaximum, S>;
    case Op::MINIMUM:
      return run<SMinimum, S>;
    case Op::CLAMP:
      return run_clamp<SClamp, S>;
    case Op::ABS:
      return run<SAbs, S>;
    case Op::SIGN:
      return run<SSign, S>;
    case Op::POWER:
      return run<SPower, S>;
    default:
      return common(op);
  }
}

}  // namespace

Kernel int_kernel(Op op, Kind kind) {
  return kind == Kind::Pred ? pred_kernel(op) : kind == Kind::Signed ? signed_kernel(op) : unsigned_kernel(op);
}

}  // namespace collet::hlo::eval
