// SPDX-License-Identifier: Apache-2.0
// Tests that simplify changes no bit of a result (NaN payloads aside), for every pair of elementwise ops, every op with
// constants that rules mention, and every chain of conversions, in every type, over all values of narrow types and the
// special values of wide types.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "hlo/base/float_format.h"
#include "hlo/eval/evaluator.h"
#include "hlo/passes/builder.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

constexpr Type kTypes[] = {Type::PRED,       Type::S1,
                           Type::U1,         Type::S2,
                           Type::U2,         Type::S4,
                           Type::U4,         Type::S8,
                           Type::U8,         Type::S16,
                           Type::U16,        Type::S32,
                           Type::U32,        Type::S64,
                           Type::U64,        Type::F4E2M1FN,
                           Type::F8E3M4,     Type::F8E4M3,
                           Type::F8E4M3FN,   Type::F8E5M2,
                           Type::F8E8M0FNU,  Type::F8E4M3B11FNUZ,
                           Type::F8E4M3FNUZ, Type::F8E5M2FNUZ,
                           Type::F16,        Type::BF16,
                           Type::F32,        Type::F64,
                           Type::C64,        Type::C128};

constexpr double kSpecial[] = {0.0,
                               0.25,
                               0.5,
                               0.75,
                               1.0,
                               1.5,
                               2.0,
                               2.5,
                               3.0,
                               7.0,
                               100.0,
                               448.0,
                               65504.0,
                               65536.0,
                               1e9,
                               16777217.0,
                               9007199254740993.0,
                               1e19,
                               3e38,
                               1e300,
                               1e-3,
                               6e-8,
                               1e-38,
                               1e-40,
                               1e-310,
                               INFINITY,
                               NAN};

double special(int64_t i) {
  const auto k = static_cast<size_t>(i) % (2 * std::size(kSpecial));
  return k % 2 ? -kSpecial[k / 2] : kSpecial[k / 2];
}

/// Returns 256 values of `type`; for a type of at most eight bits these are all values.
Literal values(Type type) {
  constexpr int64_t kCount = 256;
  Literal out = Literal::zeros(Shape::array(type, {kCount}));
  const TypeInfo& info = type_info(type);
  for (int64_t i = 0; i < kCount; ++i) {
    if (info.kind == Kind::Complex)
      out.set_double(i, special(i), special(i / 7 + i));
    else if (info.kind == Kind::Float && info.bits <= 8) {
      out.mutable_bytes()[i] = static_cast<uint8_t>(i & ((1 << info.bits) - 1));
      if (std::isnan(out.as_double(i))) out.set_double(i, NAN);  // all NaNs become the same quiet NaN
    } else if (info.kind == Kind::Float)
      out.set_double(i, special(i));
    else if (info.bits <= 8)
      out.set_int(i, type == Type::PRED ? i & 1 : i);
    else
      out.set_int(
          i, i<64 ? i - 32 : i<128 ? INT64_MIN >> (64 - info.bits) | (i - 64) : (i * 0x9E3779B97F4A7C15ll)>>(i % 63));
  }
  return out;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::string difference(const Literal& a, const Literal& b) {
  if (!a.shape().same_without_layout(b.shape())) return a.shape().to_string() + " and " + b.shape().to_string();
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const bool equal = is_float(a.type()) || is_complex(a.type())
                           ? same(a.as_double(i), b.as_double(i)) && same(a.imaginary(i), b.imaginary(i))
                           : a.as_int(i) == b.as_int(i);
    if (!equal)
      return "element " + std::to_string(i) + ": " + std::to_string(a.as_double(i)) + " and " +
             std::to_string(b.as_double(i));
  }
  return {};
}

/// Counts of one test.
struct Tally {
  int run = 0, changed = 0, failed = 0;
  ~Tally() { std::cout << run << " programs, " << changed << " simplified, " << failed << " changed in meaning\n"; }
};

using Make = std::function<InstrId(Builder&, InstrId x)>;

void check(Type type, const Make& make, Tally& tally) {
  Module m("rules");
  const CompId entry = m.add_computation("entry");
  m.set_entry(entry);
  const InstrId x = m.append_parameter(entry, 0, Shape::array(type, {256}));
  Builder b(m, entry);
  const InstrId root = make(b, x);
  if (root == InstrId::None || !b.status().ok()) return;
  m[entry].root = root;
  order_computations(m);
  if (!verify_module(m).ok()) return;
  ++tally.run;
  const auto before = m.clone();
  PassContext context;
  const auto changed = simplify(m, context);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  if (!*changed) return;
  ++tally.changed;
  ASSERT_TRUE(verify_module(m).ok()) << verify_module(m).to_string() << print_module(*before) << print_module(m);
  const auto expected = Evaluator(*before).run({values(type)});
  if (!expected.ok()) return;
  const auto actual = Evaluator(m).run({values(type)});
  ASSERT_TRUE(actual.ok()) << actual.status().to_string();
  const std::string what = difference(*expected, *actual);
  if (what.empty() || ++tally.failed > 40) return;
  ADD_FAILURE() << what << "\n" << print_module(*before) << print_module(m);
}

// Ops that rules match, and similar ones.
constexpr Op kUnary[] = {
    Op::ABS,  Op::NEGATE, Op::NOT,       Op::SIGN, Op::FLOOR, Op::CEIL, Op::ROUND_NEAREST_AFZ, Op::ROUND_NEAREST_EVEN,
    Op::REAL, Op::IMAG,   Op::IS_FINITE, Op::SQRT};

InstrId unary(Builder& b, Op op, InstrId x) {
  if (op == Op::NOT && is_float(b.type(x))) return InstrId::None;
  if ((op == Op::REAL || op == Op::IMAG) && !is_complex(b.type(x))) return b.op(op, Shape(b.shape(x)), {x});
  return b.unary(op, x);
}

TEST(Rules, PairsOfUnaryOps) {
  Tally tally;
  for (Type type : kTypes)
    for (Op first : kUnary)
      for (Op second : kUnary)
        check(
            type,
            [&](Builder& b, InstrId x) {
              const InstrId y = unary(b, first, x);
              return y == InstrId::None ? y : unary(b, second, y);
            },
            tally);
  EXPECT_GT(tally.changed, 100);
}

constexpr Op kBinary[] = {Op::ADD,
                          Op::SUBTRACT,
                          Op::MULTIPLY,
                          Op::DIVIDE,
                          Op::REMAINDER,
                          Op::POWER,
                          Op::MAXIMUM,
                          Op::MINIMUM,
                          Op::AND,
                          Op::OR,
                          Op::XOR,
                          Op::SHIFT_LEFT,
                          Op::SHIFT_RIGHT_LOGICAL,
                          Op::SHIFT_RIGHT_ARITHMETIC};

TEST(Rules, BinaryOpsWithConstants) {
  Tally tally;
  for (Type type : kTypes)
    for (Op op : kBinary)
      for (double c :
           {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 4.0, 1e-40, 5e-324, 3e38, 1e308, double{INFINITY}, double{NAN}})
        for (bool left : {false, true})
          check(
              type,
              [&](Builder& b, InstrId x) {
                const InstrId k = is_integer(type) || type == Type::PRED
                                      ? b.like_int(x, std::abs(c) < 5 ? static_cast<int64_t>(c) : -7)
                                      : b.like(x, c);
                return left ? b.binary(op, k, x) : b.binary(op, x, k);
              },
              tally);
  EXPECT_GT(tally.changed, 100);
}

TEST(Rules, BinaryOpsOfOneValue) {
  Tally tally;
  for (Type type : kTypes)
    for (Op op : kBinary)
      for (Op inner : {Op::COPY, Op::NEGATE, Op::NOT, Op::ABS, Op::XOR, Op::ADD})
        for (bool left : {false, true})
          check(
              type,
              [&](Builder& b, InstrId x) {
                InstrId y = x;
                if (inner == Op::XOR || inner == Op::ADD)
                  y = b.binary(inner, x, b.reverse(x, std::vector<int64_t>{0}));
                else if (inner != Op::COPY)
                  y = unary(b, inner, x);
                if (y == InstrId::None) return y;
                return left ? b.binary(op, y, x) : b.binary(op, x, y);
              },
              tally);
  EXPECT_GT(tally.changed, 50);
}

TEST(Rules, Comparisons) {
  Tally tally;
  for (Type type : kTypes)
    for (Direction d : {Direction::EQ, Direction::NE, Direction::LT, Direction::LE, Direction::GT, Direction::GE})
      for (bool total : {false, true})
        for (int what = 0; what < 8; ++what)
          check(
              type,
              [&](Builder& b, InstrId x) {
                const InstrId y = what < 2   ? x
                                  : what < 6 ? b.like_int(x, what / 2 == 1 ? 0 : 1)
                                             : b.reverse(x, std::vector<int64_t>{0});
                const CompareType kind = total && is_float(type) ? CompareType::TOTALORDER : CompareType::DEFAULT;
                const InstrId c = what % 2 ? b.compare(y, d, x, kind) : b.compare(x, d, y, kind);
                return what < 6 ? c : b.not_(c);
              },
              tally);
  EXPECT_GT(tally.changed, 50);
}

TEST(Rules, Selections) {
  Tally tally;
  for (Type type : kTypes)
    for (int what = 0; what < 5; ++what)
      check(
          type,
          [&](Builder& b, InstrId x) {
            const InstrId turned = b.reverse(x, std::vector<int64_t>{0});
            const InstrId p = b.compare(x, Direction::EQ, turned);
            const InstrId always = b.fill_int(Shape::array(Type::PRED, {256}), what);
            if (what < 2) return b.select(always, x, turned);
            if (what == 2) return b.select(b.not_(p), x, turned);
            if (what == 3) return b.select(p, b.like_int(x, 1), b.like_int(x, 0));
            return b.select(p, b.like_int(x, 0), b.like_int(x, 1));
          },
          tally);
  EXPECT_GT(tally.changed, 50);
}

TEST(Rules, ChainsOfConversions) {
  Tally tally;
  for (Type from : kTypes)
    for (Type middle : kTypes)
      for (Type to : kTypes)
        check(from, [&](Builder& b, InstrId x) { return b.convert(b.convert(x, middle), to); }, tally);
  EXPECT_GT(tally.changed, 1000);
}

TEST(Rules, ChainsOfBitcasts) {
  Tally tally;
  for (Type from : kTypes)
    for (Type middle : kTypes)
      for (Type to : kTypes)
        if (type_info(from).bits == type_info(middle).bits && type_info(from).bits == type_info(to).bits)
          check(
              from, [&](Builder& b, InstrId x) { return b.bitcast_convert(b.bitcast_convert(x, middle), to); }, tally);
  EXPECT_GT(tally.changed, 100);
}

TEST(Rules, ReducedPrecision) {
  Tally tally;
  for (Type type : kTypes)
    for (int64_t exponent : {int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{6}, int64_t{8}, int64_t{9},
                             int64_t{11}, int64_t{12}, int64_t{63}, (int64_t{1} << 32) + 1, INT64_MAX})
      for (int64_t mantissa : {int64_t{0}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{7}, int64_t{10}, int64_t{23},
                               int64_t{52}, int64_t{64}, (int64_t{1} << 32) + 1})
        check(
            type,
            [&](Builder& b, InstrId x) {
              auto* attrs = b.module().make<ReducePrecisionAttrs>();
              attrs->exponent_bits = exponent;
              attrs->mantissa_bits = mantissa;
              return b.op(Op::REDUCE_PRECISION, Shape(b.shape(x)), {x}, attrs);
            },
            tally);
  EXPECT_GT(tally.changed, 5);
}

TEST(Rules, ReductionsOfOneElement) {
  Tally tally;
  for (Type type : kTypes)
    for (Op op : {Op::ADD, Op::MULTIPLY, Op::MAXIMUM, Op::MINIMUM, Op::AND, Op::OR, Op::XOR, Op::SUBTRACT})
      for (double init : {0.0, -0.0, 1.0, -2.0})
        check(
            type,
            [&](Builder& b, InstrId x) {
              const InstrId start = is_float(type) || is_complex(type) ? b.scalar(type, init)
                                                                       : b.scalar_int(type, static_cast<int64_t>(init));
              return b.reduce(b.reshape(x, {256, 1}), start, std::vector<int64_t>{1}, op);
            },
            tally);
  EXPECT_GT(tally.changed, 50);
}

}  // namespace
}  // namespace collet::hlo
