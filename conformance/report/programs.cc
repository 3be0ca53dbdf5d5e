// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "conformance/report/report.h"
#include "conformance/runner/program_tasks.h"

namespace collet::conformance {
namespace {

bool is_whole(const CaseResult& one) {
  return one.name.starts_with(kWholeProgram);
}

// The cases of one kind of op and element type.
struct Need {
  size_t cases = 0, on_device = 0, wrong = 0;
};

std::string needs_text(const ConformReport& report) {
  std::map<std::string, Need> needs;  // by op and type
  for (const CaseResult& one : report.cases) {
    if (is_whole(one)) continue;
    Need& need = needs[fmt::format("{} {}", subject(one), type_name(one.type))];
    ++need.cases;
    need.on_device += one.device_ops > 0 && one.fallback_ops == 0;
    need.wrong += one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported;
  }
  std::string whole, elsewhere, wrong;
  for (const auto& [name, need] : needs) {
    if (need.wrong > 0) wrong += fmt::format("  {:<32} {} of {} cases\n", name, need.wrong, need.cases);
    if (need.on_device == need.cases) {
      whole += (whole.empty() ? "" : ", ") + name;
    } else if (need.wrong == 0) {
      elsewhere += fmt::format("  {:<32} {} of {} cases on the device\n", name, need.on_device, need.cases);
    }
  }
  std::string out;
  if (!whole.empty()) out += "on the device: " + whole + "\n";
  if (!elsewhere.empty()) out += "not on the device, or not always:\n" + elsewhere;
  if (!wrong.empty()) out += "wrong:\n" + wrong;
  return out;
}

std::string time_text(double seconds) {
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string times_text(const ConformReport& report) {
  constexpr size_t kMost = 12;
  std::vector<const CaseResult*> timed;
  for (const CaseResult& one : report.cases)
    if (!is_whole(one) && one.run_seconds > 0 && one.name.ends_with("/unit")) timed.push_back(&one);
  std::sort(timed.begin(), timed.end(),
            [](const CaseResult* a, const CaseResult* b) { return a->run_seconds > b->run_seconds; });
  std::string out;
  for (size_t i = 0; i < std::min(kMost, timed.size()); ++i) {
    const CaseResult& one = *timed[i];
    out += fmt::format("  {:>12}", time_text(one.run_seconds));
    if (!report.beside.empty())
      out += one.beside_seconds > 0
                 ? fmt::format(" {:>12} {:>7.2f}", time_text(one.beside_seconds), one.beside_seconds / one.run_seconds)
                 : fmt::format(" {:>12} {:>7}", "-", "");
    out += "  " + one.name.substr(0, one.name.size() - std::string_view("/unit").size()) + "\n";
  }
  if (out.empty()) return out;
  const std::string beside =
      report.beside.empty() ? "" : fmt::format(" beside {}, and how many times as fast", report.beside);
  return fmt::format("the slowest ops, one execution of each{}:\n", beside) + out;
}

}  // namespace

std::string programs_text(const ConformReport& report) {
  std::string out;
  for (const std::string& note : report.programs) {
    const std::string name = note.substr(0, note.find(": "));
    const auto found = std::find_if(report.cases.begin(), report.cases.end(), [&](const CaseResult& one) {
      return one.name == std::string(kWholeProgram) + name;
    });
    out += fmt::format("{}\n", note);
    if (found == report.cases.end()) continue;
    out += fmt::format("  as a whole: {}{}{}, {} ops on the device, {} on the fallback\n", outcome_name(found->outcome),
                       found->detail.empty() ? "" : ": ", found->detail, found->device_ops, found->fallback_ops);
    std::string_view wrong = found->evidence;
    while (!wrong.empty()) {
      const size_t end = std::min(wrong.find('\n'), wrong.size());
      out += fmt::format("    wrong: {}\n", wrong.substr(0, end));
      wrong.remove_prefix(std::min(end + 1, wrong.size()));
    }
  }
  for (const std::string& why : report.unread) out += fmt::format("not read: {}\n", why);
  if (report.conforms())
    out += "the suite tests what other programs need: the same command with --profile quick, and without --from\n";
  return out + needs_text(report) + times_text(report);
}

}  // namespace collet::conformance
