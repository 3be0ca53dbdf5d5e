// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/report/markup.h"
#include "conformance/report/report.h"

namespace collet::conformance {

std::string report_badge(const ConformReport& report) {
  const std::string left = fmt::format("Collet opset {}", report.opset);
  std::string right;
  for (const ProfileSummary& s : summarize_profiles(report))
    if (s.claimed && s.failed == 0) right += fmt::format("{}{}", right.empty() ? "" : ", ", s.profile->name);
  const bool good = report.conforms();
  // A run of a part of the cases does not show whether the backend conforms.
  const bool part = good && !(report.whole && report.full);
  if (!good) right = "does not conform";
  if (right.empty()) right = "conforms";
  if (part) right += ", in part";
  constexpr double kCharacter = 6.6, kRoom = 12;
  const double left_width = kRoom + kCharacter * static_cast<double>(left.size());
  const double right_width = kRoom + kCharacter * static_cast<double>(right.size());
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="20" role="img" aria-label="{1}: {2}"><title>{1}: {2}</title>
<rect width="{3:.0f}" height="20" fill="#444"/><rect x="{3:.0f}" width="{4:.0f}" height="20" fill="{5}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle"><text x="{6:.0f}" y="14" textLength="{7:.0f}">{1}</text><text x="{8:.0f}" y="14" textLength="{9:.0f}">{2}</text></g>
</svg>
)",
      left_width + right_width, left, escape_markup(right), left_width, right_width,
      !good  ? "#b3261e"
      : part ? "#6b7075"
             : "#1f7a4d",
      left_width / 2, left_width - kRoom, left_width + right_width / 2, right_width - kRoom);
}

}  // namespace collet::conformance
