// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/diagnostics.h"
#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "hlo/base/shell.h"
#include "hlo/base/temporary_folder.h"
#include "hlo/passes/pattern_graph.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/patterns/declared_pattern.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"
#include "sdk/tool/support/emit.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Options {
  std::string file, output = "-", emit = "hlo", json;
  std::vector<std::string> passes, pipelines, before, after, patterns;
  ElidedChoice elided{COLLET_ELIDED_COUNTER};
  conformance::BackendChoice backend{.name = {}};
  bool list = false;
};

int list_passes(const Options& options) {
  std::string out;
  if (!options.json.empty()) {
    JsonWriter json(out);
    json.begin_object().key("passes").begin_array();
    for (const hlo::PassInfo& pass : hlo::passes()) {
      json.begin_object().field("name", pass.name).field("text", pass.text).field("idempotent", pass.idempotent);
      json.end_object();
    }
    json.end_array().end_object();
    const Status status = write_file(options.json, out + "\n");
    if (!status.ok()) return report(status);
    if (options.json == "-") return kDone;
  }
  show("Passes:\n");
  for (const hlo::PassInfo& pass : hlo::passes()) show("  {:<24} {}\n", pass.name, pass.text);
  show("\nPipelines:\n");
  for (const hlo::Pipeline& pipeline : hlo::pipelines()) show("  {:<24} {}\n", pipeline.name, pipeline.text);
  return kDone;
}

Status unknown_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const hlo::PassInfo& pass : hlo::passes()) names.push_back(pass.name);
  const std::string_view near = nearest_spelling(name, names);
  return invalid_argument(fmt::format("there is no pass '{}'{}", name,
                                      near.empty() ? "; see --list-passes" : fmt::format("; did you mean {}?", near)));
}

bool wanted(const std::vector<std::string>& names, std::string_view pass) {
  return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name == "all" || name == pass; });
}

Status check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name != "all" && hlo::find_pass(name) == nullptr) return unknown_pass(name);
  }
  return ok_status();
}

hlo::PassObserver observer_of(const Options& options) {
  hlo::PassObserver observer;
  observer.verify = [](const hlo::Module& module) { return hlo::verify_module(module); };
  observer.before = [&](std::string_view pass, int, const hlo::Module& module) {
    if (wanted(options.before, pass)) show(stderr, "// before {}\n{}\n", pass, hlo::print_module(module));
  };
  observer.after = [&](std::string_view pass, int, const hlo::Module& module, bool changed) {
    if (!wanted(options.after, pass)) return;
    show(stderr, "// after {}{}\n{}\n", pass, changed ? "" : ", which changed nothing", hlo::print_module(module));
  };
  return observer;
}

// Reads the patterns of --pattern, for find_patterns.
Status take_patterns(const Options& options, hlo::PassContext& context) {
  for (const std::string& path : options.patterns) {
    COLLET_ASSIGN(const std::string text, read_file(path, uint64_t{1} << 30));
    auto pattern = hlo::patterns::DeclaredPattern::read(text);
    if (!pattern.ok()) return pattern.status().with_prefix("'" + path + "', ");
    context.declared_patterns.push_back(*std::move(pattern));
  }
  if (options.patterns.empty()) return ok_status();
  context.wants_pattern = [](std::string_view, uint32_t) { return false; };
  context.keep_composite = [](const hlo::Module&, hlo::InstrId) { return true; };
  return ok_status();
}

// Says how often each pattern of --pattern was found, and of one that was not, what came nearest to it.
void report_patterns(const hlo::PassContext& context, const hlo::Module& module) {
  for (const auto& pattern : context.declared_patterns) {
    size_t found = 0;
    hlo::patterns::NearestMiss miss;
    const auto& declared = static_cast<const hlo::patterns::DeclaredPattern&>(*pattern);
    for (const hlo::CompId c : hlo::flow_computations(module)) {
      const hlo::Graph graph(module, c);
      for (const hlo::InstrId id : module[c].order) {
        const hlo::Instruction& instr = module[id];
        if (instr.op == hlo::Op::CALL && instr.as<hlo::CallAttrs>().name == pattern->name()) ++found;
        if (instr.shape.is_array()) declared.match(graph, id, &miss);
      }
    }
    std::string line = fmt::format("pattern '{}': {} group{}", pattern->name(), found, found == 1 ? "" : "s");
    if (found == 0 && !miss.why.empty())
      line += fmt::format("; the nearest one has {} ops: {}", miss.matched, miss.why);
    show(stderr, "collet: {}\n", line);
  }
}

Status run(const Options& options, hlo::Module& module) {
  hlo::PassContext context;
  COLLET_TRY(take_patterns(options, context));
  context.replica_count = module.header().replica_count;
  context.partition_count = module.header().num_partitions;
  const hlo::PassObserver observer = observer_of(options);
  if (!options.patterns.empty()) {
    COLLET_TRY(hlo::prepare_patterns(module, context, observer).status());
    COLLET_TRY(hlo::run_passes(module, context, std::array{std::string_view("eliminate_dead")}, observer).status());
    report_patterns(context, module);
    return ok_status();
  }
  for (const std::string& name : options.pipelines)
    COLLET_TRY(hlo::find_pipeline(name)->run(module, context, observer).status());
  if (!options.pipelines.empty()) return ok_status();
  const std::vector<std::string_view> names(options.passes.begin(), options.passes.end());
  return hlo::run_passes(module, context, names, observer).status();
}

Status check_options(const Options& options) {
  for (const auto* names : {&options.passes, &options.before, &options.after}) {
    COLLET_TRY(check_names(*names));
  }
  for (const std::string& name : options.pipelines)
    if (hlo::find_pipeline(name) == nullptr)
      return invalid_argument("there is no pipeline '" + name + "'; see --list-passes");
  return ok_status();
}

// Returns the program as the backend receives it: in clusters, with the fusions and patterns that the device accepts.
Expected<std::unique_ptr<hlo::Module>> prepared_for_backend(const Options& options, const hlo::Module& module) {
  const TemporaryFolder folder;
  if (folder.path().empty()) return resource_exhausted("no folder for the stages of the program can be made");
  COLLET_ASSIGN(const std::unique_ptr<conformance::Session> session, conformance::Session::open(options.backend));
  COLLET_TRY(session->compile(hlo::print_module(module), {.file = options.file, .dump_to = folder.path()}).status());
  std::string found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path(), ignored)) {
    if (entry.path().string().ends_with(".offered.hlo")) found = entry.path().string();
  }
  if (found.empty()) return internal_error("the compilation left no program");
  return read_module(found, options.elided);
}

// If Graphviz' `dot` is not installed, writes the graph as DOT text to a file next to the picture's.
int write_graph(const Options& options, hlo::Module& module, const Status& problem) {
  const std::string path = std::filesystem::path(options.output).replace_extension(".dot").string();
  std::error_code ignored;
  if (options.output == "-" || std::filesystem::exists(path, ignored))
    return report(kRuntime, problem.message() + "; --emit dot writes the graph for it");
  const Expected<std::string> graph = emit_module(module, "dot");
  if (!graph.ok()) return report(graph.status());
  if (const Status status = write_file(path, *graph); !status.ok()) return report(status);
  return report(kRuntime, fmt::format("{}; wrote {}: draw it with dot -Tsvg {} -o {}", problem.message(), path,
                                      shell_word(path), shell_word(options.output)));
}

int optimize(const Options& options) {
  if (options.list) return list_passes(options);
  if (options.file.empty()) return report(kUsage, "opt: name a FILE, or --list-passes\nSee: collet opt --help");
  if (const Status status = check_options(options); !status.ok()) return report(kUsage, status.message());
  Expected<std::unique_ptr<hlo::Module>> module = read_module(options.file, options.elided);
  if (!module.ok()) return report(module.status());
  begin_task("running passes on '" + options.file + "'");
  if (const Status status = run(options, **module); !status.ok()) {
    report(status);
    return kRuntime;
  }
  if (!options.backend.name.empty()) {
    begin_task("compiling '" + options.file + "' for " + options.backend.name);
    module = prepared_for_backend(options, **module);
    if (!module.ok()) return report(module.status());
  }
  begin_task("writing '" + options.file + "' as " + options.emit);
  const Expected<std::string> emitted = emit_module(**module, options.emit);
  if (!emitted.ok()) {
    const bool no_dot = options.emit == "svg" && emitted.status().code() == Code::NotFound;
    return no_dot ? write_graph(options, **module, emitted.status()) : report(emitted.status());
  }
  const Status status = write_file(options.output, *emitted);
  return status.ok() ? kDone : report(status);
}

constexpr char kFooter[] = R"(Without passes the program is read, verified and printed. artifact is a
portable artifact of StableHLO, artifact=VERSION one of that version.

Examples:
  collet opt model.hlo
  collet opt model.hlo --passes inline_calls,simplify -o simpler.hlo
  collet opt model.hlo --pipeline prepare --print-after all
  collet opt model.hlo --pipeline prepare,fuse
  collet opt model.hlo --emit svg -o model.svg
  collet opt model.mlirbc --emit hlo-proto -o model.pb
  collet opt model.hlo --emit artifact=1.13.0 -o model.mlirbc
  collet opt model.hlo --backend ./libacme.so
  collet opt model.hlo --pattern fused_mlp.hlo
  collet opt --list-passes)";

}  // namespace

Action add_opt(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->file, "The program; - is stdin")->type_name("FILE");
  auto* passes = verb.add_option("--passes", options->passes, "Passes to run, in this order")
                     ->delimiter(',')
                     ->allow_extra_args(false)
                     ->type_name("A,B,C");
  verb.add_option("--pipeline", options->pipelines, "Lists of passes by name, in this order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(passes)
      ->type_name("A,B,C");
  verb.add_option("--pattern", options->patterns,
                  "Look for the pattern of this file, HLO with variables, after the pipeline prepare")
      ->allow_extra_args(false)
      ->excludes("--passes")
      ->excludes("--pipeline")
      ->type_name("FILE");
  verb.add_flag("--list-passes", options->list, "Show all passes and pipelines");
  verb.add_option("--print-before", options->before, "Show the program on stderr before this pass, or all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PASS");
  verb.add_option("--print-after", options->after, "Show the program on stderr after this pass, or all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PASS");
  verb.add_option("--emit", options->emit, fmt::format("Form of the output: {}", fmt::join(emit_forms(), ", ")))
      ->check(CLI::Validator([](const std::string& form) { return check_form(form).message(); }, ""))
      ->type_name("FORM");
  verb.add_option(
          "--backend", options->backend.name,
          "Show the program as this backend's device gets it: expanded, with the fusions and patterns that it took")
      ->type_name("BACKEND");
  add_elided_option(verb, options->elided);
  verb.add_option("-o,--output", options->output, "Where to write it; - is stdout")->type_name("FILE");
  verb.add_option("--json", options->json, "Write the list of passes as JSON to this file; - is stdout")
      ->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return optimize(*options); };
}

}  // namespace collet::tool
