// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/trace.h"

#include <collet/collet.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "hlo/base/json.h"
#include "sdk/tool/support/files.h"

namespace collet::tool {
namespace {

struct Record {
  collet_span span;
  std::string name, engine;
};

const char* category(uint32_t kind) {
  switch (kind) {
    case COLLET_SPAN_COMPILE:
      return "compile";
    case COLLET_SPAN_RUN:
      return "run";
    case COLLET_SPAN_LAUNCH:
      return "launch";
    case COLLET_SPAN_COPY:
      return "copy";
    case COLLET_SPAN_COLLECTIVE:
      return "collective";
    case COLLET_SPAN_HOST_CALL:
      return "host call";
    case COLLET_SPAN_DEVICE:
      return "device";
  }
  return "other";
}

// Writes the name that viewers show for a process or a thread.
void write_name(JsonWriter& json, const char* what, uint64_t process, uint64_t thread, const std::string& name) {
  json.begin_object().field("name", what).field("ph", "M").field("pid", process).field("tid", thread);
  json.key("args").begin_object().field("name", name).end_object().end_object();
}

}  // namespace

struct Trace::Heard {
  std::mutex mutex;
  std::vector<Record> records;

  static void listen(void* user, const collet_span* span) {
    auto* self = static_cast<Heard*>(user);
    const std::lock_guard lock(self->mutex);
    self->records.push_back({*span, span->name, span->engine ? span->engine : ""});
  }
};

Trace::Trace() : heard_(std::make_unique<Heard>()) {
  collet_trace(Heard::listen, heard_.get());
}

Trace::~Trace() {
  collet_trace(nullptr, nullptr);
}

Status Trace::write(const std::string& file) {
  collet_trace(nullptr, nullptr);
  std::vector<Record>& records = heard_->records;
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.span.start_ns < b.span.start_ns; });
  const uint64_t origin = records.empty() ? 0 : records[0].span.start_ns;
  std::string text;
  JsonWriter json(text, 0);
  json.begin_object().field("displayTimeUnit", "ns").key("traceEvents").begin_array();
  // The trace shows each device as a process and each of its engines as a thread; the host is process 1.
  std::map<std::pair<uint32_t, std::string>, uint64_t> engines;
  for (const auto& [span, name, engine] : records) {
    json.begin_object().field("name", name).field("cat", category(span.kind)).field("ph", "X");
    json.field("ts", static_cast<double>(span.start_ns - origin) / 1000);
    json.field("dur", static_cast<double>(span.duration_ns) / 1000);
    if (span.kind == COLLET_SPAN_DEVICE) {
      const uint64_t thread = engines.try_emplace({span.device, engine}, engines.size() + 1).first->second;
      json.field("pid", uint64_t{2} + span.device).field("tid", thread);
    } else {
      json.field("pid", 1).field("tid", span.thread);
    }
    json.key("args").begin_object();
    if (span.device != COLLET_NONE)
      json.field("on", span.on_fallback ? std::string("fallback") : "device " + std::to_string(span.device));
    if (span.run_id) json.field("run_id", span.run_id);
    if (span.bytes) json.field("bytes", span.bytes);
    json.end_object().end_object();
  }
  for (const auto& [place, thread] : engines) {
    write_name(json, "process_name", 2 + place.first, thread, "device " + std::to_string(place.first));
    write_name(json, "thread_name", 2 + place.first, thread, place.second);
  }
  json.end_array().end_object();
  return write_file(file, text + "\n");
}

}  // namespace collet::tool
