// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace collet::conformance {

void Uses::note(const Key& key, const Use& use) {
  Use& known = all_[key];
  known.asked = std::max(known.asked, use.asked);
  known.accepted = std::max(known.accepted, use.accepted);
  known.ran = std::max(known.ran, use.ran);
  known.not_offered = std::max(known.not_offered, use.not_offered);
}

void Uses::add(const Uses& other) {
  for (const auto& [key, use] : other.all_) {
    Use& known = all_[key];
    known.asked += use.asked;
    known.accepted += use.accepted;
    known.ran += use.ran;
    known.not_offered += use.not_offered;
  }
}

std::string Uses::text() const {
  std::string out;
  for (const auto& [key, use] : all_)
    out += fmt::format("{} {} {}{}{}{} {}\n", key.kind, key.element, use.asked, use.accepted, use.ran, use.not_offered,
                       key.name);
  return out;
}

Uses Uses::from_text(std::string_view text) {
  Uses out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    Key key;
    char asked = '0', accepted = '0', ran = '0', not_offered = '0';
    int start = 0;
    const int read = std::sscanf(line.c_str(), "%u %u %c%c%c%c %n", &key.kind, &key.element, &asked, &accepted, &ran,
                                 &not_offered, &start);
    if (read != 6 || start == 0) continue;
    key.name = line.substr(static_cast<size_t>(start));
    out.note(key, {asked == '1', accepted == '1', ran == '1', not_offered == '1'});
  }
  return out;
}

}  // namespace collet::conformance
