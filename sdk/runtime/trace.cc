// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/trace.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "sdk/runtime/backend/backend.h"

namespace collet::runtime {

std::atomic<bool> tracing{false};

namespace {

struct Listener {
  std::shared_mutex mutex;
  collet_trace_fn call = nullptr;
  void* user = nullptr;
};

// The backends whose devices record profiles.
struct Profiled {
  std::mutex mutex;
  std::vector<Backend*> backends;
};

// Immortal: work may end while the process does.
Profiled& profiled() {
  static Profiled* one = new Profiled;
  return *one;
}

// Immortal: work may end while the process does.
Listener& listener() {
  static Listener* one = new Listener;
  return *one;
}

// Time since the epoch, as the profilers of frontends use it.
uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

static void hand_out(const collet_span& span) {
  Listener& l = listener();
  const std::shared_lock lock(l.mutex);
  if (l.call) l.call(l.user, &span);
}

static void read_records(Backend& backend) {
  for (uint32_t device = 0; device < backend.devices().size(); ++device) {
    backend.read_profile(device, [&](const collet_profile_record& record) {
      collet_span span{};
      span.struct_size = sizeof span;
      span.kind = COLLET_SPAN_DEVICE;
      span.name = record.name;
      span.start_ns = record.start_ns;
      span.duration_ns = record.duration_ns;
      span.run_id = record.run_id;
      span.bytes = record.bytes;
      span.device = device;
      span.engine = record.engine;
      hand_out(span);
    });
  }
}

void add_profiled(Backend& backend) {
  Profiled& p = profiled();
  const std::lock_guard lock(p.mutex);
  p.backends.push_back(&backend);
  if (tracing.load(std::memory_order_relaxed)) backend.record_profile(true);
}

void remove_profiled(Backend& backend) {
  Profiled& p = profiled();
  const std::lock_guard lock(p.mutex);
  if (std::erase(p.backends, &backend) == 0) return;
  if (tracing.load(std::memory_order_relaxed)) read_records(backend);
}

void flush_profile(Backend& backend) {
  Profiled& p = profiled();
  const std::lock_guard lock(p.mutex);
  if (backend.profiles() && tracing.load(std::memory_order_relaxed)) read_records(backend);
}

void set_trace(collet_trace_fn call, void* user) {
  Profiled& p = profiled();
  const std::lock_guard profiled_lock(p.mutex);
  if (tracing.load(std::memory_order_relaxed)) {
    for (Backend* backend : p.backends) {
      backend->record_profile(false);
      read_records(*backend);
    }
  }
  if (call)
    for (Backend* backend : p.backends) backend->record_profile(true);
  Listener& l = listener();
  const std::unique_lock lock(l.mutex);
  l.call = call;
  l.user = user;
  tracing.store(call != nullptr, std::memory_order_relaxed);
}

void Span::begin(uint32_t kind, std::string_view name) {
  name_ = name;
  span_.struct_size = sizeof span_;
  span_.kind = kind;
  span_.device = COLLET_NONE;
  span_.thread = static_cast<uint64_t>(gettid());
  span_.start_ns = now_ns();
}

void Span::end() {
  const uint64_t now = now_ns();
  span_.duration_ns = now > span_.start_ns ? now - span_.start_ns : 0;
  const std::string name(name_);
  span_.name = name.c_str();
  hand_out(span_);
}

}  // namespace collet::runtime
