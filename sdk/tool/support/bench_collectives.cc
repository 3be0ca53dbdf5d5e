// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/bench_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

std::string size_text(uint64_t bytes) {
  for (const auto& [shift, unit] : {std::pair(20, "MiB"), std::pair(10, "KiB")})
    if (bytes >> shift && (bytes & ((uint64_t{1} << shift) - 1)) == 0)
      return fmt::format("{} {}", bytes >> shift, unit);
  return fmt::format("{} B", bytes);
}

std::string ratio(double number) {
  return number <= 0 ? "-" : number < 0.1 ? fmt::format("{:.2g}", number) : fmt::format("{:.2f}", number);
}

std::string several(uint32_t count, const char* what, const char* plural) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
}

void print_report(const bench::CollectiveReport& report) {
  const Style style = stdout_style();
  show("{}{}{}, {} of {}{}, f32, medians of {}\n", style.bold, report.backend, style.reset,
       several(report.processes, "process", "es"), several(report.devices, "device", "s"),
       report.transport.empty() ? "" : ", transport " + report.transport, report.repeat);
  if (report.processes > 1)
    show("limit: the loopback, {:.1f} us one way, {:.2f} GB/s\n\n", report.limit_latency_ns / 1e3,
         report.limit_bytes_per_ns);
  else
    show("limit: copies of memory by one thread, {:.2f} GB/s\n\n", report.limit_bytes_per_ns);
  show("{}{:<20} {:>9} {:>12} {:>8} {:>9} {:>9} {:>12} {:>10} {:>9}{}\n", style.dim, "collective", "size", "time",
       "spread", "algbw", "busbw", "transport", "vs transp.", "of limit", style.reset);
  for (const bench::CollectiveResult& one : report.results) {
    const double rate = one.bytes_per_ns(one.ours);
    show("{:<20} {:>9} {:>12} {:>6.0f} % {:>9.3f} {:>9.3f} {:>12} {:>10} {:>9}{}\n", bench::name_of(one.what),
         size_text(one.bytes), human_seconds(one.ours.median_ns * 1e-9),
         100 * (one.ours.high_ns - one.ours.low_ns) / one.ours.median_ns, rate,
         rate * bench::bus_factor(one.what, report.participants()),
         one.own.ran() ? human_seconds(one.own.median_ns * 1e-9) : "-",
         ratio(one.own.ran() ? one.own.median_ns / one.ours.median_ns : 0), ratio(one.limit_ns / one.ours.median_ns),
         one.differs.empty() ? "" : "  RESULTS ARE WRONG: " + one.differs);
  }
  show(
      "\nalgbw: the bytes of the larger of argument and result, by the time; GB/s. busbw: algbw times 2 (n - 1) / n "
      "for "
      "all-reduce,\n(n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for the others, with n participants, "
      "as "
      "in nccl-tests.\n"
      "time: of the slowest process. spread: between the quartiles. transport: its own collective, one array a "
      "process; "
      "- if it has none.\n"
      "vs transp.: how many times as fast as that. of limit: the time in which the limit moves what a participant "
      "sends, "
      "by the time.\n");
}

// Finds the transport that the runtime uses.
Status find_transport(bench::CollectiveRequest& request) {
  bench::MeasuredTransport& out = request.transport;
  out.name = runtime::transport_name(request.group->transport);
  COLLET_ASSIGN(const runtime::Transport loaded, load_transport_beside_libcollet(out.name));
  out.table = loaded.table;
  out.collective = loaded.collective;
  out.address = runtime::chosen(request.group->address, "COLLET_TRANSPORT_ADDRESS", "127.0.0.1");
  COLLET_ASSIGN(out.timeout_ms, runtime::exchange_timeout_ms(request.group->timeout_ms));
  return ok_status();
}

}  // namespace

int run_collectives(bench::CollectiveRequest request, const ProcessChoice& processes, const std::string& json) {
  if (const Status status = check_processes(processes); !status.ok())
    return report(kUsage, "bench: " + status.message());
  if (request.most_bytes < request.least_bytes)
    return report(kUsage, fmt::format("bench: --bytes {} {}: the second is the larger one", request.least_bytes,
                                      request.most_bytes));
  const bool is_first = !processes.is_member() || processes.number == 0;
  if (is_first)
    if (const Status status = check_writable(json); !status.ok()) return report(status);
  if (processes.starts_others()) return start_processes(processes, FirstProcess::kOnTheTerminal);
  std::unique_ptr<Progress> bar;
  if (is_first)
    request.progress = [&](size_t done, size_t total, std::string_view what) {
      if (!bar) bar = std::make_unique<Progress>("measuring", total);
      bar->update(done, what);
    };
  std::unique_ptr<Group> group;
  if (processes.is_member()) {
    Expected<std::unique_ptr<Group>> made = Group::of(processes);
    if (!made.ok()) return report(made.status());
    group = *std::move(made);
    request.group = group->get();
    if (const Status status = find_transport(request); !status.ok()) return report(status);
  }
  const auto measured = bench::measure_collectives(request);
  bar.reset();
  if (!measured.ok()) return report_unopened(measured.status());
  if (!is_first) return kDone;
  if (json != "-") print_report(*measured);
  if (!json.empty())
    if (const Status status = write_file(json, bench::to_json(*measured)); !status.ok()) return report(status);
  const bool right = std::all_of(measured->results.begin(), measured->results.end(),
                                 [](const bench::CollectiveResult& one) { return one.differs.empty(); });
  return right ? kDone : kFailed;
}

}  // namespace collet::tool
