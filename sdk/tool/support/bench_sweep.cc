// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/bench_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sdk/tool/support/files.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

void print_families() {
  for (const bench::SweepFamily& family : bench::sweep_families()) {
    std::string names;
    for (const bench::SweepParameter& parameter : family.parameters)
      if (parameter.values.size() > 1) names += (names.empty() ? "" : " ") + parameter.name;
    show("{:<24} {}\n", family.name, names);
  }
}

void print_report(const bench::SweepReport& report) {
  const Style style = stdout_style();
  show("{}{:<24} {:>8} {:>12} {:>10} {:>10} {:>9}{}\n", style.dim, "family", "programs", "median cost", "highest",
       "memory", "findings", style.reset);
  size_t programs = 0;
  for (const bench::SweepSeries& series : report.families) {
    double cost = 0, memory = 0;
    for (const bench::SweepPoint& point : series.points) {
      cost = std::max(cost, point.cost());
      memory = std::max(memory, point.memory());
    }
    programs += series.points.size();
    show("{:<24} {:>8} {:>12.2f} {:>10.2f} {:>10.2f} {:>9}\n", series.family, series.points.size(),
         series.median_cost(), cost, memory,
         std::count_if(report.findings.begin(), report.findings.end(),
                       [&](const bench::SweepFinding& one) { return one.family == series.family; }));
  }
  show(
      "\ncost: the time taken, by the machine's own for the useful operations or to move arguments and results. "
      "memory: the\n"
      "most temporary memory by byte of arguments and results. {} programs in {:.0f} s on {} threads.\n",
      programs, report.seconds, report.threads);
  if (report.findings.empty()) return show("\nno jumps\n");
  show("\n");
  for (const bench::SweepFinding& finding : report.findings) {
    const auto series = std::find_if(report.families.begin(), report.families.end(),
                                     [&](const bench::SweepSeries& one) { return one.family == finding.family; });
    const bool failed = finding.kind == bench::SweepFinding::Kind::Failure;
    show("{}{}\n", bench::to_string(finding), failed ? ": " + series->points[finding.point].error : "");
  }
}

}  // namespace

int run_sweep(bench::SweepRequest request, bool list, const std::string& json) {
  if (list) {
    print_families();
    return kDone;
  }
  if (const Status status = check_writable(json); !status.ok()) return report(status);
  std::unique_ptr<Progress> bar;
  request.progress = [&](size_t done, size_t total, const std::string& what) {
    if (!bar) bar = std::make_unique<Progress>("sweeping", total);
    bar->update(done, what);
  };
  const auto swept = bench::sweep(request);
  bar.reset();
  if (!swept.ok()) {
    const bool usage = swept.status().code() == Code::InvalidArgument;
    return usage ? report(kUsage, swept.status().message()) : report(swept.status());
  }
  if (json != "-") print_report(*swept);
  if (!json.empty())
    if (const Status status = write_file(json, bench::to_json(*swept)); !status.ok()) return report(status);
  return swept->findings.empty() ? kDone : kFailed;
}

}  // namespace collet::tool
