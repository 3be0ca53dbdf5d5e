// SPDX-License-Identifier: Apache-2.0
#include "conformance/corpus/corpus.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "conformance/corpus/round_trip.h"
#include "conformance/corpus/run_entry.h"
#include "conformance/corpus/self_check.h"
#include "conformance/runner/workers.h"
#include "hlo/base/json.h"

namespace collet::conformance {
namespace {

namespace fs = std::filesystem;
using hlo::testing::Index;
using hlo::testing::IndexEntry;

constexpr double kModelSeconds = 120, kModuleSeconds = 20;

bool is_index(const std::string& path) {
  return path.ends_with(".jsonl");
}

bool is_module(const fs::path& path) {
  return path.extension() == ".mlir" || path.extension() == ".mlirbc";
}

Expectation expectation_of(const IndexEntry& entry) {
  if (!entry.read) return Expectation::Refuse;
  return entry.has_result() ? Expectation::Result : Expectation::Read;
}

Expected<std::vector<CorpusEntry>> list_folder(const std::string& path) {
  std::vector<CorpusEntry> entries;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(path, error)) {
    if (fs::exists(item.path() / "case.json", error)) {
      entries.push_back({item.path().filename().string(), Expectation::Result});
    } else if (is_module(item.path())) {
      entries.push_back({item.path().filename().string(), expectation_of_module(item.path().string())});
    }
  }
  if (entries.empty()) {
    return not_found(path +
                     " is no corpus: neither an index (.jsonl), nor a folder of models (NAME/case.json) or modules "
                     "(*.mlir, *.mlirbc)");
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

bool chosen(const std::vector<std::string>& filters, const std::string& name) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(),
                                        [&](const std::string& f) { return fnmatch(f.c_str(), name.c_str(), 0) == 0; });
}

CorpusStatus status_of(const TaskResult& task) {
  switch (task.kind) {
    case TaskResult::Kind::Crashed:
    case TaskResult::Kind::OutOfMemory:
      return CorpusStatus::Crash;
    case TaskResult::Kind::TimedOut:
      return CorpusStatus::Timeout;
    case TaskResult::Kind::Replied:
      break;
  }
  return find_field(task.reply, "status") == "pass" ? CorpusStatus::Pass : CorpusStatus::Fail;
}

std::vector<std::string> arguments_of(const CorpusOptions& options) {
  std::vector<std::string> arguments = worker_arguments(options.backend);
  arguments.insert(arguments.end(), {"--corpus", options.path});
  return arguments;
}

}  // namespace

std::string_view expectation_name(Expectation expectation) {
  constexpr std::string_view kNames[] = {"read", "refuse", "result"};
  return kNames[static_cast<size_t>(expectation)];
}

Expectation expectation_of_module(const std::string& path) {
  const Expected<std::string> text = contents(fs::path(path).replace_extension(".mlir").string());
  const bool checks = text.ok() && text->find("check.") != std::string::npos;
  return checks ? Expectation::Result : Expectation::Read;
}

std::string_view corpus_status_name(CorpusStatus status) {
  constexpr std::string_view kNames[] = {"pass", "fail", "crash", "timeout", "not-run"};
  return kNames[static_cast<size_t>(status)];
}

size_t CorpusReport::count(Expectation expect) const {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(), [&](const auto& r) { return r.entry.expect == expect; }));
}

size_t CorpusReport::count(Expectation expect, CorpusStatus status) const {
  return static_cast<size_t>(std::count_if(
      results.begin(), results.end(), [&](const auto& r) { return r.entry.expect == expect && r.status == status; }));
}

bool CorpusReport::passed() const {
  return !results.empty() &&
         std::all_of(results.begin(), results.end(), [](const auto& r) { return r.status == CorpusStatus::Pass; });
}

Expected<std::vector<CorpusEntry>> list_corpus(const std::string& path) {
  if (!is_index(path)) return list_folder(path);
  COLLET_ASSIGN(const Index index, hlo::testing::read_index(path));
  std::vector<CorpusEntry> entries;
  for (const IndexEntry& entry : index.entries) entries.push_back({entry.file, expectation_of(entry)});
  return entries;
}

Expected<CorpusReport> run_corpus(const CorpusOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  COLLET_ASSIGN(std::vector<CorpusEntry> entries, list_corpus(options.path));
  std::erase_if(entries, [&](const CorpusEntry& entry) { return !chosen(options.filters, entry.name); });
  CorpusReport report{.path = options.path, .backend = options.backend.name};
  for (const CorpusEntry& entry : entries) report.results.push_back({.entry = entry});
  PoolOptions pool;
  pool.arguments = arguments_of(options);
  pool.jobs = options.jobs;
  pool.memory_bytes = options.memory_bytes;
  pool.timeout = [&](size_t i) {
    const bool model = !is_index(options.path) && !is_module(report.results[i].entry.name);
    return options.timeout > 0 ? options.timeout : model ? kModelSeconds : kModuleSeconds;
  };
  pool.ended = [&](size_t i, const TaskResult& end) {
    CorpusResult& result = report.results[i];
    if (result.status == CorpusStatus::Pass) result.status = status_of(end);
    result.detail +=
        (result.detail.empty() ? "" : "; ") + ("after this entry the backend was closed, and " + end.detail);
  };
  size_t done = 0;
  COLLET_TRY(run_tasks(
      entries.size(), pool, [&](size_t i) { return report.results[i].entry.name; },
      [&](size_t i, const TaskResult& task) {
        CorpusResult& result = report.results[i];
        result.status = status_of(task);
        result.detail = task.kind == TaskResult::Kind::Replied ? find_field(task.reply, "detail") : task.detail;
        result.seconds = task.seconds;
        if (options.progress) options.progress(++done, entries.size(), result.entry.name);
      }));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

int serve_corpus(const CorpusOptions& options) {
  std::optional<LazySession> session(std::in_place, options.backend);
  Index index;
  std::unordered_map<std::string_view, const IndexEntry*> by_name;
  if (is_index(options.path)) {
    Expected<Index> read = hlo::testing::read_index(options.path);
    if (!read.ok()) return 1;
    index = *std::move(read);
    for (const IndexEntry& entry : index.entries) by_name.emplace(entry.file, &entry);
  }
  const auto answer = [&](std::string_view task) -> Fields {
    const auto found = by_name.find(task);
    const std::string path = options.path + "/" + std::string(task);
    const EntryOutcome outcome =
        found != by_name.end() ? run_index_entry(index, *found->second, *session)
        : is_module(task)      ? run_self_checking(path, expectation_of_module(path) == Expectation::Result, *session)
                               : run_model(path, *session);
    return {{"status", std::string(corpus_status_name(outcome.status))}, {"detail", outcome.detail}};
  };
  return serve_tasks(answer, [&] { session.reset(); });
}

std::string corpus_json(const CorpusReport& report) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("corpus", report.path).field("backend", report.backend).field("seconds", report.seconds);
  json.field("verdict", report.passed() ? "pass" : "fail").key("cases").begin_array();
  for (const CorpusResult& result : report.results) {
    json.begin_object().field("name", result.entry.name).field("expect", expectation_name(result.entry.expect));
    json.field("status", corpus_status_name(result.status))
        .field("detail", result.detail)
        .field("seconds", result.seconds)
        .end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

std::string corpus_text(const CorpusReport& report, size_t most_failures) {
  std::string out;
  size_t shown = 0, bad = 0;
  for (const CorpusResult& result : report.results) {
    if (result.status == CorpusStatus::Pass || result.status == CorpusStatus::NotRun) continue;
    if (++bad > most_failures) continue;
    ++shown;
    out += fmt::format("{:<8} {} ({})\n         {}\n", corpus_status_name(result.status), result.entry.name,
                       expectation_name(result.entry.expect), result.detail);
  }
  if (bad > shown) out += fmt::format("         and {} more; --json has them all\n", bad - shown);
  for (const Expectation expect : {Expectation::Read, Expectation::Refuse, Expectation::Result}) {
    const size_t all = report.count(expect);
    if (all == 0) continue;
    out +=
        fmt::format("{:<8} {} of {} passed", expectation_name(expect), report.count(expect, CorpusStatus::Pass), all);
    for (const CorpusStatus status :
         {CorpusStatus::Fail, CorpusStatus::Crash, CorpusStatus::Timeout, CorpusStatus::NotRun}) {
      if (const size_t n = report.count(expect, status)) out += fmt::format(", {} {}", n, corpus_status_name(status));
    }
    out += "\n";
  }
  return out + fmt::format("{} on {} in {:.1f} s\n", report.path, report.backend, report.seconds);
}

}  // namespace collet::conformance
