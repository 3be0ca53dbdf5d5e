// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace collet::tool {

/// An option as help texts show it: its names and its value, such as "-j, --jobs N", and what it does, with its default.
struct HelpRow {
  std::string left, text;
};
HelpRow help_row(const CLI::Option& option, bool is_positional);

/// Formats help texts: options on the left, their descriptions on the right, no line wider than 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

}  // namespace collet::tool
