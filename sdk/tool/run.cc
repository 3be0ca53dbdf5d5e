// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/corpus/judge.h"
#include "conformance/oracle/bounds.h"
#include "conformance/runner/session.h"
#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "hlo/base/median.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/compare_float.h"
#include "sdk/tool/support/elided.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/inputs.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/processes.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/support/trace.h"
#include "sdk/tool/support/watchdog.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

using conformance::BackendChoice;
using conformance::BufferHandle;
using conformance::Program;
using conformance::ProgramOptions;
using conformance::Session;
using hlo::Literal;
using hlo::Shape;

struct Options {
  std::string file, output, dump_to, compare, compare_float, json, trace, schedule;
  std::vector<std::string> inputs;
  BackendChoice backend;
  ElidedChoice elided;
  ProcessChoice processes;
  bool explain = false;
  unsigned repeat = 1;
  double timeout = 0;
};

// Statistics of one output.
struct Summary {
  double least = HUGE_VAL, largest = -HUGE_VAL, mean = 0;
  int64_t nan = 0, infinite = 0;
};

struct Outcome {
  std::vector<Literal> outputs;
  std::vector<double> seconds;
  collet_executable_facts facts{};
  std::string explanation;  // readable text, or JSON
  std::string backend;
  conformance::Agreement agreement;
  std::optional<FloatComparison> with_float;
  uint32_t first_participant = 0;  ///< of this process
  bool only_compiled = false;      ///< true if the target's hardware is not present

  /// Returns the least time that `percent` of 100 runs do not exceed.
  double percentile(int percent) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) return 0;
    const size_t rank = (sorted.size() * static_cast<size_t>(percent) + 99) / 100;
    return sorted[std::max<size_t>(rank, 1) - 1];
  }
};

/// The shares of the runs whose times are shown, and how many runs make these say something.
constexpr int kPercentiles[] = {90, 99};
constexpr size_t kManyRuns = 10;

Summary summarize(const Literal& value) {
  Summary s;
  int64_t finite = 0;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const double x = value.as_double(i);
    if (std::isnan(x)) {
      ++s.nan;
    } else if (std::isinf(x)) {
      ++s.infinite;
    } else {
      ++finite;
      s.mean += (x - s.mean) / static_cast<double>(finite);
      s.least = std::min(s.least, x);
      s.largest = std::max(s.largest, x);
    }
  }
  return s;
}

std::string first_elements(const Literal& value) {
  constexpr int64_t kMost = 6;
  std::string text;
  for (int64_t i = 0; i < std::min(kMost, value.element_count()); ++i) {
    text += (i ? ", " : "") + conformance::element_text(value, i);
  }
  return text + (value.element_count() > kMost ? ", ..." : "");
}

std::string output_line(const std::string& number, const Literal& value) {
  const Shape& shape = value.shape();
  if (!shape.is_array() || value.element_count() == 0) return fmt::format("output {}: {}\n", number, shape.to_string());
  if (value.element_count() == 1)
    return fmt::format("output {}: {} = {}\n", number, shape.to_string(), first_elements(value));
  const Summary s = summarize(value);
  std::string line = fmt::format("output {}: {}  min {:.6g}, max {:.6g}, mean {:.6g}", number, shape.to_string(),
                                 s.least, s.largest, s.mean);
  if (s.nan > 0) line += fmt::format(", {} NaN", s.nan);
  if (s.infinite > 0) line += fmt::format(", {} infinite", s.infinite);
  return line + fmt::format("\n  [{}]\n", first_elements(value));
}

// Outputs are numbered participant by participant.
std::string output_name(const Outcome& outcome, size_t i) {
  const size_t each = std::max<size_t>(outcome.facts.result_count, 1);
  const bool several = outcome.facts.participants > 1;
  return fmt::format("{}{}", i % each,
                     several ? fmt::format(" of participant {}", outcome.first_participant + i / each) : "");
}

// The arguments are copied to the device once; each run returns new results. `all`: the results of all runs are read, not only those of
// the last one.
/// Takes the outputs of run number `run`, from 1.
using TakeOutputs = std::function<void(unsigned run, const std::vector<Literal>& outputs)>;

// Runs the program, and keeps the outputs of the last run. `take`, if it is not empty, gets those of each run.
Status run_repeatedly(const Program& program, const std::vector<Literal>& inputs, unsigned repeat,
                      const TakeOutputs& take, Outcome& outcome) {
  COLLET_ASSIGN(const std::vector<BufferHandle> arguments, program.upload(inputs));
  Progress bar("run", repeat);
  for (unsigned i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    COLLET_ASSIGN(const std::vector<BufferHandle> results, program.execute(arguments));
    outcome.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    bar.update(i + 1);
    if (i + 1 < repeat && !take) continue;
    std::vector<Literal> outputs;
    for (const BufferHandle& result : results) {
      COLLET_ASSIGN(Literal value, conformance::fetch(result.get()));
      outputs.push_back(std::move(value));
    }
    // Equal outputs are judged once.
    if (take && (i == 0 || outputs != outcome.outputs)) take(i + 1, outputs);
    outcome.outputs = std::move(outputs);
  }
  return ok_status();
}

ProgramOptions program_options(const Options& options) {
  return {.file = options.file == "-" ? "stdin" : options.file,
          .elided = options.elided.how,
          .seed = options.elided.seed,
          .no_cache = false,
          .dump_to = options.dump_to};
}

// Returns the outputs of the backend of --compare.
Expected<std::vector<Literal>> outputs_to_compare(const Options& options, const std::string& text,
                                                  const std::vector<Literal>& inputs, const Outcome& outcome) {
  COLLET_ASSIGN(const std::unique_ptr<Session> session,
                Session::open({.name = options.compare, .devices = outcome.facts.participants}));
  ProgramOptions how = program_options(options);
  how.dump_to.clear();
  COLLET_ASSIGN(const Program program, session->compile(text, how));
  COLLET_ASSIGN(std::vector<Literal> outputs, program.run(inputs));
  if (options.processes.is_member()) {  // begins with the outputs of this process's participants
    const auto skipped = static_cast<int64_t>(outcome.first_participant) * outcome.facts.result_count;
    outputs.erase(outputs.begin(), outputs.begin() + skipped);
  }
  return outputs;
}

Expected<Outcome> execute(const Options& options, const std::string& text, Session& session) {
  Outcome outcome;
  COLLET_ASSIGN(const collet_client_info info, session.info());
  outcome.backend = info.backend;
  const std::string where = fmt::format("'{}' on {} ({})", options.file, info.backend, info.backend_path);
  begin_task("compiling " + where);
  const ProgramOptions how = program_options(options);
  COLLET_ASSIGN(const Program program, session.compile(text, how));
  COLLET_ASSIGN(outcome.facts, program.facts());
  if (options.processes.is_member())
    outcome.first_participant = static_cast<uint32_t>(options.processes.number) * info.device_count;
  if (options.explain) {
    COLLET_ASSIGN(outcome.explanation, program.explain(!options.json.empty()));
  }
  outcome.only_compiled = (session.traits() & COLLET_TRAIT_VIRTUAL) != 0;
  if (outcome.only_compiled) return outcome;
  begin_task(fmt::format("making the inputs of '{}'", options.file));
  if (!options.compare_float.empty()) {
    COLLET_ASSIGN(outcome.with_float,
                  FloatComparison::prepare(text, options.file, options.compare_float, options.inputs, options.elided));
  }
  COLLET_ASSIGN(const std::vector<Literal> inputs,
                outcome.with_float ? outcome.with_float->inputs(program.arguments())
                                   : make_inputs(options.inputs, options.file, program.arguments()));
  TakeOutputs judge;
  std::vector<Literal> expected;
  if (!options.compare.empty()) {
    begin_task("running it on " + options.compare);
    COLLET_ASSIGN(expected, outputs_to_compare(options, text, inputs, outcome));
    judge = [&](unsigned run, const std::vector<Literal>& outputs) {
      if (!outcome.agreement.wrong.empty()) return;
      expected.resize(outputs.size());
      const double largest = outcome.agreement.share;
      outcome.agreement = conformance::agrees_with_index(expected, outputs);
      outcome.agreement.share = std::max(outcome.agreement.share, largest);
      if (run > 1 && !outcome.agreement.wrong.empty())
        outcome.agreement.wrong = fmt::format("in run {}, {}", run, outcome.agreement.wrong);
    };
  }
  begin_task("running " + where);
  COLLET_TRY(run_repeatedly(program, inputs, options.repeat, judge, outcome));
  if (outcome.with_float) COLLET_TRY(outcome.with_float->run(session));
  return outcome;
}

Status write_outputs(const std::string& folder, const std::vector<Literal>& outputs) {
  std::string manifest;
  JsonWriter json(manifest);
  json.begin_object().key("outputs").begin_array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = fmt::format("output_{}.bin", i);
    const std::string_view bytes(reinterpret_cast<const char*>(outputs[i].bytes()),
                                 static_cast<size_t>(outputs[i].byte_size()));
    COLLET_TRY(write_new_file(folder + "/" + name, bytes));
    json.begin_object().field("file", name).field("shape", outputs[i].shape().to_string()).end_object();
  }
  json.end_array().end_object();
  return write_new_file(folder + "/manifest.json", manifest + "\n");
}

std::string as_json(const Options& options, const Outcome& outcome) {
  std::string out;
  JsonWriter json(out);
  const collet_executable_facts& facts = outcome.facts;
  json.begin_object().field("program", options.file).field("backend", outcome.backend);
  if (options.processes.is_member())
    json.field("process", options.processes.number).field("first_participant", outcome.first_participant);
  json.key("outputs").begin_array();
  for (const Literal& value : outcome.outputs) {
    const Summary s = summarize(value);
    json.begin_object().field("shape", value.shape().to_string()).field("min", s.least).field("max", s.largest);
    json.field("mean", s.mean).field("nan", s.nan).field("infinite", s.infinite).end_object();
  }
  json.end_array().field("median_seconds", median(outcome.seconds)).key("seconds").begin_array();
  for (const double seconds : outcome.seconds) json.value(seconds);
  json.end_array().key("percentiles").begin_object();
  for (const int percent : kPercentiles) json.field(std::to_string(percent), outcome.percentile(percent));
  json.end_object().field("compile_seconds", static_cast<double>(facts.compile_ns) * 1e-9);
  json.field("device_ops", facts.device_ops)
      .field("fallback_ops", facts.fallback_ops)
      .field("host_ops", facts.host_ops);
  json.field("clusters", facts.clusters).field("kernels", facts.kernels).field("traffic_bytes", facts.traffic_bytes);
  json.field("workspace_bytes", facts.workspace_bytes).field("crossing_bytes", facts.crossing_bytes);
  json.field("estimated_ns", facts.estimated_ns).field("energy_nj", facts.energy_nj).field("cycles", facts.cycles);
  if (!options.compare.empty()) {
    json.key("compare")
        .begin_object()
        .field("backend", options.compare)
        .field("agrees", outcome.agreement.wrong.empty());
    json.field("share", outcome.agreement.share).field("detail", outcome.agreement.wrong).end_object();
  }
  if (outcome.with_float) outcome.with_float->write(json.key("compare_float"));
  if (options.explain) json.key("plan").raw(outcome.explanation);
  json.end_object();
  return out + "\n";
}

void print_outcome(const Options& options, const Outcome& outcome) {
  const Style style = stdout_style();
  const collet_executable_facts& facts = outcome.facts;
  if (options.explain && options.json.empty()) show("{}\n", outcome.explanation);
  for (size_t i = 0; i < outcome.outputs.size(); ++i)
    show("{}", output_line(output_name(outcome, i), outcome.outputs[i]));
  show("{}{}{}: {} ops on the device, {} on the fallback, {} on the host; compiled in {}\n", style.bold,
       outcome.backend, style.reset, facts.device_ops, facts.fallback_ops, facts.host_ops,
       human_seconds(static_cast<double>(facts.compile_ns) * 1e-9));
  if (outcome.only_compiled) {
    show("nothing was run: {} is a virtual device\n", options.backend.target);
  } else if (outcome.seconds.size() > 1) {
    const auto [least, most] = std::minmax_element(outcome.seconds.begin(), outcome.seconds.end());
    show("median of {} runs: {} (from {} to {})\n", outcome.seconds.size(), human_seconds(median(outcome.seconds)),
         human_seconds(*least), human_seconds(*most));
    if (outcome.seconds.size() >= kManyRuns) {
      std::vector<std::string> shares;
      for (const int percent : kPercentiles)
        shares.push_back(fmt::format("{} % in {}", percent, human_seconds(outcome.percentile(percent))));
      show("{}\n", fmt::join(shares, ", "));
    }
  } else {
    show("run in {}\n", human_seconds(median(outcome.seconds)));
  }
  if (outcome.with_float) show("{}", outcome.with_float->text());
  if (options.compare.empty()) return;
  const bool agrees = outcome.agreement.wrong.empty();
  show("{}{}{} {}{}\n", agrees ? style.green : style.red, agrees ? "agrees with" : "differs from", style.reset,
       options.compare,
       agrees ? fmt::format("; largest error {:.2g} of what is allowed", outcome.agreement.share)
              : ": " + outcome.agreement.wrong);
  if (outcome.facts.fallback_ops > 0)
    show("{}only {} of {} ops ran on {}{}: --no-fallback compares the device alone\n", style.yellow,
         outcome.facts.device_ops, outcome.facts.device_ops + outcome.facts.fallback_ops, outcome.backend, style.reset);
}

// Checks before the program runs that all output files can be written.
Status prepare_outputs(const Options& options) {
  COLLET_TRY(check_writable(options.json));
  COLLET_TRY(check_writable(options.trace));
  if (!options.output.empty()) {
    COLLET_TRY(make_folder(options.output));
    COLLET_TRY(check_writable(options.output + "/manifest.json"));
  }
  return ok_status();
}

int run(Options options) {
  // In `run --inputs zeros FILE` the parser takes FILE as the last input.
  if (options.file.empty() && options.inputs.size() > 1) {
    options.file = options.inputs.back();
    options.inputs.pop_back();
  }
  if (options.file.empty()) return report(kUsage, "run: FILE is required\nSee: collet run --help");
  const bool has_results_use = !(options.output.empty() && options.compare.empty() && options.compare_float.empty());
  if (!options.backend.target.empty() && has_results_use)
    return report(kUsage,
                  "run: with --target nothing runs, so there is nothing for --output, --compare or --compare-float");
  find_launcher(options.processes);
  if (const Status status = check_processes(options.processes); !status.ok())
    return report(kUsage, "run: " + status.message());
  if (!options.compare_float.empty() && (options.processes.starts_others() || options.processes.is_member()))
    return report(kUsage, "run: --compare-float compares programs of one participant");
  if (options.processes.starts_others()) {
    if (options.file == "-") return report(kUsage, "run: several processes cannot read the program from stdin");
    return start_processes(options.processes);
  }
  for (std::string* name : {&options.output, &options.dump_to, &options.trace, &options.json})
    *name = options.processes.own_file(*name);
  if (const Status status = prepare_outputs(options); !status.ok()) return report(status);
  const auto trace = options.trace.empty() ? nullptr : std::make_unique<Trace>();
  begin_task(fmt::format("reading '{}'", options.file));
  watch_process(options.timeout);
  const Expected<std::string> text = read_program(options.file);
  if (!text.ok()) return report(text.status());
  conformance::BackendChoice backend = options.backend;
  if (!options.schedule.empty()) {
    constexpr uint64_t kMostBytes = uint64_t{64} << 20;
    const Expected<std::string> schedules = read_file_or_pipe(options.schedule, kMostBytes);
    if (!schedules.ok()) return report(schedules.status());
    backend.options.emplace_back("schedules", *schedules);
  }
  begin_task("opening " + options.backend.name);
  std::unique_ptr<Group> group;
  if (options.processes.is_member()) {
    Expected<std::unique_ptr<Group>> made = Group::of(options.processes);
    if (!made.ok()) return report(made.status());
    group = *std::move(made);
    backend.processes = group->get();
  }
  const Expected<std::unique_ptr<Session>> session = Session::open(backend);
  if (!session.ok()) return report_unopened(session.status());
  const Expected<Outcome> outcome = execute(options, *text, **session);
  begin_task(fmt::format("showing the results of '{}'", options.file));
  if (trace) {
    if (const Status status = trace->write(options.trace); !status.ok()) return report(status);
  }
  if (!outcome.ok()) return report(outcome.status());
  if (!options.output.empty()) {
    if (const Status status = write_outputs(options.output, outcome->outputs); !status.ok()) return report(status);
  }
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, as_json(options, *outcome)); !status.ok()) return report(status);
  }
  if (options.json != "-") print_outcome(options, *outcome);
  begin_task("closing " + options.backend.name);
  return outcome->agreement.wrong.empty() ? kDone : kFailed;
}

constexpr char kFooter[] = R"(Exit code 1: --compare found a difference. Raw files are row-major and
little-endian; names of numpy's files end in .npy and .npz.

Examples:
  collet run model.hlo
  collet run model.hlo --backend ./libacme.so --explain
  collet run model.hlo --inputs x.bin y.bin --output results
  collet run model.hlo --inputs random:7 --repeat 100 --compare interpreter
  collet run model.int8.mlir --compare-float model.mlir --inputs x.npy
  collet run replicas.hlo --processes 2 --devices 2 --compare interpreter
  collet opt model.hlo --pipeline prepare | collet run -)";

}  // namespace

Action add_run(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->file, "The program; - is stdin")->type_name("FILE");
  add_backend_options(
      verb,
      {"Where it runs: a backend by name or path", "Do without the fallback: what the backend declines is an error"},
      options->backend);
  verb.add_option("--target", options->backend.target,
                  "Compile for this target of the backend's, which need not be there, and run nothing")
      ->type_name("NAME");
  verb.add_option(
          "--inputs", options->inputs,
          "rule (that of case.json beside FILE, else by element type), random:SEED, zeros, a file for each parameter "
          "(.npy, else raw), or one .npz")
      ->check(CLI::Validator(check_inputs_word, ""))
      ->type_name("WHAT")
      ->expected(1, -1);
  add_elided_option(verb, options->elided);
  verb.add_option("--output", options->output, "Write each output as a raw file to this folder, and manifest.json")
      ->type_name("DIR");
  verb.add_flag("--explain", options->explain, "Show what runs where, and why");
  verb.add_option("--dump-to", options->dump_to,
                  "Write the program before and after each stage, the plan and the artifacts to this folder")
      ->type_name("DIR");
  verb.add_option("--schedule", options->schedule,
                  "Schedules by hand, in place of those of the backend's rules; --dump-to shows these in kernels.txt")
      ->type_name("FILE");
  add_number_option(verb, "--repeat", options->repeat, "Run it so many times and show the median time", 1u,
                    1000000000u);
  add_number_option(verb, "--devices", options->backend.devices,
                    "Open so many devices, in each process, if the backend can make them; 0: its own choice", 0u,
                    4096u);
  add_process_options(
      verb, options->processes,
      "Start so many processes, over which the participants are spread; each writes its own files, NAME.0, NAME.1 ...");
  verb.add_option("--compare", options->compare, "Run it on this backend too and compare the outputs")
      ->type_name("BACKEND");
  verb.add_option("--compare-float", options->compare_float,
                  "Compare FILE, which is quantized, layer by layer with this float program, whose inputs are --inputs")
      ->type_name("FLOAT");
  verb.add_option("--trace", options->trace,
                  "Write what took how long, compilation, launches and copies, as a trace for Perfetto or "
                  "chrome://tracing; - is stdout")
      ->type_name("FILE");
  add_seconds_option(verb, "--timeout", options->timeout, "Give up after so many seconds, with exit code 5; 0: never");
  verb.add_option("--json", options->json, "Write the facts as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return run(*options); };
}

}  // namespace collet::tool
