// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <string_view>

/// \file
/// Spans for collet_trace. While nobody listens a span costs one load.

namespace collet::runtime {

/// True while somebody listens.
extern std::atomic<bool> tracing;

/// Sets the function that gets all further records; null for none. Returns when no earlier listener is being called any more.
void set_trace(collet_trace_fn listener, void* user);

class Backend;

/// Devices of `backend`, which has the table "profile", record what they do while somebody listens, until it is removed. What
/// they have recorded by then is handed out.
void add_profiled(Backend& backend);
void remove_profiled(Backend& backend);
/// Hands out what the devices of `backend` have recorded by now; nothing while nobody listens.
void flush_profile(Backend& backend);

/// From its construction to its end. `name` must live as long.
class Span {
 public:
  Span(uint32_t kind, std::string_view name) {
    if (tracing.load(std::memory_order_relaxed)) begin(kind, name);
  }
  ~Span() {
    if (span_.kind) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// The other facts about it.
  collet_span& facts() { return span_; }

 private:
  void begin(uint32_t kind, std::string_view name);
  void end();

  collet_span span_{};
  std::string_view name_;
};

}  // namespace collet::runtime
