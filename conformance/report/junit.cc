// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "conformance/report/markup.h"
#include "conformance/report/report.h"

namespace collet::conformance {
namespace {

std::string element(const ConformReport& report, const BackendChoice& backend, const CaseResult& one) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", subject(one),
                                       escape_markup(one.name), one.seconds);
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
  for (const CaseResult& one : report.cases) suites[subject(one)] += element(report, backend, one);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"collet conform {}\" tests=\"{}\" "
      "time=\"{:.3f}\">\n",
      escape_markup(report.backend), report.cases.size(), report.seconds);
  for (const auto& [op, body] : suites) {
    size_t cases = 0, failures = 0, errors = 0, skipped = 0;
    for (const CaseResult& one : report.cases) {
      if (subject(one) != op) continue;
      ++cases;
      if (one.outcome == Outcome::Pass) continue;
      ++(one.outcome == Outcome::Fail ? failures : one.outcome == Outcome::Unsupported ? skipped : errors);
    }
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n", op,
        cases, failures, errors, skipped, body);
  }
  return out + "</testsuites>\n";
}

}  // namespace collet::conformance
