// SPDX-License-Identifier: Apache-2.0
// Compares each elementwise op as the evaluator runs it with its expansion, over values of all magnitudes and special
// values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <set>

#include "hlo/base/float_format.h"
#include "hlo/eval/evaluator.h"
#include "hlo/ops/op_docs.h"
#include "hlo/ops/rules.h"
#include "hlo/passes/builder.h"
#include "hlo/passes/pipeline.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

Claim core_only(const Module& module, InstrId id) {
  const OpClass c = op_info(module[id].op).op_class;
  if (module[id].op == Op::COMPARE && module[id].as<CompareAttrs>().type == CompareType::TOTALORDER)
    return Claim::Expand;
  return c == OpClass::CORE || c == OpClass::EXECUTOR ? Claim::Take : Claim::Expand;
}

constexpr int64_t kCount = 20000;

// Returns test values: uniformly random bits, small and moderate numbers, and the special values.
Literal values(Type type, std::mt19937_64& random, bool moderate) {
  Literal out = Literal::zeros(Shape::array(type, {kCount}));
  const TypeInfo& info = type_info(type);
  for (int64_t i = 0; i < kCount; ++i) {
    const uint64_t bits = random();
    if (type == Type::PRED) {
      out.set_int(i, bits & 1);
    } else if (is_integer(type)) {
      out.set_int(i, static_cast<int64_t>(i % 3 == 0 ? bits % 7 : bits));
    } else if (i % 4 == 0 && !moderate) {
      std::memcpy(out.mutable_bytes() + i * info.bytes(), &bits, static_cast<size_t>(info.bytes()));
      if (info.bits < 8) out.mutable_bytes()[i] &= static_cast<uint8_t>((1 << info.bits) - 1);
    } else {
      const double unit = std::ldexp(static_cast<double>(bits >> 11), -52) - 1;
      const int exponent = static_cast<int>(bits % 14) - 7;
      out.set_double(i, std::ldexp(unit, moderate ? exponent : 3 * exponent));
    }
  }
  if (is_float(type)) {
    const double special[] = {0.0,    -0.0,      1,          -1,        0.5,       -0.5,  1.5,
                              2.5,    -2.5,      0.49999997, INFINITY,  -INFINITY, NAN,   2,
                              3,      -3,        0.9999999,  1.0000001, 1e30,      -1e30, 1e-40,
                              -1e-40, 4194303.5, 8388609,    710,       -745,      88.7,  -103};
    int64_t i = 0;
    for (double v : special)
      for (double w : special) {
        (void)w;
        out.set_double(i++, v);
      }
  }
  return out;
}

// Returns the second operand. Its special values are transposed: element i has the value that element (i % 28) * 28 had, so that all pairs of special
// values occur.
Literal second(Type type, std::mt19937_64& random, bool moderate) {
  Literal out = values(type, random, moderate);
  if (!is_float(type)) return out;
  Literal copy = out;
  for (int64_t i = 0; i < 28 * 28; ++i) out.set_double(i, copy.as_double((i % 28) * 28));
  return out;
}

// Returns the position of a value among all values of its format, so that differences are distances in ulps.
int64_t rank(Type type, const Literal& l, int64_t i) {
  const TypeInfo& info = type_info(type);
  uint64_t bits = 0;
  std::memcpy(&bits, l.bytes() + i * info.bytes(), static_cast<size_t>(info.bytes()));
  const uint64_t sign = uint64_t{1} << (float_format(static_cast<uint32_t>(type)).bits() - 1);
  const auto size = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -size : size;
}

struct Worst {
  int64_t ulps = 0, at = -1;
};

Worst compare(Type type, const Literal& truth, const Literal& got) {
  Worst worst;
  for (int64_t i = 0; i < truth.element_count(); ++i) {
    int64_t distance = 0;
    if (!is_float(type)) {
      distance = truth.as_int(i) == got.as_int(i) ? 0 : INT64_MAX;
    } else {
      const double t = truth.as_double(i), g = got.as_double(i);
      if (std::isnan(t) || std::isnan(g))
        distance = std::isnan(t) && std::isnan(g) ? 0 : INT64_MAX;
      else if (t == 0 && g == 0)
        distance = std::signbit(t) == std::signbit(g) ? 0 : INT64_MAX - 1;
      else
        distance = std::abs(rank(type, truth, i) - rank(type, got, i));
    }
    if (distance > worst.ulps) worst = {distance, i};
  }
  return worst;
}

struct Case {
  Op op;
  Type type;
  int64_t ulps;
  bool moderate = false;
};

void check(const Case& c) {
  std::mt19937_64 random(static_cast<uint64_t>(c.op) * 100 + static_cast<uint64_t>(c.type));
  Module module("m");
  const CompId entry = module.add_computation("entry");
  module.set_entry(entry);
  const Shape shape = Shape::array(c.type, {kCount});
  Builder b(module, entry);
  std::vector<InstrId> operands;
  std::vector<Literal> inputs;
  const int count = op_info(c.op).min_operands;
  for (int i = 0; i < count; ++i) {
    operands.push_back(module.append_parameter(entry, i, shape));
    inputs.push_back(i == 0 ? values(c.type, random, c.moderate) : second(c.type, random, c.moderate));
  }
  InstrId root;
  if (c.op == Op::COMPARE)
    root = b.compare(operands[0], Direction::LT, operands[1], CompareType::TOTALORDER);
  else if (count == 2)
    root = b.binary(c.op, operands[0], operands[1]);
  else if (count == 3)
    root = b.op(c.op, shape, operands);
  else
    root = b.unary(c.op, operands[0]);
  module[entry].root = root;
  ASSERT_TRUE(verify_module(module).ok()) << verify_module(module).to_string();
  const Type result = module[root].shape.type();
  const auto truth = Evaluator(module).run(inputs);
  ASSERT_TRUE(truth.ok()) << truth.status().to_string();

  PassContext context;
  context.claim = core_only;
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  const auto changed = legalize(module, context, observer);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  for (CompId comp : module.computations())
    for (InstrId id : module[comp].order)
      EXPECT_NE(core_only(module, id), Claim::Expand) << op_info(c.op).text << " left " << op_info(module[id].op).text;
  const auto got = Evaluator(module).run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  const Worst worst = compare(result, *truth, *got);
  const std::string name = std::string(op_info(c.op).text) + " " + std::string(type_info(c.type).text);
  if (std::getenv("COLLET_TEST_ULPS")) std::cout << name << ": " << worst.ulps << " ulp" << std::endl;
  if (worst.ulps > c.ulps) {
    std::string arguments;
    for (const Literal& input : inputs) {
      char text[64];
      std::snprintf(text, sizeof text, " %.17g", input.as_double(worst.at));
      arguments += text;
    }
    ADD_FAILURE() << name << " of" << arguments << ": " << got->as_double(worst.at) << " instead of "
                  << truth->as_double(worst.at) << ", " << worst.ulps << " ulp, bound " << c.ulps;
  }
}

const Type kFloats[] = {Type::F32, Type::F64, Type::BF16, Type::F16, Type::F8E4M3FN, Type::F8E5M2FNUZ};
const Type kIntegers[] = {Type::S8, Type::U8, Type::S16, Type::U16, Type::S32, Type::U32, Type::S64, Type::U64};

TEST(Expand, exact_floats) {
  for (Type type : kFloats)
    for (Op op : {Op::NEGATE, Op::ABS, Op::SUBTRACT, Op::MINIMUM, Op::CLAMP, Op::SIGN, Op::FLOOR, Op::CEIL,
                  Op::ROUND_NEAREST_AFZ, Op::ROUND_NEAREST_EVEN, Op::IS_FINITE, Op::REMAINDER, Op::COMPARE})
      check({op, type, 0});
}

TEST(Expand, exact_integers) {
  for (Type type : kIntegers) {
    for (Op op : {Op::NEGATE, Op::ABS, Op::SUBTRACT, Op::MINIMUM, Op::CLAMP, Op::SIGN, Op::NOT, Op::OR,
                  Op::SHIFT_RIGHT_ARITHMETIC, Op::POPCNT, Op::COUNT_LEADING_ZEROS, Op::REMAINDER, Op::POWER})
      if (!is_unsigned(type) || (op != Op::ABS && op != Op::SIGN)) check({op, type, 0});
  }
  for (Op op : {Op::NOT, Op::OR, Op::MINIMUM}) check({op, Type::PRED, 0});
}

// Compares bitcast-convert between elements of different widths in the evaluator with its expansion by shifts.
void check_regrouping(Type from, Type to) {
  const int from_bits = type_info(from).bits, to_bits = type_info(to).bits;
  std::vector<int64_t> dims = {3};
  if (to_bits > from_bits) dims.push_back(to_bits / from_bits);
  Module module("m");
  const CompId entry = module.add_computation("entry");
  module.set_entry(entry);
  Builder b(module, entry);
  const Shape shape = Shape::array(from, dims);
  const InstrId x = module.append_parameter(entry, 0, shape);
  std::vector<int64_t> result = {3};
  if (from_bits > to_bits) result.push_back(from_bits / to_bits);
  module[entry].root = b.op(Op::BITCAST_CONVERT, Shape::array(to, result), {x});
  ASSERT_TRUE(verify_module(module).ok()) << verify_module(module).to_string();
  std::mt19937_64 random(7);
  Literal input = Literal::zeros(shape);
  const int bytes = type_info(from).bytes();
  for (int64_t i = 0; i < input.element_count() * bytes; ++i)
    input.mutable_bytes()[i] = static_cast<uint8_t>(random() & (from_bits < 8 ? (1u << from_bits) - 1 : 0xFF));
  const std::vector<Literal> inputs = {input};
  const auto truth = Evaluator(module).run(inputs);
  ASSERT_TRUE(truth.ok()) << truth.status().to_string();
  PassContext context;
  context.claim = [](const Module& m, InstrId id) {
    const bool moves_bits = m[id].op == Op::BITCAST_CONVERT &&
                            type_info(m[id].shape.type()).bits != type_info(m[m[id].operand(0)].shape.type()).bits;
    return moves_bits ? Claim::Expand : Claim::Take;
  };
  PassObserver observer;
  observer.verify = [](const Module& m) { return verify_module(m); };
  const auto changed = legalize(module, context, observer);
  ASSERT_TRUE(changed.ok() && *changed) << type_info(from).text << " to " << type_info(to).text;
  const auto got = Evaluator(module).run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  EXPECT_EQ(0, std::memcmp(truth->bytes(), got->bytes(),
                           static_cast<size_t>(truth->element_count()) * static_cast<size_t>(type_info(to).bytes())))
      << type_info(from).text << " to " << type_info(to).text;
}

TEST(Expand, bits_below_a_byte) {
  for (Type small : {Type::S4, Type::U4, Type::S2, Type::U2})
    for (Type large : {Type::U8, Type::S8, Type::S16, Type::F32, Type::F64, Type::BF16, Type::U64}) {
      check_regrouping(small, large);
      check_regrouping(large, small);
    }
  check_regrouping(Type::S2, Type::S4);
  check_regrouping(Type::U4, Type::U2);
}

// Returns the integer types that the expansion of an op of f32 uses, for a device that supports all other core ops.
std::set<Type> integers_of(Op op) {
  Module module("m");
  const CompId entry = module.add_computation("entry");
  module.set_entry(entry);
  const Shape shape = Shape::array(Type::F32, {4});
  Builder b(module, entry);
  std::vector<InstrId> operands;
  for (int i = 0; i < op_info(op).min_operands; ++i) operands.push_back(module.append_parameter(entry, i, shape));
  module[entry].root = op == Op::IS_FINITE ? b.unary(op, operands[0]) : b.op(op, shape, operands);
  PassContext context;
  context.claim = [op](const Module& m, InstrId id) {
    const bool exact = op_info(m[id].op).op_class == OpClass::EXACT && m[id].op != op;
    return exact ? Claim::Take : core_only(m, id);
  };
  EXPECT_TRUE(legalize(module, context, {}).ok()) << op_info(op).text;
  std::set<Type> out;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].shape.is_array() && is_integer(module[id].shape.type())) out.insert(module[id].shape.type());
  return out;
}

TEST(Expand, integers_in_expansions_of_floats_are_those_of_the_reference) {
  for (int id = 1; id <= kLastOp; ++id) {
    const auto op = static_cast<Op>(id);
    const OpInfo& info = op_info(op);
    if (info.family != Family::elementwise || op == Op::COMPLEX || !in_type_set(info.types, Type::F32)) continue;
    if (info.op_class != OpClass::EXACT && info.op_class != OpClass::MATH) continue;
    const std::set<Type> found = integers_of(op);
    EXPECT_EQ(!found.empty(), expands_by_integers(op)) << info.text;
    EXPECT_EQ(found.contains(Type::U64) || found.contains(Type::S64), expands_by_wider_integers(op)) << info.text;
  }
}

TEST(Expand, functions) {
  for (Type type : {Type::F32, Type::F64, Type::BF16, Type::F16}) {
    const bool narrow = type == Type::BF16 || type == Type::F16;
    check({Op::SQRT, type, 0});
    for (Op op : {Op::EXPONENTIAL, Op::EXPONENTIAL_MINUS_ONE,
                  Op::LOG,         Op::LOG_PLUS_ONE,
                  Op::CBRT,        Op::RSQRT,
                  Op::SINE,        Op::COSINE,
                  Op::ERF,         Op::LOGISTIC,
                  Op::TANH,        Op::SINH,
                  Op::COSH,        Op::ASINH,
                  Op::ACOSH,       Op::ATANH,
                  Op::ASIN,        Op::ACOS,
                  Op::TAN,         Op::ATAN2,
                  Op::POWER})
      check({op, type, narrow ? 1 : op == Op::POWER ? 4 : 2});
  }
}

}  // namespace
}  // namespace collet::hlo
