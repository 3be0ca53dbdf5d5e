// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "conformance/bench/measure.h"
#include "hlo/base/files.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/bench_cases.h"
#include "sdk/tool/support/bench_collectives.h"
#include "sdk/tool/support/bench_sweep.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Options {
  bench::Request request;
  conformance::BackendChoice backend;
  std::vector<std::string> cases, from;
  ElidedChoice elided;
  std::string json, compare;
  double slower = 1.2;
  bool unfused = false;
  bool list = false, limits = false;
  std::vector<std::string> families;  // of --sweep
  bool sweep = false, fixed = false;
  bool collectives = false;
  ProcessChoice processes;
  std::vector<uint64_t> bytes;  // of --collectives
};

// The optional columns of the table, and an earlier report to compare with.
struct Columns {
  bool against = false, unfused = true;
  size_t name = 20;
  const bench::BaselineRun* earlier = nullptr;
};

constexpr uint64_t kMostReportBytes = uint64_t{1} << 30;
constexpr uint64_t kMostBytes = uint64_t{1} << 34;  // of the arrays of --collectives

// Prints a number with two significant digits if it is small, else with two decimals.
std::string figure(double number) {
  return number < 0.1 ? fmt::format("{:.2g}", number) : fmt::format("{:.2f}", number);
}

// Returns how many times faster the first is; "-" if one of them did not run.
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

// Returns how many times faster it is than in the earlier run; 0 if one of the two is missing.
double gain(const bench::Result& result, const Columns& columns) {
  const bench::BaselineCase* before = columns.earlier == nullptr ? nullptr : columns.earlier->find(result.name);
  return before == nullptr || result.fused.median_ns <= 0 ? 0 : before->median_ns / result.fused.median_ns;
}

void print_row(const bench::Result& result, const Columns& columns) {
  const bench::Timing& timing = result.fused;
  if (!timing.ran()) {
    show("{:<{}} did not run: {}\n", result.name, columns.name, timing.error);
    return;
  }
  show("{:<{}} {:>8} {:>8}", result.name, columns.name, figure(result.of_limit()),
       result.compute_bound ? "flops" : "memory");
  if (columns.against) show(" {:>15}", ratio(timing, result.other));
  if (columns.unfused) show(" {:>10}", ratio(timing, result.unfused));
  if (columns.earlier != nullptr)
    show(" {:>10}", gain(result, columns) > 0 ? figure(gain(result, columns)) + "x" : "new");
  show(" {:>7} {:>9} {:>7}{}\n", timing.kernels, where(timing), spread(timing),
       result.differs.empty() ? "" : "  RESULTS DIFFER: " + result.differs);
}

void print_families(const bench::Report& report, const Columns& columns) {
  const std::vector<bench::FamilySummary> families = report.families();
  if (families.size() < 2 || families.size() == report.results.size()) return;
  const Style style = stdout_style();
  show("\n{}{:<{}} {:>8} {:>8}", style.dim, "family", columns.name, "of limit", "cases");
  if (columns.against) show(" {:>15}", "vs " + report.against.substr(0, 12));
  show("   geometric means{}\n", style.reset);
  for (const bench::FamilySummary& one : families) {
    show("{:<{}} {:>8} {:>8}", one.family, columns.name, one.ran > 0 ? figure(one.of_limit) : "-",
         one.ran == one.cases ? std::to_string(one.cases) : fmt::format("{}/{}", one.ran, one.cases));
    if (columns.against) show(" {:>15}", one.against > 0 ? figure(one.against) + "x" : "-");
    show("\n");
  }
}

void print_comparison(const bench::Report& report, const Columns& columns, double slower) {
  double sum = 0;
  size_t compared = 0, worse = 0;
  for (const bench::Result& result : report.results) {
    if (gain(result, columns) <= 0) continue;
    sum += std::log(gain(result, columns));
    ++compared;
    worse += gain(result, columns) * slower < 1;
  }
  const bench::BaselineRun& earlier = *columns.earlier;
  if (compared == 0) return show("\nthe earlier run has none of these cases\n");
  show("\nagainst the earlier run: {}x over {} cases, {} slower by more than a factor of {:g}\n",
       figure(std::exp(sum / static_cast<double>(compared))), compared, worse, slower);
  if (earlier.threads != report.peak.threads || earlier.vectors != report.peak.vectors) {
    show("it was made on another machine, {} threads with {}: its times say little about this one\n", earlier.threads,
         earlier.vectors);
  }
}

void print_report(const bench::Report& report, const Columns& columns, const Options& options) {
  const Style style = stdout_style();
  show("{}{}{}{}, {} threads with {:.0f} GFLOP/s ({}), medians of {}\n\n", style.bold, report.backend,
       columns.against ? " against " + report.against : "", style.reset, report.peak.threads, report.peak.flops_per_ns,
       report.request.peak_flops_per_ns > 0 ? "as told" : report.peak.vectors, report.request.repeat);
  show("{}{:<{}} {:>8} {:>8}", style.dim, "case", columns.name, "of limit", "bound");
  if (columns.against) show(" {:>15}", "vs " + report.against.substr(0, 12));
  if (columns.unfused) show(" {:>10}", "vs unfused");
  if (columns.earlier != nullptr) show(" {:>10}", "vs earlier");
  show(" {:>7} {:>9} {:>7}{}\n", "kernels", "on device", "spread", style.reset);
  for (const bench::Result& result : report.results) print_row(result, columns);
  print_families(report, columns);
  show(
      "\nof limit: the machine's own time to move the arguments and results once, or to do the multiply-adds, "
      "whichever\n"
      "is longer, divided by the time taken. {}\n",
      report.request.peak_flops_per_ns > 0 && report.request.peak_bytes_per_ns > 0
          ? "The limits are those of --peak and --bandwidth."
          : "The limits are those of the host, measured in this run by all threads.");
  if (!report.told_not_to_fuse) {
    show("vs unfused: without the fusions that the SDK proposes; the backend has no option fuse=0 for its own.\n");
  }
  if (columns.earlier != nullptr) print_comparison(report, columns, options.slower);
}

Expected<std::unique_ptr<bench::BaselineRun>> earlier_run(const std::string& path) {
  if (path.empty()) return std::unique_ptr<bench::BaselineRun>();
  COLLET_ASSIGN(const std::string text, read_file_or_pipe(path, kMostReportBytes));
  COLLET_ASSIGN(bench::BaselineRun earlier, bench::read_baseline(path, text));
  return std::make_unique<bench::BaselineRun>(std::move(earlier));
}

bool good(const bench::Report& report, const Columns& columns, double slower) {
  const bool compared = std::any_of(report.results.begin(), report.results.end(),
                                    [&](const bench::Result& one) { return gain(one, columns) > 0; });
  if (columns.earlier != nullptr && !compared) return false;
  for (const bench::Result& result : report.results) {
    if (!result.fused.ran() || !result.differs.empty()) return false;
    if (gain(result, columns) > 0 && gain(result, columns) * slower < 1) return false;
  }
  return true;
}

int run_limits(const Options& options) {
  if (const Status status = check_writable(options.json); !status.ok()) return tool::report(status);
  const bench::Limits limits = bench::measure_limits(bench::thread_count(options.backend.options));
  if (options.json != "-") {
    show("{} threads ({}): {:.0f} GFLOP/s of f32 multiply-adds, {:.0f} by one\n", limits.peak.threads,
         limits.peak.vectors, limits.peak.flops_per_ns, limits.peak.flops_per_ns_1);
    for (const bench::Bandwidth& one : limits.bandwidth)
      show("{:>10} half read and half written: {:.0f} GB/s\n", human(static_cast<double>(one.bytes), "B"),
           one.bytes_per_ns);
  }
  if (options.json.empty()) return kDone;
  const Status status = write_file(options.json, bench::to_json(limits));
  return status.ok() ? kDone : tool::report(status);
}

int run_bench(Options options) {
  if (options.collectives) {
    bench::CollectiveRequest request{.backend = options.backend, .filter = options.request.filter};
    request.repeat = options.request.repeat;
    if (!options.bytes.empty()) {
      request.least_bytes = options.bytes[0];
      request.most_bytes = options.bytes[1];
    }
    find_launcher(options.processes);
    return run_collectives(std::move(request), options.processes, options.json);
  }
  if (options.limits) return run_limits(options);
  if (options.sweep)
    return run_sweep({.backend = options.backend.name,
                      .options = options.backend.options,
                      .no_fallback = options.backend.no_fallback,
                      .families = options.families,
                      .fixed = options.fixed},
                     options.list, options.json);
  if (!options.cases.empty()) {
    auto cases = read_bench_cases(options.cases, options.elided);
    if (!cases.ok()) return tool::report(cases.status());
    options.request.cases = *std::move(cases);
  } else if (!options.from.empty()) {
    auto cases = bench_cases_of_programs(options.backend, options.from, options.elided);
    if (!cases.ok()) return tool::report(cases.status());
    options.request.cases = *std::move(cases);
  }
  if (options.list) {
    for (const bench::Case& one : options.request.cases.empty() ? bench::cases() : options.request.cases)
      show("{:<20} {}\n", one.name, one.what);
    return kDone;
  }
  if (const Status status = check_writable(options.json); !status.ok()) return tool::report(status);
  const auto earlier = earlier_run(options.compare);
  if (!earlier.ok()) return tool::report(earlier.status());
  options.request.backend = options.backend.name;
  options.request.no_fallback = options.backend.no_fallback;
  options.request.options = options.backend.options;
  // The user's programs may be large, so their unfused execution is measured only on request.
  options.request.unfused = options.request.cases.empty() || options.unfused;
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
  Columns columns{.against = !report->against.empty(), .unfused = options.request.unfused, .earlier = earlier->get()};
  for (const bench::Result& result : report->results) columns.name = std::max(columns.name, result.name.size());
  if (options.json != "-") print_report(*report, columns, options);
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, bench::to_json(*report)); !status.ok())
      return tool::report(status);
  }
  return good(*report, columns, options.slower) ? kDone : kFailed;
}

constexpr char kFooter[] = R"(Ratios, never bare times: to the machine's measured limits, to another backend,
to unfused execution. The programs take turns in one process, and their
results are compared first. Exit code 1: a case did not run, results differ, or
it is slower than in the run of --compare. With --sweep: a jump was found.

The inputs of --cases are those of collet run: from case.json beside the file,
or by element type. The family of a case is its sub-folder, or its name up to
the first _ or -.

Examples:
  collet bench
  collet bench --backend ./libacme.so --against cpu
  collet bench --filter softmax --repeat 50 --json bench.json
  collet bench --cases programs --json now.json --compare before.json
  collet bench --backend acme --against cpu --from customer.mlir
  collet bench --sweep convolution fft --json sweep.json
  collet bench --collectives --processes 2 --bytes 4096 4096)";

}  // namespace

Action add_bench(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  add_backend_options(verb,
                      {"The backend to measure, by name or path",
                       "Do without the fallback: a case with an op that the backend declines does not run"},
                      options->backend);
  verb.add_option("--against", options->request.against, "Another backend to compare with")->type_name("BACKEND");
  verb.add_option("--cases", options->cases,
                  "Measure these programs: files, or folders of which every .hlo, .mlir and .mlirbc is taken")
      ->type_name("PATH")
      ->expected(1, -1);
  verb.add_option("--from", options->from,
                  "Measure each op, fused group and pattern of these programs alone, and the programs")
      ->type_name("PROGRAM")
      ->expected(1, -1)
      ->excludes("--cases");
  add_elided_option(verb, options->elided);
  verb.add_flag("--unfused", options->unfused, "With --cases and --from: measure unfused execution too");
  verb.add_option("--compare", options->compare, "An earlier run's --json, to say what became faster or slower")
      ->type_name("FILE");
  add_real_option(verb, "--slower", options->slower,
                  "With --compare: exit code 1 where a case takes more than so many times as long", 1, 1e6, "X")
      ->default_str("1.2");
  add_real_option(verb, "--peak", options->request.peak_flops_per_ns,
                  "GFLOP/s of the device; measured on the host unless told", 1e-3, 1e9, "X");
  add_real_option(verb, "--bandwidth", options->request.peak_bytes_per_ns,
                  "GB/s of the device's memory; measured on the host unless told", 1e-3, 1e9, "X");
  verb.add_option("--filter", options->request.filter, "Only cases with this in their name")->type_name("PART");
  add_number_option(verb, "--repeat", options->request.repeat, "Samples of each; medians are shown", 1u, 10000u)
      ->default_str(std::to_string(options->request.repeat));
  verb.add_option("--json", options->json, "Write everything as JSON to this file; - is stdout")->type_name("FILE");
  verb.add_flag("--limits", options->limits, "Measure the machine's limits alone, and do nothing else");
  verb.add_flag("--list", options->list, "Print the names of the cases, and do nothing else");
  CLI::Option* sweep = verb.add_option("--sweep", options->families,
                                       "Find cliffs: sweep each parameter of these families of programs, or of all, "
                                       "and report jumps of cost and of temporary memory")
                           ->type_name("FAMILY")
                           ->expected(0, -1);
  verb.add_flag("--fixed", options->fixed, "With --sweep: the small part that the tests run")->needs(sweep);
  CLI::Option* collectives = verb.add_flag(
      "--collectives", options->collectives,
      "Measure collectives of f32 arrays, beside the transport's own and the loopback, and do nothing else");
  collectives->excludes(sweep)->excludes("--cases")->excludes("--from")->excludes("--limits")->excludes("--compare");
  add_process_options(verb, options->processes, "With --collectives: start so many processes");
  add_number_option(verb, "--devices", options->backend.devices,
                    "With --collectives: open so many devices, in each process, if the backend can make them", 0u,
                    4096u);
  verb.add_option("--bytes", options->bytes,
                  "With --collectives: the sizes, from the first to the second; 4 67108864 unless told")
      ->type_name("LEAST MOST")
      ->expected(2)
      ->check(CLI::Range(uint64_t{1}, kMostBytes));
  for (const char* name : {"--processes", "--process", "--store", "--devices", "--bytes"})
    verb.get_option(name)->needs(collectives);
  verb.footer(kFooter);
  return [options, sweep] {
    options->sweep = sweep->count() > 0;
    std::erase(options->families, "");
    return run_bench(*options);
  };
}

}  // namespace collet::tool
