// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "conformance/report/bundle.h"
#include "conformance/report/report.h"
#include "conformance/runner/profiles.h"
#include "hlo/base/json.h"
#include "hlo/base/sha256.h"

namespace collet::conformance {
namespace {

bool is_failure(Outcome outcome) {
  return outcome != Outcome::Pass && outcome != Outcome::Unsupported;
}

// Makes the result of a check; it fails if there are details.
Check check(std::string what, std::vector<std::string> details) {
  const Check::State state = details.empty() ? Check::State::Holds : Check::State::Differs;
  return {std::move(what), state, std::move(details)};
}

std::vector<std::string> check_suite(const Bundle& bundle) {
  std::vector<std::string> details;
  if (bundle.collet != collet_version())
    details.push_back(fmt::format("the bundle is of Collet {}, this is {}", bundle.collet, collet_version()));
  if (bundle.suite_version != kSuiteVersion)
    details.push_back(fmt::format("the bundle is of suite {}, this is {}",
                                  bundle.suite_version.empty() ? "1.0" : bundle.suite_version, kSuiteVersion));
  if (const std::string digest = suite_digest(bundle.options); digest != bundle.suite)
    details.push_back(fmt::format("the suite that ran has SHA-256 {}, this one {}", bundle.suite, digest));
  return details;
}

// Checks that the bundle has the wanted cases, each once and in order; fills in their ops and types.
std::vector<std::string> check_cases(Bundle& bundle, const std::vector<Case>& wanted) {
  std::vector<std::string> details;
  std::unordered_map<std::string_view, size_t> at;
  for (size_t i = 0; i < bundle.report.cases.size(); ++i)
    if (!at.emplace(bundle.report.cases[i].name, i).second)
      details.push_back(bundle.report.cases[i].name + " stands there twice");
  size_t next = 0;
  bool in_order = true;
  for (const Case& one : wanted) {
    const auto found = at.find(one.name);
    if (found == at.end()) {
      details.push_back(one.name + " is missing");
      continue;
    }
    CaseResult& result = bundle.report.cases[found->second];
    result.op = one.op;
    result.type = one.type;
    result.pattern = one.pattern;
    in_order &= found->second >= next;
    next = found->second;
    at.erase(found);
  }
  // Cases of the backend's own patterns are known to the backend alone.
  const Profile* own = find_profile("own-patterns");
  for (CaseResult& one : bundle.report.cases) {
    if (!at.contains(one.name)) continue;
    if (own->holds(one.name, Op::CALL, Type::Invalid)) {
      one.op = Op::CALL;
      one.pattern = one.name.substr(0, one.name.find('/'));
    } else {
      details.push_back(one.name + " is no case of this choice");
    }
  }
  if (!in_order) details.emplace_back("the cases are not in the order of the suite");
  if (bundle.cases != bundle.report.cases.size())
    details.push_back(fmt::format("{} cases are stated, {} stand there", bundle.cases, bundle.report.cases.size()));
  if (!bundle.report.ended.empty()) details.push_back("the run was ended early: " + bundle.report.ended);
  return details;
}

// Checks that the verdict agrees with the results and claims.
std::vector<std::string> check_verdict(const Bundle& bundle) {
  std::vector<std::string> details;
  for (const std::string& claim : bundle.report.claims)
    if (const Profile* profile = find_profile(claim); profile == nullptr || !profile->may_be_claimed)
      details.push_back(fmt::format("'{}' is no profile that can be claimed", claim));
  for (const CaseResult& one : bundle.report.cases) {
    const bool elsewhere =
        one.outcome == Outcome::Unsupported || (one.outcome == Outcome::Pass && one.fallback_ops > 0);
    if (const Profile* profile = elsewhere ? claimed_profile(bundle.report.claims, one) : nullptr)
      details.push_back(
          fmt::format("{}: profile {} is claimed, and the device did not take it", one.name, profile->name));
  }
  for (const std::string& claim : idle_claims(bundle.report))
    details.push_back(fmt::format("profile {} is claimed, and the device ran none of its cases", claim));
  const std::string_view verdict = bundle.report.conforms() ? "conforms" : "does not conform";
  if (verdict != bundle.verdict)
    details.push_back(fmt::format("the bundle says '{}'; by its results the backend {}", bundle.verdict, verdict));
  return details;
}

// Checks that each case that counts as passed by a waiver has one.
std::vector<std::string> check_waivers(const Bundle& bundle, std::span<const Waiver> waivers) {
  std::vector<std::string> details;
  for (const CaseResult& one : bundle.report.cases) {
    if (one.waiver.empty()) continue;
    const Waiver* waiver = find_waiver(waivers, one.name);
    if (waiver == nullptr || waiver->number != one.waiver)
      details.push_back(
          fmt::format("{} counts as passed by {}, which is no waiver of this case", one.name, one.waiver));
  }
  return details;
}

// Checks that the bundle has the cases of the backend's own patterns, each of which the choice of the run has.
std::vector<std::string> check_own_cases(const Bundle& bundle, const ConformOptions& run) {
  std::vector<std::string> details;
  std::unordered_set<std::string_view> stated, known;
  for (const CaseResult& one : bundle.report.cases) stated.insert(one.name);
  const std::vector<Case> wanted = chosen_cases(run, false);
  for (const Case& one : wanted) {
    known.insert(one.name);
    if (!stated.contains(one.name)) details.push_back(one.name + " is missing");
  }
  const Profile* own = find_profile("own-patterns");
  for (const CaseResult& one : bundle.report.cases)
    if (own->holds(one.name, Op::CALL, Type::Invalid) && !known.contains(one.name))
      details.push_back(one.name + " is no case of this backend");
  return details;
}

std::vector<std::string> lines_that_differ(std::string_view was, std::string_view is) {
  std::vector<std::string> details;
  while (!was.empty() || !is.empty()) {
    const size_t was_end = std::min(was.find('\n'), was.size()), is_end = std::min(is.find('\n'), is.size());
    if (was.substr(0, was_end) != is.substr(0, is_end))
      details.push_back(fmt::format("in the bundle '{}', here '{}'", was.substr(0, was_end), is.substr(0, is_end)));
    was.remove_prefix(std::min(was_end + 1, was.size()));
    is.remove_prefix(std::min(is_end + 1, is.size()));
  }
  return details;
}

std::vector<std::string> check_machine(const Bundle& bundle, const ConformReport& here) {
  std::vector<std::string> details = lines_that_differ(bundle.report.machine, here.machine);
  if (bundle.report.opset != here.opset)
    details.push_back(fmt::format("in the bundle opset {}, here {}", bundle.report.opset, here.opset));
  if (!bundle.report.interface.empty() && bundle.report.interface != here.interface)
    details.push_back(fmt::format("in the bundle interface {}, here {}", bundle.report.interface, here.interface));
  return details;
}

std::vector<std::string> check_library(const Bundle& bundle, const ConformReport& here) {
  std::vector<std::string> details;
  if (const std::string digest = library_digest(here.path); digest != bundle.library)
    details.push_back(fmt::format("{} has SHA-256 {}; the library that ran, {}, has {}", here.path, digest,
                                  bundle.report.path, bundle.library));
  if (bundle.report.backend != here.backend || bundle.report.version != here.version)
    details.push_back(fmt::format("in the bundle {} {}, here {} {}", bundle.report.backend, bundle.report.version,
                                  here.backend, here.version));
  return details;
}

// Selects the cases with the smallest hashes of name and seed, so that nobody who does not know the seed can predict
// them.
std::unordered_set<std::string> draw_sample(const Bundle& bundle, double share, uint64_t seed) {
  std::vector<std::pair<uint64_t, const std::string*>> all;
  for (const CaseResult& one : bundle.report.cases) all.emplace_back(case_seed(one.name, seed), &one.name);
  std::sort(all.begin(), all.end());
  const auto wanted = static_cast<size_t>(std::ceil(share * static_cast<double>(all.size())));
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < std::min(std::max<size_t>(wanted, 1), all.size()); ++i) names.insert(*all[i].second);
  return names;
}

// Runs the selected cases again. With `same_inputs` each must have the outcome in the bundle; with other inputs no case
// that passed may fail.
Expected<std::vector<std::string>> run_again(const Bundle& bundle, const ConformOptions& options, bool same_inputs) {
  COLLET_ASSIGN(const ConformReport again, run_conformance(options));
  std::unordered_map<std::string_view, const CaseResult*> stated;
  for (const CaseResult& one : bundle.report.cases) stated.emplace(one.name, &one);
  std::vector<std::string> details;
  if (!again.ended.empty()) details.push_back("the sample ended early: " + again.ended);
  std::unordered_set<std::string> missing = options.names;
  for (const CaseResult& one : again.cases) missing.erase(one.name);
  for (const std::string& name : missing) details.push_back(name + " did not run again");
  for (const CaseResult& one : again.cases) {
    const auto found = stated.find(one.name);
    if (found == stated.end()) continue;
    const CaseResult& was = *found->second;
    const bool differs = same_inputs ? one.outcome != was.outcome || one.waiver != was.waiver
                                     : is_failure(one.outcome) && !is_failure(was.outcome);
    if (differs)
      details.push_back(fmt::format(
          "{}: in the bundle {}, here {}{}{}{}", one.name, outcome_name(was.outcome), outcome_name(one.outcome),
          same_inputs ? "" : fmt::format(" by seed {}", options.seed), one.detail.empty() ? "" : ": ", one.detail));
    if (same_inputs && !differs && (one.fallback_ops > 0) != (was.fallback_ops > 0))
      details.push_back(fmt::format("{}: on the fallback {} ops in the bundle, here {}", one.name, was.fallback_ops,
                                    one.fallback_ops));
  }
  return details;
}

std::string_view state_name(Check::State state) {
  constexpr std::string_view kNames[] = {"holds", "differs", "not checked"};
  return kNames[static_cast<size_t>(state)];
}

uint64_t seed_of_the_system() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Status add_sample(const Bundle& bundle, const VerifyOptions& options, ConformOptions run, Verification& out) {
  out.seed = options.seed ? *options.seed : seed_of_the_system();
  run.names = draw_sample(bundle, options.rerun, *out.seed);
  run.shard = 0;  // the sample is already taken from the bundle's shard
  run.shards = 1;
  run.jobs = options.jobs;
  if (options.memory_bytes > 0) run.memory_bytes = options.memory_bytes;
  if (options.timeout > 0) run.timeout = options.timeout;
  run.progress = options.progress;
  run.most_alike = 0;
  run.waivers = options.waivers;
  run.claims = bundle.report.claims;
  COLLET_ASSIGN(std::vector<std::string> same, run_again(bundle, run, true));
  out.checks.push_back(
      check(fmt::format("sample of {} cases with the bundle's inputs", run.names.size()), std::move(same)));
  run.seed = *out.seed;
  COLLET_ASSIGN(std::vector<std::string> others, run_again(bundle, run, false));
  out.checks.push_back(check("the same sample with other inputs", std::move(others)));
  return ok_status();
}

}  // namespace

// Returns what a valid bundle proves: each claimed profile, if every case of the full set in it passed on the device.
std::vector<std::string> good_for(const Bundle& bundle) {
  const ConformOptions& run = bundle.options;
  const bool whole =
      run.full && run.backend.no_fallback && run.backend.options.empty() && run.filters.empty() && run.shards == 1;
  if (!whole || !bundle.report.conforms()) return {};
  std::vector<std::string> out;
  for (const std::string& claim : bundle.report.claims) {
    if (!run.profiles.empty() && std::find(run.profiles.begin(), run.profiles.end(), claim) == run.profiles.end())
      continue;
    if (!ran_some(bundle.report, claim)) continue;
    out.push_back(fmt::format("conforms to Collet opset {}, profile {}", bundle.report.opset, claim));
  }
  if (out.empty() && run.profiles.empty())
    out.push_back(fmt::format("conforms to Collet opset {}", bundle.report.opset));
  return out;
}

std::vector<Check> check_bundle(Bundle& bundle, std::span<const Waiver> waivers) {
  bundle.report.of_all_names = bundle.options.filters.empty();
  bundle.report.whole = bundle.report.of_all_names && bundle.options.profiles.empty() && bundle.options.shards == 1;
  std::vector<Check> checks;
  checks.push_back(check("file", bundle.altered));
  checks.push_back(check("suite", check_suite(bundle)));
  checks.push_back(check("cases", check_cases(bundle, chosen_cases(bundle.options, false))));
  checks.push_back(check("verdict", check_verdict(bundle)));
  if (std::vector<std::string> details = check_waivers(bundle, waivers); !details.empty())
    checks.push_back(check("waivers", std::move(details)));
  if (sha256(bundle.report.machine) != bundle.machine)
    checks.push_back(check("machine", {"its description has another SHA-256 than the bundle states"}));
  return checks;
}

bool Verification::holds() const {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& one) { return one.state == Check::State::Differs; });
}

Expected<Verification> verify_bundle(const VerifyOptions& options) {
  COLLET_ASSIGN(Bundle bundle, read_bundle(options.name, options.text));
  for (const std::string& profile : bundle.options.profiles)
    if (find_profile(profile) == nullptr)
      return invalid_argument(fmt::format("{}: there is no profile {}", options.name, profile));
  Verification out;
  out.title = fmt::format("{} {}", bundle.report.backend, bundle.report.version);
  for (const auto& [key, value] : bundle.options.backend.options) out.title += fmt::format(", {}={}", key, value);
  out.title += fmt::format(", seed {}, {} cases", bundle.options.seed, bundle.report.cases.size());
  out.checks = check_bundle(bundle, options.waivers);
  // A bundle must not determine which programs and libraries on this machine a backend opens.
  for (const auto& option : bundle.options.backend.options) {
    const auto& known = options.backend_options;
    if (option.second.find('/') == std::string::npos || std::find(known.begin(), known.end(), option) != known.end())
      continue;
    return invalid_argument(
        fmt::format("{}: the run had the option {}={}, which names a path: to use it here, too, add "
                    "--option {}={}",
                    options.name, option.first, option.second, option.first, option.second));
  }
  ConformOptions run = bundle.options;
  if (options.backend) run.backend.name = *options.backend;
  const Expected<ConformReport> here = probe_backend(run);
  if (!here.ok()) {
    if (options.rerun > 0 || options.backend) return here.status();
    for (const char* what : {"library", "machine"})
      out.checks.push_back({what, Check::State::NotChecked, {here.status().message()}});
  } else {
    out.checks.push_back(check("library", check_library(bundle, *here)));
    out.checks.push_back(check("machine", check_machine(bundle, *here)));
  }
  if (here.ok()) {
    COLLET_ASSIGN(run.declared, cases_of_backend(run));
    out.checks.push_back(check("cases of the backend's patterns", check_own_cases(bundle, run)));
  }
  const bool other_cases = !bundle.altered.empty() || !out.holds();
  if (options.rerun > 0 && (bundle.report.cases.empty() || other_cases)) {
    out.checks.push_back({"sample", Check::State::NotChecked, {"what is above does not hold, or there are no cases"}});
  } else if (options.rerun > 0) {
    COLLET_TRY(add_sample(bundle, options, std::move(run), out));
  } else {
    out.checks.push_back({"sample", Check::State::NotChecked, {"--rerun 1% runs a part of the cases again"}});
  }
  const bool all_checked = std::none_of(out.checks.begin(), out.checks.end(),
                                        [](const Check& one) { return one.state == Check::State::NotChecked; });
  if (out.holds() && all_checked) out.sayings = good_for(bundle);
  return out;
}

namespace {

// The text of a bundle is untrusted: it must not begin a new line, nor contain control characters for a terminal.
std::string on_one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return text;
}

}  // namespace

std::string verification_text(const Verification& verification, size_t most) {
  std::string out;
  for (const Check& one : verification.checks) {
    out += fmt::format("{:<12} {}\n", state_name(one.state), one.what);
    for (size_t i = 0; i < std::min(one.details.size(), most); ++i)
      out += fmt::format("{:<12}   {}\n", "", on_one_line(one.details[i]));
    if (one.details.size() > most) out += fmt::format("{:<12}   and {} more\n", "", one.details.size() - most);
  }
  if (verification.seed) out += fmt::format("sample of seed {}\n", *verification.seed);
  for (const std::string& saying : verification.sayings) out += fmt::format("good for: {}\n", saying);
  return out + fmt::format("{}: {}\n", on_one_line(verification.title),
                           verification.holds() ? "the bundle holds" : "the bundle is refused");
}

std::string verification_json(const Verification& verification) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("title", verification.title).field("holds", verification.holds());
  if (verification.seed) json.field("seed", *verification.seed);
  json.key("checks").begin_array();
  for (const Check& one : verification.checks) {
    json.begin_object().field("what", one.what).field("state", state_name(one.state)).key("details").begin_array();
    for (const std::string& detail : one.details) json.value(detail);
    json.end_array().end_object();
  }
  json.end_array().key("good_for").begin_array();
  for (const std::string& saying : verification.sayings) json.value(saying);
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace collet::conformance
