// SPDX-License-Identifier: Apache-2.0
#include "conformance/accuracy/accuracy.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance/accuracy/reference.h"
#include "conformance/runner/conform.h"
#include "hlo/base/files.h"
#include "hlo/base/json.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace suite = conformance;
using hlo::Op;
using hlo::Type;
using suite::AccuracyRow;

constexpr Type kTypes[] = {Type::F32, Type::F16, Type::BF16};
constexpr std::string_view kBegin = "<!-- collet accuracy: begin -->\n", kEnd = "<!-- collet accuracy: end -->";
constexpr uint64_t kMostPageBytes = uint64_t{1} << 26;

struct Options {
  suite::AccuracyOptions run;
  std::vector<std::string> functions, types;
  double most = 0;
  std::string json, into, resume;
};

std::string_view type_text(Type type) {
  return hlo::type_info(type).text;
}

std::string worst_text(const AccuracyRow& row) {
  if (!row.error.empty()) return "-";
  return row.wrong > 0 ? "wrong" : fmt::format("{:.3f}", row.worst);
}

// Shares just below 1 are not shown as 100 %.
std::string share_text(const AccuracyRow& row) {
  if (!row.error.empty() || row.arguments == 0) return "-";
  if (row.nearest == row.arguments) return "all";
  const double share = 100 * static_cast<double>(row.nearest) / static_cast<double>(row.arguments);
  return fmt::format("{:.2f} %", std::min(share, 99.99));
}

void print_rows(const std::vector<AccuracyRow>& rows) {
  const Style style = stdout_style();
  show("{}{:<24} {:>5} {:>10} {:>10}  {}{}\n", style.dim, "function", "type", "error, ULP", "nearest", "where",
       style.reset);
  for (const AccuracyRow& row : rows) {
    show("{:<24} {:>5} {:>10} {:>10}  ", hlo::op_info(row.op).text, type_text(row.type), worst_text(row),
         share_text(row));
    if (!row.error.empty()) {
      show("did not run: {}\n", row.error);
    } else {
      show("{:.9g} gives {:.9g}{}{}\n", row.argument, row.result,
           row.wrong > 0 ? fmt::format("; {} wrong special values", row.wrong) : "",
           row.on_device ? "" : "; on the fallback");
    }
  }
  show("\nerror: the largest that was found; nearest: results within half a ULP\n");
}

std::string to_json(const Options& options, const std::vector<AccuracyRow>& rows) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("backend", options.run.backend.name).field("step", options.run.step);
  json.key("functions").begin_array();
  for (const AccuracyRow& row : rows) json.raw(suite::row_json(row));
  json.end_array().end_object();
  return text + "\n";
}

// Writes a table with a row for each function and two columns for each type.
std::string to_markdown(const Options& options, const std::vector<AccuracyRow>& rows) {
  const auto& types = options.run.types;
  std::string out = "| function |", rule = "\n|---|";
  for (const Type type : types) {
    out += fmt::format(" {} | at | nearest |", type_text(type));
    rule += "---|---|---|";
  }
  out += rule + "\n";
  for (const Op op : options.run.ops) {
    out += fmt::format("| {} |", hlo::op_info(op).text);
    for (const Type type : types) {
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.op == op && r.type == type; });
      out += fmt::format(" {} | {:.9g} | {} |", worst_text(*row), row->argument, share_text(*row));
    }
    out += "\n";
  }
  return out;
}

// Returns the page with the text between its two marks replaced.
Expected<std::string> replaced(const std::string& path, std::string_view table) {
  COLLET_ASSIGN(const std::string page, read_file_or_pipe(path, kMostPageBytes));
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return invalid_argument(fmt::format("{} has no place for the table: it needs the lines {} and {}", path,
                                        kBegin.substr(0, kBegin.size() - 1), kEnd));
  }
  return page.substr(0, begin + kBegin.size()) + std::string(table) + page.substr(end);
}

Status choose(Options& options) {
  const std::span<const Op> known = suite::near_functions();
  for (const std::string& name : options.functions) {
    const auto found = std::find_if(known.begin(), known.end(), [&](Op op) { return hlo::op_info(op).text == name; });
    if (found == known.end()) return invalid_argument("--function " + name + ": see --list for those that are known");
    options.run.ops.push_back(*found);
  }
  if (options.functions.empty()) options.run.ops.assign(known.begin(), known.end());
  for (const Type type : kTypes) {
    if (options.types.empty() ||
        std::find(options.types.begin(), options.types.end(), type_text(type)) != options.types.end())
      options.run.types.push_back(type);
  }
  return ok_status();
}

// The first line of a file for --resume: the backend and options with which its rows were measured.
Expected<std::string> head_of(const Options& options) {
  suite::ConformOptions run;
  run.backend = options.run.backend;
  COLLET_ASSIGN(const suite::ConformReport backend, suite::probe_backend(run));
  std::string text;
  JsonWriter json(text, 0);
  json.begin_object().field("backend", backend.backend).field("version", backend.version);
  json.field("sha256", suite::library_digest(backend.path)).field("no_fallback", run.backend.no_fallback);
  json.field("step", options.run.step).key("options").begin_array();
  for (const auto& [key, value] : run.backend.options) json.value(fmt::format("{}={}", key, value));
  json.end_array().end_object();
  return text.ends_with('\n') ? text : text + '\n';
}

// Reads the rows that an earlier run has stored for --resume, and opens the file so that each new row is appended.
Status resume(Options& options) {
  if (options.resume.empty()) return ok_status();
  COLLET_ASSIGN(const std::string head, head_of(options));
  bool is_new = true;
  if (const auto kept = read_file_or_pipe(options.resume, kMostPageBytes); kept.ok()) {
    is_new = kept->empty();
    std::string_view rest = *kept;
    if (!is_new && !rest.starts_with(head))
      return invalid_argument(options.resume + " is of another backend, or of other options");
    if (!is_new) rest.remove_prefix(head.size());
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1);
      const std::string_view line = rest.substr(0, end + 1);
      rest.remove_prefix(end + 1);
      if (!line.ends_with('\n')) {  // an incomplete line, which was being written when the run ended
        std::error_code error;
        std::filesystem::resize_file(options.resume, kept->size() - line.size(), error);
        break;
      }
      const auto row = suite::row_from_json(line);
      if (!row.ok()) return row.status().with_prefix(options.resume + ": ");
      options.run.known.push_back(*row);
    }
  }
  auto file = std::make_shared<std::ofstream>(options.resume, std::ios::app);
  if (!*file) return failed_precondition(options.resume + " cannot be written");
  if (is_new) *file << head << std::flush;
  options.run.measured = [file](const AccuracyRow& row) {
    if (row.error.empty()) *file << suite::row_json(row) << std::endl;
  };
  return ok_status();
}

int run_accuracy(Options options, bool list) {
  if (const Status status = choose(options); !status.ok()) return report(kUsage, status.message());
  if (list) {
    for (const Op op : options.run.ops) show("{}\n", hlo::op_info(op).text);
    return kDone;
  }
  if (const Status status = check_writable(options.json); !status.ok()) return report(status);
  if (!options.into.empty()) {
    if (const auto page = replaced(options.into, ""); !page.ok()) return report(page.status());
  }
  if (const Status status = resume(options); !status.ok()) return report(status);
  std::unique_ptr<Progress> bar;
  constexpr uint64_t kShown = 1000;
  options.run.progress = [&](uint64_t done, uint64_t total, const std::string& what) {
    if (!bar) bar = std::make_unique<Progress>("accuracy", kShown);
    bar->update(static_cast<size_t>(static_cast<double>(done) / static_cast<double>(total) * kShown), what);
  };
  const auto rows = suite::measure_accuracy(options.run);
  bar.reset();
  if (!rows.ok()) return report_unopened(rows.status());
  if (options.json != "-") print_rows(*rows);
  if (!options.json.empty()) {
    if (const Status status = write_file(options.json, to_json(options, *rows)); !status.ok()) return report(status);
  }
  if (!options.into.empty()) {
    const auto page = replaced(options.into, to_markdown(options, *rows));
    if (!page.ok()) return report(page.status());
    if (const Status status = write_file(options.into, *page); !status.ok()) return report(status);
  }
  const bool good = std::all_of(rows->begin(), rows->end(), [&](const AccuracyRow& row) {
    return row.error.empty() && row.wrong == 0 && (options.most == 0 || row.worst <= options.most);
  });
  return good ? kDone : kFailed;
}

constexpr char kFooter[] = R"(Every value of the type is tried, unless --step says less. Double precision by
the C library finds the largest errors, MPFR measures them. All f32 of one
function take about a minute of a core. Exit code 1: a function did not run, a
special value is wrong, or an error is larger than --most.

Examples:
  collet accuracy --type bf16 --type f16
  collet accuracy --backend ./libacme.so --function tanh --function erf
  collet accuracy --step 1021 --json accuracy.json
  collet accuracy --into docs/elementary_functions.md)";

}  // namespace

Action add_accuracy(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  auto list = std::make_shared<bool>(false);
  add_backend_options(verb,
                      {"The backend to measure, by name or path",
                       "Do without the fallback: a function that the backend declines does not run"},
                      options->run.backend);
  verb.add_option("--function", options->functions, "Only this function, by its name in HLO; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME");
  verb.add_option("--type", options->types, "Only this type, f32, f16 or bf16; may be repeated")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->allow_extra_args(false)
      ->type_name("TYPE");
  add_number_option(verb, "--step", options->run.step, "Try each so many-th bit pattern", uint64_t{1},
                    uint64_t{1} << 32)
      ->default_str("1");
  options->run.jobs = std::max(1u, std::thread::hardware_concurrency());
  add_number_option(verb, "--jobs", options->run.jobs, "Threads that evaluate and compare", 1u, 1024u)
      ->default_str("all cores");
  add_real_option(verb, "--most", options->most, "Exit code 1 where an error is larger, in ULP; 0: any will do", 0, 1e9,
                  "ULP");
  verb.add_option("--resume", options->resume,
                  "Keep each function's result in this file; the same line again goes on where the run was cut off")
      ->type_name("FILE");
  verb.add_option("--into", options->into,
                  "Write the table into this page, between the comments `collet accuracy: begin` and `end`")
      ->type_name("FILE");
  verb.add_option("--json", options->json, "Write everything as JSON to this file; - is stdout")->type_name("FILE");
  verb.add_flag("--list", *list, "Print the names of the functions, and do nothing else");
  verb.footer(kFooter);
  return [options, list] { return run_accuracy(*options, *list); };
}

}  // namespace collet::tool
