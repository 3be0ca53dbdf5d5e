// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/trace.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace collet::runtime {

std::atomic<bool> tracing{false};

namespace {

struct Listener {
  std::shared_mutex mutex;
  collet_trace_fn call = nullptr;
  void* user = nullptr;
};

// Immortal: work may end while the process does.
Listener& listener() {
  static Listener* one = new Listener;
  return *one;
}

// Of the day, as profilers of frontends count.
uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

void set_trace(collet_trace_fn call, void* user) {
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
  Listener& l = listener();
  const std::shared_lock lock(l.mutex);
  if (l.call) l.call(l.user, &span_);
}

}  // namespace collet::runtime
