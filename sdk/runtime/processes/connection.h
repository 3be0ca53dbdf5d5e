// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "hlo/base/status.h"

/// \file
/// The transport of a group of processes, as long as this process is in the group.

namespace collet::runtime {

/// An open transport. There is one way in which it ends: this process leaves the group; then no use of the transport begins any
/// more, and the last use that there is closes it. Thread-safe.
class Connection {
 public:
  Connection() = default;
  /// Nothing uses the transport any more.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Opens the transport, once.
  collet_status open(const collet_transport& table, const collet_transport_options& options, collet_error* error);

  /// A use of the transport, which is not closed before the use ends. It is false if this process has left the group.
  class Use {
   public:
    explicit Use(Connection* of) : of_(of) {}
    Use(Use&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (of_) of_->end();
    }
    explicit operator bool() const { return of_ != nullptr; }
    /// The functions of the transport, and the transport itself.
    const collet_transport* operator->() const { return of_->table_; }
    void* transport() const { return of_->transport_; }

   private:
    Connection* of_;
  };
  /// Begins a use.
  Use use();

  /// Leaves the group, once: uses that begin later fail with `outcome`, and the other processes are told `why`. Called within a use.
  void leave(const Status& outcome, const std::string& why);
  /// The failure with which this process has left the group; success if it has not.
  Status lost() const;

 private:
  void end();

  const collet_transport* table_ = nullptr;
  void* transport_ = nullptr;  // null before it is opened and after it is closed; changed when nothing uses it
  mutable std::mutex mutex_;   // guards the following members
  uint32_t uses_ = 0;
  Status lost_;
};

}  // namespace collet::runtime
