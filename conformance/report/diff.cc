// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "conformance/report/read_json.h"
#include "conformance/report/report.h"
#include "hlo/base/json.h"

namespace collet::conformance {
namespace {

namespace json = boost::json;

struct OneCase {
  std::string status, detail;
  bool failed() const { return status != "pass" && status != "unsupported"; }
};

struct Run {
  std::string title, verdict;
  double seconds = 0;
  std::map<std::string, OneCase> cases;
};

Expected<Run> read(std::string_view name, std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  const json::array* cases = nullptr;
  if (!error && root.is_object())
    if (const json::value* found = root.as_object().if_contains("cases"); found != nullptr) cases = found->if_array();
  if (cases == nullptr)
    return invalid_argument(fmt::format("{} is no report that collet conform --json has written", name));
  const json::object& object = root.as_object();
  Run run;
  run.title = title_of(text_of(object, "backend"), text_of(object, "version"), text_of(object, "revision"));
  run.verdict = text_of(object, "verdict");
  run.seconds = number_of(object, "seconds");
  for (const json::value& value : *cases) {
    if (!value.is_object()) continue;
    const json::object& one = value.as_object();
    run.cases.insert_or_assign(text_of(one, "name"), OneCase{text_of(one, "status"), text_of(one, "detail")});
  }
  return run;
}

// Returns a heading and the first `most` lines.
std::string listed(std::string_view heading, const std::vector<std::string>& lines, size_t most) {
  if (lines.empty()) return {};
  std::string out = fmt::format("{}: {}\n", heading, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), most); ++i) out += "  " + lines[i] + "\n";
  if (lines.size() > most) out += fmt::format("  and {} more\n", lines.size() - most);
  return out;
}

}  // namespace

std::string title_of(std::string_view backend, std::string_view version, std::string_view revision) {
  return fmt::format("{} {}{}", backend, version, revision.empty() ? "" : fmt::format(" ({})", revision));
}

Status read_earlier(std::string_view name, std::string_view text, PageExtras& extras) {
  COLLET_ASSIGN(const Run run, read(name, text));
  EarlierRun& earlier = extras.earlier.emplace_back(EarlierRun{run.title, {}});
  for (const auto& [case_name, one] : run.cases) earlier.failed.emplace(case_name, one.failed());
  return ok_status();
}

std::string since_when(const PageExtras& extras, const CaseResult& one) {
  std::string first;  // the first of the runs in which it failed without a pass afterwards
  size_t failed = 0;
  for (auto run = extras.earlier.rbegin(); run != extras.earlier.rend(); ++run) {
    const auto found = run->failed.find(one.name);
    if (found == run->failed.end()) continue;
    if (!found->second)
      return first.empty() ? fmt::format("since this run; {} did not fail", run->title)
                           : fmt::format("since {}; {} did not fail", first, run->title);
    first = run->title;
    ++failed;
  }
  return failed == 0 ? "" : fmt::format("in each earlier run that has it, the first of them {}", first);
}

Expected<ReportDifference> diff_reports(std::string_view name_a, std::string_view a, std::string_view name_b,
                                        std::string_view b, size_t most) {
  COLLET_ASSIGN(const Run before, read(name_a, a));
  COLLET_ASSIGN(const Run after, read(name_b, b));
  std::vector<std::string> broken, fixed, lost, taken, added, gone;
  for (const auto& [name, now] : after.cases) {
    const auto found = before.cases.find(name);
    if (found == before.cases.end()) {
      added.push_back(fmt::format("{:<11} {}", now.status, name));
      if (now.failed()) broken.push_back(fmt::format("{:<11} {}: {}", now.status, name, now.detail));
      continue;
    }
    const OneCase& was = found->second;
    if (now.failed() && !was.failed()) broken.push_back(fmt::format("{:<11} {}: {}", now.status, name, now.detail));
    if (!now.failed() && was.failed()) fixed.push_back(name);
    if (was.status == "pass" && now.status == "unsupported") lost.push_back(name);
    if (was.status == "unsupported" && now.status == "pass") taken.push_back(name);
  }
  for (const auto& [name, was] : before.cases)
    if (!after.cases.contains(name)) gone.push_back(fmt::format("{:<11} {}", was.status, name));
  ReportDifference out;
  out.worse = !broken.empty() || !lost.empty();
  out.heading =
      fmt::format("{}: {}, {} cases in {:.1f} s\n{}: {}, {} cases in {:.1f} s\n", before.title, before.verdict,
                  before.cases.size(), before.seconds, after.title, after.verdict, after.cases.size(), after.seconds);
  const auto add = [&](std::string_view heading, std::vector<std::string>& lines, bool worse) {
    if (!lines.empty()) out.sections.push_back({std::string(heading), std::move(lines), worse});
  };
  add("fails now", broken, true);
  add("no longer taken", lost, true);
  add("fails no more", fixed, false);
  add("taken now", taken, false);
  add("new cases", added, false);
  add("cases that are gone", gone, false);
  out.text = out.heading;
  for (const ReportDifference::Section& section : out.sections)
    out.text += listed(section.heading, section.lines, most);
  if (out.sections.empty()) out.text += "no case differs\n";
  return out;
}

std::string difference_json(const ReportDifference& difference) {
  std::string out;
  JsonWriter json(out);
  json.begin_object()
      .field("heading", difference.heading)
      .field("worse", difference.worse)
      .key("sections")
      .begin_array();
  for (const ReportDifference::Section& section : difference.sections) {
    json.begin_object().field("heading", section.heading).field("worse", section.worse).key("lines").begin_array();
    for (const std::string& line : section.lines) json.value(line);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace collet::conformance
