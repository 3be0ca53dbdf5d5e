// SPDX-License-Identifier: Apache-2.0
// Fuzzes what conform reads besides programs: bundles, reports, files of cases, waivers and claims. Any bytes must be read, or refused
// with a message; a file of cases that is read must be written as it was.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "conformance/report/bundle.h"
#include "conformance/report/report.h"
#include "conformance/runner/case_file.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/waivers.h"

namespace {

using namespace collet;
using namespace collet::conformance;

[[noreturn]] void fail(const std::string& why) {
  std::fputs((why + "\n").c_str(), stderr);
  std::abort();
}

void expect_reason(const Status& status) {
  if (!status.ok() && status.message().empty()) fail("refused without a message");
}

void read_cases(std::string_view text) {
  const auto cases = read_case_file("input", text);
  expect_reason(cases.status());
  if (!cases.ok()) return;
  const std::string written = case_file_text(*cases);
  const auto again = read_case_file("written", written);
  if (!again.ok()) fail(written + "\n" + again.status().message());
  if (case_file_text(*again) != written) fail(written + "\nis read as other cases");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_reason(read_bundle("input", text).status());
  read_cases(text);
  expect_reason(read_waivers("input", text).status());
  expect_reason(read_claims(text).status());
  const auto difference = diff_reports("a", text, "b", text, 20);
  expect_reason(difference.status());
  if (difference.ok() && difference->worse) fail("a report is worse than itself");
  PageExtras extras;
  expect_reason(read_earlier("input", text, extras));
  expect_reason(read_speed("input", text, extras));
  return 0;
}
