// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/report/read_json.h"
#include "conformance/report/report.h"

namespace collet::conformance {

Status read_speed(std::string_view name, std::string_view text, PageExtras& extras) {
  namespace json = boost::json;
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  const json::value* cases = !error && root.is_object() ? root.as_object().if_contains("cases") : nullptr;
  if (cases == nullptr || !cases->is_array() || !root.as_object().contains("machine"))
    return invalid_argument(fmt::format("{} is no report that collet bench --json has written", name));
  extras.against = text_of(root.as_object(), "against");
  const auto median = [](const json::object& one, std::string_view key) {
    const json::value* timing = one.if_contains(key);
    return timing != nullptr && timing->is_object() ? number_of(timing->as_object(), "median_ns") : 0.0;
  };
  for (const json::value& value : cases->as_array()) {
    if (!value.is_object()) continue;
    const json::object& one = value.as_object();
    SpeedRow row{.name = text_of(one, "name"), .family = text_of(one, "family"), .ns = median(one, "fused")};
    row.of_limit = number_of(one, "of_limit");
    if (row.ns > 0) row.gain = median(one, "against") / row.ns;
    extras.speed.push_back(std::move(row));
  }
  return ok_status();
}

}  // namespace collet::conformance
