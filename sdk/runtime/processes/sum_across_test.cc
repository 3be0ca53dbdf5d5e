// SPDX-License-Identifier: Apache-2.0
// Compares the functions that combine arrays with the evaluator, for all types and computations that have one.
#include "sdk/runtime/processes/sum_across.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"

namespace collet::runtime {
namespace {

using hlo::Literal;
using hlo::Type;

// Values with both zeros, NaN, infinities and extremes among them.
Literal values(Type type, int seed) {
  Literal out = Literal::zeros(hlo::Shape::array(type, {257}));
  for (int64_t i = 0; i < 257; ++i) {
    const int64_t number = (i * 7919 + seed * 104729) % 251 - 125;
    if (!hlo::is_float(type)) {
      out.set_int(i, type == Type::PRED ? number & 1 : number * (i % 5 == 0 ? 16777619 : 1));
    } else {
      constexpr double kSpecial[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 1e30, -1e-40};
      out.set_double(i, (i + seed) % 4 == 0 ? kSpecial[(i + 3 * seed) % 7] : static_cast<double>(number) / 16);
    }
  }
  return out;
}

TEST(SumAcross, CombinesAsTheEvaluatorDoes) {
  int compared = 0;
  for (const char* op : {"add", "multiply", "minimum", "maximum", "and", "or", "xor"}) {
    for (const Type type : {Type::PRED, Type::S8, Type::U8, Type::S16, Type::U16, Type::S32, Type::U32, Type::S64,
                            Type::U64, Type::F16, Type::BF16, Type::F32, Type::F64}) {
      const std::string name(hlo::type_info(type).text), array = name + "[257]";
      const bool bits = op == std::string("and") || op == std::string("or") || op == std::string("xor");
      if (bits && hlo::is_float(type)) continue;
      const auto module = hlo::parse_module("HloModule m\nc {\n  a = " + name + "[] parameter(0)\n  b = " + name +
                                            "[] parameter(1)\n  ROOT r = " + name + "[] " + op +
                                            "(a, b)\n}\nENTRY e {\n  a = " + array + " parameter(0)\n  b = " + array +
                                            " parameter(1)\n  ROOT r = " + array +
                                            " map(a, b), "
                                            "dimensions={0}, to_apply=c\n}\n");
      ASSERT_TRUE(module.ok()) << module.status().to_string();
      const hlo::Instruction& root = (**module)[(*module)->entry_computation().root];
      const CombineFunction combine = combine_function(**module, root.called[0], type);
      if (!combine) {
        EXPECT_TRUE(type == Type::PRED && !bits) << op << " of " << name;
        continue;
      }
      const Literal a = values(type, 1), b = values(type, 2);
      const auto expected = hlo::Evaluator(**module).run({a, b});
      ASSERT_TRUE(expected.ok()) << expected.status().to_string();
      Literal out = a;
      combine(out.mutable_bytes(), a.bytes(), b.bytes(), 257);
      for (int64_t i = 0; i < 257; ++i) {
        if (!hlo::is_float(type)) {
          EXPECT_EQ(out.as_int(i), expected->as_int(i)) << op << " of " << name << ", element " << i;
        } else if (std::isnan(expected->as_double(i))) {
          EXPECT_TRUE(std::isnan(out.as_double(i))) << op << " of " << name << ", element " << i;
        } else {
          EXPECT_EQ(out.as_double(i), expected->as_double(i)) << op << " of " << name << ", element " << i;
          EXPECT_EQ(std::signbit(out.as_double(i)), std::signbit(expected->as_double(i)))
              << op << " of " << name << ", element " << i;
        }
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8 * 7 + 4 * 4 + 3) << "integers, floats, pred";
}

TEST(SumAcross, ScratchMemoryIsUsedAgain) {
  ScratchPool pool;
  ScratchPool::Piece large = pool.take(1000);
  const char* const place = large.first.get();
  pool.give_back(std::move(large));
  ScratchPool::Piece again = pool.take(10);
  EXPECT_EQ(again.first.get(), place);
  EXPECT_EQ(again.second, 1000u);
}

}  // namespace
}  // namespace collet::runtime
