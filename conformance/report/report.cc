// SPDX-License-Identifier: Apache-2.0
#include "conformance/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <tuple>
#include <unordered_set>

#include "conformance/contract/contract.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/soak.h"
#include "hlo/base/shell.h"

namespace collet::conformance {
namespace {

using hlo::op_info;
using hlo::type_info;

// Returns the current command as it is called from a shell: by name if the shell finds it so, else by path.
std::string own_command() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const char* path = std::getenv("PATH");
  if (error || self.filename() != "collet") return "collet";
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const fs::path found = fs::path(rest.substr(0, end)) / "collet";
    if (fs::exists(found, error)) return fs::equivalent(found, self, error) ? "collet" : shell_word(self.string());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return shell_word(self.string());
}

// True for a case that runs without --full.
bool is_in_default_set(const std::string& name) {
  static const std::unordered_set<std::string> names = [] {
    std::unordered_set<std::string> out;
    for (const Case& one : all_cases(false)) out.insert(one.name);
    for (const ContractCase& one : contract_cases()) out.insert(one.name);
    return out;
  }();
  return names.contains(name);
}

void keep_type(std::vector<hlo::Type>& types, hlo::Type type) {
  if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
}

std::string names_of(const std::vector<hlo::Type>& types, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(types.size(), most); ++i)
    out += fmt::format("{}{}", i ? " " : "", type_info(types[i]).text);
  return out + (types.size() > most ? " ..." : "");
}

void add_case(OpSummary& summary, const CaseResult& one, bool is_declared) {
  const bool on_device = one.outcome == Outcome::Pass && one.fallback_ops == 0 && one.device_ops > 0;
  if (one.device_ops > 0 || one.fallback_ops > 0 || one.outcome != Outcome::Pass)
    keep_type(on_device ? summary.types_on_device : summary.types_elsewhere, one.type);
  ++summary.cases;
  if (one.outcome == Outcome::Pass && one.device_ops == 0 && one.fallback_ops == 0) {
    ++summary.passed;
    ++summary.nothing_to_run;
    return;
  }
  summary.declared += is_declared;
  if (one.outcome == Outcome::Unsupported) {
    ++summary.unsupported;
    return;
  }
  if (one.outcome != Outcome::Pass) {
    ++summary.failed;
    return;
  }
  ++summary.passed;
  summary.on_device += on_device && is_declared;
  if (one.ulp > summary.worst_ulp) {
    summary.worst_ulp = one.ulp;
    summary.worst_case = one.name;
  }
  summary.worst_share = std::max(summary.worst_share, one.share);
}

// Lists a few failures of each op, because one defect of an op causes many failures.
std::string failures_text(const ConformReport& report, const BackendChoice& backend, size_t most) {
  constexpr size_t kMostOfOneOp = 3;
  std::string out;
  std::array<size_t, hlo::kLastOp + 1> seen{};
  size_t shown = 0, all = 0;
  for (const CaseResult& one : report.cases) {
    if (one.outcome == Outcome::Pass || one.outcome == Outcome::Unsupported) continue;
    ++all;
    const bool enough = one.op != Op::INVALID && ++seen[static_cast<size_t>(one.op)] > kMostOfOneOp;
    if (enough || shown >= most) continue;
    ++shown;
    out += fmt::format("{:<8} {}\n         {}\n         {}\n", outcome_name(one.outcome), one.name, one.detail,
                       reproducer(report, backend, one));
  }
  if (all > shown) out += fmt::format("         and {} more; --json has them all\n", all - shown);
  return out;
}

std::string errors_text(const std::vector<OpSummary>& ops) {
  std::string out;
  for (const OpSummary& s : ops) {
    if (s.worst_ulp <= 0.5 + 1e-9 || s.passed == 0) continue;
    out += fmt::format("  {:<24} {:>9.3g} ULP, {:>3.0f} % of what is allowed   {}\n", op_info(s.op).text, s.worst_ulp,
                       100 * s.worst_share, s.worst_case);
  }
  return out.empty() ? out : "largest errors of passed cases:\n" + out;
}

std::string road_text(const ConformReport& report, const std::vector<OpSummary>& ops) {
  if (ops.empty()) return {};
  const std::vector<OpSummary> missing = road_map(ops);
  const size_t whole = static_cast<size_t>(std::count_if(
      ops.begin(), ops.end(), [](const OpSummary& s) { return s.declared > 0 && s.on_device == s.declared; }));
  std::string out = fmt::format("{} of {} ops ran on {} in all their cases of the element types that it declares\n",
                                whole, ops.size(), report.backend);
  if (missing.empty()) return out;
  out += report.fallback.empty()
             ? "not taken, the most useful to implement first:\n"
             : fmt::format("left to the fallback ({}), the most useful to implement first:\n", report.fallback);
  size_t shown = 0;
  for (const OpSummary& s : missing) {
    if (++shown > 16) break;
    out += fmt::format("  {:<24} {:<13} {}\n", op_info(s.op).text, class_name(s.op), device_text(s));
  }
  if (missing.size() > 16) out += fmt::format("  and {} more\n", missing.size() - 16);
  return out;
}

// Lists the patterns and fused groups, and where they ran.
std::string group_lines(const ConformReport& report) {
  constexpr size_t kMost = 24, kMostOfName = 60;
  std::string out;
  const std::vector<GroupSummary> groups = summarize_groups(report);
  for (size_t i = 0; i < std::min(groups.size(), kMost); ++i) {
    // The name of a fused group has all of its ops.
    std::string name = groups[i].name;
    if (groups[i].kind == COLLET_QUESTION_FUSION && name.size() > kMostOfName)
      name.replace(name.rfind(' ', kMostOfName - 4) + 1, std::string::npos, "...");
    out += fmt::format("  {:<8} {:<24} {}\n", kind_name(groups[i].kind), name, groups_text(groups[i]));
  }
  if (groups.size() > kMost) out += fmt::format("  and {} more; --json has them all\n", groups.size() - kMost);
  return out.empty() ? out : "groups of ops, by the cases that have them:\n" + out;
}

// Only for runs of all cases: with a filter, many accepted ops do not run.
std::string silent_text(const ConformReport& report) {
  constexpr size_t kMost = 20;
  std::string out;
  size_t shown = 0;
  const std::vector<NeverUsed> all = report.whole ? never_used(report) : std::vector<NeverUsed>();
  for (const NeverUsed& one : all) {
    if (++shown > kMost) break;
    if (shown == 1 || one.why != all[shown - 2].why)
      out += fmt::format("{} on {}:\n", why_name(one.why), report.backend);
    out += fmt::format("  {:<8} {}{}{}\n", kind_name(one.kind), one.name, one.types.empty() ? "" : ": ",
                       names_of(one.types, 8));
  }
  if (all.size() > kMost) out += fmt::format("  and {} more; --json has them all\n", all.size() - kMost);
  return out;
}

// A warning about what the library exports besides its entry.
std::string exports_text(const ConformReport& report) {
  constexpr size_t kMost = 5;
  if (report.exports.empty()) return {};
  std::string out = fmt::format(
      "warning: the library exports {} name{} besides collet_backend_entry, which may be taken for "
      "another library's in the same process:\n",
      report.exports.size(), report.exports.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(kMost, report.exports.size()); ++i) out += fmt::format("  {}\n", report.exports[i]);
  if (report.exports.size() > kMost)
    out += fmt::format("  and {} more; --json has them all\n", report.exports.size() - kMost);
  return out + "  (collet_add_backend hides them by a version script and the linker's --exclude-libs,ALL)\n";
}

// Lists the failures that count as passed.
std::string waivers_text(const ConformReport& report) {
  constexpr size_t kMost = 8;
  std::string out;
  size_t count = 0;
  for (const CaseResult& one : report.cases) {
    if (one.waiver.empty() || ++count > kMost) continue;
    out += fmt::format("  {} {}: {}\n", one.waiver, one.name, one.detail);
  }
  if (count > kMost) out += fmt::format("  and {} more; --json has them all\n", count - kMost);
  return out.empty() ? out : "failed, and passed by a waiver:\n" + out;
}

// Returns one line for each profile that has cases in the run.
std::string profiles_text(const ConformReport& report) {
  std::string out;
  for (const ProfileSummary& s : summarize_profiles(report)) {
    out += fmt::format("  {:<14} {:>6} of {:>6} on the device{}{}\n", s.profile->name, s.on_device, s.cases,
                       s.failed ? fmt::format(", {} failed", s.failed) : "", s.claimed ? ", claimed" : "");
  }
  return out.empty() ? out : "profiles:\n" + out;
}

}  // namespace

std::vector<ProfileSummary> summarize_profiles(const ConformReport& report) {
  std::vector<ProfileSummary> out;
  for (const Profile& profile : profiles()) {
    if (!profile.may_be_claimed) continue;
    ProfileSummary s{.profile = &profile};
    s.claimed = std::find(report.claims.begin(), report.claims.end(), profile.name) != report.claims.end();
    for (const CaseResult& one : report.cases) {
      if (!profile.holds(one.name, one.op, one.type)) continue;
      ++s.cases;
      const bool passed = one.outcome == Outcome::Pass;
      s.on_device += passed && one.fallback_ops == 0;
      s.failed += !passed && one.outcome != Outcome::Unsupported;
    }
    if (s.cases > 0) out.push_back(s);
  }
  return out;
}

std::vector<NeverUsed> never_used(const ConformReport& report) {
  struct Sum {
    bool asked = false, accepted = false;
    std::vector<hlo::Type> never_run, types;
  };
  std::map<std::pair<uint32_t, std::string>, Sum> sums;
  for (const auto& [key, use] : report.uses.all()) {
    Sum& sum = sums[{key.kind, key.name}];
    sum.asked |= use.asked;
    sum.accepted |= use.accepted;
    if (!use.asked && !use.accepted) continue;
    const auto type = static_cast<hlo::Type>(key.element);
    sum.types.push_back(type);
    if (use.accepted && !use.ran) sum.never_run.push_back(type);
  }
  std::vector<NeverUsed> out;
  for (auto& [key, sum] : sums) {
    const auto& [kind, name] = key;
    if (!sum.never_run.empty()) out.push_back({NeverUsed::Why::NeverRun, kind, name, std::move(sum.never_run)});
    if (kind != COLLET_QUESTION_PATTERN) continue;
    if (!sum.asked) out.push_back({NeverUsed::Why::NeverOffered, kind, name});
    if (sum.asked && !sum.accepted) out.push_back({NeverUsed::Why::NeverTaken, kind, name, std::move(sum.types)});
  }
  std::stable_sort(out.begin(), out.end(), [](const NeverUsed& a, const NeverUsed& b) { return a.why < b.why; });
  return out;
}

std::vector<GroupSummary> summarize_groups(const ConformReport& report) {
  std::vector<GroupSummary> out;
  const auto cases_of = [](const GroupSummary& s) { return s.on_device + s.not_run + s.declined + s.not_offered; };
  // Groups of one kind and name are neighbours.
  for (const auto& [key, use] : report.uses.all()) {
    if (key.kind == COLLET_QUESTION_OP || use.asked + use.ran + use.not_offered == 0) continue;
    if (out.empty() || out.back().kind != key.kind || out.back().name != key.name)
      out.push_back({.kind = key.kind, .name = key.name});
    GroupSummary& sum = out.back();
    sum.on_device += use.ran;
    // Contract cases run programs without asking about them again.
    sum.not_run += use.accepted - std::min(use.accepted, use.ran);
    sum.declined += use.asked - use.accepted;
    sum.not_offered += use.not_offered;
    keep_type(use.ran > 0 ? sum.types_on_device : sum.types_elsewhere, static_cast<hlo::Type>(key.element));
  }
  std::stable_sort(out.begin(), out.end(), [&](const GroupSummary& a, const GroupSummary& b) {
    if (a.kind != b.kind || a.kind == COLLET_QUESTION_PATTERN) return a.kind < b.kind;
    return cases_of(a) > cases_of(b);
  });
  return out;
}

std::string groups_text(const GroupSummary& s) {
  constexpr size_t kMost = 8;
  std::string out, elsewhere;
  if (s.on_device > 0) out = fmt::format("{} cases on the device: {}", s.on_device, names_of(s.types_on_device, kMost));
  const auto add = [&](uint64_t cases, std::string_view why) {
    if (cases > 0) elsewhere += fmt::format("{}{} {}", elsewhere.empty() ? "" : ", ", cases, why);
  };
  add(s.declined, "declined");
  add(s.not_offered, "not offered");
  add(s.not_run, "accepted and not run");
  if (!elsewhere.empty() && !s.types_elsewhere.empty()) elsewhere += ": " + names_of(s.types_elsewhere, kMost);
  return out + (out.empty() || elsewhere.empty() ? "" : "; ") + elsewhere;
}

std::string_view why_name(NeverUsed::Why why) {
  constexpr std::string_view kNames[] = {"accepted, and run in no case", "offered, and never taken",
                                         "named, and in no case"};
  return kNames[static_cast<size_t>(why)];
}

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"op", "pattern", "fusion"};
  return kind < std::size(kNames) ? kNames[kind] : "?";
}

std::string_view subject(const CaseResult& one) {
  if (!one.pattern.empty()) return one.pattern;
  return one.op == Op::INVALID ? "contract" : op_info(one.op).text;
}

std::string_view class_name(Op op) {
  constexpr std::array<std::string_view, 6> kNames = {"core",       "exact",    "math",
                                                      "structured", "executor", "communication"};
  return kNames[static_cast<size_t>(op_info(op).op_class)];
}

std::vector<OpSummary> summarize(const ConformReport& report) {
  std::array<OpSummary, hlo::kLastOp + 1> rows{};
  for (const CaseResult& one : report.cases)
    add_case(rows[static_cast<size_t>(one.op)], one, report.declares(one.type));
  std::vector<OpSummary> ops;
  for (int op = 1; op <= hlo::kLastOp; ++op) {
    OpSummary& row = rows[static_cast<size_t>(op)];
    if (row.cases == 0) continue;
    row.op = static_cast<Op>(op);
    std::erase_if(row.types_elsewhere, [&](hlo::Type type) {
      return std::find(row.types_on_device.begin(), row.types_on_device.end(), type) != row.types_on_device.end();
    });
    ops.push_back(row);
  }
  return ops;
}

double share_of_work(Op op) {
  switch (op) {
#define COLLET_OP_SHARE(name, hundredths) \
  case Op::name:                          \
    return (hundredths) * 1e-4;
#include "conformance/report/op_shares.def"
    default:
      return 0;
  }
}

std::vector<OpSummary> road_map(const std::vector<OpSummary>& ops) {
  std::vector<OpSummary> missing;
  for (const OpSummary& s : ops) {
    const bool executor = op_info(s.op).op_class == hlo::OpClass::EXECUTOR;
    if (!executor && s.on_device + s.failed + s.nothing_to_run < s.cases) missing.push_back(s);
  }
  std::stable_sort(missing.begin(), missing.end(), [](const OpSummary& a, const OpSummary& b) {
    const auto rank = [](const OpSummary& s) {
      return std::tuple(!s.types_on_device.empty(), -share_of_work(s.op), op_info(s.op).op_class);
    };
    return rank(a) < rank(b);
  });
  return missing;
}

std::string device_text(const OpSummary& s) {
  const size_t cases = s.cases - s.nothing_to_run;
  if (s.types_on_device.empty()) return fmt::format("none of {} cases on the device", cases);
  std::string out = fmt::format("{} of {} cases on the device: {}", s.on_device, cases, names_of(s.types_on_device, 4));
  if (!s.types_elsewhere.empty()) out += "; not " + names_of(s.types_elsewhere, 4);
  return out;
}

std::string reproducer(const ConformReport& report, const BackendChoice& backend, const CaseResult& one) {
  static const std::string command = own_command();
  std::string line = fmt::format("{} conform --backend {}", command, shell_word(backend.name));
  if (backend.no_fallback) line += " --no-fallback";
  for (const auto& [key, value] : backend.options) line += fmt::format(" --option {}", shell_word(key + "=" + value));
  if (const auto seed = soak_case_seed(one.name))
    return line + fmt::format(" --soak {:.0f} --seed {}", report.seconds, *seed);
  if (report.seed != 0) line += fmt::format(" --seed {}", report.seed);
  if (report.full && !is_in_default_set(one.name)) line += " --full";
  if (report.processes > 0) line += fmt::format(" --processes {}", report.processes);
  if (report.processes > 0 && report.devices > 1) line += fmt::format(" --devices {}", report.devices);
  if (one.outcome == Outcome::Timeout && report.told_timeout > 0)
    line += fmt::format(" --timeout {:g}", report.told_timeout);
  if (one.outcome == Outcome::Crash && report.told_memory_mib > 0)
    line += fmt::format(" --memory {}", report.told_memory_mib);
  if (one.outcome == Outcome::Fail && !report.told_waivers.empty())
    line += fmt::format(" --waivers {}", shell_word(report.told_waivers));
  if (one.outcome == Outcome::Fail)
    if (const Profile* profile = claimed_profile(report.told_claims, one);
        profile && one.detail.starts_with(fmt::format("profile {} is claimed", profile->name)))
      line += fmt::format(" --claim {}", profile->name);
  if (one.pattern == "random") {
    const std::string run = command + " run {} --compare interpreter --backend " + shell_word(backend.name);
    return line + fmt::format(
                      " --filter {0}\n         or smaller: {1} conform --show --filter {0} | tail -n +2 >p.hlo; {1} "
                      "reduce p.hlo -- {2}",
                      one.name, command, run);
  }
  if (const auto origin = report.origins.find(one.name); origin != report.origins.end()) {
    line += fmt::format(" --from {}", shell_word(origin->second));
  } else {
    for (const std::string& path : report.from) line += fmt::format(" --from {}", shell_word(path));
  }
  return line + fmt::format(" --filter {}", shell_word(one.name));
}

std::string worker_times_text(const ConformReport& report) {
  const WorkerTimes times = report.worker_times();
  if (times.compile <= 0) return {};
  return fmt::format(
      "the workers spent {:.1f} s on compiling, {:.1f} s on what is expected, {:.1f} s on running and judging, {:.1f} "
      "s in "
      "the contract",
      times.compile, times.answer, times.run, times.contract);
}

std::string report_text(const ConformReport& report, const BackendChoice& backend, size_t most_failures) {
  const std::vector<OpSummary> ops = summarize(report);
  std::string out = failures_text(report, backend, most_failures);
  if (!out.empty()) out += '\n';
  if (!report.from.empty()) out += programs_text(report);
  for (const CaseResult& one : report.cases)
    if (one.pattern == "soak") out += fmt::format("{}: {}\n{}", one.name, one.detail, one.evidence);
  out += errors_text(ops);
  // Of programs over several processes the device runs what is between the collectives, if there is anything.
  if (report.from.empty() && report.processes == 0) out += profiles_text(report);
  if (report.processes == 0) out += road_text(report, ops) + group_lines(report);
  if (report.not_run == 0) out += silent_text(report);
  out += exports_text(report) + waivers_text(report);
  if (report.not_run > 0) out += fmt::format("ended early: {}\n", report.ended);
  if (const std::string times = worker_times_text(report); !times.empty()) out += times + "\n";
  if (report.nothing_on_device()) out += fmt::format("{} ran no op of any case: it has declined all\n", report.backend);
  for (const std::string& claim : idle_claims(report))
    out += fmt::format("profile {} is claimed, and the device ran none of its cases\n", claim);
  if (report.processes > 0)
    out +=
        fmt::format("the participants were spread over {} processes of {} devices\n", report.processes, report.devices);
  out += fmt::format("{} {}: {} of {} cases passed", report.backend, report.version, report.count(Outcome::Pass),
                     report.cases.size());
  for (const Outcome outcome :
       {Outcome::Fail, Outcome::Crash, Outcome::Timeout, Outcome::Unsupported, Outcome::Oracle}) {
    if (const size_t n = report.count(outcome)) out += fmt::format(", {} {}", n, outcome_name(outcome));
  }
  if (report.not_run > 0) out += fmt::format(", {} not run", report.not_run);
  const size_t waived = static_cast<size_t>(std::count_if(report.cases.begin(), report.cases.end(),
                                                          [](const CaseResult& one) { return !one.waiver.empty(); }));
  if (waived > 0) out += fmt::format(", {} of them by a waiver", waived);
  if (!report.cases.empty() && soak_case_seed(report.cases[0].name))
    return out +
           fmt::format(" in {:.1f} s: {} the soak test\n", report.seconds, report.conforms() ? "passes" : "fails");
  const bool good = report.conforms();
  const std::string_view verdict = !report.from.empty() ? (good ? "runs these programs" : "does not run these programs")
                                   : !good              ? "does not conform"
                                   : report.whole       ? "conforms"
                                                        : "conforms in the cases that were chosen";
  const size_t files = report.unread.size();
  const std::string unread =
      files == 0 ? "" : fmt::format("; {} {} not read", files, files == 1 ? "file was" : "files were");
  return out + fmt::format(" in {:.1f} s: {}{}\n", report.seconds, verdict, unread);
}

}  // namespace collet::conformance
