// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>
#include <limits>

#include "conformance/accuracy/accuracy.h"
#include "hlo/base/json.h"

namespace collet::conformance {
namespace {

namespace json = boost::json;

// Reads a number; infinities and NaN, which JSON lacks, are stored as strings.
double number_of(const json::value& value) {
  if (value.is_number()) return value.to_number<double>();
  const std::string_view text = value.as_string();
  if (text.find("nan") != std::string_view::npos || text.find("NaN") != std::string_view::npos)
    return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return text.starts_with('-') ? -infinity : infinity;
}

}  // namespace

std::string row_json(const AccuracyRow& row) {
  std::string text;
  JsonWriter out(text, 0);
  out.begin_object().field("function", hlo::op_info(row.op).text).field("type", hlo::type_info(row.type).text);
  if (!row.error.empty()) out.field("error", row.error);
  out.field("arguments", row.arguments).field("worst_ulp", row.worst).field("argument", row.argument);
  out.field("result", row.result).field("wrong", row.wrong).field("nearest", row.nearest);
  out.field("on_device", row.on_device).end_object();
  return text;
}

Expected<AccuracyRow> row_from_json(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  const Status refused = invalid_argument("no row that collet accuracy has written");
  if (error || !root.is_object()) return refused;
  try {
    AccuracyRow row;
    const auto op = hlo::op_from_text(std::string_view(root.at("function").as_string()));
    const auto type = hlo::type_from_text(std::string_view(root.at("type").as_string()));
    if (!op || !type) return refused;
    row.op = *op;
    row.type = *type;
    row.arguments = root.at("arguments").to_number<uint64_t>();
    row.worst = number_of(root.at("worst_ulp"));
    row.argument = number_of(root.at("argument"));
    row.result = number_of(root.at("result"));
    row.wrong = root.at("wrong").to_number<uint64_t>();
    row.nearest = root.at("nearest").to_number<uint64_t>();
    row.on_device = root.at("on_device").as_bool();
    return row;
  } catch (const boost::system::system_error&) {
    return refused;  // a field is missing or has another type
  }
}

}  // namespace collet::conformance
