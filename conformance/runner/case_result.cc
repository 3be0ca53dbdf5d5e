// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "conformance/contract/contract.h"
#include "conformance/runner/profiles.h"
#include "conformance/runner/tasks.h"

namespace collet::conformance {
namespace {

Outcome outcome_of(std::string_view status) {
  if (status == "pass") return Outcome::Pass;
  if (status == "unsupported") return Outcome::Unsupported;
  return status == "oracle" ? Outcome::Oracle : Outcome::Fail;
}

void read_errors(std::string_view text, ErrorCounts& errors) {
  for (int64_t& count : errors) {
    const size_t end = std::min(text.find(' '), text.size());
    count = std::strtoll(std::string(text.substr(0, end)).c_str(), nullptr, 10);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Lets a failure count as passed if its case has a waiver.
void apply_waiver(std::span<const Waiver> waivers, CaseResult& result) {
  if (result.outcome != Outcome::Fail) return;
  const Waiver* waiver = find_waiver(waivers, result.name);
  if (waiver == nullptr) return;
  result.outcome = Outcome::Pass;
  result.waiver = waiver->number;
  result.detail =
      fmt::format("waived by {} of {}, {}: {}", waiver->number, waiver->date, waiver->reason, result.detail);
}

}  // namespace

double number(const Fields& fields, std::string_view key) {
  return std::strtod(std::string(find_field(fields, key)).c_str(), nullptr);
}

Fields fields_of(const TaskResult& task) {
  Fields fields = task.reply;
  if (task.kind != TaskResult::Kind::Replied)
    fields = {{"status", task.kind == TaskResult::Kind::TimedOut ? "timeout" : "crash"}, {"detail", task.detail}};
  fields.emplace_back("seconds", fmt::format("{}", task.seconds));
  return fields;
}

CaseResult result_of(const Case& one, const Fields& fields, const std::vector<std::string>& claims,
                     std::span<const Waiver> waivers) {
  CaseResult result{.name = one.name, .op = one.op, .type = one.type, .pattern = one.pattern};
  result.seconds = number(fields, "seconds");
  const std::string_view status = find_field(fields, "status");
  result.detail = find_field(fields, "detail");
  if (status == "crash" || status == "timeout") {
    result.outcome = status == "timeout" ? Outcome::Timeout : Outcome::Crash;
    const std::string promises = is_contract(one.name) ? promises_of(one.name) : std::string();
    if (!promises.empty()) result.detail += "; " + promises;
    return result;
  }
  result.outcome = outcome_of(status);
  result.ulp = number(fields, "ulp");
  result.share = number(fields, "share");
  result.evidence = find_field(fields, "evidence");
  result.answer_seconds = number(fields, "answer_seconds");
  result.compile_seconds = number(fields, "compile_seconds");
  result.run_seconds = number(fields, "run_seconds");
  result.beside_seconds = number(fields, "beside_seconds");
  result.is_independent = !find_field(fields, "independent").empty();
  read_errors(find_field(fields, "errors"), result.errors);
  result.device_ops = static_cast<int64_t>(number(fields, "device_ops"));
  result.fallback_ops = static_cast<int64_t>(number(fields, "fallback_ops"));
  const bool elsewhere =
      result.outcome == Outcome::Unsupported || (result.outcome == Outcome::Pass && result.fallback_ops > 0);
  if (const Profile* profile = elsewhere ? claimed_profile(claims, result) : nullptr) {
    result.detail = fmt::format("profile {} is claimed, and the device did not take it{}{}", profile->name,
                                result.detail.empty() ? "" : ": ", result.detail);
    result.outcome = Outcome::Fail;
    return result;
  }
  apply_waiver(waivers, result);
  return result;
}

bool is_failure(Outcome outcome) {
  return outcome != Outcome::Pass && outcome != Outcome::Unsupported;
}

}  // namespace collet::conformance
