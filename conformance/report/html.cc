// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/report/html_parts.h"
#include "conformance/report/markup.h"
#include "conformance/report/report.h"
#include "hlo/base/shell.h"

namespace collet::conformance {
namespace {

using hlo::op_info;

std::string counts(const ConformReport& report) {
  std::string out = fmt::format("{} of {} cases passed", report.count(Outcome::Pass), report.cases.size());
  for (const Outcome outcome :
       {Outcome::Fail, Outcome::Crash, Outcome::Timeout, Outcome::Unsupported, Outcome::Oracle}) {
    if (const size_t n = report.count(outcome)) out += fmt::format(", {} {}", n, outcome_name(outcome));
  }
  std::string waived;
  for (const CaseResult& one : report.cases)
    if (!one.waiver.empty()) waived += fmt::format("{}{} ({})", waived.empty() ? "" : "; ", one.name, one.waiver);
  if (!waived.empty()) out += fmt::format("; passed by a waiver: {}", escape_markup(waived));
  if (report.not_run > 0) out += fmt::format(", {} not run: {}", report.not_run, escape_markup(report.ended));
  out += fmt::format(" in {:.1f} s; fallback: {}; seed {}; library <code>{}</code>", report.seconds,
                     report.fallback.empty() ? "none" : escape_markup(report.fallback), report.seed,
                     escape_markup(report.path));
  const std::string times = worker_times_text(report);
  return out + (times.empty() ? "" : "; " + times) + ".";
}

std::string bar(const OpSummary& s) {
  const auto part = [&](const char* kind, size_t n) {
    return n == 0 ? std::string()
                  : fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\"></i>", kind,
                                100.0 * static_cast<double>(n) / static_cast<double>(s.cases));
  };
  return "<div class=\"bar\">" + part("p", s.passed) + part("f", s.failed) + part("u", s.unsupported) + "</div>";
}

std::string op_rows(const std::vector<OpSummary>& ops) {
  std::string out =
      "<h2 id=\"ops\">By op</h2>\n<div class=\"wide\"><table>\n<tr><th>op<th>class<th><th class=\"n\">cases<th "
      "class=\"n\">passed<th class=\"n\">failed<th class=\"n\">unsupported<th class=\"n\">wholly on the device<th "
      "class=\"n\">largest error, ULP<th class=\"n\">of what is allowed\n";
  for (const OpSummary& s : ops) {
    out +=
        fmt::format("<tr><td><code>{}</code><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n{}\">{}",
                    op_info(s.op).text, class_name(s.op), bar(s), s.cases, s.passed, s.failed ? " bad" : "", s.failed);
    out += fmt::format("<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{:.3g}<td class=\"n\">{:.0f} %\n",
                       s.unsupported, s.on_device, s.worst_ulp, 100 * s.worst_share);
  }
  return out + "</table></div>\n";
}

// The steps that a vendor should take after this run, the most important one first.
std::string steps(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras, bool lacks_ops) {
  std::string name = shell_word(backend.name);
  for (const auto& [key, value] : backend.options) name += " --option " + shell_word(key + "=" + value);
  name = escape_markup(name);
  std::string out;
  const auto step = [&](std::string_view text, std::string_view line = {}) {
    out += fmt::format("<li>{}{}\n", text, line.empty() ? "" : fmt::format("<pre>{}</pre>", line));
  };
  if (const size_t failed = report.cases.size() - report.count(Outcome::Pass) - report.count(Outcome::Unsupported))
    step(
        fmt::format("Mend what is <a href=\"#wrong\">wrong</a>, {} cases. Below each failure stands the line that runs "
                    "it again.",
                    failed));
  if (report.not_run > 0) step("Run all cases: this run was ended early.");
  if (lacks_ops) step("Implement what is not taken; the table below has the most useful op first.");
  if (!report.of_all_names || !report.whole)
    step("Run all cases: these were chosen.", fmt::format("collet conform --backend {} --html report.html", name));
  if (report.conforms() && report.of_all_names && !report.full)
    step("Run the full set, claim a profile and write a bundle that others can verify.",
         fmt::format("collet conform --backend {} --full --no-fallback --claim core --bundle acme.jsonl", name));
  if (extras.speed.empty())
    step("Measure how fast it is; this page then shows it.",
         fmt::format("collet bench --backend {0} --json speed.json\ncollet conform --backend {0} --speed speed.json "
                     "--html report.html",
                     name));
  if (extras.earlier.empty())
    step("Keep this run, and give it to the next one, which then says since when a case fails.",
         fmt::format("collet conform --backend {0} --revision \"$(git rev-parse --short HEAD)\" --json this.json "
                     "--earlier before.json --html report.html",
                     name));
  return "<ol>\n" + out + "</ol>\n";
}

std::string road(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras,
                 const std::vector<OpSummary>& ops) {
  const std::vector<OpSummary> missing = road_map(ops);
  std::string out = "<h2 id=\"next\">What next</h2>\n" + steps(report, backend, extras, !missing.empty());
  if (missing.empty()) return out;
  out += "<p>";
  out += report.fallback.empty() ? "Not taken" : "Left to the fallback";
  out +=
      ", the most useful to implement first. The share is that of the op in the work of programs, on average over the "
      "model corpus.</p>\n<div class=\"wide\"><table>\n<tr><th>op<th>class<th class=\"n\">share of work<th>cases\n";
  for (const OpSummary& s : missing) {
    out += fmt::format("<tr><td><code>{}</code><td>{}<td class=\"n\">{:.2f} %<td>{}\n", op_info(s.op).text,
                       class_name(s.op), 100 * share_of_work(s.op), device_text(s));
  }
  return out + "</table></div>\n";
}

std::string profile_rows(const ConformReport& report) {
  std::string out;
  for (const ProfileSummary& s : summarize_profiles(report)) {
    const char* verdict = s.failed > 0 ? "failed" : s.on_device == s.cases ? "passed" : "in part";
    const char* kind = s.failed > 0 ? "bad" : s.on_device == s.cases ? "good" : "";
    out += fmt::format(
        "<tr><td>{}<td class=\"{}\">{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}\n",
        s.profile->name, kind, verdict, s.claimed ? "claimed" : "", s.cases, s.on_device, s.failed, s.profile->text);
  }
  if (out.empty()) return out;
  return "<h2 id=\"profiles\">Profiles</h2>\n<div class=\"wide\"><table>\n<tr><th>profile<th>verdict<th><th "
         "class=\"n\">cases<th class=\"n\">on the device<th class=\"n\">failed<th>what it is\n" +
         out + "</table></div>\n";
}

std::string silent_rows(const ConformReport& report) {
  std::string out;
  for (const NeverUsed& one : report.whole ? never_used(report) : std::vector<NeverUsed>()) {
    out += fmt::format("<tr><td>{}<td>{}<td><code>{}</code><td>", why_name(one.why), kind_name(one.kind),
                       escape_markup(one.name));
    for (const hlo::Type type : one.types) out += fmt::format("{} ", hlo::type_info(type).text);
    out += '\n';
  }
  if (out.empty()) return out;
  return "<h2>What no case has run</h2>\n<div class=\"wide\"><table>\n<tr><th>why<th>kind<th>name<th>types\n" + out +
         "</table></div>\n";
}

std::string group_rows(const ConformReport& report) {
  std::string out;
  for (const GroupSummary& s : summarize_groups(report)) {
    out += fmt::format("<tr><td><code>{}</code><td>{}", escape_markup(s.name), kind_name(s.kind));
    for (const uint64_t count : {s.on_device, s.declined, s.not_offered, s.not_run})
      out += fmt::format("<td class=\"n\">{}", count);
    for (const std::vector<hlo::Type>* types : {&s.types_on_device, &s.types_elsewhere}) {
      out += "<td>";
      for (const hlo::Type type : *types) out += fmt::format("{} ", hlo::type_info(type).text);
    }
    out += '\n';
  }
  if (out.empty()) return out;
  return "<h2 id=\"groups\">By group</h2>\n<p>Patterns and fused groups that were found in cases, and in how "
         "many.</p>\n"
         "<div class=\"wide\"><table>\n<tr><th>group<th>kind<th class=\"n\">on the device<th class=\"n\">declined<th "
         "class=\"n\">not offered<th class=\"n\">accepted, not run<th>types on the device<th>types elsewhere\n" +
         out + "</table></div>\n";
}

// Draws a histogram of errors. Heights are proportional to logarithms of counts; the vertical line is the error bound.
std::string histogram(std::string_view title, const ErrorCounts& errors, double worst_ulp) {
  constexpr int kBar = 16, kHeight = 48;
  int64_t all = 0, most = 1;
  for (const int64_t count : errors) {
    all += count;
    most = std::max(most, count);
  }
  std::string bars;
  for (size_t bin = 0; bin < kErrorBins; ++bin) {
    if (errors[bin] == 0) continue;
    const double height =
        kHeight * std::log1p(static_cast<double>(errors[bin])) / std::log1p(static_cast<double>(most));
    bars += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}</title></rect>",
        bin + 1 == kErrorBins ? "fb" : "pb", bin * kBar + 1, kHeight - height, kBar - 2, height, errors[bin]);
  }
  const size_t bound = (kErrorBins - 1) * kBar;
  return fmt::format(
      "<figure><svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"errors of {2}\">{3}<line x1=\"{4}\" y1=\"0\" "
      "x2=\"{4}\" y2=\"{1}\"/></svg><figcaption><code>{2}</code> {5} elements, at most {6:.3g} "
      "ULP{7}</figcaption></figure>\n",
      kErrorBins * kBar, kHeight, title, bars, bound, all, worst_ulp,
      errors.back() > 0 ? fmt::format("; {} wrong", errors.back()) : "");
}

std::string histograms(const ConformReport& report) {
  struct Sum {
    ErrorCounts errors = {};
    double ulp = 0;
  };
  std::map<Op, Sum> sums;
  for (const CaseResult& one : report.cases) {
    if (one.op == Op::INVALID) continue;
    Sum& sum = sums[one.op];
    for (size_t bin = 0; bin < kErrorBins; ++bin) sum.errors[bin] += one.errors[bin];
    if (std::isfinite(one.ulp)) sum.ulp = std::max(sum.ulp, one.ulp);
  }
  std::string out;
  for (const auto& [op, sum] : sums) {
    const bool has_errors =
        std::any_of(sum.errors.begin() + 1, sum.errors.end(), [](int64_t count) { return count > 0; });
    if (has_errors) out += histogram(op_info(op).text, sum.errors, sum.ulp);
  }
  if (out.empty()) return out;
  return "<h2 id=\"errors\">Errors</h2>\n<p>Elements by their error as a share of what is allowed: none, up to 1/512, "
         "each "
         "next bar twice as much. The line is the bound; what is right of it is wrong. Heights are "
         "logarithms.</p>\n<div class=\"figures\">\n" +
         out + "</div>\n";
}

std::string speed_rows(const PageExtras& extras) {
  if (extras.speed.empty()) return {};
  std::string out = fmt::format(
      "<h2 id=\"speed\">Speed</h2>\n<p>Of <code>collet bench</code>. Of limit: the time that the machine needs at "
      "least, "
      "divided by the time taken.</p>\n<div class=\"wide\"><table>\n<tr><th>case<th>family<th class=\"n\">time<th "
      "class=\"n\">of limit<th class=\"n\">{}\n",
      extras.against.empty() ? "" : "times as fast as " + escape_markup(extras.against));
  for (const SpeedRow& row : extras.speed) {
    out +=
        fmt::format("<tr><td><code>{}</code><td>{}<td class=\"n\">{:.4g} µs<td class=\"n\">{:.2f}<td class=\"n\">{}\n",
                    escape_markup(row.name), escape_markup(row.family), row.ns / 1000, row.of_limit,
                    row.gain > 0 ? fmt::format("{:.2f}", row.gain) : "");
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string report_html(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras) {
  const std::vector<OpSummary> ops = summarize(report);
  const std::pair<std::string_view, std::string> parts[] = {{"wrong", wrong_ops(report, extras)},
                                                            {"profiles", profile_rows(report)},
                                                            {"map", heat_map(report)},
                                                            {"failures", failure_list(report, backend, extras)},
                                                            {"errors", histograms(report)},
                                                            {"next", road(report, backend, extras, ops)},
                                                            {"", silent_rows(report)},
                                                            {"speed", speed_rows(extras)},
                                                            {"ops", op_rows(ops)},
                                                            {"groups", group_rows(report)},
                                                            {"cases", case_lists(report, backend)}};
  std::string body = "<p>" + counts(report) + "</p>\n<nav>", rest;
  for (const auto& [name, text] : parts) {
    if (!text.empty() && !name.empty()) body += fmt::format("<a href=\"#{0}\">{0}</a> ", name);
    rest += text;
  }
  return page("Conformance of " + escape_markup(title_of(report.backend, report.version, report.revision)),
              !report.conforms() ? "It does not conform."
              : report.whole     ? "It conforms."
                                 : "It conforms in the cases that were chosen.",
              report.conforms(), body + "</nav>\n" + rest);
}

std::string difference_html(const ReportDifference& difference) {
  std::string body = "<pre>" + escape_markup(difference.heading) + "</pre>\n";
  for (const ReportDifference::Section& section : difference.sections) {
    body += fmt::format("<h2>{}: {}</h2>\n<ul>\n", section.heading, section.lines.size());
    for (const std::string& line : section.lines)
      body += fmt::format("<li class=\"{}\"><code>{}</code>\n", section.worse ? "bad" : "", escape_markup(line));
    body += "</ul>\n";
  }
  if (difference.sections.empty()) body += "<p>No case differs.</p>\n";
  return page("Two runs compared", difference.worse ? "It got worse." : "Nothing got worse.", !difference.worse, body);
}

}  // namespace collet::conformance
