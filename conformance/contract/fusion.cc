// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/fusion.h"

#include <algorithm>
#include <array>
#include <limits>

#include "conformance/contract/program.h"

namespace collet::conformance {
namespace {

constexpr Bound kFunctions = {.kind = Bound::Kind::Ulp, .ulps = 64};

// Fills the operands with infinities, NaN, zeros of both signs, and numbers whose sums and products are exact. Each operand has
// them in another order, so that ops meet different combinations.
std::vector<hlo::Literal> draw_edges(const TestProgram& program) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kEdges = {0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                                 2.0, -3.0, 0.5, -0.5};
  std::vector<hlo::Literal> out = program.draw(9);
  for (size_t number = 0; number < out.size(); ++number) {
    if (!hlo::is_float(out[number].type())) continue;
    size_t step = 1;
    for (size_t i = 0; i < number; ++i) step *= kEdges.size();
    // Operand n steps through the values 11^n times slower than operand 0, so all pairs of the first two operands occur.
    for (int64_t i = 0; i < out[number].element_count(); ++i)
      out[number].set_double(i, kEdges[(static_cast<size_t>(i) / step + number) % kEdges.size()]);
  }
  return out;
}

// Only elementwise ops are tested with these values: their results are determined, while a reduction may add in any order.
bool takes_edges(const Sample& sample) {
  const auto has = [&](const char* text) { return sample.body.find(text) != std::string::npos; };
  return sample.bound.kind == Bound::Kind::Exact && has("kind=kLoop") && !has(" f8e") && !has(" convert(");
}

void run(Contract& c, const Sample& sample) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  const PreparedProgram ready = prepare(*instance, sample.body);
  if (!ready) return;
  if (!instance->executes()) return;
  {
    GuardedLaunch guarded(*instance, *ready.program, ready.executable, {});
    for (const uint64_t seed : {1u, 2u, 4u})
      if (!guarded.run(seed, sample.name, sample.bound)) return;
    if (takes_edges(sample) &&
        !guarded.run_with(draw_edges(*ready.program), 1, sample.name + " of infinities, NaN and zeros"))
      return;
  }
  const auto& results = ready.program->results();
  const auto& inputs = ready.program->inputs();
  if (inputs.empty() || !results[0].same_without_layout(inputs[0])) return;
  const std::string list = fmt::format("{{{}}}: (0, {{}}, may-alias)", results.size() == 1 ? "" : "0");
  const PreparedProgram in_place = prepare(*instance, sample.body, list, {}, false);
  if (!in_place) return;
  GuardedLaunch guarded(*instance, *in_place.program, in_place.executable, {.take_aliases = true});
  for (const uint64_t seed : {1u, 2u})
    if (!guarded.run(seed, sample.name + " in place of its first operand", sample.bound)) return;
}

const std::string kVector = "f32[300]";
const std::string kMatrix = "f32[24,40]";

Fusion vectors(std::string name, std::string lines, int operands, Bound bound = {}) {
  return {std::move(name),
          std::move(lines),
          kVector,
          std::vector<std::string>(static_cast<size_t>(operands), kVector),
          "kLoop",
          "",
          bound};
}

void add_elementwise(std::vector<Fusion>& all) {
  for (const char* op : {"negate", "abs", "floor", "ceil", "sign", "round-nearest-afz", "round-nearest-even"})
    all.push_back(vectors(
        fmt::format("{}_of_sum", op),
        fmt::format("  t = f32[300] add(x, y)\n  n = f32[300] {}(t)\n  ROOT r = f32[300] subtract(n, y)\n", op), 2));
  for (const char* op : {"exponential", "tanh", "logistic", "cosine", "sine", "sqrt", "rsqrt", "log",
                         "exponential-minus-one", "log-plus-one", "cbrt", "erf"})
    all.push_back(vectors(
        fmt::format("{}_of_magnitude", op),
        fmt::format(
            "  a = f32[300] abs(x)\n  b = f32[300] abs(y)\n  t = f32[300] maximum(a, b)\n  ROOT r = f32[300] {}(t)\n",
            op),
        2, kFunctions));
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    all.push_back(vectors(
        fmt::format("select_by_{}", direction),
        fmt::format("  p = pred[300] compare(x, y), direction={}\n  ROOT r = f32[300] select(p, x, z)\n", direction),
        3));
    all.push_back(vectors(fmt::format("select_otherwise_by_{}", direction),
                          fmt::format("  p = pred[300] compare(x, y), direction={}\n  t = f32[300] add(x, y)\n  ROOT r "
                                      "= f32[300] select(p, z, t)\n",
                                      direction),
                          3));
  }
  all.push_back(vectors("chain", R"(  a = f32[300] multiply(x, y)
  b = f32[300] add(a, z)
  d = f32[300] multiply(b, x)
  e = f32[300] subtract(d, y)
  f = f32[300] maximum(e, z)
  ROOT r = f32[300] subtract(x, f)
)",
                        3));
  all.push_back(
      vectors("clamp", "  t = f32[300] add(x, y)\n  n = f32[300] negate(z)\n  ROOT r = f32[300] clamp(n, t, z)\n", 3));
  all.push_back(vectors("square", "  t = f32[300] subtract(x, y)\n  ROOT r = f32[300] multiply(t, t)\n", 2));
  all.push_back(vectors("one_operand_twice", "  t = f32[300] add(x, x)\n  ROOT r = f32[300] subtract(t, x)\n", 1));
  all.push_back(vectors("constant_inside", R"(  k = f32[] constant(3)
  b = f32[300] broadcast(k), dimensions={}
  t = f32[300] multiply(x, b)
  ROOT r = f32[300] subtract(t, y)
)",
                        2));
  all.push_back(
      vectors("iota_inside", "  i = f32[300] iota(), iota_dimension=0\n  ROOT r = f32[300] subtract(i, x)\n", 1));
  for (const char* type : {"s32", "u8", "bf16", "f16", "f64", "s64", "s8", "u32"}) {
    const std::string shape = std::string(type) + "[301]";
    all.push_back({fmt::format("multiply_then_add_{}", type),
                   fmt::format("  t = {0} multiply(x, y)\n  u = {0} add(t, z)\n  ROOT r = {0} subtract(u, x)\n", shape),
                   shape,
                   {shape, shape, shape}});
  }
  for (const char* op : {"and", "or", "xor"}) {
    all.push_back(
        {fmt::format("{}_of_predicates", op),
         fmt::format("  t = pred[301] {}(x, y)\n  n = pred[301] not(t)\n  ROOT r = pred[301] {}(n, z)\n", op, op),
         "pred[301]",
         {"pred[301]", "pred[301]", "pred[301]"}});
    all.push_back({fmt::format("{}_of_integers", op),
                   fmt::format("  t = s32[301] {}(x, y)\n  ROOT r = s32[301] subtract(z, t)\n", op),
                   "s32[301]",
                   {"s32[301]", "s32[301]", "s32[301]"}});
  }
  all.push_back({"shifts",
                 "  t = u32[301] shift-left(x, y)\n  ROOT r = u32[301] shift-right-logical(t, z)\n",
                 "u32[301]",
                 {"u32[301]", "u32[301]", "u32[301]"}});
  all.push_back({"convert_to_integer",
                 "  t = f32[300] multiply(x, y)\n  ROOT r = s32[300] convert(t)\n",
                 "s32[300]",
                 {kVector, kVector}});
  all.push_back({"convert_from_integer",
                 "  t = f32[300] convert(x)\n  ROOT r = f32[300] subtract(y, t)\n",
                 kVector,
                 {"s32[300]", kVector}});
  all.push_back({"convert_narrow",
                 "  t = f32[300] multiply(x, y)\n  n = bf16[300] convert(t)\n  w = f32[300] convert(n)\n  ROOT r = "
                 "f32[300] add(w, y)\n",
                 kVector,
                 {kVector, kVector}});
  all.push_back(
      {"convert_predicate",
       "  p = pred[300] compare(x, y), direction=LT\n  t = f32[300] convert(p)\n  ROOT r = f32[300] add(t, x)\n",
       kVector,
       {kVector, kVector}});
}

void add_scalars(std::vector<Fusion>& all) {
  all.push_back({"scalar_predicate",
                 "  t = f32[300] add(x, y)\n  ROOT r = f32[300] select(z, t, x)\n",
                 kVector,
                 {kVector, kVector, "pred[]"}});
  all.push_back({"scalar_bounds",
                 "  t = f32[300] add(x, x)\n  ROOT r = f32[300] clamp(y, t, z)\n",
                 kVector,
                 {kVector, "f32[]", "f32[]"}});
  all.push_back({"scalar_operand",
                 "  b = f32[300] broadcast(y), dimensions={}\n  ROOT r = f32[300] subtract(b, x)\n",
                 kVector,
                 {kVector, "f32[]"}});
  all.push_back({"row_operand",
                 "  b = f32[24,40] broadcast(y), dimensions={1}\n  ROOT r = f32[24,40] subtract(b, x)\n",
                 kMatrix,
                 {kMatrix, "f32[40]"}});
  all.push_back({"column_operand",
                 "  b = f32[24,40] broadcast(y), dimensions={0}\n  ROOT r = f32[24,40] subtract(x, b)\n",
                 kMatrix,
                 {kMatrix, "f32[24]"}});
  all.push_back({"row_and_column",
                 "  b = f32[24,40] broadcast(y), dimensions={0}\n  d = f32[24,40] broadcast(z), dimensions={1}\n  t = "
                 "f32[24,40] multiply(x, b)\n  ROOT r = f32[24,40] subtract(t, d)\n",
                 kMatrix,
                 {kMatrix, "f32[24]", "f32[40]"}});
}

void add_several_outputs(std::vector<Fusion>& all) {
  const std::string two = "(f32[300], f32[300])";
  all.push_back(
      {"sum_and_product",
       "  a = f32[300] add(x, y)\n  b = f32[300] multiply(x, y)\n  ROOT r = (f32[300], f32[300]) tuple(a, b)\n",
       two,
       {kVector, kVector}});
  all.push_back(
      {"both_differences",
       "  a = f32[300] subtract(x, y)\n  b = f32[300] subtract(y, x)\n  ROOT r = (f32[300], f32[300]) tuple(a, b)\n",
       two,
       {kVector, kVector}});
  all.push_back(
      {"outputs_of_each_other",
       "  a = f32[300] subtract(x, y)\n  b = f32[300] subtract(z, a)\n  ROOT r = (f32[300], f32[300]) tuple(b, a)\n",
       two,
       {kVector, kVector, kVector}});
}

constexpr char kSum[] = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n";
constexpr char kMost[] =
    "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n\n";

void add_reductions(std::vector<Fusion>& all) {
  const auto reduction = [&](const char* name, const char* lines, const char* result, std::vector<std::string> shapes,
                             const char* computation) {
    all.push_back({name, lines, result, std::move(shapes), "kInput", computation, {}});
  };
  reduction(
      "sum_of_differences",
      "  z = f32[] constant(0)\n  t = f32[24,40] subtract(x, y)\n  ROOT r = f32[24] reduce(t, z), dimensions={1}, "
      "to_apply=sum\n",
      "f32[24]", {kMatrix, kMatrix}, kSum);
  // The initial value is an argument. It may count any number of times, which is of no consequence for a maximum.
  reduction("most_of_differences",
            "  t = f32[24,40] subtract(x, y)\n  ROOT r = f32[24] reduce(t, z), dimensions={1}, to_apply=most\n",
            "f32[24]", {kMatrix, kMatrix, "f32[]"}, kMost);
  reduction(
      "sum_of_columns",
      "  z = f32[] constant(0)\n  t = f32[24,40] multiply(x, y)\n  ROOT r = f32[40] reduce(t, z), dimensions={0}, "
      "to_apply=sum\n",
      "f32[40]", {kMatrix, kMatrix}, kSum);
  reduction("sum_then_difference",
            "  z = f32[] constant(0)\n  s = f32[24] reduce(x, z), dimensions={1}, to_apply=sum\n  ROOT r = f32[24] "
            "subtract(y, s)\n",
            "f32[24]", {kMatrix, "f32[24]"}, kSum);
  reduction("less_most",
            "  k = f32[] constant(-inf)\n  m = f32[24] reduce(x, k), dimensions={1}, to_apply=most\n  b = f32[24,40] "
            "broadcast(m), dimensions={0}\n  ROOT r = f32[24,40] subtract(x, b)\n",
            "f32[24,40]", {kMatrix}, kMost);
  reduction("sum_and_its_terms",
            "  z = f32[] constant(0)\n  t = f32[24,40] multiply(x, y)\n  s = f32[24] reduce(t, z), dimensions={1}, "
            "to_apply=sum\n  ROOT r = (f32[24,40], f32[24]) tuple(t, s)\n",
            "(f32[24,40], f32[24])", {kMatrix, kMatrix}, kSum);
  // The last two results are values that the fusion itself uses for the first one, as a normalization does whose gradient reads them.
  reduction(
      "rows_and_what_they_need",
      "  z = f32[] constant(0)\n  s = f32[24] reduce(x, z), dimensions={1}, to_apply=sum\n  b = f32[24,40] "
      "broadcast(s), dimensions={0}\n  "
      "c = f32[24,40] subtract(x, b)\n  q = f32[24,40] multiply(c, c)\n  e = f32[24] reduce(q, z), dimensions={1}, "
      "to_apply=sum\n  m = f32[24,40] broadcast(e), dimensions={0}\n  n = f32[24,40] subtract(y, m)\n  ROOT r = "
      "(f32[24,40], f32[24], f32[24,40]) tuple(n, e, c)\n",
      "(f32[24,40], f32[24], f32[24,40])", {kMatrix, kMatrix}, kSum);
}

void add_products(std::vector<Fusion>& all) {
  const auto product = [&](const char* name, const char* lines, std::vector<std::string> shapes) {
    all.push_back({name, lines, "f32[24,16]", std::move(shapes), "kOutput", "", {}});
  };
  product("dot_then_difference",
          "  d = f32[24,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = f32[24,16] "
          "subtract(z, d)\n",
          {"f32[24,40]", "f32[40,16]", "f32[24,16]"});
  product(
      "dot_bias_relu",
      "  d = f32[24,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  b = f32[24,16] broadcast(z), "
      "dimensions={1}\n  t = f32[24,16] add(d, b)\n  k = f32[] constant(0)\n  n = f32[24,16] broadcast(k), "
      "dimensions={}\n"
      "  ROOT r = f32[24,16] maximum(t, n)\n",
      {"f32[24,40]", "f32[40,16]", "f32[16]"});
  product("dot_of_transposed",
          "  d = f32[24,16] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}\n  ROOT r = f32[24,16] "
          "subtract(d, z)\n",
          {"f32[40,24]", "f32[16,40]", "f32[24,16]"});
}

void add_movement(std::vector<Fusion>& all) {
  const auto moved = [&](const char* name, const char* lines, std::vector<std::string> shapes) {
    all.push_back({name, lines, kMatrix, std::move(shapes)});
  };
  moved("transposed", "  t = f32[24,40] transpose(y), dimensions={1,0}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix, "f32[40,24]"});
  moved("sliced", "  t = f32[24,40] slice(y), slice={[3:51:2], [5:45]}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix, "f32[60,50]"});
  moved(
      "padded",
      "  k = f32[] constant(7)\n  t = f32[24,40] pad(y, k), padding=2_1x1_0_1\n  ROOT r = f32[24,40] subtract(x, t)\n",
      {kMatrix, "f32[21,20]"});
  moved("reversed", "  t = f32[24,40] reverse(y), dimensions={1}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix, kMatrix});
  moved("reversed_itself", "  t = f32[24,40] reverse(x), dimensions={0}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix});
  moved("concatenated", "  t = f32[24,40] concatenate(y, z), dimensions={1}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix, "f32[24,13]", "f32[24,27]"});
  moved("reshaped", "  t = f32[24,40] reshape(y)\n  ROOT r = f32[24,40] subtract(x, t)\n", {kMatrix, "f32[960]"});
  moved("dynamic_slice",
        "  t = f32[24,40] dynamic-slice(y, z, u), dynamic_slice_sizes={24,40}\n  ROOT r = f32[24,40] subtract(x, t)\n",
        {kMatrix, "f32[30,45]", "s32[]", "s32[]"});
}

// Adds a few fusions in many sizes: empty, one element, odd sizes, more elements than 16 bits can count, and one to
// five dimensions.
void add_sizes(std::vector<Fusion>& all) {
  struct Size {
    const char *name, *dims;
    int rank;
  };
  const Size sizes[] = {{"scalar", "", 0},         {"none", "0", 1},
                        {"one", "1", 1},           {"37", "37", 1},
                        {"4099", "4099", 1},       {"70001", "70001", 1},
                        {"5x7", "5,7", 2},         {"7x5", "7,5", 2},
                        {"6x6", "6,6", 2},         {"300x257", "300,257", 2},
                        {"3x0", "3,0", 2},         {"3x4x5", "3,4,5", 3},
                        {"1x3x1x5", "1,3,1,5", 4}, {"2x3x2x3x5", "2,3,2,3,5", 5}};
  for (const Size& size : sizes) {
    const auto shape_of = [&](const char* type) { return fmt::format("{}[{}]", type, size.dims); };
    const std::string f32 = shape_of("f32"), pred = shape_of("pred");
    const auto add = [&](const char* name, const std::string& lines, const std::string& result,
                         std::vector<std::string> shapes) {
      all.push_back({fmt::format("{}_{}", name, size.name), lines, result, std::move(shapes)});
    };
    for (const char* type : {"f32", "s32", "bf16"}) {
      const std::string shape = shape_of(type);
      add(fmt::format("multiply_then_add_{}", type).c_str(),
          fmt::format("  t = {0} multiply(x, y)\n  ROOT r = {0} add(t, z)\n", shape), shape, {shape, shape, shape});
    }
    add("add_then_relu",
        fmt::format(
            "  t = {0} add(x, y)\n  k = f32[] constant(0)\n  n = {0} broadcast(k), dimensions={{}}\n  ROOT r = {0} "
            "maximum(t, n)\n",
            f32),
        f32, {f32, f32});
    add("scalar_times",
        fmt::format(
            "  b = {0} broadcast(y), dimensions={{}}\n  t = {0} multiply(b, x)\n  ROOT r = {0} subtract(t, z)\n", f32),
        f32, {f32, "f32[]", f32});
    add("chosen",
        fmt::format("  p = {1} compare(x, y), direction=LT\n  t = {0} add(x, y)\n  ROOT r = {0} select(p, t, z)\n", f32,
                    pred),
        f32, {f32, f32, f32});
    add("two_results",
        fmt::format("  a = {0} add(x, y)\n  b = {0} multiply(a, x)\n  ROOT r = ({0}, {0}) tuple(a, b)\n", f32),
        fmt::format("({0}, {0})", f32), {f32, f32});
    if (size.rank < 2) continue;
    // The second operand has one dimension and is broadcast along dimension d.
    const std::string_view dims = size.dims;
    size_t start = 0;
    for (int d = 0; d < size.rank; ++d) {
      const size_t end = std::min(dims.find(',', start), dims.size());
      const std::string line = fmt::format("f32[{}]", dims.substr(start, end - start));
      add(fmt::format("along_dimension_{}", d).c_str(),
          fmt::format(
              "  b = {0} broadcast(y), dimensions={{{1}}}\n  t = {0} multiply(x, b)\n  ROOT r = {0} subtract(t, z)\n",
              f32, d),
          f32, {f32, line, f32});
      start = end + 1;
    }
    if (size.rank != 2) continue;
    const std::string rows = fmt::format("f32[{}]", dims.substr(0, dims.find(',')));
    all.push_back({fmt::format("sums_of_products_{}", size.name),
                   fmt::format("  z = f32[] constant(0)\n  t = {0} multiply(x, y)\n  ROOT r = {1} reduce(t, z), "
                               "dimensions={{1}}, to_apply=sum\n",
                               f32, rows),
                   rows,
                   {f32, f32},
                   "kInput",
                   kSum});
  }
}

std::vector<Sample> make_fusions() {
  std::vector<Fusion> all = fusion_shapes();
  add_elementwise(all);
  add_scalars(all);
  add_several_outputs(all);
  add_reductions(all);
  add_products(all);
  add_movement(all);
  add_sizes(all);
  std::vector<Sample> out;
  for (const Fusion& fusion : all) out.push_back(sample_of(fusion));
  return out;
}

// Returns programs with select and clamp whose scalar operands apply to all elements; they have no fusion.
std::vector<Sample> make_scalars() {
  std::vector<Sample> out;
  for (const char* type : {"f32", "s32", "bf16", "f16", "f64", "s8", "s16", "s64", "u8", "u16", "u32", "u64", "pred",
                           "c64", "c128", "f8e4m3fn", "f8e5m2", "s4", "u4"}) {
    const std::string array = std::string(type) + "[300]", scalar = std::string(type) + "[]";
    out.push_back(
        {fmt::format("select/{}", type),
         fmt::format("ENTRY main {{\n  p = pred[] parameter(0)\n  a = {0} parameter(1)\n  b = {0} parameter(2)\n"
                     "  ROOT r = {0} select(p, a, b)\n}}\n",
                     array),
         {}});
    if (std::string_view(type) == "pred" || type[0] == 'c') continue;
    out.push_back({fmt::format("clamp/{}", type),
                   fmt::format("ENTRY main {{\n  a = {0} parameter(0)\n  x = {1} parameter(1)\n  b = {0} parameter(2)\n"
                               "  ROOT r = {1} clamp(a, x, b)\n}}\n",
                               scalar, array),
                   {}});
  }
  return out;
}

}  // namespace

Sample sample_of(const Fusion& fusion) {
  std::string inner = "fused {\n", outer = "ENTRY main {\n", operands;
  for (size_t i = 0; i < fusion.shapes.size(); ++i) {
    inner += fmt::format("  {} = {} parameter({})\n", "xyzuvw"[i], fusion.shapes[i], i);
    outer += fmt::format("  p{} = {} parameter({})\n", i, fusion.shapes[i], i);
    operands += fmt::format("{}p{}", i ? ", " : "", i);
  }
  return {fusion.name,
          fmt::format("{}{}{}}}\n\n{}  ROOT r = {} fusion({}), kind={}, calls=fused\n}}\n", fusion.computations, inner,
                      fusion.lines, outer, fusion.result, operands, fusion.kind),
          fusion.bound};
}

void add_fusion_contracts(std::vector<ContractCase>& list) {
  static const std::vector<Sample> fusions = make_fusions(), scalars = make_scalars();
  for (const Sample& sample : scalars)
    list.push_back({"scalar/" + sample.name, [&sample](Contract& c) { run(c, sample); }, sample.body});
  for (const Sample& sample : fusions)
    list.push_back({"fusion/" + sample.name, [&sample](Contract& c) { run(c, sample); }, sample.body});
}

}  // namespace collet::conformance
