// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/json.h"
#include "conformance/report/report.h"

namespace collet::conformance {
namespace {

using hlo::op_info;

void write_case(JsonWriter& json, const ConformReport& report, const BackendChoice& backend, const CaseResult& one) {
  json.begin_object().field("name", one.name).field("op", subject(one));
  json.field("type", hlo::type_info(one.type).text).field("status", outcome_name(one.outcome));
  if (!one.detail.empty()) json.field("detail", one.detail);
  json.field("ulp", one.ulp).field("share", one.share).field("device_ops", one.device_ops);
  json.field("fallback_ops", one.fallback_ops).field("seconds", one.seconds);
  if (one.compile_seconds > 0) json.field("compile_seconds", one.compile_seconds);
  if (one.answer_seconds > 0) json.field("answer_seconds", one.answer_seconds);
  if (!one.waiver.empty()) json.field("waiver", one.waiver);
  if (!report.from.empty() && one.run_seconds > 0) json.field("run_seconds", one.run_seconds);
  if (one.beside_seconds > 0) json.field("beside_seconds", one.beside_seconds);
  if (one.share > 0) {
    json.key("errors").begin_array();
    for (const int64_t count : one.errors) json.value(count);
    json.end_array();
  }
  if (!one.evidence.empty()) json.field("evidence", one.evidence);
  if (!one.program.empty()) json.field("program", one.program);
  if (!one.reduced.empty()) json.field("reduced", one.reduced);
  if (one.outcome != Outcome::Pass) json.field("reproducer", reproducer(report, backend, one));
  json.end_object();
}

void write_summary(JsonWriter& json, const OpSummary& s) {
  json.begin_object().field("op", op_info(s.op).text).field("class", class_name(s.op)).field("cases", s.cases);
  json.field("passed", s.passed).field("failed", s.failed).field("unsupported", s.unsupported);
  json.field("declared", s.declared)
      .field("on_device", s.on_device)
      .field("worst_ulp", s.worst_ulp)
      .field("worst_share", s.worst_share);
  json.field("share_of_work", share_of_work(s.op));
  if (!s.worst_case.empty()) json.field("worst_case", s.worst_case);
  json.end_object();
}

void write_group(JsonWriter& json, const GroupSummary& s) {
  json.begin_object().field("kind", kind_name(s.kind)).field("name", s.name).field("on_device", s.on_device);
  json.field("not_run", s.not_run).field("declined", s.declined).field("not_offered", s.not_offered);
  for (const auto& [key, types] :
       {std::pair("types_on_device", &s.types_on_device), std::pair("types_elsewhere", &s.types_elsewhere)}) {
    json.key(key).begin_array();
    for (const hlo::Type type : *types) json.value(hlo::type_info(type).text);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string report_json(const ConformReport& report, const BackendChoice& backend) {
  std::string out;
  JsonWriter json(out);
  const std::vector<OpSummary> ops = summarize(report);
  json.begin_object().field("backend", report.backend).field("version", report.version).field("library", report.path);
  if (!report.revision.empty()) json.field("revision", report.revision);
  if (report.from.empty()) json.field("suite", kSuiteVersion);
  json.field("interface", report.interface)
      .field("opset", report.opset)
      .field("fallback", report.fallback)
      .field("seed", report.seed)
      .field("seconds", report.seconds);
  if (report.processes > 0) json.field("processes", report.processes).field("devices", report.devices);
  const WorkerTimes times = report.worker_times();
  json.key("worker_seconds").begin_object().field("compile", times.compile).field("answer", times.answer);
  json.field("run", times.run).field("contract", times.contract).end_object();
  json.field("verdict", report.conforms() ? "conforms" : "does not conform").key("counts").begin_object();
  for (int i = 0; i <= static_cast<int>(Outcome::Oracle); ++i) {
    const auto outcome = static_cast<Outcome>(i);
    json.field(outcome_name(outcome), report.count(outcome));
  }
  json.field("not_run", report.not_run);
  json.end_object().key("profiles").begin_array();
  for (const ProfileSummary& s : summarize_profiles(report)) {
    json.begin_object().field("profile", s.profile->name).field("claimed", s.claimed).field("cases", s.cases);
    json.field("on_device", s.on_device).field("failed", s.failed).end_object();
  }
  json.end_array();
  if (!report.ended.empty()) json.field("ended", report.ended);
  json.key("ops").begin_array();
  for (const OpSummary& s : ops) write_summary(json, s);
  json.end_array().key("groups").begin_array();
  for (const GroupSummary& s : summarize_groups(report)) write_group(json, s);
  json.end_array().key("next").begin_array();
  for (const OpSummary& s : road_map(ops)) json.value(op_info(s.op).text);
  json.end_array().key("silent").begin_array();
  for (const NeverUsed& one : never_used(report)) {
    json.begin_object().field("why", why_name(one.why)).field("kind", kind_name(one.kind)).field("name", one.name);
    json.key("types").begin_array();
    for (const hlo::Type type : one.types) json.value(hlo::type_info(type).text);
    json.end_array().end_object();
  }
  json.end_array().key("exports").begin_array();
  for (const std::string& name : report.exports) json.value(name);
  json.end_array();
  if (!report.from.empty()) {
    json.key("programs").begin_array();
    for (const std::string& note : report.programs) json.value(note);
    json.end_array().key("unread").begin_array();
    for (const std::string& why : report.unread) json.value(why);
    json.end_array();
  }
  json.key("cases").begin_array();
  for (const CaseResult& one : report.cases) write_case(json, report, backend, one);
  json.end_array().end_object();
  return out + "\n";
}

}  // namespace collet::conformance
