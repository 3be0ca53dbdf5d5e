// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "conformance/contract/fusion.h"

namespace collet::conformance {
namespace {

constexpr Bound kFew = {.kind = Bound::Kind::Ulp, .ulps = 8};
constexpr Bound kFunctions = {.kind = Bound::Kind::Ulp, .ulps = 64};
constexpr const char* kVector = "f32[300]";
constexpr const char* kMatrix = "f32[24,40]";

// Returns the error bound: the inputs are integers, so only these ops round.
Bound bound_of(std::string_view op) {
  if (op == "divide") return kFew;
  for (const char* function : {"exponential", "tanh", "logistic", "rsqrt", "sqrt", "log"})
    if (op == function) return kFunctions;
  return {};
}
bool is_exact(std::string_view op) {
  return bound_of(op).kind == Bound::Kind::Exact;
}
bool is_sum(std::string_view op) {
  return op == "add" || op == "subtract";
}

Fusion vectors(std::string name, std::string lines, size_t operands, const Bound& bound = {}) {
  return {std::move(name), std::move(lines), kVector, std::vector<std::string>(operands, kVector), "kLoop", "", bound};
}

// Returns a line such as "  t = f32[300] add(x, y)".
std::string line(std::string_view name, std::string_view shape, std::string_view op, std::string_view operands) {
  return fmt::format("  {} = {} {}({})\n", name, shape, op, operands);
}
std::string root(std::string_view shape, std::string_view op, std::string_view operands) {
  return line("ROOT r", shape, op, operands);
}
std::string spread(std::string_view name, std::string_view shape, std::string_view from, std::string_view dims) {
  return fmt::format("  {} = {} broadcast({}), dimensions={{{}}}\n", name, shape, from, dims);
}
std::string number(int value, std::string_view shape) {
  return fmt::format("  k = f32[] constant({})\n", value) + spread("b", shape, "k", "");
}

// Adds each pair of ops: the first one as the first or the second operand of the other, whose remaining operand is a
// parameter.
void add_pairs(std::vector<Fusion>& all) {
  const auto add = [&](std::string_view first, const char* how, std::string_view second, const char* operands,
                       size_t count, const char* suffix = "") {
    const Bound bound = is_exact(second) ? bound_of(first) : bound_of(second);
    all.push_back(vectors(fmt::format("{}_{}_{}{}", first, how, second, suffix),
                          line("t", kVector, first, "x, y") + root(kVector, second, operands), count, bound));
  };
  for (const char* first : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    for (const char* second : {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"}) {
      // After an op that rounds, the difference of two close numbers, or a remainder, has few correct digits if a
      // device rounds differently.
      if (!is_exact(first) && (is_sum(second) || std::string_view(second) == "remainder")) continue;
      add(first, "then", second, "t, z", 3);
      add(first, "under", second, "z, t", 3);
    }
  }
  for (const char* first : {"add", "subtract", "multiply", "maximum"}) {
    for (const char* second : {"add", "subtract", "multiply", "maximum"}) {
      add(first, "then", second, "t, y", 2, "_again");
      if (std::string_view(second) == "subtract") add(first, "under", second, "y, t", 2, "_again");
    }
  }
}

void add_unary(std::vector<Fusion>& all) {
  for (const char* op : {"negate", "abs", "floor", "sign", "exponential", "tanh", "logistic"}) {
    for (const char* other : {"add", "subtract", "multiply", "maximum"}) {
      all.push_back(vectors(fmt::format("{}_then_{}", other, op),
                            line("t", kVector, other, "x, y") + root(kVector, op, "t"), 2, bound_of(op)));
      if (!is_exact(op) && is_sum(other)) continue;
      all.push_back(vectors(fmt::format("{}_then_{}", op, other),
                            line("t", kVector, op, "x") + root(kVector, other, "t, y"), 2, bound_of(op)));
      if (std::string_view(other) != "subtract") continue;
      all.push_back(vectors(fmt::format("{}_under_{}", op, other),
                            line("t", kVector, op, "x") + root(kVector, other, "y, t"), 2, bound_of(op)));
    }
  }
}

// Adds fusions with constant numbers, such as max(x + y, 0), (x - y) * 2, 3 - x * y.
void add_numbers(std::vector<Fusion>& all) {
  struct Step {
    const char* op;
    int number;
    bool left = true;  // the number is the right operand
  };
  for (const char* first : {"add", "subtract", "multiply", "maximum"}) {
    for (const Step& step : {Step{"maximum", 0}, Step{"minimum", 6}, Step{"add", 3}, Step{"subtract", 3},
                             Step{"subtract", 3, false}, Step{"multiply", 2}, Step{"multiply", -3}}) {
      all.push_back(vectors(fmt::format("{}_{}_{}_{}{}", first, step.left ? "then" : "under", step.op,
                                        step.number < 0 ? "minus_" : "", std::abs(step.number)),
                            line("t", kVector, first, "x, y") + number(step.number, kVector) +
                                root(kVector, step.op, step.left ? "t, b" : "b, t"),
                            2));
    }
  }
  // Two elementwise ops before the reduction, such as x * 2 + y and 3 - x - y.
  for (const char* first : {"add", "subtract", "multiply"}) {
    for (const char* second : {"add", "subtract", "maximum"}) {
      for (const bool left : {true, false}) {
        if (!left && std::string_view(first) != "subtract") continue;
        all.push_back(vectors(
            fmt::format("number_{}_{}_then_{}", left ? "right_of" : "left_of", first, second),
            number(3, kVector) + line("t", kVector, first, left ? "x, b" : "b, x") + root(kVector, second, "t, y"), 2));
      }
    }
  }
}

// Adds fusions in which a scalar, a row or a column is broadcast to a matrix.
void add_broadcasts(std::vector<Fusion>& all) {
  struct Small {
    const char *name, *shape, *dims;
  };
  for (const Small& small :
       {Small{"scalar", "f32[]", ""}, Small{"row", "f32[40]", "1"}, Small{"column", "f32[24]", "0"}}) {
    const std::string b = spread("b", kMatrix, "y", small.dims);
    for (const char* first : {"add", "subtract", "multiply"}) {
      for (const char* operands : {"x, b", "b, x"}) {
        if (operands[0] == 'b' && std::string_view(first) != "subtract") continue;
        for (const char* second : {"add", "subtract", "maximum"}) {
          all.push_back(
              {fmt::format("{}_{}_{}_then_{}", small.name, operands[0] == 'b' ? "minus" : "in", first, second),
               b + line("t", kMatrix, first, operands) + root(kMatrix, second, "t, z"),
               kMatrix,
               {kMatrix, small.shape, kMatrix}});
        }
        all.push_back({fmt::format("{}_{}_{}_then_relu", small.name, operands[0] == 'b' ? "minus" : "in", first),
                       b + line("t", kMatrix, first, operands) + "  k = f32[] constant(0)\n" +
                           spread("n", kMatrix, "k", "") + root(kMatrix, "maximum", "t, n"),
                       kMatrix,
                       {kMatrix, small.shape}});
      }
    }
  }
}

// Adds fusions x op y op z op u, with the value of each op as either operand of the next.
void add_triples(std::vector<Fusion>& all) {
  const auto ops = {"add", "subtract", "multiply", "maximum"};
  int count = 0;
  for (const char* first : ops) {
    for (const char* second : ops) {
      for (const char* third : ops) {
        const bool left = ++count % 2 == 0;
        all.push_back(vectors(fmt::format("{}_{}_{}", first, second, third),
                              line("s", kVector, first, "x, y") + line("t", kVector, second, left ? "s, z" : "z, s") +
                                  root(kVector, third, left ? "u, t" : "t, u"),
                              4));
      }
    }
    // Ops on two computed values: (x op y) op2 (z op u).
    for (const char* last : ops) {
      all.push_back(vectors(
          fmt::format("{}_of_two_{}s", last, first),
          line("s", kVector, first, "x, y") + line("t", kVector, first, "z, u") + root(kVector, last, "s, t"), 4));
    }
  }
}

std::string combiner(std::string_view op) {
  return fmt::format(
      "{0}_of {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] {0}(a, b)\n}}\n\n", op);
}
const char* neutral(std::string_view op) {
  return op == "add" ? "0" : op == "maximum" ? "-inf" : "inf";
}

// Adds fusions of a reduction of rows or columns with producers and consumers.
void add_reductions(std::vector<Fusion>& all) {
  const auto reduced = [](std::string_view name, std::string_view shape, std::string_view op, std::string_view what,
                          int dim) {
    return fmt::format("  i = f32[] constant({})\n  {} = {} reduce({}, i), dimensions={{{}}}, to_apply={}_of\n",
                       neutral(op), name, shape, what, dim, op);
  };
  for (const char* op : {"add", "maximum", "minimum"}) {
    for (const int dim : {0, 1}) {
      const std::string shape = dim == 1 ? "f32[24]" : "f32[40]", which = dim == 1 ? "rows" : "columns";
      for (const char* before : {"subtract", "multiply", "maximum"})
        all.push_back({fmt::format("{}_then_{}_of_{}", before, op, which),
                       line("t", kMatrix, before, "x, y") + reduced("ROOT r", shape, op, "t", dim),
                       shape,
                       {kMatrix, kMatrix},
                       "kInput",
                       combiner(op)});
      for (const char* before : {"abs", "negate"})
        all.push_back({fmt::format("{}_then_{}_of_{}", before, op, which),
                       line("t", kMatrix, before, "x") + reduced("ROOT r", shape, op, "t", dim),
                       shape,
                       {kMatrix},
                       "kInput",
                       combiner(op)});
      for (const char* after : {"add", "subtract", "maximum"})
        all.push_back({fmt::format("{}_of_{}_then_{}", op, which, after),
                       reduced("t", shape, op, "x", dim) + root(shape, after, "y, t"),
                       shape,
                       {kMatrix, shape},
                       "kInput",
                       combiner(op)});
      all.push_back({fmt::format("squares_then_{}_of_{}_then_half", op, which),
                     line("s", kMatrix, "multiply", "x, x") + reduced("t", shape, op, "s", dim) +
                         fmt::format("  k = f32[] constant(0.5)\n") + spread("h", shape, "k", "") +
                         root(shape, "multiply", "t, h"),
                     shape,
                     {kMatrix},
                     "kInput",
                     combiner(op)});
    }
    // Results that are broadcast over the rows again, and reductions of the whole array.
    for (const char* after : {"subtract", "multiply"})
      all.push_back(
          {fmt::format("{}_of_rows_{}_from_rows", op, after),
           reduced("t", "f32[24]", op, "x", 1) + spread("b", kMatrix, "t", "0") + root(kMatrix, after, "x, b"),
           kMatrix,
           {kMatrix},
           "kInput",
           combiner(op)});
  }
  all.push_back({"sum_and_most_of_rows",
                 reduced("s", "f32[24]", "add", "x", 1) +
                     "  j = f32[] constant(-inf)\n  m = f32[24] reduce(x, j), dimensions={1}, to_apply=maximum_of\n" +
                     "  ROOT r = (f32[24], f32[24]) tuple(s, m)\n",
                 "(f32[24], f32[24])",
                 {kMatrix},
                 "kInput",
                 combiner("add") + combiner("maximum")});
  all.push_back({"sum_and_sum_of_squares",
                 line("q", kMatrix, "multiply", "x, x") + reduced("s", "f32[24]", "add", "x", 1) +
                     "  t = f32[24] reduce(q, i), dimensions={1}, to_apply=add_of\n" +
                     "  ROOT r = (f32[24], f32[24]) tuple(s, t)\n",
                 "(f32[24], f32[24])",
                 {kMatrix},
                 "kInput",
                 combiner("add")});
}

// Adds fusions of a matrix product, for each layout of its operands, with an epilogue.
void add_products(std::vector<Fusion>& all) {
  constexpr const char* kOut = "f32[24,16]";
  struct Form {
    const char *name, *lhs, *rhs, *dims;
  };
  const Form forms[] = {
      {"", "f32[24,40]", "f32[40,16]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"_of_transposed", "f32[40,24]", "f32[16,40]", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
      {"_of_rows", "f32[24,40]", "f32[16,40]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
  };
  for (const Form& form : forms) {
    const auto add = [&](const char* name, const std::string& lines, const char* third, const Bound& bound = {}) {
      std::vector<std::string> shapes = {form.lhs, form.rhs};
      if (third) shapes.push_back(third);
      all.push_back({fmt::format("product{}_{}", form.name, name),
                     fmt::format("  d = {} dot(x, y), {}\n", kOut, form.dims) + lines, kOut, shapes, "kOutput", "",
                     bound});
    };
    const std::string zero = number(0, kOut), two = number(2, kOut), bias = spread("b", kOut, "z", "1"),
                      column = spread("b", kOut, "z", "0");
    add("add", root(kOut, "add", "d, z"), kOut);
    add("subtract", root(kOut, "subtract", "d, z"), kOut);
    add("under_subtract", root(kOut, "subtract", "z, d"), kOut);
    add("relu", zero + root(kOut, "maximum", "d, b"), nullptr);
    add("scaled", two + root(kOut, "multiply", "d, b"), nullptr);
    add("bias", bias + root(kOut, "add", "d, b"), "f32[16]");
    add("column", column + root(kOut, "multiply", "d, b"), "f32[24]");
    add("bias_then_negate", bias + line("t", kOut, "add", "d, b") + root(kOut, "negate", "t"), "f32[16]");
    add("scaled_then_add", two + line("t", kOut, "multiply", "d, b") + root(kOut, "subtract", "t, z"), kOut);
  }
  constexpr const char* kImage = "f32[2,8,8,6]";
  const auto convolution = [&](const char* name, const std::string& lines, std::vector<std::string> more) {
    more.insert(more.begin(), {"f32[2,8,8,3]", "f32[3,3,3,6]"});
    all.push_back(
        {fmt::format("convolution_{}", name),
         fmt::format("  d = {} convolution(x, y), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f\n",
                     kImage) +
             lines,
         kImage,
         std::move(more),
         "kOutput",
         "",
         {}});
  };
  convolution("relu", number(0, kImage) + root(kImage, "maximum", "d, b"), {});
  convolution("bias", spread("b", kImage, "z", "3") + root(kImage, "subtract", "d, b"), {"f32[6]"});
  convolution("residual", root(kImage, "subtract", "z, d"), {kImage});
}

// Adds fusions with two results computed from the same operands.
void add_several_results(std::vector<Fusion>& all) {
  const auto ops = {"add", "subtract", "multiply", "maximum"};
  const std::string two = "(f32[300], f32[300])";
  for (const char* first : ops) {
    for (const char* second : ops) {
      if (first == second) continue;
      all.push_back(
          {fmt::format("{}_and_{}", first, second),
           line("s", kVector, first, "x, y") + line("t", kVector, second, "x, y") + root(two, "tuple", "s, t"),
           two,
           {kVector, kVector}});
    }
  }
}

}  // namespace

std::vector<Fusion> fusion_shapes() {
  std::vector<Fusion> all;
  add_pairs(all);
  add_unary(all);
  add_numbers(all);
  add_broadcasts(all);
  add_triples(all);
  add_reductions(all);
  add_products(all);
  add_several_results(all);
  return all;
}

}  // namespace collet::conformance
