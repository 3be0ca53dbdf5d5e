// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "conformance/contract/differences.h"
#include "conformance/contract/program.h"
#include "conformance/contract/samples.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

// A compiled program.
struct Compiled {
  std::string name;
  std::unique_ptr<TestProgram> program;
  Executable executable;
  Bound bound = {};
};

std::unique_ptr<Instance> open_with_layouts(Contract& c) {
  if (!c.plugin().computes()) return c.skip("the backend runs no ops"), nullptr;
  auto instance = Instance::open(c);
  if (!instance) return nullptr;
  if (!instance->executes()) return c.skip("a device has COLLET_TRAIT_VIRTUAL"), nullptr;
  if (!instance->query<collet_layout_table>("layout")) return c.skip("the backend has no table \"layout\""), nullptr;
  return instance;
}

// Compiles a program that the backend accepts; nothing if it declines an op or the program as a whole.
std::unique_ptr<Compiled> compiled(Instance& instance, const std::string& name, const std::string& body,
                                   const Bound& bound = {}) {
  Contract& c = instance.contract();
  auto program = TestProgram::make(body);
  if (!program.ok()) return c.fault(program.status()), nullptr;
  if (!accepts(instance, (*program)->get())) return nullptr;
  CompileResult made = compile(instance, (*program)->get());
  if (made.status != COLLET_OK) return nullptr;  // compile/... judges that
  return std::make_unique<Compiled>(Compiled{name, *std::move(program), std::move(made.executable), bound});
}

// Programs of two matrices of `type` that give a third of the same shape, and of larger ones.
std::vector<std::pair<std::string, std::string>> matrix_programs(const std::string& type, int64_t size) {
  const std::string array = fmt::format("{}[{},{}]", type, size, size);
  const auto of = [&](const std::string& root) {
    return fmt::format("ENTRY main {{\n  x = {0} parameter(0)\n  w = {0} parameter(1)\n  {1}\n}}\n", array, root);
  };
  return {
      {"a sum of " + array, of(fmt::format("ROOT r = {} add(x, w)", array))},
      {"a difference of " + array, of(fmt::format("ROOT r = {} subtract(x, w)", array))},
      {"a product of " + array,
       of(fmt::format("ROOT r = {} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", array))},
      {"a transposed array of " + array,
       of(fmt::format("t = {0} transpose(w), dimensions={{1,0}}\n  ROOT r = {0} add(x, t)", array))},
      {"a product and a sum of " + array,  // which read the same arguments
       of(fmt::format("d = {0} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                      "  s = {0} add(x, w)\n  ROOT r = {0} subtract(d, s)",
                      array))},
  };
}

// Calls `judge` for each program of which an argument or result has a layout. Skips the case if there is none.
void for_each_with_layouts(Instance& instance,
                           const std::function<bool(const Compiled&, const Layouts& layouts)>& judge) {
  bool any = false;
  const auto look = [&](const std::string& name, const std::string& body, const Bound& bound) {
    const auto made = compiled(instance, name, body, bound);
    if (!made) return !instance.contract().broken();
    const auto layouts = layouts_of(instance, *made->program, made->executable);
    if (!layouts) return false;
    if (!layouts->any()) return true;
    any = true;
    return judge(*made, *layouts);
  };
  for (const char* type : {"f32", "bf16", "s32"})
    for (const int64_t size : {24, 70})
      for (const auto& [name, body] : matrix_programs(type, size))
        if (!look(name, body, {})) return;
  for (const Sample& sample : samples())
    if (!look(sample.name, sample.body, sample.bound)) return;
  if (!any) instance.contract().skip("no argument or result of the programs has a layout");
}

// The same question gets the same answer.
void answers(Contract& c) {
  const auto instance = open_with_layouts(c);
  if (!instance) return;
  for_each_with_layouts(*instance, [&](const Compiled& one, const Layouts& first) {
    const auto again = layouts_of(*instance, *one.program, one.executable);
    return again && c.check(again->arguments == first.arguments && again->results == first.results, Promise::LAYOUT_OF,
                            "{}: a layout is another one the second time", one.name);
  });
}

// Programs run with arguments and results in their layouts, with any padding.
void runs(Contract& c) {
  const auto instance = open_with_layouts(c);
  if (!instance) return;
  for_each_with_layouts(*instance, [&](const Compiled& one, const Layouts&) {
    GuardedLaunch guarded(*instance, *one.program, one.executable, {});
    for (uint64_t seed = 1; seed <= 4; ++seed)
      if (!guarded.run(seed, fmt::format("{}, run {} in its layouts", one.name, seed), one.bound)) return false;
    return true;
  });
}

// Guard bytes around an array in a buffer of its own.
constexpr uint64_t kGuard = 256;

// Calls convert, and does in the host's place what it leaves to the host. Returns false after a failure.
bool convert(Instance& instance, const ArrayLayout& from_layout, const collet_place& from, const ArrayLayout& to_layout,
             const collet_place& to, const std::string& what) {
  Contract& c = instance.contract();
  const auto* table = instance.query<collet_layout_table>("layout");
  const hlo::Shape& shape = from_layout.shape();
  if (table->convert) {
    const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    const collet_layout a = from_layout.get(), b = to_layout.get();
    const collet_status status = checked_call(c, "convert", [&](collet_error* error) {
      return table->convert(instance.handle(), 0, static_cast<uint32_t>(shape.type()),
                            static_cast<uint32_t>(shape.rank()), dims.data(), &from, &a, &to, &b, nullptr, error);
    });
    if (status == COLLET_OK) return true;
    if (!c.check(status == COLLET_UNIMPLEMENTED, Promise::LAYOUT_CONVERT, "{}: convert gave status {}", what, status))
      return false;
  }
  Bytes before(from_layout.bytes()), after(to_layout.bytes());
  const collet_copy_region down = region(from, at_host(before.data()), before.size());
  const collet_copy_region up = region(at_host(after.data()), to, after.size());
  if (!instance.copy({&down, 1})) return false;
  to_layout.write(from_layout.read(before.data()), after.data());
  return instance.copy({&up, 1});
}

bool same(const Literal& a, const Literal& b) {
  return a.byte_size() == b.byte_size() && std::memcmp(a.bytes(), b.bytes(), static_cast<size_t>(a.byte_size())) == 0;
}

// Converts a value, which lies between guard bytes, to another place between guard bytes.
bool converts(Instance& instance, const ArrayLayout& from_layout, const ArrayLayout& to_layout, const Literal& value,
              uint64_t seed, const std::string& what) {
  Contract& c = instance.contract();
  const uint64_t alignment = instance.device().alignment();
  const uint64_t place = (kGuard + alignment - 1) / alignment * alignment;
  Bytes from = pattern(place + from_layout.bytes() + kGuard, seed);
  Bytes to = pattern(place + to_layout.bytes() + kGuard, seed + 1);
  from_layout.write(value, from.data() + place);
  const Buffer a = instance.alloc(from.size()), b = instance.alloc(to.size());
  if (!a || !b || !instance.write(a, from) || !instance.write(b, to)) return false;
  if (!convert(instance, from_layout, at(a, place), to_layout, at(b, place), what)) return false;
  const Bytes now = instance.read(b);
  if (now.size() != to.size()) return false;
  const auto end = static_cast<ptrdiff_t>(place + to_layout.bytes());
  return c.check(same(to_layout.read(now.data() + place), value), Promise::LAYOUT_CONVERT,
                 "{}: convert gave other elements", what) &&
         c.check(std::equal(now.begin(), now.begin() + static_cast<ptrdiff_t>(place), to.begin()) &&
                     std::equal(now.begin() + end, now.end(), to.begin() + end),
                 Promise::LAYOUT_CONVERT, "{}: convert wrote beside the array", what) &&
         c.check(difference_text(instance.read(a), from).empty(), Promise::LAYOUT_CONVERT,
                 "{}: convert changed the array that it reads", what);
}

void conversions(Contract& c) {
  const auto instance = open_with_layouts(c);
  if (!instance) return;
  const auto* table = instance->query<collet_layout_table>("layout");
  if (!table->convert) return c.skip("the table \"layout\" has no function convert");
  uint64_t seed = 1;
  for_each_with_layouts(*instance, [&](const Compiled& one, const Layouts& layouts) {
    std::vector<ArrayLayout> all = layouts.arguments;
    all.insert(all.end(), layouts.results.begin(), layouts.results.end());
    for (const ArrayLayout& from : all) {
      if (from.is_dense() || from.shape().byte_size() == 0) continue;
      // The value is a draw of the program's own arguments, or of zeros where only a result has the shape.
      const std::vector<Literal> inputs = one.program->draw(seed);
      const auto value = std::find_if(inputs.begin(), inputs.end(), [&](const Literal& input) {
        return input.shape().same_without_layout(from.shape());
      });
      if (value == inputs.end()) continue;
      const ArrayLayout dense(from.shape());
      seed += 2;
      if (!converts(*instance, dense, from, *value, seed, one.name + ", from dense") ||
          !converts(*instance, from, dense, *value, seed, one.name + ", to dense"))
        return false;
      for (const ArrayLayout& to : all)
        if (!to.is_dense() && !(to == from) && to.shape().same_without_layout(from.shape()) &&
            !converts(*instance, from, to, *value, seed, one.name + ", from one layout to another"))
          return false;
    }
    return true;
  });
}

// Runs `first`, and `second` with the result of the first in place of its argument number `argument`.
bool run_in_chain(Instance& instance, const Compiled& first, const Compiled& second, uint32_t argument, uint64_t seed) {
  Contract& c = instance.contract();
  const std::string what = fmt::format("{} with the result of {} as argument {}", second.name, first.name, argument);
  GuardedLaunch before(instance, *first.program, first.executable, {}),
      after(instance, *second.program, second.executable, {});
  const std::vector<Literal> inputs = first.program->draw(seed);
  if (!before.run_with(inputs, seed, first.name, first.bound)) return false;
  const Expected<std::vector<Literal>> results = first.program->evaluate(inputs);
  if (!results.ok()) return c.fault(results.status()), false;
  std::vector<Literal> next = second.program->draw(seed + 1);
  next[argument] = (*results)[0];
  if (!after.fill(next, seed + 1)) return false;
  const ArrayLayout &from = before.layouts().results[0], &to = after.layouts().arguments[argument];
  const collet_argument result = before.results()[0];
  collet_argument& taken = after.arguments()[argument];
  if (from == to) {
    taken = result;
  } else if (!convert(instance, from, {result.buffer, nullptr, result.offset}, to,
                      {taken.buffer, nullptr, taken.offset}, what)) {
    return false;
  }
  std::string message;
  const collet_status status = after.execute(&message);
  return c.check(status == COLLET_OK, Promise::LAYOUT_LAUNCH, "{}: execute gave status {}: {}", what, status,
                 message) &&
         after.judge_results(next, what, second.bound);
}

// The result of one executable is an argument of another. All executables, those of other sizes too, are compiled first.
void chain(Contract& c) {
  const auto instance = open_with_layouts(c);
  if (!instance) return;
  struct Group {
    std::vector<std::unique_ptr<Compiled>> programs;
    bool has_layouts = false;
  };
  std::vector<Group> groups;
  for (const int64_t size : {70, 24}) {
    for (const char* type : {"s32", "f32"}) {
      Group group;
      for (const auto& [name, body] : matrix_programs(type, size)) {
        auto made = compiled(*instance, name, body);
        if (c.broken()) return;
        if (!made) continue;
        const auto layouts = layouts_of(*instance, *made->program, made->executable);
        if (!layouts) return;
        group.has_layouts |= layouts->any();
        group.programs.push_back(std::move(made));
      }
      if (group.has_layouts) groups.push_back(std::move(group));
    }
  }
  uint64_t seed = 1;
  for (const Group& group : groups)
    for (const auto& first : group.programs)
      for (const auto& second : group.programs)
        for (uint32_t argument = 0; argument < 2; ++argument)
          if (!run_in_chain(*instance, *first, *second, argument, seed++)) return;
  if (groups.empty()) c.skip("no argument or result of the programs has a layout");
}

}  // namespace

void add_layout_contracts(std::vector<ContractCase>& list) {
  list.push_back({"tables/layout", answers});
  list.push_back({"tables/layout_runs", runs});
  list.push_back({"tables/layout_conversions", conversions});
  list.push_back({"tables/layout_chain", chain});
}

}  // namespace collet::conformance
