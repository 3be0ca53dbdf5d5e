// SPDX-License-Identifier: Apache-2.0
// Tests that reductions and scans that are rewritten as trees give what they gave, for bodies that do not commute and initial
// values that are no identity, and that their errors do not grow with the length.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/text/parser.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string() << "\n" << text;
  return module.ok() ? std::move(*module) : nullptr;
}

Literal evaluate(const Module& module, const std::vector<Literal>& inputs) {
  auto got = Evaluator(module).run(inputs);
  EXPECT_TRUE(got.ok()) << got.status().to_string();
  return got.ok() ? std::move(*got) : Literal::token();
}

/// The composition of x -> a x + b with the next function. It is associative and does not commute; with a of 1 and -1 and small
/// integers b it is exact.
constexpr const char* kCompose = R"(
compose {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  p = f32[] multiply(a, c)
  s = f32[] multiply(b, c)
  t = f32[] add(s, d)
  ROOT r = (f32[], f32[]) tuple(p, t)
}
)";

/// Runs `op`, a reduction of f32 arrays of shape `from`, with and without the pass.
void expect_same(const std::string& from, const std::string& to, const std::string& op) {
  SCOPED_TRACE(from + " " + op);
  const std::string text = std::string("HloModule m\n") + kCompose + "ENTRY main {\n  x = " + from +
                           " parameter(0)\n  y = " + from + " parameter(1)\n  i = f32[] constant(-1)\n" +
                           "  j = f32[] constant(3)\n  ROOT r = (" + to + ", " + to + ") " + op +
                           ", to_apply=compose\n}\n";
  const auto plain = parsed(text);
  const auto tree = parsed(text);
  ASSERT_TRUE(plain && tree);
  PassContext context;
  const auto changed = reduce_as_trees(*tree, context);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  EXPECT_TRUE(*changed);
  std::mt19937 random(7);
  std::vector<Literal> inputs;
  const Module& m = *plain;
  for (const InstrId p : m[m.entry()].parameters) {
    const bool is_factor = inputs.empty();
    Literal x = Literal::zeros(m[p].shape);
    for (int64_t k = 0; k < m[p].shape.element_count(); ++k) {
      const double value = is_factor ? (random() % 2 == 0 ? 1 : -1) : static_cast<double>(random() % 9) - 4;
      x.set_double(k, value);
    }
    inputs.push_back(std::move(x));
  }
  const Literal expected = evaluate(*plain, inputs);
  const Literal got = evaluate(*tree, inputs);
  for (size_t e = 0; e < 2; ++e) {
    const Literal& want = expected.element(e);
    for (int64_t k = 0; k < want.shape().element_count(); ++k)
      ASSERT_EQ(got.element(e).as_double(k), want.as_double(k)) << "element " << k << " of result " << e;
  }
}

TEST(ReduceAsTrees, OrderOfElementsAndOneInitialValueAreKept) {
  for (const int n : {65, 66, 127, 128, 129, 511, 1000, 4097}) {
    const std::string size = std::to_string(n), most = std::to_string(n - 1);
    const std::string row = "f32[" + size + "]", rows = "f32[3," + size + "]", columns = "f32[" + size + ",5]";
    expect_same(row, "f32[]", "reduce(x, y, i, j), dimensions={0}");
    expect_same(rows, "f32[3]", "reduce(x, y, i, j), dimensions={1}");
    expect_same(columns, "f32[5]", "reduce(x, y, i, j), dimensions={0}");
    expect_same(rows, "f32[]", "reduce(x, y, i, j), dimensions={0,1}");
    const std::string window = "reduce-window(x, y, i, j), window={size=";
    expect_same(row, row, window + size + " pad=" + most + "_0}");
    expect_same(row, row, window + size + " pad=0_" + most + "}");
    expect_same(rows, rows, window + "1x" + size + " pad=0_0x" + most + "_0}");
    expect_same(columns, columns, window + size + "x1 pad=0_" + most + "x0_0}");
    const std::string longer = std::to_string(n + 4), beyond = std::to_string(n + 3);
    expect_same(row, row, window + longer + " pad=" + beyond + "_0}");
    expect_same(row, row, window + longer + " pad=0_" + beyond + "}");
  }
  expect_same("f32[4,30,7,3]", "f32[7]", "reduce(x, y, i, j), dimensions={0,1,3}");
}

TEST(ReduceAsTrees, ErrorDoesNotGrowWithTheLength) {
  const std::string head = R"(HloModule m
logaddexp {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] maximum(a, b)
  d = f32[] subtract(a, b)
  s = f32[] abs(d)
  n = f32[] negate(s)
  e = f32[] exponential(n)
  l = f32[] log-plus-one(e)
  ROOT r = f32[] add(m, l)
}
ENTRY main {
  o = f32[] parameter(0)
  x = f32[100000] broadcast(o), dimensions={}
  i = f32[] constant(-inf)
)";
  const double tenth = static_cast<double>(0.1F);
  const double expected = tenth + std::log(100000.0);
  for (const std::string& op : {std::string("f32[] reduce(x, i), dimensions={0}, to_apply=logaddexp"),
                                std::string("f32[100000] reduce-window(x, i), window={size=100000 pad=99999_0}, "
                                            "to_apply=logaddexp")}) {
    const auto module = parsed(head + "  ROOT r = " + op + "\n}\n");
    ASSERT_TRUE(module);
    PassContext context;
    ASSERT_TRUE(prepare(*module, context).ok());
    const Literal got = evaluate(*module, {Literal::scalar(Type::F32, tenth)});
    const double last = got.as_double(got.shape().element_count() - 1);
    EXPECT_NEAR(last / expected, 1, 5e-7) << op;
  }
}

}  // namespace
}  // namespace collet::hlo
