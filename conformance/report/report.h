// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/conform.h"
#include "conformance/runner/profiles.h"

namespace collet::conformance {

/// Summary of the cases of one op.
struct OpSummary {
  Op op = Op::INVALID;
  size_t cases = 0, passed = 0, failed = 0, unsupported = 0;
  /// Passed cases that the SDK reduced to nothing, for example with arrays without elements.
  size_t nothing_to_run = 0;
  size_t declared = 0;   ///< number of other cases, with element types that the device declares
  size_t on_device = 0;  ///< number of passed cases among these that ran on the device only, without the fallback
  double worst_ulp = 0;
  double worst_share = 0;
  std::string worst_case;  ///< case with the largest error
  /// Element types of its cases: those with at least one passed case that ran on the device only, and the others.
  std::vector<hlo::Type> types_on_device, types_elsewhere;
};

/// Summary of the cases of a profile that were run.
struct ProfileSummary {
  const Profile* profile = nullptr;
  bool claimed = false;
  size_t cases = 0, on_device = 0, failed = 0;
};
/// Returns summaries of all profiles that can be claimed and have cases in the report.
std::vector<ProfileSummary> summarize_profiles(const ConformReport& report);
/// Returns a sentence on what the time of the workers was spent on; empty if nothing was compiled.
std::string worker_times_text(const ConformReport& report);
/// Returns the subject of a case: the name of its pattern or op, or "contract".
std::string_view subject(const CaseResult& one);
/// Returns the name of the op's class: "core", "math", ...
std::string_view class_name(Op op);
/// Returns the ops that have cases in the report, in the order of the op table.
std::vector<OpSummary> summarize(const ConformReport& report);
/// Returns the ops that the backend left to the fallback, or that neither of them supports. Ops without any case on the
/// device come first, then those that lack some cases; among equals core ops come before extended ones.
std::vector<OpSummary> road_map(const std::vector<OpSummary>& ops);
/// Returns a text such as "37 of 137 cases on the device: f32; not s32 f64": how many cases of an op the device runs,
/// and in which element types.
std::string device_text(const OpSummary& summary);
/// An op or pattern that a device accepted or named, but never ran.
struct NeverUsed {
  enum class Why : uint8_t {
    NeverRun,     ///< accepted in some case, but run in none
    NeverTaken,   ///< a pattern that the device names, but declines whenever it is offered
    NeverOffered  ///< a pattern that the device names, but no case contains
  };
  Why why = Why::NeverRun;
  uint32_t kind = 0;  ///< COLLET_QUESTION_*
  std::string name;
  std::vector<hlo::Type> types = {};  ///< element types; empty for NeverOffered
};
std::vector<NeverUsed> never_used(const ConformReport& report);
/// Returns "never run", ...; the next function returns "op", "pattern" or "fusion".
std::string_view why_name(NeverUsed::Why why);
std::string_view kind_name(uint32_t kind);
/// What became of the groups of one name that the SDK found in the cases: a pattern, or the ops of a fused group. Numbers of
/// cases; one with groups of two types counts twice.
struct GroupSummary {
  uint32_t kind = 0;  ///< COLLET_QUESTION_PATTERN or COLLET_QUESTION_FUSION
  std::string name = {};
  uint64_t on_device = 0;    ///< the device has run it as a group
  uint64_t not_run = 0;      ///< the device has accepted it, and it did not run there
  uint64_t declined = 0;     ///< the device has declined it, so that its ops were offered one by one
  uint64_t not_offered = 0;  ///< it needs COLLET_FEATURE_* that the device does not state
  std::vector<hlo::Type> types_on_device = {}, types_elsewhere = {};  ///< a type is in one of them
};
/// Returns the groups that were found in some case: patterns first, by name, then fused groups, those in the most cases first.
std::vector<GroupSummary> summarize_groups(const ConformReport& report);
/// Returns a text such as "37 cases on the device: f32; 3 declined: f64".
std::string groups_text(const GroupSummary& summary);
/// Returns the command line that runs one case again.
std::string reproducer(const ConformReport& report, const BackendChoice& backend, const CaseResult& one);

/// Returns the share of the op in the work of programs, from op_shares.def.
double share_of_work(Op op);

/// The differences between two reports of report_json, for example of two versions of a backend or of the suite.
struct ReportDifference {
  struct Section {
    std::string heading;  ///< heading such as "fails now"
    std::vector<std::string> lines;
    bool worse = false;
  };
  std::string heading = {};  ///< describes the two runs, one line each
  std::vector<Section> sections = {};
  std::string text;  ///< the differences as readable text
  /// True if a case that was right before fails or is not accepted any more, or if a new case fails.
  bool worse = false;
};
/// Compares two reports. Returns an error that names the one that is not a report. `most`: largest number of lines of
/// each kind.
Expected<ReportDifference> diff_reports(std::string_view name_a, std::string_view a, std::string_view name_b,
                                        std::string_view b, size_t most);

/// One program of `collet bench`.
struct SpeedRow {
  std::string name, family;
  double ns = 0;        ///< median time
  double of_limit = 0;  ///< the machine's limit divided by the measured time
  double gain = 0;      ///< speed relative to the other backend; 0: there is none
};
/// An earlier run, read from a report of report_json.
struct EarlierRun {
  std::string title;                                ///< backend, version and revision
  std::map<std::string, bool, std::less<>> failed;  ///< by case: whether it failed
};
/// Additional contents of a page.
struct PageExtras {
  std::vector<EarlierRun> earlier = {};  ///< earlier runs, the oldest first
  std::vector<SpeedRow> speed = {};
  std::string against = {};  ///< the other backend of `speed`
};
/// Returns a text such as "acme 1.2 (3f2c1a)": the backend, its version, and the revision if known.
std::string title_of(std::string_view backend, std::string_view version, std::string_view revision);
/// Returns since when a case fails: "since acme 1.3; acme 1.2 passed it", or "in each of 3 earlier runs". Empty if no
/// earlier run has the case.
std::string since_when(const PageExtras& extras, const CaseResult& one);
/// Reads a report of report_json as an earlier run. Returns an error if `name` is no such report.
Status read_earlier(std::string_view name, std::string_view text, PageExtras& extras);
/// Reads a report of `collet bench --json`. Returns an error if `name` is no such report.
Status read_speed(std::string_view name, std::string_view text, PageExtras& extras);

/// Returns the report as JSON; docs/conformance_report.schema.json describes it.
std::string report_json(const ConformReport& report, const BackendChoice& backend);
/// Returns the report as JUnit XML, with one suite per op.
std::string report_junit(const ConformReport& report, const BackendChoice& backend);
/// Returns the report as a web page without external files: verdict, profiles, a table of ops and types, failures with
/// their command lines, errors, ops that are missing, a row for each op, and the cases.
std::string report_html(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras = {});
/// Returns the differences as a web page.
std::string difference_html(const ReportDifference& difference);
/// The same for machines: {"heading", "worse", "sections": [{"heading", "worse", "lines"}]}.
std::string difference_json(const ReportDifference& difference);
/// Returns a small SVG image with the opset and the claimed profiles that hold.
std::string report_badge(const ConformReport& report);
/// Returns the part of a report of programs (ConformReport::from) that is about these: for each what it consists of and
/// how it ended, what the device does not take, and the times of the slowest ops beside those of the other backend.
std::string programs_text(const ConformReport& report);
/// Returns the report as text: failures with their command lines, largest errors, missing ops, verdict.
std::string report_text(const ConformReport& report, const BackendChoice& backend, size_t most_failures);

}  // namespace collet::conformance
