// SPDX-License-Identifier: Apache-2.0
#include "conformance/report/bundle.h"

#include <collet/collet.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "conformance/report/read_json.h"
#include "conformance/report/report.h"
#include "hlo/base/json.h"
#include "hlo/base/sha256.h"

namespace collet::conformance {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "collet conformance bundle";
constexpr int kVersion = 1;
constexpr size_t kSumDigits = 16;

void write_texts(JsonWriter& writer, std::string_view key, const std::vector<std::string>& texts) {
  writer.key(key).begin_array();
  for (const std::string& text : texts) writer.value(text);
  writer.end_array();
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string head_line(const ConformReport& report, const ConformOptions& options, const std::string& library) {
  std::string out;
  JsonWriter writer(out, 0);
  writer.begin_object().field("format", kFormat).field("version", kVersion).field("collet", collet_version());
  writer.field("verdict", report.conforms() ? "conforms" : "does not conform").field("cases", report.cases.size());
  if (!report.ended.empty()) writer.field("ended", report.ended);
  write_texts(writer, "claims", report.claims);
  writer.key("suite").begin_object().field("sha256", suite_digest(options)).field("full", options.full);
  writer.field("version", kSuiteVersion).field("terms", kTermsVersion);
  write_texts(writer, "filters", options.filters);
  write_texts(writer, "profiles", options.profiles);
  writer.field("shard", options.shard).field("shards", options.shards).field("seed", options.seed).end_object();
  writer.key("backend").begin_object().field("name", report.backend).field("version", report.version);
  writer.field("interface", report.interface)
      .field("opset", report.opset)
      .field("library", std::filesystem::path(report.path).filename().string());
  writer.field("sha256", library).field("fallback", report.fallback).key("options").begin_array();
  for (const auto& [key, value] : options.backend.options) writer.begin_array().value(key).value(value).end_array();
  writer.end_array().end_object().key("machine").begin_object().field("sha256", sha256(report.machine));
  write_texts(writer, "description", lines_of(report.machine));
  writer.end_object().end_object();
  return out + "\n";
}

// Appends a checksum to the end of a line. It covers the line itself and the checksum of the first line.
std::string with_sum(std::string line, std::string_view key) {
  line.pop_back();
  const std::string sum = sha256(fmt::format("{}{}", key, line)).substr(0, kSumDigits);
  return fmt::format("{},\"sum\":\"{}\"}}\n", line, sum);
}

bool has_its_sum(std::string_view line, std::string_view key) {
  const size_t start = line.rfind(",\"sum\":");
  if (start == std::string_view::npos) return false;
  return with_sum(std::string(line.substr(0, start)) + "}", key) == fmt::format("{}\n", line);
}

std::string case_line(const CaseResult& one, std::string_view key) {
  std::string out;
  JsonWriter writer(out, 0);
  writer.begin_object().field("name", one.name).field("status", outcome_name(one.outcome));
  if (one.device_ops > 0) writer.field("device_ops", one.device_ops);
  if (one.fallback_ops > 0) writer.field("fallback_ops", one.fallback_ops);
  if (one.ulp > 0) writer.field("ulp", one.ulp);
  if (one.share > 0) writer.field("share", one.share);
  if (!one.waiver.empty()) writer.field("waiver", one.waiver);
  if ((one.outcome != Outcome::Pass || !one.waiver.empty()) && !one.detail.empty()) writer.field("detail", one.detail);
  writer.end_object();
  return with_sum(std::move(out), key);
}

std::string last_line(std::string_view before) {
  return fmt::format("{{\"sha256\":\"{}\"}}\n", sha256(before));
}

const json::object* object_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

std::vector<std::string> texts_in(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_array()) return texts;
  for (const json::value& one : value->as_array())
    if (one.is_string()) texts.emplace_back(one.as_string());
  return texts;
}

uint64_t count_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  boost::system::error_code error;
  const auto number = value->to_number<uint64_t>(error);
  return error ? 0 : number;
}

bool flag_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::optional<Outcome> outcome_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Outcome::Oracle); ++i)
    if (outcome_name(static_cast<Outcome>(i)) == name) return static_cast<Outcome>(i);
  return std::nullopt;
}

std::optional<json::object> parsed(std::string_view line) {
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

Expected<Bundle> read_head(std::string_view name, std::string_view line) {
  const std::optional<json::object> head = parsed(line);
  if (!head || text_of(*head, "format") != kFormat)
    return invalid_argument(fmt::format("{} is no bundle that collet conform --bundle has written", name));
  if (count_in(*head, "version") != kVersion)
    return invalid_argument(fmt::format("{} is a bundle of format {}; this program reads format {}", name,
                                        count_in(*head, "version"), kVersion));
  const json::object *suite = object_in(*head, "suite"), *backend = object_in(*head, "backend"),
                     *machine = object_in(*head, "machine");
  if (suite == nullptr || backend == nullptr || machine == nullptr)
    return invalid_argument(fmt::format("{}: the first line lacks suite, backend or machine", name));
  Bundle out;
  out.collet = text_of(*head, "collet");
  out.verdict = text_of(*head, "verdict");
  out.cases = count_in(*head, "cases");
  out.report.ended = text_of(*head, "ended");
  out.report.claims = texts_in(*head, "claims");
  out.suite = text_of(*suite, "sha256");
  out.suite_version = text_of(*suite, "version");
  out.terms = text_of(*suite, "terms");
  out.options.full = out.report.full = flag_in(*suite, "full");
  out.options.filters = texts_in(*suite, "filters");
  out.options.profiles = texts_in(*suite, "profiles");
  out.options.seed = out.report.seed = count_in(*suite, "seed");
  out.options.shard = static_cast<uint32_t>(count_in(*suite, "shard"));
  out.options.shards = static_cast<uint32_t>(count_in(*suite, "shards"));
  if (out.options.shard >= out.options.shards)
    return invalid_argument(fmt::format("{}: there is no shard {} of {}", name, out.options.shard, out.options.shards));
  out.report.backend = text_of(*backend, "name");
  // The name becomes a path that is opened, so a bundle must not contain one: it must not determine which library on
  // this machine is loaded.
  if (out.report.backend.find('/') != std::string::npos)
    return invalid_argument(fmt::format("{}: '{}' is no name of a backend", name, out.report.backend));
  out.report.version = text_of(*backend, "version");
  out.report.interface = text_of(*backend, "interface");
  out.report.opset = static_cast<uint32_t>(count_in(*backend, "opset"));
  out.report.path = text_of(*backend, "library");
  out.library = text_of(*backend, "sha256");
  out.report.fallback = text_of(*backend, "fallback");
  out.options.backend.name = out.report.backend;
  out.options.backend.no_fallback = out.report.fallback.empty();
  if (const json::value* pairs = backend->if_contains("options"); pairs != nullptr && pairs->is_array())
    for (const json::value& pair : pairs->as_array()) {
      if (!pair.is_array() || pair.as_array().size() != 2) continue;
      const json::array& two = pair.as_array();
      if (!two[0].is_string() || !two[1].is_string()) continue;
      out.options.backend.options.emplace_back(std::string(two[0].as_string()), std::string(two[1].as_string()));
    }
  out.machine = text_of(*machine, "sha256");
  for (const std::string& text : texts_in(*machine, "description")) out.report.machine += text + "\n";
  return out;
}

}  // namespace

Expected<std::string> bundle_text(const ConformReport& report, const ConformOptions& options) {
  const std::string library = library_digest(report.path);
  if (library.empty()) return not_found(fmt::format("{} cannot be read, and a bundle has its hash", report.path));
  std::string out = head_line(report, options, library);
  const std::string key = sha256(out);
  for (const CaseResult& one : report.cases) out += case_line(one, key);
  return out + last_line(out);
}

Expected<Bundle> read_bundle(std::string_view name, std::string_view text) {
  const size_t head_end = std::min(text.find('\n'), text.size());
  COLLET_ASSIGN(Bundle out, read_head(name, text.substr(0, head_end)));
  const size_t whole = text.size();
  const std::string key = sha256(text.substr(0, std::min(head_end + 1, whole)));
  const std::string_view all = text;
  size_t number = 1, bad_sums = 0;
  bool ended = false;
  text.remove_prefix(std::min(head_end + 1, whole));
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t start = whole - text.size();
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::optional<json::object> one = parsed(line);
    if (one && one->contains("sha256")) {
      ended = true;
      if (all.substr(start) != last_line(all.substr(0, start)))
        out.altered.push_back(fmt::format("line {}: the hash of the file is another one", number));
      continue;
    }
    const std::optional<Outcome> outcome = one ? outcome_named(text_of(*one, "status")) : std::nullopt;
    if (!outcome) {
      out.altered.push_back(fmt::format("line {}: no result of a case", number));
      continue;
    }
    CaseResult result{.name = text_of(*one, "name"),
                      .outcome = *outcome,
                      .detail = text_of(*one, "detail"),
                      .waiver = text_of(*one, "waiver")};
    result.device_ops = static_cast<int64_t>(count_in(*one, "device_ops"));
    result.fallback_ops = static_cast<int64_t>(count_in(*one, "fallback_ops"));
    result.ulp = number_of(*one, "ulp");
    result.share = number_of(*one, "share");
    if (!has_its_sum(line, key)) {
      ++bad_sums;
      out.altered.push_back(fmt::format("line {}: {} was altered", number, result.name));
    }
    out.report.cases.push_back(std::move(result));
  }
  if (!ended) out.altered.emplace_back("the last line, the hash of the file, is missing: it was cut off");
  // Every line's checksum includes that of the first line.
  if (bad_sums > 0 && bad_sums == out.report.cases.size())
    out.altered = {"line 1, what the run was, or every result was altered"};
  return out;
}

}  // namespace collet::conformance
