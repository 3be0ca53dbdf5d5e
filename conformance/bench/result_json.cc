// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>
#include <string>

#include "conformance/bench/measure.h"
#include "hlo/base/json.h"

namespace collet::bench {
namespace {

namespace json = boost::json;

void write_timing(JsonWriter& out, const char* name, const Timing& timing) {
  out.key(name).begin_object();
  if (!timing.ran()) out.field("error", timing.error);
  out.field("median_ns", timing.median_ns).field("low_ns", timing.low_ns).field("high_ns", timing.high_ns);
  out.field("device_ops", timing.device_ops).field("fallback_ops", timing.fallback_ops);
  out.field("kernels", timing.kernels).field("traffic_bytes", timing.traffic_bytes);
  if (timing.estimated_ns > 0) out.field("estimated_ns", timing.estimated_ns);
  if (timing.energy_nj > 0) out.field("energy_nj", timing.energy_nj);
  if (timing.cycles > 0) out.field("cycles", timing.cycles);
  out.field("compile_ns", timing.compile_ns).end_object();
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

double number_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

const json::object* object_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

}  // namespace

std::string to_json(const Report& report) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("backend", report.backend).field("against", report.against);
  out.field("repeat", report.request.repeat);
  out.field("told_not_to_fuse", report.told_not_to_fuse).key("machine").begin_object();
  out.field("threads", report.peak.threads).field("vectors", report.peak.vectors);
  out.field("gflops", report.peak.flops_per_ns).field("gflops_one_thread", report.peak.flops_per_ns_1);
  out.field("gbytes", report.request.peak_bytes_per_ns).end_object();
  out.key("cases").begin_array();
  for (const Result& result : report.results) {
    out.begin_object().field("name", result.name).field("family", result.family).field("flops", result.flops);
    out.field("read_bytes", result.read_bytes).field("written_bytes", result.written_bytes);
    out.field("limit_ns", result.limit_ns).field("bound", result.compute_bound ? "flops" : "memory");
    out.field("of_limit", result.of_limit()).field("agrees", result.differs.empty());
    if (!result.differs.empty()) out.field("differs", result.differs);
    write_timing(out, "fused", result.fused);
    if (report.request.unfused) write_timing(out, "unfused", result.unfused);
    if (!report.against.empty()) write_timing(out, "against", result.other);
    out.end_object();
  }
  out.end_array().key("families").begin_array();
  for (const FamilySummary& one : report.families()) {
    out.begin_object().field("family", one.family).field("cases", one.cases).field("ran", one.ran);
    out.field("of_limit", one.of_limit);
    if (one.against > 0) out.field("against", one.against);
    out.end_object();
  }
  out.end_array().end_object();
  return text + "\n";
}

std::string to_json(const Limits& limits) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("threads", limits.peak.threads).field("vectors", limits.peak.vectors);
  out.field("gflops", limits.peak.flops_per_ns).field("gflops_one_thread", limits.peak.flops_per_ns_1);
  out.key("bandwidth").begin_array();
  for (const Bandwidth& one : limits.bandwidth)
    out.begin_object().field("bytes", one.bytes).field("gbytes", one.bytes_per_ns).end_object();
  out.end_array().end_object();
  return text + "\n";
}

const BaselineCase* BaselineRun::find(const std::string& name) const {
  for (const BaselineCase& one : cases)
    if (one.name == name && one.median_ns > 0) return &one;
  return nullptr;
}

Expected<BaselineRun> read_baseline(const std::string& name, const std::string& text) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  const json::object* object = error ? nullptr : root.if_object();
  const json::value* list = object == nullptr ? nullptr : object->if_contains("cases");
  const json::object* machine = object == nullptr ? nullptr : object_of(*object, "machine");
  if (list == nullptr || machine == nullptr || !list->is_array())
    return invalid_argument(name + " is nothing that collet bench --json has written");
  BaselineRun earlier;
  earlier.backend = text_of(*object, "backend");
  earlier.vectors = text_of(*machine, "vectors");
  earlier.threads = static_cast<uint32_t>(number_of(*machine, "threads"));
  for (const json::value& value : list->as_array()) {
    const json::object* one = value.if_object();
    const json::object* fused = one == nullptr ? nullptr : object_of(*one, "fused");
    if (fused == nullptr) continue;
    earlier.cases.push_back({text_of(*one, "name"), number_of(*fused, "median_ns"), number_of(*one, "of_limit")});
  }
  return earlier;
}

}  // namespace collet::bench
