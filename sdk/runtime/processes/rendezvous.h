// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/processes/processes.h"

/// \file
/// The rendezvous of the processes of a collective: each two that exchange data compare what they run, before the data move.

namespace collet::runtime {

/// A message with data of a collective. It moves if the collective's `goes` agrees for its unit.
struct DataMessage {
  collet_message message;
  uint32_t unit;
};

/// The messages of one collective, as one process sends and receives them. A process that runs something else, or has failed, ends the
/// exchange of only those units in which it takes part. The others are exchanged, so that no process waits for them in vain.
class Rendezvous {
 public:
  /// What the collective knows of its headers and units.
  struct Rules {
    /// Judges the header of partner `i`, which has come.
    std::function<Status(size_t i)> check;
    /// True if the data of a unit move. Called when all headers have been judged.
    std::function<bool(uint32_t unit)> goes;
    /// All messages are of one unit and with one partner: then the headers and the data are exchanged in one call.
    bool is_one = false;
  };

  /// `what` is for messages.
  Rendezvous(Processes& processes, const std::string& what) : processes_(processes), what_(what) {}

  void set_rules(Rules rules) { rules_ = std::move(rules); }
  /// Adds a partner: the headers for it and from it, which live as long as this object. `number` counts the headers of the pair, and
  /// is raised when these are sent: an error before that is told in their place.
  void add(const collet_message& send, const collet_message& receive, uint32_t& number);

  /// Sends and receives data. The first call exchanges the headers before: until then, the process may give the collective up, and all that
  /// can fail is to be done before. `received` gets the index in `receives` of each message that has been received; it may be empty.
  /// Errors are those of the exchange itself; see failure().
  Status exchange(std::span<const DataMessage> sends, std::span<const DataMessage> receives,
                  const std::function<void(size_t i)>& received = {});
  /// The first wrong header's error: the collective has failed for the units that did not go, whose data are undefined.
  const Status& failure() const { return failure_; }

 private:
  Status meet();

  Processes& processes_;
  const std::string& what_;
  Rules rules_;
  std::vector<collet_message> sends_, receives_;  // the headers
  std::vector<uint32_t*> numbers_;
  bool has_met_ = false;
  Status failure_;
};

}  // namespace collet::runtime
