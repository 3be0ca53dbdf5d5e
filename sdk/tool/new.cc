// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "hlo/base/shell.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/installation.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name, style = "kernels", language, out, json;
};

// The templates are complete projects for a backend with this name, which is replaced.
constexpr std::string_view kPlaceholder = "acme";

constexpr uint64_t kMostTemplateBytes = uint64_t{1} << 26;

// Words with a meaning for the tool or in the templates.
constexpr std::string_view kTaken[] = {"all",  "collet", "cpu",    "gpu",     "interpreter", "main",  "none",
                                       "test", "kernel", "device", "backend", "memory",      "table", "auto"};

// Keywords and alternative tokens of C and C++, up to C23 and C++23. The name becomes a namespace.
constexpr std::string_view kKeywords[] = {"alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "atomic_cancel",
                                          "atomic_commit",
                                          "atomic_noexcept",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "contract_assert",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "final",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "import",
                                          "inline",
                                          "int",
                                          "long",
                                          "module",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "override",
                                          "private",
                                          "protected",
                                          "public",
                                          "reflexpr",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "std",
                                          "posix",
                                          "struct",
                                          "switch",
                                          "synchronized",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "typeof_unqual",
                                          "union",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "while",
                                          "xor",
                                          "xor_eq"};

// What headers of the C library and compilers define and no library exports: macros, types and inline functions.
constexpr std::string_view kOfTheLibrary[] = {"uint",
                                              "ushort",
                                              "ulong",
                                              "u_int",
                                              "u_char",
                                              "u_short",
                                              "u_long",
                                              "alloca",
                                              "assert",
                                              "complex",
                                              "errno",
                                              "fpclassify",
                                              "i386",
                                              "imaginary",
                                              "isfinite",
                                              "isgreater",
                                              "isinf",
                                              "isless",
                                              "isnan",
                                              "isnormal",
                                              "isunordered",
                                              "islessequal",
                                              "islessgreater",
                                              "isgreaterequal",
                                              "kill_dependency",
                                              "lconv",
                                              "linux",
                                              "major",
                                              "makedev",
                                              "minor",
                                              "noreturn",
                                              "offsetof",
                                              "setjmp",
                                              "sigsetjmp",
                                              "sigmask",
                                              "signbit",
                                              "stdin",
                                              "stdout",
                                              "stderr",
                                              "timespec",
                                              "timeval",
                                              "tm",
                                              "unix",
                                              "unreachable",
                                              "va_arg",
                                              "va_copy",
                                              "va_end",
                                              "va_list",
                                              "va_start",
                                              "stat",
                                              "fstat",
                                              "lstat",
                                              "mknod",
                                              "sigaction",
                                              "dirent",
                                              "atexit",
                                              "at_quick_exit",
                                              "signal_number",
                                              "utsname",
                                              "passwd",
                                              "group",
                                              "sockaddr",
                                              "termios",
                                              "winsize",
                                              "arm",
                                              "mips",
                                              "sparc",
                                              "sun",
                                              "vax",
                                              "pixel",
                                              "vector",
                                              "sgi"};

template <size_t N>
bool is_in(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// Returns whose word the name is; "" if it is free. Names of the C library's functions and variables are those that this
// process finds in its libraries; names that end with _t are types of POSIX.
std::string owner_of(const std::string& name) {
  if (is_in(kTaken, name) || name.starts_with("collet_")) return "Collet";
  if (is_in(kKeywords, name)) return "C or C++";
  if (is_in(kOfTheLibrary, name) || name.ends_with("_t") || dlsym(RTLD_DEFAULT, name.c_str()) != nullptr)
    return "the C library";
  return "";
}

Status check_name(const std::string& name) {
  const bool spelled = !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z' && name.back() != '_' &&
                       name.find("__") == std::string::npos &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
  if (!spelled) {
    return invalid_argument("'" + name +
                            "' is no name for a backend: a lower-case letter first, then up to 31 lower-case "
                            "letters, digits and single underscores");
  }
  if (const std::string owner = owner_of(name); !owner.empty())
    return invalid_argument("a backend cannot be called '" + name + "': the word has another meaning in " + owner);
  return ok_status();
}

// Converts my_chip to MyChip.
std::string camel_case(const std::string& name) {
  std::string out;
  bool start = true;
  for (char c : name) {
    if (c != '_') out += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = c == '_';
  }
  return out;
}

std::string upper_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

void replace_all(std::string& text, const std::string& old, const std::string& made) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += made.size()) {
    text.replace(at, old.size(), made);
  }
}

std::string filled(std::string text, const std::string& name) {
  const std::string placeholder(kPlaceholder);
  const std::pair<std::string, std::string> words[] = {
      {placeholder, name}, {camel_case(placeholder), camel_case(name)}, {upper_case(placeholder), upper_case(name)}};
  // A name may contain the placeholder. Replacements are made in two steps, through characters that no text contains,
  // so that a replaced name is not replaced again.
  for (size_t i = 0; i < std::size(words); ++i)
    replace_all(text, words[i].first, std::string(1, static_cast<char>(1 + i)));
  for (size_t i = 0; i < std::size(words); ++i)
    replace_all(text, std::string(1, static_cast<char>(1 + i)), words[i].second);
  return text;
}

// Returns the value for -DCollet_DIR=; empty if CMake finds the package by itself.
std::string collet_dir() {
  const fs::path root = prefix();
  return root == "/usr" || root == "/usr/local" ? "" : config_folder().string();
}

// The files of a project: contents by path.
using Project = std::map<std::string, std::string>;

Status add_file(const fs::path& from, const std::string& to, const std::string& name, Project& project) {
  COLLET_ASSIGN(std::string text, read_file(from.string(), kMostTemplateBytes));
  project[filled(to, name)] = filled(std::move(text), name);
  return ok_status();
}

Expected<Project> make_project(const Options& options) {
  const fs::path templates = prefix() / "share" / "collet" / "templates";
  const fs::path folder = templates / options.style;
  Project project;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (!it->is_regular_file()) continue;
    COLLET_TRY(add_file(it->path(), it->path().lexically_relative(folder).string(), options.name, project));
  }
  if (error || project.empty()) return not_found("the templates are not at " + templates.string());
  COLLET_TRY(add_file(templates / "mnist" / "train.hlo", "tests/mnist_step.hlo", options.name, project));
  return project;
}

// Writes all files or none: they are first written to a temporary folder next to the target.
Status write_project(const Project& project, const fs::path& folder) {
  const std::string part = folder.string() + ".part";
  std::error_code error;
  if (fs::exists(part, error)) return failed_precondition(part + " is in the way");
  const Status status = [&] {
    for (const auto& [path, text] : project) {
      COLLET_TRY(make_folder((fs::path(part) / path).parent_path().string()));
      COLLET_TRY(write_file((fs::path(part) / path).string(), text));
    }
    fs::rename(part, folder, error);
    return error ? not_found(folder.string() + ": cannot be made: " + error.message()) : ok_status();
  }();
  if (!status.ok()) fs::remove_all(part, error);
  return status;
}

void print_next(const Options& options, const fs::path& folder, const std::string& library) {
  const std::string build = shell_word((folder / "build").string()), config = collet_dir();
  const std::string where = config.empty() ? "" : " -DCollet_DIR=" + shell_word(config);
  const char* const what =
      options.style == "codegen" ? "in C++ whose programs Collet compiles for the device, but for a few ops"
      : options.style == "source"
          ? "in C++ whose programs Collet writes as C for the device's compiler, but for a few ops"
      : options.style == "lists" ? "in C++ for which Collet writes command lists, on a simulated device"
      : options.style == "c"     ? "in C that runs a few ops itself and leaves the rest to the fallback"
                                 : "in C++ that runs a few ops itself and leaves the rest to the fallback";
  show("{} is there: a backend {}.\n\n", folder.string(), what);
  show("Next:\n");
  show("  cmake -S {} -B {}{}\n", shell_word(folder.string()), build, where);
  show("  cmake --build {0} && ctest --test-dir {0}\n", build);
  show("  collet run {} --backend {} --explain\n", shell_word((folder / "tests" / "mnist_step.hlo").string()),
       shell_word(library));
  show("  collet conform --backend {}\n\n", shell_word(library));
  show("{} says what to do first, second and third.\n", (folder / "README.md").string());
}

int make_backend(const Options& options) {
  if (const Status status = check_name(options.name); !status.ok()) return report(kUsage, status.message());
  fs::path folder = (options.out.empty() ? fs::path(options.name) : fs::path(options.out)).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // the path ended with a slash
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error)) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    return report(kRefused, folder.string() + " is there already, and nothing is overwritten");
  }
  Expected<Project> project = make_project(options);
  if (!project.ok()) return report(project.status());
  if (const Status status = write_project(*project, folder); !status.ok()) return report(status);
  const std::string library = (folder / "build" / ("libcollet_backend_" + options.name + ".so")).string();
  if (options.json != "-") print_next(options, folder, library);
  if (options.json.empty()) return kDone;
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.field("name", options.name).field("style", options.style).field("folder", folder.string());
  json.field("library", library).field("collet_dir", collet_dir()).key("files").begin_array();
  for (const auto& [path, contents] : *project) json.value(path);
  json.end_array().end_object();
  const Status status = write_file(options.json, text + "\n");
  return status.ok() ? kDone : report(status);
}

constexpr char kFooter[] = R"(The project builds at once: a backend, its test, and a README with the road map.

Examples:
  collet new acme
  collet new acme --style c --out projects/acme)";

}  // namespace

Action add_new(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("NAME", options->name, "Of the backend: lower-case letters, digits and single underscores")
      ->required()
      ->type_name("");
  verb.add_option("--style", options->style,
                  "kernels: a table of kernels in C++; lists: command lists for a device with a scratchpad; codegen: "
                  "Collet makes the device's machine code, by LLVM; source: "
                  "Collet writes C for the device's compiler; c: the interface by hand")
      ->check(CLI::IsMember({"kernels", "lists", "codegen", "source", "c"}))
      ->capture_default_str();
  // An older form of --style, from when there were two styles.
  verb.add_option("--language", options->language)->check(CLI::IsMember({"c", "c++"}))->group("");
  verb.add_option("--out", options->out, "The folder to make, else NAME")->type_name("DIR");
  verb.add_option("--json", options->json, "Write what was made as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options] {
    if (!options->language.empty()) options->style = options->language == "c" ? "c" : "kernels";
    return make_backend(*options);
  };
}

}  // namespace collet::tool
