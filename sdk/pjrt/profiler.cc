// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/profiler.h"

#include <collet/collet.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sdk/pjrt/error.h"
#include "sdk/pjrt/wire.h"

/// \file
/// Collects the spans of the process for profilers. Only one session at a time gets spans; others get none. The result
/// has a plane for each device, and one for spans without a device; a plane has a line for each kind of work, as
/// profile viewers show them.

struct PLUGIN_Profiler_Error {
  PJRT_Error_Code code;
  std::string message;
};

namespace collet::pjrt {
namespace {

struct Record {
  std::string name, engine;
  uint64_t start_ns, duration_ns, run_id, bytes, thread;
  uint32_t kind, device;
  bool on_fallback;
};

struct Session {
  std::mutex mutex;
  std::vector<Record> records;
  bool active = false;
  bool collected = false;
  std::string bytes;
};

// The session that gets spans.
struct Stage {
  std::mutex mutex;
  Session* session = nullptr;
};
Stage& stage() {
  static Stage* one = new Stage;
  return *one;
}

constexpr size_t kMostRecords = 4'000'000;

void listen(void* user, const collet_span* span) {
  auto* session = static_cast<Session*>(user);
  const std::lock_guard lock(session->mutex);
  if (session->records.size() >= kMostRecords) return;
  session->records.push_back({span->name, span->engine ? span->engine : "", span->start_ns, span->duration_ns,
                              span->run_id, span->bytes, span->thread, span->kind, span->device,
                              span->on_fallback != 0});
}

PLUGIN_Profiler_Error* failure(PJRT_Error_Code code, const char* message) {
  return new PLUGIN_Profiler_Error{code, message};
}

// Returns the name of the line for a record: records that run one after another on the same device or queue share a
// line.
std::string line_name(const Record& r) {
  switch (r.kind) {
    case COLLET_SPAN_COMPILE:
      return "Compilation, thread " + std::to_string(r.thread);
    case COLLET_SPAN_RUN:
      return "XLA Modules";
    case COLLET_SPAN_LAUNCH:
      return r.on_fallback ? "Launches on the fallback" : "XLA Ops";
    case COLLET_SPAN_COPY:
      return "Copies, thread " + std::to_string(r.thread);
    case COLLET_SPAN_COLLECTIVE:
      return "Collectives on the host";
    case COLLET_SPAN_DEVICE:
      return "Engine " + r.engine;
    default:
      return "Host functions";
  }
}

enum Stat : uint64_t { kRunId = 1, kBytes = 2 };

std::string stat(Stat which, uint64_t value) {
  std::string out;
  put_number(out, 1, which);
  put_number(out, 3, value);
  return out;
}

// Builds an XPlane message with the spans of one device.
class Plane {
 public:
  Plane(uint64_t id, std::string name, uint64_t origin) : id_(id), name_(std::move(name)), origin_(origin) {}

  void add(const Record& r) {
    const uint64_t metadata = names_.try_emplace(r.name, names_.size() + 1).first->second;
    std::string event;
    put_number(event, 1, metadata);
    put_number(event, 2, (r.start_ns - origin_) * 1000);
    put_number(event, 3, r.duration_ns * 1000);
    if (r.run_id) put_bytes(event, 4, stat(kRunId, r.run_id));
    if (r.bytes) put_bytes(event, 4, stat(kBytes, r.bytes));
    put_bytes(lines_[line_name(r)], 4, event);
  }

  std::string text() const {
    std::string out;
    put_number(out, 1, id_);
    put_bytes(out, 2, name_);
    uint64_t number = 0;
    for (const auto& [name, events] : lines_) {
      std::string line;
      put_number(line, 1, ++number);
      put_bytes(line, 2, name);
      put_number(line, 3, origin_);
      put_bytes(out, 3, line + events);
    }
    for (const auto& [name, id] : names_) put_bytes(out, 4, entry(id, name));
    put_bytes(out, 5, entry(kRunId, "run_id"));
    put_bytes(out, 5, entry(kBytes, "bytes_transferred"));
    return out;
  }

 private:
  // Returns an entry of a map from a number to a message with this number and a name.
  static std::string entry(uint64_t id, const std::string& name) {
    std::string value, out;
    put_number(value, 1, id);
    put_bytes(value, 2, name);
    put_number(out, 1, id);
    put_bytes(out, 2, value);
    return out;
  }

  uint64_t id_;
  std::string name_;
  uint64_t origin_;
  std::map<std::string, uint64_t> names_;
  std::map<std::string, std::string> lines_;  // name of a line -> its encoded events
};

std::string to_xspace(const std::vector<Record>& records) {
  uint64_t origin = UINT64_MAX;
  for (const Record& r : records) origin = std::min(origin, r.start_ns);
  std::map<uint32_t, Plane> planes;
  for (const Record& r : records) {
    const bool known = r.device != COLLET_NONE && !r.on_fallback;
    const uint32_t key = known ? r.device : COLLET_NONE;
    const std::string name = known ? "/device:CUSTOM:Collet " + std::to_string(r.device) : "/host:Collet";
    planes.try_emplace(key, uint64_t{key} + 1, name, origin).first->second.add(r);
  }
  std::string out;
  for (const auto& [key, plane] : planes) put_bytes(out, 1, plane.text());
  return out;
}

Session& session_of(PLUGIN_Profiler* profiler) {
  return *reinterpret_cast<Session*>(profiler);
}

void silence(Session& session) {
  Stage& s = stage();
  const std::lock_guard lock(s.mutex);
  if (s.session == &session) {
    collet_trace(nullptr, nullptr);
    s.session = nullptr;
  }
  session.active = false;
}

void destroy_error(PLUGIN_Profiler_Error_Destroy_Args* args) {
  delete args->error;
}

void error_message(PLUGIN_Profiler_Error_Message_Args* args) {
  args->message = args->error->message.c_str();
  args->message_size = args->error->message.size();
}

PLUGIN_Profiler_Error* error_code(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}

PLUGIN_Profiler_Error* create(PLUGIN_Profiler_Create_Args* args) {
  args->profiler = reinterpret_cast<PLUGIN_Profiler*>(new Session);
  return nullptr;
}

PLUGIN_Profiler_Error* destroy(PLUGIN_Profiler_Args* args) {
  if (!args->profiler) return nullptr;
  Session& session = session_of(args->profiler);
  silence(session);
  delete &session;
  return nullptr;
}

PLUGIN_Profiler_Error* start(PLUGIN_Profiler_Args* args) {
  Session& session = session_of(args->profiler);
  Stage& s = stage();
  const std::lock_guard lock(s.mutex);
  if (s.session == &session) return nullptr;
  if (s.session) return failure(PJRT_Error_Code_FAILED_PRECONDITION, "another profiler session is running");
  session.records.clear();
  session.collected = false;
  session.active = true;
  s.session = &session;
  collet_trace(listen, &session);
  return nullptr;
}

PLUGIN_Profiler_Error* stop(PLUGIN_Profiler_Args* args) {
  silence(session_of(args->profiler));
  return nullptr;
}

// Callers first call without a buffer to get the size. XLA then reads from the pointer that this call sets; other
// callers call again with a buffer of their own.
PLUGIN_Profiler_Error* collect_data(PLUGIN_Profiler_CollectData_Args* args) {
  Session& session = session_of(args->profiler);
  if (session.active) return failure(PJRT_Error_Code_FAILED_PRECONDITION, "the profiler session is still running");
  if (!session.collected) {
    session.bytes = to_xspace(session.records);
    session.records = {};
    session.collected = true;
  }
  if (args->buffer)
    std::memcpy(args->buffer, session.bytes.data(), session.bytes.size());
  else
    args->buffer = reinterpret_cast<uint8_t*>(session.bytes.data());
  args->buffer_size_in_bytes = session.bytes.size();
  return nullptr;
}

}  // namespace

PJRT_Extension_Base* profiler_extension(PJRT_Extension_Base* next) {
  static PLUGIN_Profiler_Api api = {sizeof(PLUGIN_Profiler_Api),
                                    nullptr,
                                    destroy_error,
                                    error_message,
                                    error_code,
                                    create,
                                    destroy,
                                    start,
                                    stop,
                                    collect_data};
  static PJRT_Profiler_Extension extension{};
  extension.base = {sizeof extension, PJRT_Extension_Type_Profiler, next};
  extension.profiler_api = &api;
  return &extension.base;
}

}  // namespace collet::pjrt
