// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/program.h"

/// \file
/// Contract cases with programs that differ in one respect only: a compiler that ignores the difference, for example in
/// a cache, returns a wrong executable.

namespace collet::conformance {
namespace {

struct Group {
  std::string name;
  std::vector<std::string> bodies;
  std::string aliases = {};  ///< input_output_alias of every second program
};

std::string vectors(std::string_view lines, std::string_view type = "f32") {
  return fmt::format("ENTRY main {{\n  x = {0}[300] parameter(0)\n  w = {0}[300] parameter(1)\n{1}}}\n", type, lines);
}
std::string vectors_by(std::string_view root) {
  return vectors(fmt::format("  ROOT r = f32[300] {}\n", root));
}
std::string matrix(std::string_view root) {
  return fmt::format("ENTRY main {{\n  x = f32[24,24] parameter(0)\n  ROOT r = {}\n}}\n", root);
}
std::string reduced(std::string_view op, int start, int dimension) {
  return fmt::format(
      "apply {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] {0}(a, b)\n}}\n\n"
      "ENTRY main {{\n  x = f32[24,24] parameter(0)\n  z = f32[] constant({1})\n"
      "  ROOT r = f32[24] reduce(x, z), dimensions={{{2}}}, to_apply=apply\n}}\n",
      op, start, dimension);
}

std::vector<Group> make_groups() {
  std::vector<Group> all;
  Group constants{"constants", {}};
  for (const int value : {1, 2, 7})
    constants.bodies.push_back(
        vectors(fmt::format("  k = f32[] constant({})\n  b = f32[300] broadcast(k), dimensions={{}}\n  a = f32[300] "
                            "multiply(x, b)\n  ROOT r = f32[300] add(a, w)\n",
                            value)));
  all.push_back(std::move(constants));
  all.push_back({"constant_kinds",
                 {vectors("  k = s32[] constant(3)\n  b = s32[300] broadcast(k), dimensions={}\n  ROOT r = s32[300] "
                          "add(x, b)\n",
                          "s32"),
                  vectors("  k = f32[] constant(3)\n  b = f32[300] broadcast(k), dimensions={}\n  ROOT r = f32[300] "
                          "add(x, b)\n")}});
  all.push_back({"ops", {vectors_by("add(x, w)"), vectors_by("multiply(x, w)"), vectors_by("maximum(x, w)")}});
  all.push_back(
      {"operands", {vectors_by("subtract(x, w)"), vectors_by("subtract(w, x)"), vectors_by("subtract(x, x)")}});
  all.push_back({"later_operands",
                 {vectors("  a = f32[300] multiply(x, w)\n  ROOT r = f32[300] add(a, x)\n"),
                  vectors("  a = f32[300] multiply(x, w)\n  ROOT r = f32[300] add(a, w)\n"),
                  vectors("  a = f32[300] multiply(x, w)\n  ROOT r = f32[300] add(a, a)\n")}});
  all.push_back({"results",
                 {vectors("  a = f32[300] multiply(x, w)\n  b = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) "
                          "tuple(a, b)\n"),
                  vectors("  a = f32[300] multiply(x, w)\n  b = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) "
                          "tuple(b, a)\n"),
                  vectors("  a = f32[300] multiply(x, w)\n  b = f32[300] add(x, w)\n  ROOT r = (f32[300], f32[300]) "
                          "tuple(b, b)\n")}});
  Group directions{"compare_directions", {}};
  for (const char* direction : {"LT", "GT", "EQ", "NE"})
    directions.bodies.push_back(vectors(fmt::format("  ROOT r = pred[300] compare(x, w), direction={}\n", direction)));
  all.push_back(std::move(directions));
  Group slices{"slices", {}};
  for (const char* limits : {"[0:100]", "[200:300]", "[0:300:3]"})
    slices.bodies.push_back(vectors(fmt::format("  ROOT r = f32[100] slice(x), slice={{{}}}\n", limits)));
  all.push_back(std::move(slices));
  all.push_back({"reductions",
                 {reduced("add", 0, 0), reduced("add", 0, 1), reduced("maximum", 0, 1), reduced("maximum", 20, 1)}});
  all.push_back(
      {"dimensions",
       {matrix("f32[24,24] transpose(x), dimensions={1,0}"), matrix("f32[24,24] transpose(x), dimensions={0,1}"),
        matrix("f32[24,24] reverse(x), dimensions={0}"), matrix("f32[24,24] reverse(x), dimensions={1}")}});
  Group broadcasts{"broadcasts", {}};
  for (const int dimension : {0, 1})
    broadcasts.bodies.push_back(fmt::format(
        "ENTRY main {{\n  x = f32[24] parameter(0)\n  ROOT r = f32[24,24] broadcast(x), dimensions={{{}}}\n}}\n",
        dimension));
  all.push_back(std::move(broadcasts));
  Group products{"products", {}};
  for (const char* dims :
       {"lhs_contracting_dims={1}, rhs_contracting_dims={0}", "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}"})
    products.bodies.push_back(
        fmt::format("ENTRY main {{\n  x = f32[24,24] parameter(0)\n  w = f32[24,24] parameter(1)\n"
                    "  ROOT r = f32[24,24] dot(x, w), {}\n}}\n",
                    dims));
  all.push_back(std::move(products));
  Group shapes{"shapes", {}};
  for (const char* shape : {"f32[20,30]", "f32[30,20]", "f32[600]", "f32[60,10]"}) {
    const std::string dims = std::string_view(shape) == "f32[600]" ? "{0}" : "{1}";
    shapes.bodies.push_back(fmt::format(
        "ENTRY main {{\n  x = {0} parameter(0)\n  ROOT r = {0} reverse(x), dimensions={1}\n}}\n", shape, dims));
  }
  all.push_back(std::move(shapes));
  Group lengths{"lengths", {}};
  for (const char* shape : {"f32[300]", "f32[600]", "f32[150]"})
    lengths.bodies.push_back(fmt::format(
        "ENTRY main {{\n  x = {0} parameter(0)\n  w = {0} parameter(1)\n  ROOT r = {0} add(x, w)\n}}\n", shape));
  all.push_back(std::move(lengths));
  Group types{"types", {}};
  for (const char* type : {"s32", "f32", "u32"})
    types.bodies.push_back(vectors(fmt::format("  ROOT r = {}[300] maximum(x, w)\n", type), type));
  all.push_back(std::move(types));
  // The last program has the same text; only its header states that memory may be shared.
  all.push_back({"aliases",
                 {vectors("  a = f32[300] add(x, w)\n  ROOT r = f32[300] multiply(a, x)\n"),
                  vectors("  a = f32[300] add(x, w)\n  ROOT r = f32[300] multiply(a, x)\n")},
                 "{}: (0, {}, must-alias)"});
  return all;
}

void run(Contract& c, const Group& group) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops");
  const auto instance = Instance::open(c);
  if (!instance) return;
  if (!instance->executes()) return c.skip("a device has COLLET_TRAIT_VIRTUAL");
  std::vector<PreparedProgram> ready;
  for (size_t i = 0; i < group.bodies.size(); ++i) {
    PreparedProgram one = prepare(*instance, group.bodies[i], i % 2 == 1 ? group.aliases : "", {}, false);
    if (c.broken()) return;
    if (one) ready.push_back(std::move(one));
  }
  if (ready.size() < 2) return c.skip("the backend takes fewer than two of the programs");
  for (uint64_t round = 1; round <= 2; ++round) {
    for (size_t i = 0; i < ready.size(); ++i) {
      const size_t which = round == 1 ? i : ready.size() - 1 - i;
      GuardedLaunch guarded(*instance, *ready[which].program, ready[which].executable, {.take_aliases = true});
      if (guarded.run(round, fmt::format("program {} of several that differ in {}", which, group.name))) continue;
      c.check(false, Promise::COMPILE, "each of the programs has to get an executable of its own");
      return;
    }
  }
}

}  // namespace

void add_alike_contracts(std::vector<ContractCase>& list) {
  static const std::vector<Group> groups = make_groups();
  for (const Group& group : groups)
    list.push_back({"alike/" + group.name, [&group](Contract& c) { run(c, group); }, group.bodies[0]});
}

}  // namespace collet::conformance
