// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sdk/tool/support/files.h"
#include "sdk/tool/support/help.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Options {
  std::string verb, form = "man", output;
};

std::vector<const CLI::App*> verbs_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

// Returns the options that --help shows, positional ones first.
std::vector<HelpRow> rows_of(const CLI::App& app) {
  std::vector<HelpRow> rows;
  for (const bool positional : {true, false})
    for (const CLI::Option* option : app.get_options())
      if (!option->get_group().empty() && option->get_positional() == positional)
        rows.push_back(help_row(*option, positional));
  return rows;
}

std::string synopsis_of(const CLI::App& app) {
  std::string text = "[OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    std::string name = option->get_name(true);
    if (option->get_items_expected_max() > 1) name += "...";
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

// The text below the options of --help: paragraphs of prose, and lines of commands, which are indented.
struct Footer {
  std::vector<std::string> prose, examples;
};

Footer footer_of(const CLI::App& app) {
  Footer footer;
  std::istringstream lines(app.get_footer());
  bool in_paragraph = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line == "Examples:") {
      in_paragraph = false;
    } else if (line.starts_with("  ")) {
      footer.examples.push_back(line.substr(2));
      in_paragraph = false;
    } else if (in_paragraph) {
      footer.prose.back() += " " + line;
    } else {
      footer.prose.push_back(line);
      in_paragraph = true;
    }
  }
  return footer;
}

// Escapes text for the macros of man: no line begins with a request, and hyphens and quotes stay those of ASCII, so that
// commands can be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Returns the manual page of a verb, or of the command.
std::string man_page(const CLI::App& app, const CLI::App& root) {
  const bool is_verb = &app != &root;
  const std::string name = is_verb ? "collet-" + app.get_name() : "collet";
  const std::string command = is_verb ? "collet " + app.get_name() : "collet VERB";
  const Footer footer = footer_of(app);
  // There is no date, so that the page follows from the sources alone.
  std::string out = fmt::format(".TH {} 1 \"\" \"collet {}\" \"Collet\"\n.SH NAME\n{} \\- {}\n", upper(roff(name)),
                                collet_version(), roff(name), roff(app.get_description()));
  out += fmt::format(".SH SYNOPSIS\n.B {}\n{}\n", roff(command), roff(synopsis_of(app)));
  if (!footer.prose.empty()) out += ".SH DESCRIPTION\n";
  for (size_t i = 0; i < footer.prose.size(); ++i) out += (i ? ".PP\n" : "") + roff(footer.prose[i]) + "\n";
  if (!is_verb) {
    out += ".SH VERBS\n";
    for (const CLI::App* verb : verbs_of(root))
      out += fmt::format(".TP\n.BR collet\\-{} (1)\n{}\n", roff(verb->get_name()), roff(verb->get_description()));
  }
  out += ".SH OPTIONS\n";
  for (const HelpRow& row : rows_of(app)) out += fmt::format(".TP\n.B {}\n{}\n", roff(row.left), roff(row.text));
  if (!footer.examples.empty()) {
    out += ".SH EXAMPLES\n.EX\n";
    for (const std::string& line : footer.examples) out += roff(line) + "\n";
    out += ".EE\n";
  }
  if (is_verb) out += ".SH EXIT STATUS\nThat of\n.BR collet (1).\n.SH SEE ALSO\n.BR collet (1)\n";
  return out;
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '[') out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "`" + text + "`";
}

// Returns the options of all verbs as one Markdown page.
std::string markdown(const CLI::App& root) {
  std::string out =
      "# Options of the tool\n\nMade from the option tables of the command by `collet manual --format md`. The guide "
      "is "
      "[the tool](tool.md).\n";
  const auto add = [&](const CLI::App& app, const std::string& title) {
    out += fmt::format("\n## {}\n\n{}\n\n    {} {}\n\n| | |\n|---|---|\n", title, cell(app.get_description()), title,
                       synopsis_of(app));
    for (const HelpRow& row : rows_of(app)) out += fmt::format("| {} | {} |\n", code(row.left), cell(row.text));
    const Footer footer = footer_of(app);
    for (const std::string& text : footer.prose) out += "\n" + cell(text) + "\n";
    if (!footer.examples.empty()) out += "\n";
    for (const std::string& line : footer.examples) out += "    " + line + "\n";
  };
  add(root, "collet");
  for (const CLI::App* verb : verbs_of(root)) add(*verb, "collet " + verb->get_name());
  return out;
}

Status write_pages(const CLI::App& root, const std::string& folder) {
  COLLET_TRY(make_folder(folder));
  COLLET_TRY(write_file(folder + "/collet.1", man_page(root, root)));
  for (const CLI::App* verb : verbs_of(root))
    COLLET_TRY(write_file(folder + "/collet-" + verb->get_name() + ".1", man_page(*verb, root)));
  return ok_status();
}

int manual(const CLI::App& root, const Options& options) {
  const bool known = options.verb.empty() || std::any_of(verbs().begin(), verbs().end(),
                                                         [&](const Verb& one) { return options.verb == one.name; });
  if (!known) return report(kUsage, fmt::format("manual: there is no verb '{}'\nSee: collet --help", options.verb));
  if (options.form == "md") {
    if (!options.verb.empty()) return report(kUsage, "manual: the form md has all verbs\nSee: collet manual --help");
    const Status status = write_file(options.output.empty() ? "-" : options.output, markdown(root));
    return status.ok() ? kDone : report(status);
  }
  if (!options.output.empty()) {
    if (!options.verb.empty())
      return report(kUsage, "manual: --output takes the pages of all verbs\nSee: collet manual --help");
    const Status status = write_pages(root, options.output);
    return status.ok() ? kDone : report(status);
  }
  const CLI::App* page = &root;
  if (!options.verb.empty()) page = root.get_subcommand(options.verb);
  show("{}", man_page(*page, root));
  return kDone;
}

constexpr char kFooter[] = R"(Packages have these pages in share/man/man1.

Examples:
  collet manual run | man -l -
  collet manual --output ~/.local/share/man/man1
  collet manual --format md > options.md)";

}  // namespace

Action add_manual(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("VERB", options->verb, "The verb; the command's own page without");
  verb.add_option("--format", options->form, "man, a page for man(1), or md, all options in Markdown")
      ->check(CLI::IsMember({"man", "md"}));
  verb.add_option("--output", options->output, "Write all pages into this folder, or the Markdown to this file")
      ->type_name("PATH");
  verb.footer(kFooter);
  return [&verb, options] { return manual(*verb.get_parent(), *options); };
}

}  // namespace collet::tool
