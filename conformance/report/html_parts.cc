// SPDX-License-Identifier: Apache-2.0
#include "conformance/report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "conformance/report/markup.h"
#include "conformance/report/page_style.h"

namespace collet::conformance {
namespace {

// How many failures of an op the page lists at once. The others are listed when the reader opens them, and are not printed.
constexpr size_t kOpenFailures = 10;

// Takes title, verdict, its class, body, and style. The page has no scripts or fonts and loads nothing.
constexpr char kPage[] = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
{4}</style>
<h1>{0}</h1>
<p class="verdict {2}">{1}</p>
{3}<footer>Written by <code>collet conform</code>.</footer>
</html>
)";

using hlo::op_info;

bool is_failure(const CaseResult& one) {
  return one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported;
}

struct Cell {
  std::vector<const CaseResult*> failed, unsupported, elsewhere, passed;
  size_t cases() const { return failed.size() + unsupported.size() + elsewhere.size() + passed.size(); }
};
using Cells = std::map<std::pair<Op, hlo::Type>, Cell>;

Cells cells_of(const ConformReport& report) {
  Cells cells;
  for (const CaseResult& one : report.cases) {
    if (one.op == Op::INVALID || one.type == hlo::Type::Invalid) continue;
    Cell& cell = cells[{one.op, one.type}];
    (is_failure(one)                       ? cell.failed
     : one.outcome == Outcome::Unsupported ? cell.unsupported
     : one.fallback_ops > 0                ? cell.elsewhere
                                           : cell.passed)
        .push_back(&one);
  }
  return cells;
}

std::string cell_id(Op op, hlo::Type type) {
  return fmt::format("cases:{}/{}", op_info(op).text, hlo::type_info(type).text);
}

// Shortens a text whose beginning is equal in many failures.
std::string short_text(std::string_view text) {
  constexpr size_t kMost = 140;
  const size_t end = std::min(text.find('\n'), kMost);
  return escape_markup(text.substr(0, end)) + (end < text.size() ? " ..." : "");
}

struct FailedOp {
  std::vector<const CaseResult*> cases;
  std::string_view name() const { return subject(*cases[0]); }
};

// Returns the failed ops, sorted by their share of the work of programs, because ops with a large share should be fixed
// first.
std::vector<FailedOp> failed_ops(const ConformReport& report) {
  std::vector<FailedOp> groups;
  std::map<std::string_view, size_t> at;
  for (const CaseResult& one : report.cases) {
    if (!is_failure(one)) continue;
    const auto [place, fresh] = at.emplace(subject(one), groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].cases.push_back(&one);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FailedOp& a, const FailedOp& b) {
    return share_of_work(a.cases[0]->op) > share_of_work(b.cases[0]->op);
  });
  return groups;
}

// The pattern of the wrong elements that run_case has found; if none, the message of the failure.
std::string why_in_short(const CaseResult& one) {
  constexpr std::string_view kStart = "wrong where ";
  const size_t start = one.detail.find(kStart);
  if (start == std::string::npos) return short_text(one.detail);
  return escape_markup(one.detail.substr(start));
}

std::string failure(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras,
                    const CaseResult& one) {
  std::string out =
      fmt::format("<details id=\"{1}\"><summary><span class=\"bad\">{0}</span> <code>{1}</code> {2}</summary>\n",
                  outcome_name(one.outcome), escape_markup(one.name), short_text(one.detail));
  const auto block = [&](std::string_view title, std::string_view text) {
    if (!text.empty()) out += fmt::format("<p>{}</p><pre>{}</pre>\n", title, escape_markup(text));
  };
  block("Why", one.detail);
  block("Failing", since_when(extras, one));
  block("Elements and inputs", one.evidence);
  block("A smaller program that fails", one.reduced);
  block("The program", one.program);
  block("This runs it again", reproducer(report, backend, one));
  return out + "</details>\n";
}

}  // namespace

std::string page(std::string_view title, std::string_view verdict, bool good, std::string_view body) {
  return fmt::format(kPage, title, verdict, good ? "good" : "bad", body, kPageStyle);
}

std::string heat_map(const ConformReport& report) {
  const Cells cells = cells_of(report);
  if (cells.empty()) return {};
  std::set<Op> ops;
  std::set<hlo::Type> types;
  for (const auto& [key, cell] : cells) {
    ops.insert(key.first);
    types.insert(key.second);
  }
  std::string out =
      "<h2 id=\"map\">Ops and types</h2>\n<p><span class=\"key p\">passed on the device</span><span class=\"key "
      "w\">partly "
      "on the fallback, or not taken</span><span class=\"key u\">not taken, and not claimed</span><span class=\"key "
      "f\">failed</span> Numbers are cases, of failed ones those that did; each leads to them.</p>\n<div "
      "class=\"map\"><table>\n<thead><tr><th>";
  for (const hlo::Type type : types) out += fmt::format("<th>{}", hlo::type_info(type).text);
  out += "</thead>";  // which browsers print again on each page
  for (const Op op : ops) {
    out += fmt::format("\n<tr><th><code>{}</code>", op_info(op).text);
    for (const hlo::Type type : types) {
      const auto found = cells.find({op, type});
      if (found == cells.end()) {
        out += "<td>";
        continue;
      }
      const Cell& cell = found->second;
      const char* kind = !cell.failed.empty()                                  ? "f"
                         : cell.unsupported.size() == cell.cases()             ? "u"
                         : cell.unsupported.size() + cell.elsewhere.size() > 0 ? "w"
                                                                               : "p";
      out += fmt::format("<td class=\"{}\"><a href=\"#{}\">{}</a>", kind, cell_id(op, type),
                         cell.failed.empty() ? cell.cases() : cell.failed.size());
    }
  }
  return out + "\n</table></div>\n";
}

std::string case_lists(const ConformReport& report, const BackendChoice&) {
  constexpr size_t kMost = 100;
  std::string out;
  for (const auto& [key, cell] : cells_of(report)) {
    const auto& [op, type] = key;
    out += fmt::format("<div class=\"cases\" id=\"{}\"><b>{} {}</b>", cell_id(op, type), op_info(op).text,
                       hlo::type_info(type).text);
    const std::string start = fmt::format("{}/{}/", op_info(op).text, hlo::type_info(type).text);
    const auto list = [&](std::string_view title, const std::vector<const CaseResult*>& cases, bool linked) {
      if (cases.empty()) return;
      out += fmt::format(" · {} {}:", cases.size(), title);
      for (size_t i = 0; i < std::min(cases.size(), kMost); ++i) {
        const std::string name = escape_markup(cases[i]->name);
        const std::string_view shown =
            name.starts_with(start) ? std::string_view(name).substr(start.size()) : std::string_view(name);
        out += linked ? fmt::format(" <a href=\"#{}\">{}</a>", name, shown) : fmt::format(" {}", shown);
      }
      if (cases.size() > kMost) out += fmt::format(" and {} more", cases.size() - kMost);
    };
    list("failed", cell.failed, true);
    list("not taken", cell.unsupported, false);
    list("on the fallback", cell.elsewhere, false);
    list("passed", cell.passed, false);
    out += "</div>\n";
  }
  if (out.empty()) return out;
  return "<h2 id=\"cases\">Cases</h2>\n<p>Names begin with op and type unless they begin otherwise. <code>collet "
         "conform --filter "
         "NAME --show</code> prints the program of one.</p>\n" +
         out;
}

std::string wrong_ops(const ConformReport& report, const PageExtras& extras) {
  const std::vector<FailedOp> groups = failed_ops(report);
  if (groups.empty()) return {};
  std::string out =
      "<h2 id=\"wrong\">What is wrong</h2>\n<p>By the op's share of the work of programs, on average over the model "
      "corpus.</p>\n<div class=\"wide\"><table>\n<tr><th>op<th class=\"n\">share of work<th class=\"n\">failed "
      "cases<th>element types<th>in the first of them";
  if (!extras.earlier.empty()) out += "<th>failing";
  out += '\n';
  for (const FailedOp& group : groups) {
    const CaseResult& first = *group.cases[0];
    std::set<std::string_view> types;
    for (const CaseResult* one : group.cases)
      if (one->type != hlo::Type::Invalid) types.insert(hlo::type_info(one->type).text);
    std::string names;
    for (const std::string_view type : types) names += fmt::format("{}{}", names.empty() ? "" : " ", type);
    out += fmt::format(
        "<tr><td><a href=\"#failed:{0}\"><code>{0}</code></a><td class=\"n\">{1:.2f} %<td class=\"n bad\">{2}<td>{3}"
        "<td>{4}",
        escape_markup(group.name()), first.op == Op::INVALID ? 0 : 100 * share_of_work(first.op), group.cases.size(),
        names, why_in_short(first));
    if (!extras.earlier.empty()) out += "<td>" + escape_markup(since_when(extras, first));
    out += '\n';
  }
  return out + "</table></div>\n";
}

std::string failure_list(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras) {
  const std::vector<FailedOp> groups = failed_ops(report);
  if (groups.empty()) return {};
  std::string out = "<h2 id=\"failures\">What failed</h2>\n";
  for (const FailedOp& group : groups) {
    out += fmt::format("<h3 id=\"failed:{0}\"><code>{0}</code>: {1}</h3>\n", escape_markup(group.name()),
                       group.cases.size());
    for (size_t i = 0; i < group.cases.size(); ++i) {
      if (i == kOpenFailures)
        out += fmt::format("<details class=\"more\"><summary>{} more</summary>\n", group.cases.size() - i);
      out += failure(report, backend, extras, *group.cases[i]);
    }
    if (group.cases.size() > kOpenFailures) out += "</details>\n";
  }
  return out;
}

}  // namespace collet::conformance
