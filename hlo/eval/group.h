// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::hlo {

/// Synchronises the participants of one run, each of which runs in a thread of its own. A participant that waits for one that
/// has ended gets an error.
class Group {
 public:
  explicit Group(int64_t participants) : running_(participants) {}

  /// Provides `operands` to the members of `group` at their next common execution of `instr`, and waits for theirs.
  Expected<std::vector<std::vector<Literal>>> exchange(int64_t self, const Instruction& instr,
                                                       std::span<const int64_t> group,
                                                       std::span<const Literal> operands);
  Status send(int64_t channel, int64_t target, Literal value);
  Expected<Literal> receive(int64_t channel, int64_t self);
  /// Records that a participant has ended, with or without an error.
  void leave();

 private:
  struct Rendezvous {
    std::vector<std::vector<Literal>> operands;
    size_t arrived = 0, left = 0;
  };
  using Place = std::tuple<const Instruction*, std::vector<int64_t>, uint64_t>;

  /// Waits until `done` returns true. Returns an error if all participants that still run are waiting.
  template <typename Done>
  Status wait(std::unique_lock<std::mutex>& lock, const Done& done, const std::string& what);

  void change();

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t running_;
  int64_t waiting_ = 0;   // number of active participants whose condition was false since the last change
  uint64_t changes_ = 0;  // arrivals, messages and departures so far
  bool stuck_ = false;
  std::map<Place, std::shared_ptr<Rendezvous>> rendezvous_;
  std::map<std::tuple<int64_t, const Instruction*, std::vector<int64_t>>, uint64_t> visits_;
  std::map<std::pair<int64_t, int64_t>, std::vector<Literal>> mail_;
};

}  // namespace collet::hlo
