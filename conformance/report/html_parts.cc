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

// The beginning of what is the same in many failures.
std::string short_text(std::string_view text) {
  constexpr size_t kMost = 140;
  const size_t end = std::min(text.find('\n'), kMost);
  return escape_markup(text.substr(0, end)) + (end < text.size() ? " ..." : "");
}

std::string failure(const ConformReport& report, const BackendChoice& backend, const CaseResult& one) {
  std::string out =
      fmt::format("<details id=\"{1}\"><summary><span class=\"bad\">{0}</span> <code>{1}</code> {2}</summary>\n",
                  outcome_name(one.outcome), escape_markup(one.name), short_text(one.detail));
  const auto block = [&](std::string_view title, std::string_view text) {
    if (!text.empty()) out += fmt::format("<p>{}</p><pre>{}</pre>\n", title, escape_markup(text));
  };
  block("Why", one.detail);
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
      "class=\"map\"><table>\n<tr><th>";
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

std::string failure_list(const ConformReport& report, const BackendChoice& backend) {
  std::vector<std::pair<std::string, std::vector<const CaseResult*>>> groups;
  std::map<std::string, size_t> at;
  for (const CaseResult& one : report.cases) {
    if (!is_failure(one)) continue;
    const auto [place, fresh] = at.emplace(std::string(subject(one)), groups.size());
    if (fresh) groups.emplace_back(place->first, std::vector<const CaseResult*>());
    groups[place->second].second.push_back(&one);
  }
  if (groups.empty()) return {};
  std::string out = "<h2 id=\"failures\">What failed</h2>\n";
  for (const auto& [name, cases] : groups) {
    out += fmt::format("<h3><code>{}</code>: {}</h3>\n", escape_markup(name), cases.size());
    for (const CaseResult* one : cases) out += failure(report, backend, *one);
  }
  return out;
}

}  // namespace collet::conformance
