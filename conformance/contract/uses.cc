// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/uses.h"

#include <fmt/format.h>

#include <cstdio>

namespace collet::conformance {

void Uses::note(const Key& key, const Use& use) {
  Use& known = all_[key];
  known.asked |= use.asked;
  known.accepted |= use.accepted;
  known.ran |= use.ran;
}

void Uses::add(const Uses& other) {
  for (const auto& [key, use] : other.all_) note(key, use);
}

std::string Uses::text() const {
  std::string out;
  for (const auto& [key, use] : all_)
    out += fmt::format("{} {} {}{}{} {}\n", key.kind, key.element, int{use.asked}, int{use.accepted}, int{use.ran},
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
    char asked = '0', accepted = '0', ran = '0';
    int start = 0;
    const int read =
        std::sscanf(line.c_str(), "%u %u %c%c%c %n", &key.kind, &key.element, &asked, &accepted, &ran, &start);
    if (read != 5 || start == 0) continue;
    key.name = line.substr(static_cast<size_t>(start));
    out.note(key, {asked == '1', accepted == '1', ran == '1'});
  }
  return out;
}

}  // namespace collet::conformance
