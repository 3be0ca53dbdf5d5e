// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "conformance/report/markup.h"
#include "conformance/report/page_style.h"
#include "conformance/report/report.h"

namespace collet::conformance {
namespace {

using hlo::op_info;

// The page stands alone: no script, no font, nothing fetched.
constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Conformance of {0}</title>
<style>
{5}</style>
<h1>Conformance of {0} {1}</h1>
<p class="verdict {2}">{3}</p>
<p>{4}</p>
)";

std::string counts(const ConformReport& report) {
  std::string out = fmt::format("{} of {} cases passed", report.count(Outcome::Pass), report.cases.size());
  for (const Outcome outcome :
       {Outcome::Fail, Outcome::Crash, Outcome::Timeout, Outcome::Unsupported, Outcome::Oracle}) {
    if (const size_t n = report.count(outcome)) out += fmt::format(", {} {}", n, outcome_name(outcome));
  }
  if (report.not_run > 0) out += fmt::format(", {} not run: {}", report.not_run, escape_markup(report.ended));
  return out + fmt::format(" in {:.1f} s; fallback: {}; seed {}; library <code>{}</code>.", report.seconds,
                           report.fallback.empty() ? "none" : escape_markup(report.fallback), report.seed,
                           escape_markup(report.path));
}

std::string failures(const ConformReport& report, const BackendChoice& backend) {
  std::string out;
  for (const CaseResult& one : report.cases) {
    if (one.outcome == Outcome::Pass || one.outcome == Outcome::Unsupported) continue;
    out += fmt::format("<tr id=\"{1}\"><td class=\"bad\">{0}<td><code>{1}</code><td>{2}<pre>{3}</pre>\n",
                       outcome_name(one.outcome), escape_markup(one.name), escape_markup(one.detail),
                       escape_markup(reproducer(report, backend, one)));
  }
  if (out.empty()) return out;
  return "<h2>What failed</h2>\n<table>\n<tr><th>outcome<th>case<th>why, and the line that runs it again\n" + out +
         "</table>\n";
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
      "<h2>By op</h2>\n<table>\n<tr><th>op<th>class<th><th class=\"n\">cases<th class=\"n\">passed<th "
      "class=\"n\">failed"
      "<th class=\"n\">unsupported<th class=\"n\">wholly on the device<th class=\"n\">largest error, ULP"
      "<th class=\"n\">of what is allowed\n";
  for (const OpSummary& s : ops) {
    out +=
        fmt::format("<tr><td><code>{}</code><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n{}\">{}",
                    op_info(s.op).text, class_name(s.op), bar(s), s.cases, s.passed, s.failed ? " bad" : "", s.failed);
    out += fmt::format("<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{:.3g}<td class=\"n\">{:.0f} %\n",
                       s.unsupported, s.on_device, s.worst_ulp, 100 * s.worst_share);
  }
  return out + "</table>\n";
}

std::string road(const ConformReport& report, const std::vector<OpSummary>& ops) {
  const std::vector<OpSummary> missing = road_map(ops);
  if (missing.empty()) return "";
  std::string out = report.fallback.empty()
                        ? "<h2>Not taken, the most useful to implement first</h2>\n<ol>\n"
                        : "<h2>Left to the fallback, the most useful to implement first</h2>\n<ol>\n";
  for (const OpSummary& s : missing) {
    out += fmt::format("<li><code>{}</code>, {}: {}\n", op_info(s.op).text, class_name(s.op), device_text(s));
  }
  return out + "</ol>\n";
}

// A cell for each op and element type: what became of its cases. Failures lead to the first of them.
std::string heat_map(const ConformReport& report) {
  struct Cell {
    size_t cases = 0, failed = 0, unsupported = 0, elsewhere = 0;
    std::string_view first;
  };
  std::map<std::pair<Op, hlo::Type>, Cell> cells;
  std::set<Op> ops;
  std::set<hlo::Type> types;
  for (const CaseResult& one : report.cases) {
    if (one.op == Op::INVALID || one.type == hlo::Type::Invalid) continue;
    Cell& cell = cells[{one.op, one.type}];
    ops.insert(one.op);
    types.insert(one.type);
    ++cell.cases;
    const bool failed = one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported;
    cell.failed += failed;
    cell.unsupported += one.outcome == Outcome::Unsupported;
    cell.elsewhere += one.outcome == Outcome::Pass && one.fallback_ops > 0;
    if (failed && cell.first.empty()) cell.first = one.name;
  }
  if (cells.empty()) return {};
  std::string out =
      "<h2>Ops and types</h2>\n<p>Green: on the device; amber: partly on the fallback; grey: not taken; red: failed, "
      "with the number "
      "of cases.</p>\n<div class=\"map\"><table>\n<tr><th>";
  for (const hlo::Type type : types) out += fmt::format("<th>{}", hlo::type_info(type).text);
  for (const Op op : ops) {
    out += fmt::format("\n<tr><th><code>{}</code>", op_info(op).text);
    for (const hlo::Type type : types) {
      const auto found = cells.find({op, type});
      if (found == cells.end()) {
        out += "<td>";
        continue;
      }
      const Cell& cell = found->second;
      const char* kind = cell.failed > 0                         ? "f"
                         : cell.unsupported == cell.cases        ? "u"
                         : cell.unsupported + cell.elsewhere > 0 ? "w"
                                                                 : "p";
      if (cell.failed > 0) {
        out += fmt::format("<td class=\"f\"><a href=\"#{0}\">{1}</a>", escape_markup(cell.first), cell.failed);
      } else {
        out += fmt::format("<td class=\"{}\" title=\"{} cases\">{}", kind, cell.cases, cell.cases);
      }
    }
  }
  return out + "\n</table></div>\n";
}

std::string profile_rows(const ConformReport& report) {
  std::string out;
  for (const ProfileSummary& s : summarize_profiles(report)) {
    const char* verdict = s.failed > 0 ? "failed" : s.on_device == s.cases ? "passed" : "in part";
    out +=
        fmt::format("<tr><td>{}<td>{}<td class=\"{}\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}\n",
                    s.profile->name, s.profile->text,
                    s.failed                 ? "bad"
                    : s.on_device == s.cases ? "good"
                                             : "",
                    verdict, s.cases, s.on_device, s.failed, s.claimed ? "claimed" : "");
  }
  if (out.empty()) return out;
  return "<h2>Profiles</h2>\n<table>\n<tr><th>profile<th>what it is<th>verdict<th class=\"n\">cases<th class=\"n\">on "
         "the "
         "device<th class=\"n\">failed<th>\n" +
         out + "</table>\n";
}

std::string silent_rows(const ConformReport& report) {
  std::string out;
  for (const Silent& one : report.whole ? silent(report) : std::vector<Silent>()) {
    out += fmt::format("<tr><td>{}<td>{}<td><code>{}</code><td>", why_name(one.why), kind_name(one.kind),
                       escape_markup(one.name));
    for (const hlo::Type type : one.types) out += fmt::format("{} ", hlo::type_info(type).text);
    out += '\n';
  }
  if (out.empty()) return out;
  return "<h2>What no case has run</h2>\n<table>\n<tr><th>why<th>kind<th>name<th>types\n" + out + "</table>\n";
}

}  // namespace

std::string report_html(const ConformReport& report, const BackendChoice& backend) {
  const std::vector<OpSummary> ops = summarize(report);
  std::string out = fmt::format(
      kHead, escape_markup(report.backend), escape_markup(report.version), report.conforms() ? "good" : "bad",
      report.conforms() ? "It conforms." : "It does not conform.", counts(report), kPageStyle);
  out += profile_rows(report) + heat_map(report) + failures(report, backend) + road(report, ops) + silent_rows(report) +
         op_rows(ops);
  return out + "<footer>Written by <code>collet conform</code>.</footer>\n</html>\n";
}

}  // namespace collet::conformance
