// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/samples.h"

namespace collet::conformance {
namespace {

constexpr char kCombiners[] = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

second {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

at_least {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}

step {
  s = (s32[], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[300] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[300] reverse(x), dimensions={0}
  z = f32[300] subtract(y, x)
  ROOT r = (s32[], f32[300]) tuple(n, z)
}

more {
  s = (s32[], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

turned {
  x = f32[300] parameter(0)
  ROOT r = f32[300] reverse(x), dimensions={0}
}

negated {
  x = f32[300] parameter(0)
  ROOT r = f32[300] negate(x)
}
)";

// Returns a program with two vectors as parameters.
std::string vectors(const char* lines) {
  return std::string("ENTRY main {\n  x = f32[300] parameter(0)\n  w = f32[300] parameter(1)\n") + lines + "}\n";
}

std::string with_combiners(const std::string& entry) {
  // Writes only the values that the entry uses, directly or indirectly.
  std::string out;
  const std::string all = kCombiners;
  for (size_t at = 1; at < all.size();) {
    const size_t end = all.find("\n}\n", at) + 3;
    const std::string one = all.substr(at, end - at);
    const std::string name = one.substr(0, one.find(' '));
    for (const char* use :
         {"to_apply=", "condition=", "body=", "true_computation=", "false_computation=", "select=", "scatter="})
      if (entry.find(use + name) != std::string::npos) {
        out += one + "\n";
        break;
      }
    at = end + 1;
  }
  return out + entry;
}

std::string matrices(const char* lines) {
  return std::string("ENTRY main {\n  x = f32[24,24] parameter(0)\n  w = f32[24,24] parameter(1)\n") + lines + "}\n";
}

std::vector<Sample> make_samples() {
  std::vector<Sample> all;
  const auto add = [&](const char* name, const std::string& entry, Bound bound = {}) {
    all.push_back({name, with_combiners(entry), bound});
  };
  // Elementwise programs that read an argument again after a result could have overwritten it.
  add("add", vectors("  ROOT r = f32[300] add(x, w)\n"));
  add("multiply", vectors("  ROOT r = f32[300] multiply(x, w)\n"));
  add("maximum", vectors("  ROOT r = f32[300] maximum(x, w)\n"));
  add("subtract", vectors("  ROOT r = f32[300] subtract(w, x)\n"));
  add("chain", vectors(R"(  a = f32[300] add(x, w)
  b = f32[300] multiply(a, x)
  c = f32[300] maximum(b, w)
  ROOT r = f32[300] add(c, x)
)"));
  add("read_after_write", vectors(R"(  y = f32[300] add(x, w)
  z = f32[300] multiply(x, w)
  ROOT r = (f32[300], f32[300]) tuple(y, z)
)"));
  add("read_late", vectors(R"(  y = f32[300] add(x, w)
  a = f32[300] multiply(y, w)
  b = f32[300] multiply(a, w)
  z = f32[300] add(b, x)
  ROOT r = (f32[300], f32[300]) tuple(y, z)
)"));
  add("later_first", vectors(R"(  y = f32[300] multiply(x, w)
  z = f32[300] add(x, w)
  ROOT r = (f32[300], f32[300]) tuple(z, y)
)"));
  add("sums_of_each_other", vectors(R"(  y = f32[300] add(x, w)
  z = f32[300] add(y, x)
  v = f32[300] add(z, y)
  ROOT r = (f32[300], f32[300], f32[300]) tuple(v, z, y)
)"));
  add("same_twice", vectors("  y = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) tuple(y, y)\n"));
  add("passed_on", vectors("  y = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) tuple(y, x)\n"));
  add("passed_on_first", vectors("  y = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) tuple(w, y)\n"));
  add("intermediate_and_last", vectors(R"(  a = f32[300] multiply(x, w)
  b = f32[300] add(a, x)
  ROOT r = (f32[300], f32[300]) tuple(a, b)
)"));
  add("unary", vectors(R"(  a = f32[300] negate(x)
  b = f32[300] abs(w)
  c = f32[300] add(a, b)
  ROOT r = f32[300] floor(c)
)"));
  add("functions", vectors(R"(  a = f32[300] tanh(x)
  b = f32[300] exponential(a)
  ROOT r = f32[300] multiply(b, b)
)"),
      {.kind = Bound::Kind::Ulp, .ulps = 64});
  add("choice", vectors(R"(  p = pred[300] compare(x, w), direction=GT
  ROOT r = f32[300] select(p, w, x)
)"));
  add("clamp", vectors("  n = f32[300] negate(w)\n  ROOT r = f32[300] clamp(n, x, w)\n"));
  add("scalars", R"(ENTRY main {
  x = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT r = f32[] add(x, w)
}
)");
  add("broadcast_scalar", R"(ENTRY main {
  x = f32[300] parameter(0)
  s = f32[] parameter(1)
  b = f32[300] broadcast(s), dimensions={}
  ROOT r = f32[300] multiply(x, b)
}
)");
  add("constants", vectors(R"(  c = f32[300] constant({...})
  t = f32[] constant(3)
  b = f32[300] broadcast(t), dimensions={}
  y = f32[300] add(x, c)
  z = f32[300] multiply(y, b)
  ROOT r = f32[300] add(z, w)
)"));
  add("constant_results", vectors(R"(  c = f32[3] constant({1, -2, 3})
  y = f32[300] add(x, w)
  t = f32[] constant(7)
  ROOT r = (f32[3], f32[300], f32[]) tuple(c, y, t)
)"));
  add("three_arguments", R"(ENTRY main {
  a = f32[300] parameter(0)
  b = f32[300] parameter(1)
  c = f32[300] parameter(2)
  p = f32[300] multiply(a, b)
  ROOT r = f32[300] add(p, c)
}
)");
  add("long", R"(ENTRY main {
  x = f32[70001] parameter(0)
  w = f32[70001] parameter(1)
  a = f32[70001] add(x, w)
  ROOT r = f32[70001] multiply(a, w)
}
)");
  add("nothing", R"(ENTRY main {
  x = f32[0,4] parameter(0)
  w = f32[300] parameter(1)
  y = f32[0,4] add(x, x)
  z = f32[300] add(w, w)
  ROOT r = (f32[0,4], f32[300]) tuple(y, z)
}
)");
  for (const char* type : {"s32", "bf16", "f16", "f64", "s64", "u8", "s16", "u32"}) {
    all.push_back({std::string("add_") + type,
                   std::string("ENTRY main {\n  x = ") + type + "[301] parameter(0)\n  w = " + type +
                       "[301] parameter(1)\n  a = " + type + "[301] add(x, w)\n  ROOT r = " + type +
                       "[301] multiply(a, w)\n}\n",
                   {}});
  }
  add("predicates", R"(ENTRY main {
  x = pred[301] parameter(0)
  w = pred[301] parameter(1)
  a = pred[301] and(x, w)
  n = pred[301] not(a)
  ROOT r = pred[301] xor(n, x)
}
)");
  add("complex", R"(ENTRY main {
  x = c64[65] parameter(0)
  w = c64[65] parameter(1)
  a = c64[65] multiply(x, w)
  ROOT r = c64[65] add(a, x)
}
)");
  // Data movement, in which positions that are written first are read later.
  add("reverse", vectors("  ROOT r = f32[300] reverse(x), dimensions={0}\n"));
  add("reverse_and_add", vectors("  a = f32[300] reverse(x), dimensions={0}\n  ROOT r = f32[300] add(a, x)\n"));
  add("transpose", matrices("  ROOT r = f32[24,24] transpose(x), dimensions={1,0}\n"));
  add("transpose_and_add",
      matrices("  a = f32[24,24] transpose(x), dimensions={1,0}\n  ROOT r = f32[24,24] add(a, x)\n"));
  add("transpose_both", matrices(R"(  a = f32[24,24] transpose(x), dimensions={1,0}
  b = f32[24,24] transpose(w), dimensions={1,0}
  ROOT r = (f32[24,24], f32[24,24]) tuple(b, a)
)"));
  add("rotate", vectors(R"(  a = f32[100] slice(x), slice={[0:100]}
  b = f32[200] slice(x), slice={[100:300]}
  ROOT r = f32[300] concatenate(b, a), dimensions={0}
)"));
  add("halves", vectors(R"(  a = f32[150] slice(x), slice={[150:300]}
  b = f32[150] slice(w), slice={[0:150]}
  ROOT r = f32[300] concatenate(a, b), dimensions={0}
)"));
  add("joined_with_nothing", R"(ENTRY main {
  x = f32[24,3] parameter(0)
  e = f32[24,0] parameter(1)
  w = f32[24,5] parameter(2)
  ROOT r = f32[24,8] concatenate(x, e, w), dimensions={1}
}
)");
  add("shift", vectors(R"(  a = f32[299] slice(x), slice={[0:299]}
  z = f32[] constant(0)
  ROOT r = f32[300] pad(a, z), padding=1_0
)"));
  add("shift_and_add", vectors(R"(  a = f32[299] slice(x), slice={[0:299]}
  z = f32[] constant(0)
  s = f32[300] pad(a, z), padding=1_0
  ROOT r = f32[300] add(s, x)
)"));
  add("reshape",
      matrices(
          "  a = f32[576] reshape(x)\n  b = f32[576] reverse(a), dimensions={0}\n  ROOT r = f32[24,24] reshape(b)\n"));
  add("copy", vectors("  ROOT r = f32[300] copy(x)\n"));
  add("swapped_sums", vectors(R"(  n = f32[300] negate(x)
  m = f32[300] negate(w)
  ROOT r = (f32[300], f32[300]) tuple(m, n)
)"));
  add("row_of_all", matrices(R"(  a = f32[1,24] slice(x), slice={[23:24], [0:24]}
  b = f32[24] reshape(a)
  ROOT r = f32[24,24] broadcast(b), dimensions={1}
)"));
  // Indexing.
  add("update", R"(ENTRY main {
  x = f32[300] parameter(0)
  u = f32[40] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[300] dynamic-update-slice(x, u, i)
}
)");
  add("update_by_itself", R"(ENTRY main {
  x = f32[300] parameter(0)
  i = s32[] parameter(1)
  u = f32[200] slice(x), slice={[0:200]}
  ROOT r = f32[300] dynamic-update-slice(x, u, i)
}
)");
  add("update_and_old", R"(ENTRY main {
  x = f32[300] parameter(0)
  u = f32[40] parameter(1)
  i = s32[] parameter(2)
  y = f32[300] dynamic-update-slice(x, u, i)
  ROOT r = f32[300] add(y, x)
}
)");
  add("window_of", R"(ENTRY main {
  x = f32[300] parameter(0)
  i = s32[] parameter(1)
  a = f32[290] dynamic-slice(x, i), dynamic_slice_sizes={290}
  z = f32[] constant(1)
  ROOT r = f32[300] pad(a, z), padding=10_0
}
)");
  add("gather", R"(ENTRY main {
  x = f32[24,5] parameter(0)
  i = s32[24,1] parameter(1)
  ROOT r = f32[24,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}
}
)");
  add("scatter", R"(ENTRY main {
  x = f32[24,5] parameter(0)
  i = s32[7,1] parameter(1)
  u = f32[7,5] parameter(2)
  ROOT r = f32[24,5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
}
)");
  add("scatter_and_old", R"(ENTRY main {
  x = f32[24,5] parameter(0)
  i = s32[7,1] parameter(1)
  u = f32[7,5] parameter(2)
  y = f32[24,5] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  ROOT r = f32[24,5] add(x, y)
}
)");
  // Reductions, windows, products, sorting.
  add("less_most", matrices(R"(  l = f32[] constant(-inf)
  m = f32[24] reduce(x, l), dimensions={1}, to_apply=most
  b = f32[24,24] broadcast(m), dimensions={0}
  ROOT r = f32[24,24] subtract(x, b)
)"));
  add("less_most_of_columns", matrices(R"(  l = f32[] constant(-inf)
  m = f32[24] reduce(x, l), dimensions={0}, to_apply=most
  b = f32[24,24] broadcast(m), dimensions={1}
  ROOT r = f32[24,24] subtract(x, b)
)"));
  add("sum_and_values", vectors(R"(  y = f32[300] multiply(x, w)
  z = f32[] constant(0)
  s = f32[] reduce(y, z), dimensions={0}, to_apply=sum
  ROOT r = (f32[300], f32[]) tuple(y, s)
)"));
  add("sum_of_all", matrices(R"(  z = f32[] constant(0)
  s = f32[] reduce(x, z), dimensions={0,1}, to_apply=sum
  b = f32[24,24] broadcast(s), dimensions={}
  ROOT r = f32[24,24] add(x, b)
)"));
  add("running_sum", vectors(R"(  z = f32[] constant(0)
  ROOT r = f32[300] reduce-window(x, z), window={size=300 pad=299_0}, to_apply=sum
)"));
  add("window_sum", vectors(R"(  z = f32[] constant(0)
  ROOT r = f32[300] reduce-window(x, z), window={size=3 pad=1_1}, to_apply=sum
)"));
  add("select_and_scatter", R"(ENTRY main {
  x = f32[24,24] parameter(0)
  s = f32[8,8] parameter(1)
  z = f32[] constant(0)
  ROOT r = f32[24,24] select-and-scatter(x, s, z), window={size=3x3 stride=3x3}, select=at_least, scatter=sum
}
)");
  add("dot", matrices("  ROOT r = f32[24,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"));
  add("dot_with_itself",
      matrices("  ROOT r = f32[24,24] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"));
  add("dot_and_add", matrices(R"(  d = f32[24,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[24,24] add(d, x)
)"));
  add("dot_twice", matrices(R"(  d = f32[24,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[24,24] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[24,24], f32[24,24]) tuple(d, e)
)"));
  add("convolution", R"(ENTRY main {
  x = f32[1,9,9,4] parameter(0)
  k = f32[3,3,4,4] parameter(1)
  ROOT r = f32[1,9,9,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
)");
  add("sort", vectors("  ROOT r = f32[300] sort(x), dimensions={0}, to_apply=less\n"));
  add("sort_columns", matrices("  ROOT r = f32[24,24] sort(x), dimensions={0}, to_apply=less\n"));
  add("triangular_solve", R"(ENTRY main {
  a = f32[6,6] parameter(0)
  b = f32[6,6] parameter(1)
  z = f32[] constant(0)
  e = f32[6,6] broadcast(z), dimensions={}
  l = f32[6,6] multiply(a, e)
  ROOT r = f32[6,6] triangular-solve(l, b), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE
}
)");
  add("random_bits", R"(ENTRY main {
  s = u64[2] parameter(0)
  ROOT r = (u64[2], u32[65]) rng-bit-generator(s), algorithm=rng_three_fry
}
)");
  // Control flow. The called computations come before the entry.
  const auto control = [&](const char* name, const std::string& text) { all.push_back({name, text, {}}); };
  constexpr const char* kBelow = R"(below {
  s = (s32[], f32[300], f32[300], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=3
  ROOT r = pred[] compare(i, n), direction=LT
}

)";
  // Two values are exchanged, and a limit is only read.
  constexpr const char* kSwap = R"(swap {
  s = (s32[], f32[300], f32[300], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[300] get-tuple-element(s), index=1
  y = f32[300] get-tuple-element(s), index=2
  n = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = f32[300] subtract(x, y)
  ROOT r = (s32[], f32[300], f32[300], s32[]) tuple(j, y, d, n)
}

)";
  for (const int trips : {0, 1, 3, 10}) {
    control(trips == 0   ? "loop_not_entered"
            : trips == 1 ? "loop_once"
            : trips == 3 ? "loop_thrice"
                         : "loop_ten_times",
            std::string(kBelow) + kSwap +
                "ENTRY main {\n  x = f32[300] parameter(0)\n  w = f32[300] parameter(1)\n  i = s32[] constant(" +
                std::to_string(3 - trips) + R"()
  n = s32[] constant(3)
  s = (s32[], f32[300], f32[300], s32[]) tuple(i, x, w, n)
  l = (s32[], f32[300], f32[300], s32[]) while(s), condition=below, body=swap
  a = f32[300] get-tuple-element(l), index=1
  b = f32[300] get-tuple-element(l), index=2
  ROOT r = (f32[300], f32[300]) tuple(a, b)
}
)");
  }
  // The trip count is an argument.
  control("loop_by_argument", std::string(kBelow) + kSwap + R"(ENTRY main {
  n = s32[] parameter(0)
  x = f32[300] parameter(1)
  w = f32[300] parameter(2)
  i = s32[] constant(0)
  s = (s32[], f32[300], f32[300], s32[]) tuple(i, x, w, n)
  l = (s32[], f32[300], f32[300], s32[]) while(s), condition=below, body=swap
  ROOT r = f32[300] get-tuple-element(l), index=2
}
)");
  // The index is an argument; an index out of range selects the last branch.
  control("branches_by_index", R"(first {
  x = f32[300] parameter(0)
  ROOT r = f32[300] negate(x)
}

second {
  x = f32[300] parameter(0)
  ROOT r = f32[300] reverse(x), dimensions={0}
}

third {
  x = f32[300] parameter(0)
  ROOT r = f32[300] add(x, x)
}

ENTRY main {
  i = s32[] parameter(0)
  x = f32[300] parameter(1)
  ROOT r = f32[300] conditional(i, x, x, x), branch_computations={first, second, third}
}
)");
  control("call", R"(callee {
  x = f32[300] parameter(0)
  y = f32[300] parameter(1)
  d = f32[300] subtract(x, y)
  ROOT r = (f32[300], f32[300]) tuple(d, x)
}

ENTRY main {
  x = f32[300] parameter(0)
  w = f32[300] parameter(1)
  c = (f32[300], f32[300]) call(w, x), to_apply=callee
  a = f32[300] get-tuple-element(c), index=0
  b = f32[300] get-tuple-element(c), index=1
  ROOT r = (f32[300], f32[300]) tuple(b, a)
}
)");
  control("branch_in_loop", std::string(kBelow) + R"(taken {
  x = f32[300] parameter(0)
  ROOT r = f32[300] add(x, x)
}

skipped {
  x = f32[300] parameter(0)
  ROOT r = f32[300] negate(x)
}

turn {
  s = (s32[], f32[300], f32[300], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[300] get-tuple-element(s), index=1
  y = f32[300] get-tuple-element(s), index=2
  n = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  p = pred[] compare(i, one), direction=EQ
  c = f32[300] conditional(p, x, y), true_computation=taken, false_computation=skipped
  ROOT r = (s32[], f32[300], f32[300], s32[]) tuple(j, c, x, n)
}

ENTRY main {
  x = f32[300] parameter(0)
  w = f32[300] parameter(1)
  i = s32[] constant(0)
  n = s32[] constant(4)
  s = (s32[], f32[300], f32[300], s32[]) tuple(i, x, w, n)
  l = (s32[], f32[300], f32[300], s32[]) while(s), condition=below, body=turn
  a = f32[300] get-tuple-element(l), index=1
  b = f32[300] get-tuple-element(l), index=2
  ROOT r = (f32[300], f32[300]) tuple(a, b)
}
)");
  add("loop", R"(ENTRY main {
  x = f32[300] parameter(0)
  i = s32[] constant(0)
  s = (s32[], f32[300]) tuple(i, x)
  l = (s32[], f32[300]) while(s), condition=more, body=step
  ROOT r = f32[300] get-tuple-element(l), index=1
}
)");
  add("branches", R"(ENTRY main {
  p = pred[] parameter(0)
  x = f32[300] parameter(1)
  w = f32[300] parameter(2)
  ROOT r = f32[300] conditional(p, x, w), true_computation=turned, false_computation=negated
}
)");
  return all;
}

}  // namespace

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = make_samples();
  return all;
}

}  // namespace collet::conformance
