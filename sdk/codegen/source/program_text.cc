// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/program_text.h"

#include <collet/program.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sdk/codegen/base/element_type.h"
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
      f_.statement("char *const constants = (char *)&program_constants;");
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
    f_.open("switch (*(" + f_.unit.pointer("const " + type) + ")(" + place(step, 0) + "))");
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

/// Appends the numbers of an array, integers as such and floats by their bits, so that a machine of either byte order reads them.
template <typename T>
void append_numbers(const char* data, size_t count, std::string& out) {
  constexpr size_t kPerLine = 16;
  for (size_t i = 0; i < count; ++i) {
    T number;
    std::memcpy(&number, data + i * sizeof(T), sizeof(T));
    out += i == 0 ? "" : i % kPerLine == 0 ? ",\n     " : ", ";
    // The least number of a signed type has no literal of its own.
    if (std::is_signed_v<T> && number == std::numeric_limits<T>::min() && sizeof(T) >= sizeof(int)) {
      out += "(" + std::to_string(number + 1) + " - 1)";
    } else {
      out += std::to_string(number);
    }
    if (std::is_unsigned_v<T> && sizeof(T) >= sizeof(int)) out += 'u';
  }
}

/// Appends the declaration of an array in the struct of constants, and its numbers.
void append_constant(const ConstantArray& array, const char* data, std::string& fields, std::string& numbers) {
  const std::string name = "at" + std::to_string(array.offset);
  const uint32_t half = half_type(array.type.element);
  const auto count = static_cast<size_t>(array.type.bytes() / collet_type_bytes(half));
  const auto add = [&]<typename T>(T, const char* type) {
    fields += "  " + std::string(type) + " " + name + "[" + std::to_string(count) + "];\n";
    numbers += "    {";
    append_numbers<T>(data, count, numbers);
    numbers += "},\n";
  };
  const bool is_signed = collet_type_kind(half) == COLLET_KIND_SIGNED;
  switch (collet_type_bytes(half)) {
    case 2:
      return is_signed ? add(int16_t(), "int16_t") : add(uint16_t(), "uint16_t");
    case 4:
      return is_signed ? add(int32_t(), "int32_t") : add(uint32_t(), "uint32_t");
    case 8:
      return is_signed ? add(int64_t(), "int64_t") : add(uint64_t(), "uint64_t");
    default:
      return is_signed ? add(int8_t(), "int8_t") : add(uint8_t(), "uint8_t");
  }
}

/// Returns the definition of the constants: a struct that has each array at its offset.
std::string constants_text(const PlannedProgram& program) {
  std::string fields, numbers;
  uint64_t end = 0;
  const auto pad_to = [&](uint64_t offset) {
    if (offset == end) return;
    fields += "  uint8_t pad" + std::to_string(end) + "[" + std::to_string(offset - end) + "];\n";
    numbers += "    {0},\n";
  };
  for (const ConstantArray& array : program.constants) {
    if (array.type.bytes() == 0) continue;
    pad_to(array.offset);
    append_constant(array, program.plan.constants.data() + array.offset, fields, numbers);
    end = array.offset + static_cast<uint64_t>(array.type.bytes());
  }
  pad_to(program.plan.constants.size());
  return "static const struct {\n" + fields + "} program_constants = {\n" + numbers + "};\n";
}

}  // namespace

void write_program(const PlannedProgram& program, const CompileOptions& options, const Target& target,
                   std::string& out) {
  Unit unit(target);
  if (options.embed_constants && !program.plan.constants.empty())
    unit.helper("program_constants", [&] { return constants_text(program); });
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
