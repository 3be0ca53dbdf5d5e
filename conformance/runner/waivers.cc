// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/waivers.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

namespace collet::conformance {
namespace {

// The beginning of a word of a line that is none, for a message.
std::string_view shown(const std::string& word) {
  constexpr size_t kMost = 40;
  return std::string_view(word).substr(0, kMost);
}

// Takes the next word of a line.
std::string take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const size_t end = std::min(line.find(' '), line.size());
  std::string word(line.substr(0, end));
  line.remove_prefix(end);
  return word;
}

bool is_number(std::string_view text) {
  return text.size() > 1 && text[0] == 'W' && text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool is_date(std::string_view text) {
  return text.size() == 10 && fnmatch("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]", std::string(text).c_str(), 0) == 0;
}

// Returns what is wrong with a line; empty if nothing is.
std::string read_waiver(std::string_view line, Waiver& out) {
  for (std::string* field : {&out.number, &out.date, &out.suite, &out.cases}) *field = take_word(line);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  out.reason = line;
  if (!is_number(out.number)) return fmt::format("'{}' is no number of a waiver, such as W3", shown(out.number));
  if (!is_date(out.date)) return fmt::format("'{}' is no date, such as 2026-11-28", shown(out.date));
  return out.reason.empty() ? "a waiver has number, date, version of the suite, cases and a reason" : "";
}

}  // namespace

Expected<std::vector<Waiver>> read_waivers(std::string_view name, std::string_view text) {
  std::vector<Waiver> out;
  std::set<std::string> numbers;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    std::string wrong = read_waiver(line, out.emplace_back());
    if (wrong.empty() && !numbers.insert(out.back().number).second)
      wrong = fmt::format("there are two waivers {}", out.back().number);
    if (!wrong.empty()) return invalid_argument(fmt::format("{}:{}: {}", name, number, wrong));
  }
  return out;
}

const Waiver* find_waiver(std::span<const Waiver> waivers, std::string_view name) {
  const std::string text(name);
  for (const Waiver& one : waivers)
    if (one.suite == kSuiteVersion && fnmatch(one.cases.c_str(), text.c_str(), 0) == 0) return &one;
  return nullptr;
}

}  // namespace collet::conformance
