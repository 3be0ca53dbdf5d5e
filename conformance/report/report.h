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
  size_t nothing_to_run = 0;  ///< passed cases of which the SDK left nothing: of arrays without elements, for example
  size_t declared = 0;        ///< other cases, of element types that the device declares
  size_t on_device = 0;       ///< passed cases among these that ran on the device, and nothing of them on the fallback
  double worst_ulp = 0;
  double worst_share = 0;
  std::string worst_case;  ///< where the worst error was seen
  /// Element types of its cases: those of which at least one passed with work for the device alone, and the others.
  std::vector<hlo::Type> types_on_device, types_elsewhere;
};

/// Summary of those cases of a profile that were run.
struct ProfileSummary {
  const Profile* profile = nullptr;
  bool claimed = false;
  size_t cases = 0, on_device = 0, failed = 0;
};
/// Summaries of all profiles that can be claimed and have cases in the report.
std::vector<ProfileSummary> summarize_profiles(const ConformReport& report);
/// Returns the subject of a case: the name of its pattern or op, or "contract".
std::string_view subject(const CaseResult& one);
/// "core", "math", ...
std::string_view class_name(Op op);
/// Ops that have cases in the report, in the order of the op table.
std::vector<OpSummary> summarize(const ConformReport& report);
/// Ops that the backend left to the fallback, or that nothing took. Ops of which nothing runs on the device come first, then
/// those that lack cases; among equals core ops come before extended ones.
std::vector<OpSummary> road_map(const std::vector<OpSummary>& ops);
/// "37 of 137 cases on the device: f32; not s32 f64": how much of an op the device does, and in which element types.
std::string device_text(const OpSummary& summary);
/// An op or pattern that a device accepted or named, and never ran.
struct NeverUsed {
  enum class Why : uint8_t {
    NeverRun,     ///< accepted in some case, and run in none
    NeverTaken,   ///< a pattern that the device names, offered and always declined
    NeverOffered  ///< a pattern that the device names, and no case has
  };
  Why why = Why::NeverRun;
  uint32_t kind = 0;  ///< COLLET_QUESTION_*
  std::string name;
  std::vector<hlo::Type> types = {};  ///< none for NeverOffered
};
std::vector<NeverUsed> never_used(const ConformReport& report);
/// "never run", ...; "op", "pattern", "fusion".
std::string_view why_name(NeverUsed::Why why);
std::string_view kind_name(uint32_t kind);
/// The command line that runs one case again.
std::string reproducer(const ConformReport& report, const BackendChoice& backend, const CaseResult& one);

/// The share of the op in the work of programs, on average over the model corpus: op_shares.def.
double share_of_work(Op op);

/// The differences of two reports of report_json: of versions of a backend, or of the suite.
struct ReportDifference {
  struct Section {
    std::string heading;  ///< "fails now"
    std::vector<std::string> lines;
    bool worse = false;
  };
  std::string heading = {};  ///< the two runs, a line each
  std::vector<Section> sections = {};
  std::string text;    ///< for people
  bool worse = false;  ///< something fails, or is not taken, that was right before; or a new case fails
};
/// The error: one of them, by its name, is no report. `most`: lines of each kind.
Expected<ReportDifference> diff_reports(std::string_view name_a, std::string_view a, std::string_view name_b,
                                        std::string_view b, size_t most);

/// One program of `collet bench`.
struct SpeedRow {
  std::string name, family;
  double ns = 0;        ///< median
  double of_limit = 0;  ///< the least time divided by the time taken
  double gain = 0;      ///< times as fast as the other backend; 0: there is none
};
/// An earlier run, of report_json.
struct EarlierRun {
  std::string title;                                ///< backend, version and revision
  std::map<std::string, bool, std::less<>> failed;  ///< each of its cases: whether it failed
};
/// Further contents of a page.
struct PageExtras {
  std::vector<EarlierRun> earlier = {};  ///< the oldest first
  std::vector<SpeedRow> speed = {};
  std::string against = {};  ///< the other backend of `speed`
};
/// "acme 1.2 (3f2c1a)": the backend, its version, and where it is known the revision.
std::string title_of(std::string_view backend, std::string_view version, std::string_view revision);
/// Since when a case fails: "since acme 1.3; acme 1.2 passed it", or "in each of 3 earlier runs". Empty without earlier runs that have it.
std::string since_when(const PageExtras& extras, const CaseResult& one);
/// Reads a report of report_json as an earlier run. Returns an error if `name` is no such report.
Status read_earlier(std::string_view name, std::string_view text, PageExtras& extras);
/// Reads a report of `collet bench --json`. Returns an error if `name` is no such report.
Status read_speed(std::string_view name, std::string_view text, PageExtras& extras);

/// The report as JSON; docs/conformance_report.schema.json describes it.
std::string report_json(const ConformReport& report, const BackendChoice& backend);
/// The report as JUnit XML, with one suite per op.
std::string report_junit(const ConformReport& report, const BackendChoice& backend);
/// The report as a web page that needs no other file: verdict, profiles, a table of ops and types, failures with their
/// reproducers, errors, road map, a row for each op, and the cases.
std::string report_html(const ConformReport& report, const BackendChoice& backend, const PageExtras& extras = {});
/// The differences as a web page.
std::string difference_html(const ReportDifference& difference);
/// A small SVG image with the opset and the claimed profiles that hold.
std::string report_badge(const ConformReport& report);
/// The report as text: failures with their reproducers, worst errors, road map, verdict.
std::string report_text(const ConformReport& report, const BackendChoice& backend, size_t most_failures);

}  // namespace collet::conformance
