// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "hlo/base/json.h"
#include "hlo/testing/compare_modules.h"
#include "hlo/text/printer.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

using hlo::testing::Difference;

struct Options {
  std::string a, b, json;
  std::vector<std::string> ignore;
  size_t limit = 100;
  bool quiet = false;
};

constexpr std::string_view kIgnorable[] = {"layouts",         "literals", "shardings", "frontend-attributes",
                                           "backend-configs", "header",   "schedule"};

/// A module and its name in messages.
struct Side {
  std::string name;
  std::unique_ptr<hlo::Module> module;

  std::string place(uint32_t line) const { return line == 0 ? name : fmt::format("{}:{}", name, line); }
  std::string place(hlo::InstrId id) const { return place((*module)[id].line); }
  std::string place(hlo::CompId id) const { return place((*module)[id].line); }
  std::string text(hlo::InstrId id) const {
    return hlo::print_instruction(*module, id, {.large_constants = false, .metadata = false});
  }
};

struct Counts {
  size_t changed = 0, only_a = 0, only_b = 0, header = 0;
};

Counts count(const std::vector<Difference>& differences) {
  Counts n;
  for (const Difference& d : differences) {
    n.changed += d.kind == Difference::Kind::Changed;
    n.only_a += d.kind == Difference::Kind::OnlyA;
    n.only_b += d.kind == Difference::Kind::OnlyB;
    n.header += d.kind == Difference::Kind::Header;
  }
  return n;
}

std::string detail_text(const Difference::Detail& detail) {
  if (detail.a.empty() && detail.b.empty()) return detail.what;
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("nothing") : text; };
  return fmt::format("{}: {} / {}", detail.what, shown(detail.a), shown(detail.b));
}

std::string details_text(const Difference& d) {
  std::string out;
  for (const Difference::Detail& detail : d.details) out += (out.empty() ? "" : "; ") + detail_text(detail);
  return out;
}

void print_place(const Difference& d, const Side& a, const Side& b) {
  const auto title = [](const Side& side, hlo::CompId c) {
    return fmt::format("{} ({})", (*side.module)[c].name, side.place(c));
  };
  if (d.computation_a != hlo::CompId::None && d.computation_b != hlo::CompId::None)
    show("\nin {} and {}:\n", title(a, d.computation_a), title(b, d.computation_b));
  else if (d.computation_a == hlo::CompId::None && d.computation_b == hlo::CompId::None)
    show("\nin the header:\n");
  else
    show("\n");
}

void print_side(Sequence colour, char mark, const Side& side, hlo::InstrId id, hlo::CompId c) {
  const Style style = stdout_style();
  if (id != hlo::InstrId::None)
    show("{}{} {}: {}{}\n", colour, mark, side.place(id), side.text(id), style.reset);
  else
    show("{}{} {}: computation {} of {} instructions, which nothing calls{}\n", colour, mark, side.place(c),
         (*side.module)[c].name, (*side.module)[c].order.size(), style.reset);
}

void print_difference(const Difference& d, const Side& a, const Side& b) {
  const Style style = stdout_style();
  switch (d.kind) {
    case Difference::Kind::OnlyA:
      return print_side(style.red, '-', a, d.a, d.computation_a);
    case Difference::Kind::OnlyB:
      return print_side(style.green, '+', b, d.b, d.computation_b);
    case Difference::Kind::Changed:
      print_side(style.red, '-', a, d.a, d.computation_a);
      print_side(style.green, '+', b, d.b, d.computation_b);
      show("{}  {}{}\n", style.dim, details_text(d), style.reset);
      return;
    case Difference::Kind::Header:
      for (const Difference::Detail& detail : d.details) show("  {}\n", detail_text(detail));
  }
}

void print_all(const std::vector<Difference>& differences, const Side& a, const Side& b, const Options& options) {
  const Counts n = count(differences);
  show("{} and {} differ: {} instructions changed, {} only in the first, {} only in the second{}\n", a.name, b.name,
       n.changed, n.only_a, n.only_b, n.header == 0 ? "" : ", and what stands around them");
  if (options.quiet) return;
  const Difference* last = nullptr;
  size_t shown = 0;
  for (const Difference& d : differences) {
    if (shown++ == options.limit && options.limit != 0) {
      show("\n{} more; --limit 0 shows all\n", differences.size() - options.limit);
      return;
    }
    if (!last || last->computation_a != d.computation_a || last->computation_b != d.computation_b) print_place(d, a, b);
    print_difference(d, a, b);
    last = &d;
  }
}

void write_side(JsonWriter& json, std::string_view key, const Side& side, hlo::InstrId id, hlo::CompId c) {
  if (id == hlo::InstrId::None && c == hlo::CompId::None) return;
  json.key(key).begin_object();
  if (c != hlo::CompId::None) json.field("computation", (*side.module)[c].name);
  if (id != hlo::InstrId::None) {
    json.field("line", (*side.module)[id].line).field("name", (*side.module)[id].name).field("text", side.text(id));
  }
  json.end_object();
}

std::string to_json(const std::vector<Difference>& differences, const Side& a, const Side& b) {
  static constexpr const char* kKinds[] = {"changed", "only_a", "only_b", "header"};
  const Counts n = count(differences);
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("a", a.name).field("b", b.name).field("same", differences.empty());
  json.field("changed", n.changed).field("only_a", n.only_a).field("only_b", n.only_b).field("header", n.header);
  json.key("differences").begin_array();
  for (const Difference& d : differences) {
    json.begin_object().field("kind", kKinds[static_cast<size_t>(d.kind)]);
    write_side(json, "a", a, d.a, d.computation_a);
    write_side(json, "b", b, d.b, d.computation_b);
    json.key("details").begin_array();
    for (const Difference::Detail& detail : d.details)
      json.begin_object().field("what", detail.what).field("a", detail.a).field("b", detail.b).end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

hlo::testing::CompareOptions compare_options(const Options& options) {
  hlo::testing::CompareOptions out;
  bool* const switches[] = {&out.layouts,         &out.literals, &out.shardings, &out.frontend_attributes,
                            &out.backend_configs, &out.header,   &out.schedule};
  for (const std::string& name : options.ignore)
    for (size_t i = 0; i < std::size(kIgnorable); ++i)
      if (name == kIgnorable[i]) *switches[i] = false;
  return out;
}

Expected<Side> read_side(const std::string& path) {
  COLLET_ASSIGN(std::unique_ptr<hlo::Module> module, read_module(path));
  return Side{path == "-" ? "stdin" : path, std::move(module)};
}

int diff(const Options& options) {
  if (options.a == "-" && options.b == "-") return report(kUsage, "diff: stdin can be read once only");
  const Expected<Side> a = read_side(options.a);
  if (!a.ok()) return report(a.status());
  const Expected<Side> b = read_side(options.b);
  if (!b.ok()) return report(b.status());
  std::vector<Difference> differences = hlo::testing::compare_modules(*a->module, *b->module, compare_options(options));
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, to_json(differences, *a, *b)); !status.ok())
      return report(status);
  }
  if (options.json != "-") {
    if (differences.empty())
      show("{} and {} are the same\n", a->name, b->name);
    else
      print_all(differences, *a, *b, options);
  }
  return differences.empty() ? kDone : kFailed;
}

constexpr char kFooter[] = R"(Instructions are matched by what they compute and by where they stand; names,
numbers, metadata and the order of what is independent play no part. Exit code 0
means that the programs are the same, 1 that they differ.

Examples:
  collet diff before.hlo after.hlo
  collet opt model.hlo --pipeline prepare | collet diff model.hlo -
  collet diff a.hlo b.hlo --ignore layouts,shardings --json -)";

}  // namespace

Action add_diff(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("A", options->a, "A program; - is stdin")->required()->type_name("FILE");
  verb.add_option("B", options->b, "Another one")->required()->type_name("FILE");
  verb.add_option("--ignore", options->ignore,
                  "What does not count: layouts, literals, shardings, frontend-attributes, backend-configs, header, "
                  "schedule")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return std::find(std::begin(kIgnorable), std::end(kIgnorable), text) != std::end(kIgnorable)
                   ? std::string()
                   : "nothing of that name can be ignored: " + text;
      })
      ->type_name("A,B,C");
  add_number_option(verb, "--limit", options->limit, "Differences shown, at most; 0: all");
  verb.add_flag("-q,--quiet", options->quiet, "Show how many differences there are, not which");
  verb.add_option("--json", options->json, "Write the differences as JSON to this file; - is stdout")
      ->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return diff(*options); };
}

}  // namespace collet::tool
