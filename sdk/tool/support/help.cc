// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace collet::tool {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kOptionColumn = 26;
constexpr size_t kVerbColumn = 14;

std::string row(const std::string& left, std::string_view text, size_t column) {
  std::string out = "  " + left;
  // A name that is too long gets its own line.
  if (out.size() + 2 > column) {
    out += '\n';
    out.append(column, ' ');
  } else {
    out.resize(column, ' ');
  }
  const size_t room = kWidth - column;
  while (text.size() > room) {
    const size_t space = text.rfind(' ', room);
    const size_t end = space == std::string_view::npos ? text.find(' ') : space;
    if (end == std::string_view::npos) break;
    out.append(text.substr(0, end)).append("\n").append(column, ' ');
    text.remove_prefix(end + 1);
  }
  return out.append(text).append("\n");
}

// Converts the library's "--jobs,-j" to "-j, --jobs".
std::string names(const CLI::Option& option, bool is_positional) {
  std::string text = option.get_name(is_positional, !is_positional);
  for (size_t comma = 0; (comma = text.find(',', comma)) != std::string::npos; comma += 2) text.insert(comma + 1, " ");
  return text;
}

// Converts the library's "N:INT in [1 - 512]" to N, and "TEXT:{c,c++}" to c|c++.
std::string value_name(const CLI::Option& option) {
  std::string text = option.get_type_name();
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return text;
  if (text.compare(colon, 2, ":{") != 0 || text.back() != '}') return text.substr(0, colon);
  text = text.substr(colon + 2, text.size() - colon - 3);
  std::replace(text.begin(), text.end(), ',', '|');
  return text;
}

std::string description(const CLI::Option& option) {
  std::string usual = option.get_default_str();
  if (!option.get_envname().empty()) {
    usual = "$" + option.get_envname() + (usual.empty() ? "" : ", else " + usual);
  }
  return option.get_description() + (usual.empty() ? "" : " (default: " + usual + ")");
}

}  // namespace

HelpRow help_row(const CLI::Option& option, bool is_positional) {
  HelpRow row{names(option, is_positional), description(option)};
  const std::string value = option.get_type_size() == 0 ? "" : value_name(option);
  if (!is_positional && !value.empty()) row.left += " " + value;
  if (is_positional && value.find('|') != std::string::npos) row.text += ": " + value;
  return row;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const auto [left, text] = help_row(*option, is_positional);
  return row(left, text, kOptionColumn);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  // Removes the second of two empty lines, which a group of hidden options leaves.
  for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  return row(verb->get_name(), verb->get_description(), kVerbColumn);
}

}  // namespace collet::tool
