// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <cctype>
#include <iterator>
#include <set>
#include <sstream>

namespace collet::codegen {
namespace {

const char* c_type(uint32_t type) {
  switch (type) {
    case COLLET_TYPE_F32:
    case COLLET_TYPE_C64:
      return "float";
    case COLLET_TYPE_F64:
    case COLLET_TYPE_C128:
      return "double";
    case COLLET_TYPE_S8:
      return "int8_t";
    case COLLET_TYPE_S16:
      return "int16_t";
    case COLLET_TYPE_S32:
      return "int32_t";
    case COLLET_TYPE_S64:
      return "int64_t";
    default:
      break;
  }
  switch (collet_type_bytes(type)) {
    case 2:
      return "uint16_t";
    case 4:
      return "uint32_t";
    case 8:
      return "uint64_t";
    default:
      return "uint8_t";
  }
}

std::string shape_of(const collet_program* program, const collet_type& type) {
  std::string text = std::string(collet_type_name(type.element)) + "[";
  const int64_t* dims = collet_integers(program, type.dims);
  for (uint32_t i = 0; i < type.dims.count; ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  text += "]";
  if (collet_type_kind(type.element) == COLLET_KIND_COMPLEX) text += ", real and imaginary parts in turn";
  return text;
}

/// Writes a struct with one pointer for each value, and returns the names of its fields.
std::vector<std::string> write_struct(const collet_program* program, const std::string& name, const char* qualifier,
                                      const char* fallback, const std::vector<uint32_t>& values, std::string& out) {
  std::vector<std::string> fields;
  std::set<std::string> taken;
  out += "struct " + name + " {\n";
  for (uint32_t id : values) {
    const collet_value* value = collet_value_at(program, id);
    const auto* type = static_cast<const collet_type*>(collet_array_at(program, program->types, value->type));
    std::string given(collet_string(program, value->name), value->name.count);
    if (given.empty() && !(value->flags & COLLET_VALUE_ARGUMENT)) {
      const collet_op* op = collet_op_at(program, value->definition);
      if (op->results.count == 1) given.assign(collet_string(program, op->name), op->name.count);
    }
    const std::string wanted = given.empty() ? fallback + std::to_string(fields.size()) : c_identifier(given);
    std::string field = wanted;
    for (size_t n = fields.size(); !taken.insert(field).second; ++n) field = wanted + "_" + std::to_string(n);
    out += std::string("  ") + qualifier + c_type(type->element) + "* " + field + "; /* " + shape_of(program, *type) +
           ": " + std::to_string(type->bytes) + " bytes */\n";
    fields.push_back(field);
  }
  if (values.empty()) out += "  char unused;\n";
  out += "};\n\n";
  return fields;
}

/// Declares the struct through which a caller lends its threads: the C form of SharedLoops in compile.h.
std::string threads_struct(const std::string& name, const std::string& upper, int threads) {
  return "\n/* Threads that share the work of a call. loop calls body(context, begin, end, worker) for parts of 0 .. "
         "range,\n"
         "   each a multiple of grain but the last, and returns when all have ended; worker, below " +
         upper +
         "_THREADS, is\n   never used twice at once. The pointer to them may be null: "
         "then the calling thread does all the work. */\n#define " +
         upper + "_THREADS " + std::to_string(threads) + "\nstruct " + name +
         "_threads {\n  void (*loop)(void* user, int64_t range, int64_t grain,\n"
         "               void (*body)(void* context, int64_t begin, int64_t end, int32_t worker), void* context);\n"
         "  void* user;\n};\n";
}

/// True if `name` cannot be a field: it is a keyword of C17 or C++23, or a C library function that a header declares or
/// generated code calls.
bool is_taken(const std::string& name) {
  static const std::set<std::string> all = [] {
    std::istringstream words(
        "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local abort "
        "abs alignas alignof and and_eq asm auto bitand bitor bool break calloc case catch ceil ceilf char char16_t "
        "char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
        "constinit continue cos decltype default delete do double dynamic_cast else enum exit exp explicit export "
        "extern false float floor floorf fma fmaf fmod fmodf for free friend goto if inline int int16_t int32_t "
        "int64_t int8_t log long main malloc memcpy memmove memset mutable namespace new noexcept not not_eq nullptr "
        "operator or or_eq pow private protected public register reinterpret_cast requires restrict return rint rintf "
        "round roundf short signed sin sizeof sqrt static static_assert static_cast struct switch tan tanh template "
        "this thread_local throw true trunc truncf try typedef typeid typename uint16_t uint32_t uint64_t uint8_t "
        "uintptr_t union unsigned using virtual void volatile wchar_t while xor xor_eq ");
    return std::set<std::string>(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }();
  return all.count(name) != 0;
}

}  // namespace

std::string c_identifier(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.find_first_not_of('_') == std::string::npos) return "program";
  if (is_taken(out)) return out + "_program";
  return std::isdigit(static_cast<unsigned char>(out[0])) ? "_" + out : out;
}

std::string c_header(const collet_program* program, const LaunchPlan& plan, const CompileOptions& options,
                     const Target& target) {
  const std::string& name = options.name;
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string out = "/* Made by `collet compile` for " + target.triple + ", " + target.cpu + ". */\n#ifndef " + upper +
                    "_H\n#define " + upper +
                    "_H\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  const collet_region* entry = collet_region_at(program, 0);
  std::vector<uint32_t> arguments, results;
  for (uint32_t i = 0; i < entry->arguments.count; ++i) arguments.push_back(entry->arguments.first + i);
  for (uint32_t i = 0; i < entry->results.count; ++i)
    results.push_back(collet_ref_at(program, entry->results.first + i));
  out += "/* Arrays are dense and row-major. They must not overlap, and are aligned as their elements are. */\n";
  const auto in = write_struct(program, name + "_arguments", "const ", "arg", arguments, out);
  std::string result_struct;
  const std::vector<std::string> to = write_struct(program, name + "_results", "", "result", results, result_struct);
  out += result_struct;
  out +=
      "/* Memory that a call uses for itself; calls at the same time need their own. At a multiple of 64. "
      "*/\n#define " +
      upper + "_WORKSPACE_BYTES UINT64_C(" + std::to_string(plan.workspace_bytes) + ")\n";
  if (!options.embed_constants) {
    out += "\n/* The contents of the file of weights, which the function reads. At a multiple of 64. */\n#define " +
           upper + "_WEIGHTS_BYTES UINT64_C(" + std::to_string(plan.constants.size()) + ")\n";
  }
  const bool shares = target.threads > 1;
  if (shares) out += threads_struct(name, upper, target.threads);
  out += "\nvoid " + name +
         "_slots(char* const* slots);\n\n/* Runs the program. Any thread; it allocates nothing. */\n" +
         "static inline void " + name + "(const struct " + name + "_arguments* arguments, const struct " + name +
         "_results* results,\n    void* workspace" + (options.embed_constants ? "" : ", const void* weights") +
         (shares ? ", const struct " + name + "_threads* threads" : "") + ") {\n" + "  char* slots[" +
         std::to_string(in.size() + to.size() + 3) + "];\n";
  size_t slot = 0;
  for (const std::string& field : in)
    out += "  slots[" + std::to_string(slot++) + "] = (char*)(uintptr_t)arguments->" + field + ";\n";
  for (const std::string& field : to)
    out += "  slots[" + std::to_string(slot++) + "] = (char*)results->" + field + ";\n";
  out += "  slots[" + std::to_string(slot++) + "] = (char*)workspace;\n";
  out += options.embed_constants ? "  slots[" + std::to_string(slot) + "] = 0;\n"
                                 : "  slots[" + std::to_string(slot) + "] = (char*)(uintptr_t)weights;\n";
  out += "  slots[" + std::to_string(slot + 1) + "] = " + (shares ? "(char*)(uintptr_t)threads" : "0") + ";\n";
  if (in.empty()) out += "  (void)arguments;\n";
  if (to.empty()) out += "  (void)results;\n";
  out += "  " + name + "_slots(slots);\n}\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return out;
}

}  // namespace collet::codegen
