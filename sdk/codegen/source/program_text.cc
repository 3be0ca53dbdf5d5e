// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/program_text.h"

#include <collet/program.h>

#include <algorithm>

#include "sdk/codegen/source/kernel_text.h"
#include "sdk/codegen/source/product_text.h"

namespace collet::codegen {
namespace {

using source::Function;
using source::Unit;

constexpr const char* kRoutines = R"(/* What the caller supplies: runs routine `number` of the program on its places. */
struct routines {
  void (*run)(const struct routines *routines, int64_t number, char *const *places,
              uint8_t (*compare)(char *const *buffers, int64_t i, int64_t j));
};
)";

/// Writes the function that runs a launch plan.
class EntryWriter {
 public:
  EntryWriter(const PlannedProgram& program, const CompileOptions& options, Unit& unit)
      : program_(program), plan_(program.plan), options_(options), unit_(unit), f_(unit) {}

  void run() {
    for (const FunctionSource& s : program_.sources) {
      if (const auto* const kernel = std::get_if<Kernel>(&s.body)) write_kernel(unit_, *kernel, s.name, s.ops);
      if (const auto* const order = std::get_if<Comparator>(&s.body))
        write_comparator(unit_, order->body, order->types, s.name);
      if (std::holds_alternative<BlockedProduct>(s.body)) write_product(unit_, s, program_.sources);
    }
    if (options_.embed_constants && !plan_.constants.empty())
      f_.statement("char *const constants = (char *)constant_bytes.bytes;");
    if (!plan_.routines.empty()) {
      unit_.helper("struct routines", [] { return std::string(kRoutines); });
      f_.statement("const struct routines *const routines = (const struct routines *)slots[" +
                   std::to_string(constant_slot(plan_) + 1) + "];");
    }
    steps(plan_.steps);
    f_.statement("(void)slots;");
    std::string text = f_.print("void " + options_.name + "(char *const *slots)");
    unit_.add("void " + options_.name + "(char *const *slots);\n");
    unit_.add(text);
  }

 private:
  std::string place(const Step& step, uint32_t i) const {
    const Place& p = plan_.places[step.first_place + i];
    const bool is_constant = options_.embed_constants && p.slot == constant_slot(plan_);
    const std::string base = is_constant ? "constants" : "slots[" + std::to_string(p.slot) + "]";
    return p.offset == 0 ? base : base + " + " + std::to_string(p.offset);
  }
  std::string places(const Step& step) const {
    std::string all;
    for (uint32_t i = 0; i < step.places; ++i) all += (i == 0 ? "" : ", ") + place(step, i);
    return all.empty() ? "0" : all;
  }

  void steps(const StepList& list) {
    for (const Step& step : list) one(step);
  }

  void one(const Step& step) {
    const std::string range = std::to_string(step.kernel.range);
    switch (step.kind) {
      case StepKind::kKernel: {
        f_.open("");
        f_.statement("char *const places[] = {" + places(step) + "};");
        f_.statement(call(step.kernel.function, "0", range));
        if (step.kernel.tail != kNoFunction) {
          f_.statement(name(step.kernel.tail) + "(places + " + std::to_string(step.kernel.tail_place) + ", 0, " +
                       std::to_string(step.kernel.tail_range) + ");");
        }
        return f_.close();
      }
      case StepKind::kBlocks:
        f_.open("for (int64_t block = 0; block < " + range + "; ++block)");
        for (const Step& inner : step.children[0]) block_step(inner);
        return f_.close();
      case StepKind::kRoutine: {
        const FunctionId compare = plan_.routines[step.call].compare;
        f_.open("");
        f_.statement("char *const places[] = {" + places(step) + "};");
        f_.statement("routines->run(routines, " + std::to_string(step.call) + ", places, " +
                     (compare == kNoFunction ? "0" : name(compare)) + ");");
        return f_.close();
      }
      case StepKind::kCopy:
        // Both places may be the same memory.
        return f_.statement("memmove(" + place(step, 1) + ", " + place(step, 0) + ", " + std::to_string(step.bytes) +
                            ");");
      case StepKind::kWhile:
        f_.open("for (;;)");
        steps(step.children[0]);
        f_.statement("if (*(const uint8_t *)(" + place(step, 0) + ") == 0) break;");
        steps(step.children[1]);
        return f_.close();
      case StepKind::kConditional:
        return choose(step);
      default:  // the caller has checked that such steps do not occur
        return;
    }
  }

  /// A step of a block of rows: what belongs to the block alone is kept in the memory of the thread, which is the first one.
  void block_step(const Step& step) {
    std::string all;
    for (uint32_t i = 0; i < step.places; ++i) {
      const uint64_t bytes = step.block_bytes[i];
      all += (i == 0 ? "" : ", ") + place(step, i) + (bytes == 0 ? "" : " - block * " + std::to_string(bytes));
    }
    f_.open("");
    f_.statement("char *const places[] = {" + all + "};");
    f_.statement(call(step.kernel.function, "block", "block + 1"));
    f_.close();
  }

  void choose(const Step& step) {
    const std::string type = step.index_bytes == 0 ? "uint8_t" : "uint32_t";
    f_.open("switch (*(const " + type + " *)(" + place(step, 0) + "))");
    for (size_t i = 0; i < step.children.size(); ++i) {
      // A pred selects branch 0 if it is true; an index that is out of range selects the last branch.
      const bool last = i + 1 == step.children.size();
      const std::string label = last && step.index_bytes != 0 ? "default:"
                                : step.index_bytes == 0       ? (last ? "case 0:" : "default:")
                                                              : "case " + std::to_string(i) + ":";
      f_.open(label);
      steps(step.children[i]);
      f_.statement("break;");
      f_.close();
    }
    f_.close();
  }

  const std::string& name(FunctionId id) const { return program_.sources[id].name; }
  /// Returns the call of a kernel or of a product, which is also told that the first worker calls.
  std::string call(FunctionId id, const std::string& begin, const std::string& end) const {
    const bool multiplies = std::holds_alternative<BlockedProduct>(program_.sources[id].body);
    return name(id) + "(places, " + begin + ", " + end + (multiplies ? ", 0);" : ");");
  }

  const PlannedProgram& program_;
  const LaunchPlan& plan_;
  const CompileOptions& options_;
  Unit& unit_;
  Function f_;
};

}  // namespace

void write_program(const PlannedProgram& program, const CompileOptions& options, const Target& target,
                   std::string& out) {
  Unit unit(target);
  if (options.embed_constants && !program.plan.constants.empty()) {
    std::string bytes;
    for (const char c : program.plan.constants) {
      if (!bytes.empty()) bytes += ',';
      bytes += std::to_string(static_cast<unsigned char>(c));
    }
    unit.helper("constant_bytes", [&] {
      return "static const union {\n  unsigned char bytes[" + std::to_string(program.plan.constants.size()) +
             "];\n  double alignment;\n} constant_bytes = {{" + bytes + "}};\n";
    });
  }
  EntryWriter(program, options, unit).run();
  out = unit.text();
}

std::string write_kernels(const std::vector<std::pair<std::string, Kernel>>& kernels, const Target& target) {
  Unit unit(target);
  std::string entries;
  for (const auto& [name, kernel] : kernels) {
    write_kernel(unit, kernel, name + "_body", "");
    const std::string head = "void " + name + "(char *const *buffers, int64_t begin, int64_t end)";
    unit.add(head + ";\n" + head + " {\n  " + name + "_body(buffers, begin, end);\n}\n");
  }
  return unit.text();
}

}  // namespace collet::codegen
