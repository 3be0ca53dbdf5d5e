// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "conformance/bench/measure.h"
#include "hlo/base/json.h"
#include "sdk/tool/backend_choice.h"
#include "sdk/tool/files.h"
#include "sdk/tool/option_types.h"
#include "sdk/tool/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Options {
  bench::Request request;
  conformance::BackendChoice backend;
  std::string json;
  bool list = false;
};

// Two figures that say something, also of what is far below 1.
std::string figure(double number) {
  return number < 0.1 ? fmt::format("{:.2g}", number) : fmt::format("{:.2f}", number);
}

// How many times faster the first is; "-" where one did not run.
std::string ratio(const bench::Timing& fast, const bench::Timing& slow) {
  if (fast.median_ns == 0 || slow.median_ns == 0) return "-";
  return figure(slow.median_ns / fast.median_ns) + "x";
}

std::string spread(const bench::Timing& timing) {
  if (timing.median_ns == 0) return "-";
  return fmt::format("{:.0f} %", 100 * (timing.high_ns - timing.low_ns) / timing.median_ns);
}

std::string where(const bench::Timing& timing) {
  if (timing.fallback_ops == 0) return "all";
  return fmt::format("{}/{}", timing.device_ops, timing.device_ops + timing.fallback_ops);
}

void print_row(const bench::Result& result, bool against) {
  const bench::Timing& timing = result.fused;
  if (!timing.ran()) {
    fmt::print("{:<20} did not run: {}\n", result.which->name, timing.error);
    return;
  }
  fmt::print("{:<20} {:>8} {:>8}", result.which->name, figure(result.limit_ns / timing.median_ns),
             result.compute_bound ? "flops" : "memory");
  if (against) fmt::print(" {:>15}", ratio(timing, result.other));
  fmt::print(" {:>10} {:>7} {:>9} {:>7}{}\n", ratio(timing, result.unfused), timing.kernels, where(timing),
             spread(timing), result.agrees ? "" : "  RESULTS DIFFER");
}

void print_report(const bench::Report& report) {
  const Style style = stdout_style();
  const bool against = !report.against.empty();
  fmt::print("{}{}{}{}, {} threads with {:.0f} GFLOP/s ({}), medians of {}\n\n", style.bold, report.backend,
             against ? " against " + report.against : "", style.reset, report.peak.threads, report.peak.flops_per_ns,
             report.peak.vectors, report.request.repeat);
  fmt::print("{}{:<20} {:>8} {:>8}", style.dim, "case", "of limit", "bound");
  if (against) fmt::print(" {:>15}", "vs " + report.against.substr(0, 12));
  fmt::print(" {:>10} {:>7} {:>9} {:>7}{}\n", "vs unfused", "kernels", "on device", "spread", style.reset);
  for (const bench::Result& result : report.results) print_row(result, against);
  fmt::print(
      "\nof limit: the machine's own time to move the arguments and results once, or to do the multiply-adds, "
      "whichever\n"
      "is longer, divided by the time taken. The limits are those of the host, measured in this run by all threads.\n");
  if (!report.told_not_to_fuse) {
    fmt::print(
        "vs unfused: without the fusions that the SDK proposes; the backend has no option fuse=0 for its own.\n");
  }
}

void write_timing(JsonWriter& json, const char* name, const bench::Timing& timing) {
  json.key(name).begin_object();
  if (!timing.ran()) json.field("error", timing.error);
  json.field("median_ns", timing.median_ns).field("low_ns", timing.low_ns).field("high_ns", timing.high_ns);
  json.field("device_ops", timing.device_ops).field("fallback_ops", timing.fallback_ops);
  json.field("kernels", timing.kernels).field("traffic_bytes", timing.traffic_bytes).end_object();
}

std::string to_json(const bench::Report& report) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("backend", report.backend).field("against", report.against);
  json.field("repeat", report.request.repeat);
  json.field("told_not_to_fuse", report.told_not_to_fuse).key("machine").begin_object();
  json.field("threads", report.peak.threads).field("vectors", report.peak.vectors);
  json.field("gflops", report.peak.flops_per_ns).field("gflops_one_thread", report.peak.flops_per_ns_1).end_object();
  json.key("cases").begin_array();
  for (const bench::Result& result : report.results) {
    json.begin_object().field("name", result.which->name).field("flops", result.which->flops);
    json.field("read_bytes", result.read_bytes).field("written_bytes", result.written_bytes);
    json.field("limit_ns", result.limit_ns).field("bound", result.compute_bound ? "flops" : "memory");
    json.field("of_limit", result.fused.median_ns == 0 ? 0.0 : result.limit_ns / result.fused.median_ns);
    json.field("agrees", result.agrees);
    write_timing(json, "fused", result.fused);
    write_timing(json, "unfused", result.unfused);
    if (!report.against.empty()) write_timing(json, "against", result.other);
    json.end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

int run_bench(Options options) {
  if (options.list) {
    for (const bench::Case& one : bench::cases()) fmt::print("{:<20} {}\n", one.name, one.what);
    return kDone;
  }
  if (const Status status = check_writable(options.json); !status.ok()) return tool::report(status);
  options.request.backend = options.backend.name;
  options.request.no_fallback = options.backend.no_fallback;
  options.request.options = options.backend.options;
  std::unique_ptr<Progress> bar;
  options.request.progress = [&](size_t done, size_t total, const std::string& what) {
    if (!bar) bar = std::make_unique<Progress>("measuring", total);
    bar->update(done, what);
  };
  const auto report = bench::measure(options.request);
  bar.reset();
  if (!report.ok()) {
    const bool usage = report.status().code() == Code::InvalidArgument;
    return usage ? tool::report(kUsage, report.status().message()) : tool::report(report.status());
  }
  if (options.json != "-") print_report(*report);
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, to_json(*report)); !status.ok()) return tool::report(status);
  }
  for (const bench::Result& result : report->results) {
    if (!result.fused.ran() || !result.agrees) return kFailed;
  }
  return kDone;
}

}  // namespace

Action add_bench(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  add_backend_options(verb,
                      {"The backend to measure, by name or path",
                       "Do without the fallback: a case with an op that the backend declines does not run"},
                      options->backend);
  verb.add_option("--against", options->request.against, "Another backend to compare with")->type_name("BACKEND");
  verb.add_option("--filter", options->request.filter, "Only cases with this in their name")->type_name("PART");
  add_number_option(verb, "--repeat", options->request.repeat, "Samples of each; medians are shown", 1u, 10000u)
      ->default_str(std::to_string(options->request.repeat));
  verb.add_option("--json", options->json, "Write everything as JSON to this file; - is stdout")->type_name("FILE");
  verb.add_flag("--list", options->list, "Print the names of the cases, and do nothing else");
  verb.footer(
      "Ratios, never bare times: to the machine's measured limits, to another backend,\n"
      "to unfused execution. The contestants take turns in one process, and their\n"
      "results are compared first. Exit code 1: a case did not run, or results differ.\n\n"
      "Examples:\n  collet bench\n  collet bench --backend ./libacme.so --against cpu\n"
      "  collet bench --filter softmax --repeat 50 --json bench.json");
  return [options] { return run_bench(*options); };
}

}  // namespace collet::tool
