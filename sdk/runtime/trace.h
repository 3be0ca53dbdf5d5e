// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <string_view>

/// \file
/// Spans for collet_trace. A span costs only one load if no listener is set.

namespace collet::runtime {

/// True while a listener is set.
extern std::atomic<bool> tracing;

/// Sets the function that gets all further records; null for none. Returns when no earlier listener is being called any
/// more.
void set_trace(collet_trace_fn listener, void* user);

class Backend;

/// Makes the devices of `backend`, which has the table "profile", record their work while a listener is set, until the
/// backend is removed. Their records are passed on at that time.
void add_profiled(Backend& backend);
void remove_profiled(Backend& backend);
/// Passes the records of the devices of `backend` to the listener; does nothing if there is none.
void flush_profile(Backend& backend);

/// Records the time from its construction to its destruction. `name` must live as long.
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

  /// Further fields of the record.
  collet_span& facts() { return span_; }

 private:
  void begin(uint32_t kind, std::string_view name);
  void end();

  collet_span span_{};
  std::string_view name_;
};

}  // namespace collet::runtime
