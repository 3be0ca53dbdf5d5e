// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/connection.h"

#include <cstddef>

namespace collet::runtime {

Connection::~Connection() {
  if (transport_) table_->close(transport_);
}

collet_status Connection::open(const collet_transport& table, const collet_transport_options& options,
                               collet_error* error) {
  table_ = &table;
  const collet_status status = table.open(&options, &transport_, error);
  if (status != COLLET_OK) transport_ = nullptr;
  return status;
}

Connection::Use Connection::use() {
  const std::lock_guard lock(mutex_);
  if (!lost_.ok() || !transport_) return Use(nullptr);
  ++uses_;
  return Use(this);
}

void Connection::leave(const Status& outcome, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return;
    lost_ = outcome;
  }
  constexpr size_t kFirst = offsetof(collet_transport, leave) + sizeof table_->leave;
  if (table_->struct_size >= kFirst && table_->leave) table_->leave(transport_, why.c_str());
}

Status Connection::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void Connection::end() {
  void* closing = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (--uses_ == 0 && !lost_.ok()) closing = std::exchange(transport_, nullptr);
  }
  if (closing) table_->close(closing);
}

}  // namespace collet::runtime
