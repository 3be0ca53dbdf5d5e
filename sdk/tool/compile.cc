// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "sdk/tool/support/elided.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace fs = std::filesystem;
using conformance::Program;
using conformance::ProgramOptions;
using conformance::Session;

struct Options {
  std::string file, target, name, weights = "embed", output = ".", json;
  std::vector<std::string> emit;
  int threads = 1;
  ElidedChoice elided{COLLET_ELIDED_REFUSE};
};

/// A kind of output file, by its name in the value of --emit.
struct Form {
  const char* name;
  const char* extension;
};
constexpr Form kForms[] = {{"object", ".o"},   {"header", ".h"}, {"archive", ".a"},
                           {"assembly", ".s"}, {"llvm", ".ll"},  {"c", ".c"}};

/// A temporary folder that the destructor removes.
class ScratchFolder {
 public:
  static Expected<ScratchFolder> make() {
    std::string path = (fs::temp_directory_path() / "collet-XXXXXX").string();
    if (!mkdtemp(path.data())) return system_error("cannot make a folder for the code", errno);
    return ScratchFolder(std::move(path));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Made {
  std::string file;
  uint64_t bytes = 0;
};

/// The files that the compiler wrote for one program. Their names contain the program's: "007.model.h" is the header of
/// "model".
struct Found {
  std::string name;
  std::vector<fs::path> files;

  static Found in(const std::string& folder) {
    Found found;
    for (const auto& entry : fs::directory_iterator(folder)) found.files.push_back(entry.path());
    for (const fs::path& path : found.files)
      if (path.extension() == ".h") found.name = path.stem().extension().string().substr(1);
    return found;
  }
  /// Returns the file of that extension. Those of other stages of the compiler have a word before it: "010.model_slots.opt.ll".
  const fs::path* with(const std::string& extension) const {
    const auto it = std::find_if(files.begin(), files.end(), [&](const fs::path& path) {
      return path.extension() == extension && !path.stem().stem().has_extension();
    });
    return it == files.end() ? nullptr : &*it;
  }
};

Status copy_out(const Found& found, const std::string& extension, const std::string& folder, std::vector<Made>& made) {
  const fs::path* const from = found.with(extension);
  if (!from) return internal_error("the compiler made no file *" + extension);
  COLLET_ASSIGN(const std::string bytes, collet::read_file(from->string(), uint64_t{1} << 40));
  const std::string to = (fs::path(folder) / (found.name + extension)).string();
  COLLET_TRY(write_file(to, bytes));
  made.push_back({to, bytes.size()});
  return ok_status();
}

std::string as_json(const Options& options, const std::vector<Made>& made, const collet_executable_facts& facts) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("program", options.file).field("target", options.target);
  json.field("workspace_bytes", facts.workspace_bytes).key("files").begin_array();
  for (const Made& file : made) json.begin_object().field("file", file.file).field("bytes", file.bytes).end_object();
  json.end_array().end_object();
  return out + "\n";
}

Status make(const Options& options, const std::string& text, Session& session) {
  COLLET_ASSIGN(const ScratchFolder scratch, ScratchFolder::make());
  const ProgramOptions how = {.file = options.file == "-" ? "stdin" : options.file,
                              .elided = options.elided.how,
                              .seed = options.elided.seed,
                              .dump_to = scratch.path(),
                              .own_results = true};
  begin_task(fmt::format("compiling '{}' for {}", options.file, options.target));
  COLLET_ASSIGN(const Program program, session.compile(text, how));
  COLLET_ASSIGN(const collet_executable_facts facts, program.facts());
  if (facts.clusters != 1 || facts.host_ops != 0)
    return unimplemented(fmt::format("'{}' is no single function: it has {} parts, and {} ops that a host must run",
                                     options.file, facts.clusters, facts.host_ops));
  const Found found = Found::in(scratch.path());
  std::vector<Made> made;
  for (const Form& form : kForms) {
    if (std::find(options.emit.begin(), options.emit.end(), form.name) == options.emit.end()) continue;
    COLLET_TRY(copy_out(found, form.extension, options.output, made));
  }
  if (options.weights == "pass") COLLET_TRY(copy_out(found, ".weights", options.output, made));
  if (!options.json.empty()) COLLET_TRY(write_file(options.json, as_json(options, made, facts)));
  if (options.json == "-") return ok_status();
  for (const Made& file : made) show("{}  {} bytes\n", file.file, file.bytes);
  show("{} for {}: {} bytes of workspace\n", found.name, options.target, facts.workspace_bytes);
  return ok_status();
}

int compile(const Options& options) {
  for (const std::string& form : options.emit) {
    const auto is = [&](const Form& f) { return form == f.name; };
    if (std::none_of(std::begin(kForms), std::end(kForms), is))
      return report(kUsage, fmt::format("compile: --emit: there is no form '{}': there are object, header, archive, "
                                        "assembly, llvm and c",
                                        form));
  }
  if (const Status status = make_folder(options.output); !status.ok()) return report(status);
  if (const Status status = check_writable(options.json); !status.ok()) return report(status);
  begin_task(fmt::format("reading '{}'", options.file));
  const Expected<std::string> text = read_program(options.file);
  if (!text.ok()) return report(text.status());
  conformance::BackendChoice choice;
  choice.no_fallback = true;
  choice.target = options.target;
  choice.options = {{"weights", options.weights}, {"threads", std::to_string(options.threads)}};
  if (!options.name.empty()) choice.options.emplace_back("name", options.name);
  const Expected<std::unique_ptr<Session>> session = Session::open(choice);
  if (!session.ok()) {
    const bool usage = session.status().code() == Code::NotFound || session.status().code() == Code::InvalidArgument;
    return usage ? report(kUsage, "compile: " + session.status().message()) : report(session.status());
  }
  const Status status = make(options, *text, **session);
  return status.ok() ? kDone : report(status);
}

}  // namespace

Action add_compile(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->file, "The program; - is stdin")->type_name("FILE")->required();
  verb.add_option("--target", options->target,
                  "x86_64, aarch64 or riscv64, for Linux; behind a colon, a processor by LLVM's name: x86_64:znver4. "
                  "Or c, C99 for any compiler; c:8 for one that makes vectors of 8 numbers")
      ->type_name("ARCH[:CPU]")
      ->required();
  verb.add_option("--emit", options->emit,
                  "What to write: object, header, archive, assembly, llvm; c for the target c; object,header or "
                  "c,header unless told")
      ->delimiter(',')
      ->type_name("FORM,...");
  verb.add_option("--name", options->name, "The name of the function and the files; that of the program unless told")
      ->type_name("NAME");
  verb.add_option(
          "--weights", options->weights,
          "embed: constants stand in the object file; pass: in a file of their own, whose contents the caller passes")
      ->check(CLI::IsMember({"embed", "pass"}));
  add_number_option(
      verb, "--threads", options->threads,
      "How many threads may share the work of a call; the caller of the function brings them, see the header", 1, 1024);
  verb.add_option("--output", options->output, "The folder to write to")->type_name("DIR");
  verb.add_option("--json", options->json, "Write what was made as JSON; - is stdout")->type_name("FILE");
  add_elided_option(verb, options->elided);
  return [options] {
    const bool as_source = options->target == "c" || options->target.starts_with("c:");
    if (options->emit.empty()) options->emit = {as_source ? "c" : "object", "header"};
    return compile(*options);
  };
}

}  // namespace collet::tool
