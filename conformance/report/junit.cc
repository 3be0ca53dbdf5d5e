// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "conformance/report/markup.h"
#include "conformance/report/report.h"

namespace collet::conformance {
namespace {

std::string element(const ConformReport& report, const BackendChoice& backend, const CaseResult& one) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                       hlo::op_info(one.op).text, escape_markup(one.name), one.seconds);
  const std::string detail = escape_markup(one.detail);
  switch (one.outcome) {
    case Outcome::Pass:
      return head + "/>\n";
    case Outcome::Unsupported:
      return head + fmt::format("><skipped message=\"{}\"/></testcase>\n", detail);
    case Outcome::Fail:
      return head + fmt::format("><failure message=\"{}\">{}</failure></testcase>\n", detail,
                                escape_markup(reproducer(report, backend, one)));
    default:
      return head + fmt::format("><error type=\"{}\" message=\"{}\">{}</error></testcase>\n", outcome_name(one.outcome),
                                detail, escape_markup(reproducer(report, backend, one)));
  }
}

}  // namespace

std::string report_junit(const ConformReport& report, const BackendChoice& backend) {
  std::map<std::string_view, std::string> suites;
  std::map<std::string_view, OpSummary> counts;
  for (const OpSummary& s : summarize(report)) counts[hlo::op_info(s.op).text] = s;
  for (const CaseResult& one : report.cases) suites[hlo::op_info(one.op).text] += element(report, backend, one);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"collet conform {}\" tests=\"{}\" "
      "time=\"{:.3f}\">\n",
      escape_markup(report.backend), report.cases.size(), report.seconds);
  for (const auto& [op, body] : suites) {
    const OpSummary& s = counts[op];
    size_t errors = 0;
    for (const CaseResult& one : report.cases) {
      const bool error =
          one.outcome != Outcome::Pass && one.outcome != Outcome::Unsupported && one.outcome != Outcome::Fail;
      errors += error && hlo::op_info(one.op).text == op;
    }
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n", op,
        s.cases, s.failed - errors, errors, s.unsupported, body);
  }
  return out + "</testsuites>\n";
}

}  // namespace collet::conformance
