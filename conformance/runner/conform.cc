// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/conform.h"

#include <collet/collet.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <unordered_set>

#include "conformance/contract/contract.h"
#include "conformance/contract/exports.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/case_result.h"
#include "conformance/runner/case_run.h"
#include "conformance/runner/explain_failures.h"
#include "conformance/runner/journal.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/program_files.h"
#include "conformance/runner/program_tasks.h"
#include "conformance/runner/tasks.h"
#include "conformance/runner/waivers.h"
#include "conformance/runner/workers.h"
#include "hlo/base/sha256.h"

namespace collet::conformance {
namespace {

// Adds the profiles that the file with the library's name and the suffix .claims lists:
// `libcollet_backend_acme.so.claims`.
Status add_claims_of_file(const std::string& library, std::vector<std::string>& claims) {
  std::ifstream in(library + ".claims");
  if (!in) return ok_status();
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  COLLET_ASSIGN(const std::vector<std::string> more, read_claims(text));
  claims.insert(claims.end(), more.begin(), more.end());
  return ok_status();
}

// The facts that must agree for a journal to be continued. They include a hash of the library, so a rebuilt library starts
// anew, and the suite's version, by which results may be judged in another way.
std::string journal_head(const ConformOptions& options, const ConformReport& report) {
  std::string head = fmt::format("collet {} conform, suite {}, {} {} of {}, seed {}{}", collet_version(), kSuiteVersion,
                                 report.backend, report.version, library_digest(report.path), options.seed,
                                 options.backend.no_fallback ? ", no fallback" : "");
  for (const auto& [key, value] : options.backend.options) head += fmt::format(", {}={}", key, value);
  if (options.processes > 0) head += fmt::format(", {} x {} devices", options.processes, options.backend.devices);
  std::replace(head.begin(), head.end(), '\n', ' ');
  return head;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"pass", "fail", "crash", "timeout", "unsupported", "oracle"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string library_digest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  Sha256 digest;
  std::string piece(size_t{1} << 20, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    digest.add(std::string_view(piece).substr(0, static_cast<size_t>(in.gcount())));
  return digest.finish();
}

size_t ConformReport::count(Outcome outcome) const {
  return static_cast<size_t>(
      std::count_if(cases.begin(), cases.end(), [&](const CaseResult& c) { return c.outcome == outcome; }));
}

WorkerTimes ConformReport::worker_times() const {
  WorkerTimes times;
  for (const CaseResult& one : cases) {
    if (is_contract(one.name)) {
      times.contract += one.seconds;
      continue;
    }
    times.compile += one.compile_seconds;
    times.answer += one.answer_seconds;
    times.run += std::max(0.0, one.seconds - one.compile_seconds - one.answer_seconds);
  }
  return times;
}

bool ConformReport::nothing_on_device() const {
  const auto is_asked = [](const CaseResult& one) {
    const bool has_no_op = is_whole(one.name) && one.outcome == Outcome::Pass && one.fallback_ops == 0;
    return !is_contract(one.name) && (one.device_ops > 0 || !has_no_op);
  };
  const auto ran = [&](const CaseResult& one) { return is_asked(one) && one.device_ops > 0; };
  return of_all_names && std::any_of(cases.begin(), cases.end(), is_asked) &&
         std::none_of(cases.begin(), cases.end(), ran);
}

bool ConformReport::conforms() const {
  return not_run == 0 && !nothing_on_device() && idle_claims(*this).empty() && count(Outcome::Pass) > 0 &&
         count(Outcome::Pass) + count(Outcome::Unsupported) == cases.size();
}

std::vector<std::string> worker_arguments(const BackendChoice& backend) {
  std::vector<std::string> arguments = {"conform", "--worker", "--backend", backend.name};
  if (backend.no_fallback) arguments.emplace_back("--no-fallback");
  for (const auto& [key, value] : backend.options) {
    arguments.emplace_back("--option");
    arguments.push_back(key + "=" + value);
  }
  if (backend.devices > 0) arguments.insert(arguments.end(), {"--devices", std::to_string(backend.devices)});
  return arguments;
}

Expected<ConformReport> probe_backend(const ConformOptions& options) {
  PoolOptions pool = pool_of(options);
  ConformReport report;
  COLLET_TRY(probe(options.backend.name, pool, report));
  return report;
}

Expected<ConformReport> run_conformance(const ConformOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Case> cases = chosen_cases(options, false);
  if (cases.empty()) return invalid_argument("no case has such a name; see --list");
  PoolOptions pool = pool_of(options);
  ConformReport report;
  report.seed = options.seed;
  report.full = options.full;
  report.beside = options.beside;
  report.of_all_names = options.filters.empty() && options.names.empty() && options.fuzz_seconds == 0 &&
                        options.soak_seconds == 0 && options.processes == 0;
  report.processes = options.processes;
  report.devices = options.backend.devices;
  report.whole = report.of_all_names && options.cases.empty() && options.profiles.empty() && options.shards == 1;
  const Status opened = probe(options.backend.name, pool, report);
  if (!opened.ok()) {
    if (opened.code() == Code::InvalidArgument || opened.code() == Code::DeadlineExceeded || options.processes > 0 ||
        !describes_itself_wrongly(pool))
      return opened;
    report.backend = report.path = options.backend.name;
  }
  report.exports = more_exports(report.path);
  report.claims = options.claims;
  COLLET_TRY(add_claims_of_file(report.path, report.claims));
  COLLET_ASSIGN(Journal journal, Journal::open(options.resume, journal_head(options, report)));
  CaseRun run(options, cases, pool, journal, report);
  BackendChoice library = options.backend;
  library.name = report.path;
  COLLET_TRY(run.run_contracts(arguments_of(options, library)));
  report.ended = run.ended();
  if (report.ended.empty() && !opened.ok()) report.ended = opened.message();
  if (report.ended.empty()) {
    COLLET_TRY(run.run_programs());
    report.ended = run.ended();
  }
  if (!report.ended.empty()) {
    std::vector<CaseResult> seen;
    for (size_t i = 0; i < cases.size(); ++i)
      if (run.has_run(i)) seen.push_back(std::move(report.cases[i]));
    report.not_run = options.fuzz_seconds > 0 ? 0 : cases.size() - seen.size();
    report.cases = std::move(seen);
  }
  report.not_kept = journal.failure();
  if (options.explain) COLLET_TRY(explain_failures(options, pool, run.ran_before(), report));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Expected<std::vector<Case>> cases_of_backend(const ConformOptions& options) {
  const PoolOptions pool = pool_of(options);
  TaskResult answer;
  COLLET_TRY(run_tasks(
      1, pool, [](size_t) { return std::string(kDeclared); },
      [&](size_t, const TaskResult& result) { answer = result; }));
  const std::string_view text = find_field(answer.reply, "cases"), note = find_field(answer.reply, "note");
  if (!note.empty()) return invalid_argument(std::string(note));
  if (answer.kind != TaskResult::Kind::Replied || text.empty()) return std::vector<Case>();
  return read_case_file(options.backend.name, text);
}

Expected<ProgramCases> cases_of_programs(const ConformOptions& options, const std::vector<std::string>& paths) {
  ProgramCases out;
  COLLET_ASSIGN(const std::vector<ProgramFile> files, find_programs(paths));
  PoolOptions pool = pool_of(options);
  ConformReport backend;
  COLLET_TRY(probe(options.backend.name, pool, backend));
  pool.timeout = [&](size_t) { return options.program_timeout; };
  struct Offered {
    std::vector<Case> cases;
    std::string note, unread, argument;
  };
  std::vector<Offered> offered(files.size());
  Status status;
  size_t done = 0;
  COLLET_TRY(run_tasks(
      files.size(), pool,
      [&](size_t i) { return std::string(kOffer) + encode_fields({{"path", files[i].path}, {"name", files[i].name}}); },
      [&](size_t i, const TaskResult& task) {
        const Fields fields = fields_of(task);
        if (options.progress) options.progress(++done, files.size(), files[i].name);
        offered[i].unread = find_field(fields, "unread");
        offered[i].argument = files[i].argument;
        if (!offered[i].unread.empty()) return;
        auto cases = read_case_file(files[i].path, find_field(fields, "cases"));
        if (cases.ok()) offered[i].cases = *std::move(cases);
        if (!cases.ok() && status.ok()) status = cases.status();
        offered[i].note =
            fmt::format("{}: {}{}", files[i].name, find_field(fields, "note"), find_field(fields, "detail"));
        // A program that cannot be offered is run as a whole, so that the report says why.
        if (task.kind != TaskResult::Kind::Replied)
          offered[i].cases = {
              {.name = fmt::format("{}{}", kWholeProgram, files[i].name), .op = Op::CALL, .program = files[i].path}};
      }));
  COLLET_TRY(status);
  std::unordered_set<std::string> names, texts;
  for (Offered& one : offered) {
    if (!one.unread.empty()) {
      out.unread.push_back(std::move(one.unread));
      continue;
    }
    out.notes.push_back(std::move(one.note));
    for (Case& each : one.cases) {
      const size_t values_at = each.name.rfind('/');
      if (!each.text.empty() && !texts.insert(each.name.substr(values_at) + text_without_names(each.text)).second)
        continue;
      // Instructions of several computations, or of several programs, may have one name.
      const std::string stem = each.name.substr(0, values_at), values = each.name.substr(values_at);
      for (int n = 2; !names.insert(each.name).second; ++n) each.name = fmt::format("{}.{}{}", stem, n, values);
      if (!one.argument.empty()) out.origins.emplace(each.name, one.argument);
      out.cases.push_back(std::move(each));
    }
  }
  if (out.cases.empty() && out.unread.empty()) return invalid_argument("the programs have no ops for a device");
  return out;
}

}  // namespace collet::conformance
