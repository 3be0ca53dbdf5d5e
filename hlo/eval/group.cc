// SPDX-License-Identifier: Apache-2.0
#include "hlo/eval/group.h"

#include <algorithm>
#include <string>

namespace collet::hlo {

// Every change of state wakes all waiting participants, and each checks its condition again. If all active participants
// have checked since the last change and none can continue, the run is deadlocked.
template <typename Done>
Status Group::wait(std::unique_lock<std::mutex>& lock, const Done& done, const std::string& what) {
  while (!done() && !stuck_) {
    if (++waiting_ == running_) {
      stuck_ = true;
      changed_.notify_all();
      break;
    }
    const uint64_t seen = changes_;
    changed_.wait(lock, [&] { return stuck_ || changes_ != seen; });
  }
  if (done()) return ok_status();
  return failed_precondition(what + " waits for participants that never come");
}

void Group::change() {
  ++changes_;
  waiting_ = 0;
  changed_.notify_all();
}

Expected<std::vector<std::vector<Literal>>> Group::exchange(int64_t self, const Instruction& instr,
                                                            std::span<const int64_t> group,
                                                            std::span<const Literal> operands) {
  const std::vector<int64_t> members(group.begin(), group.end());
  const auto at = static_cast<size_t>(std::find(members.begin(), members.end(), self) - members.begin());
  if (at == members.size()) return internal_error("a participant exchanges in a group that it is not in");
  std::unique_lock lock(mutex_);
  const uint64_t visit = visits_[{self, &instr, members}]++;
  const Place place{&instr, members, visit};
  std::shared_ptr<Rendezvous>& slot = rendezvous_[place];
  if (!slot) {
    slot = std::make_shared<Rendezvous>();
    slot->operands.resize(members.size());
  }
  const std::shared_ptr<Rendezvous> rendezvous = slot;
  rendezvous->operands[at].assign(operands.begin(), operands.end());
  ++rendezvous->arrived;
  change();
  COLLET_TRY(wait(
      lock, [&] { return rendezvous->arrived == members.size(); },
      "'" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) + ")"));
  std::vector<std::vector<Literal>> all = rendezvous->operands;
  if (++rendezvous->left == members.size()) rendezvous_.erase(place);
  return all;
}

Status Group::send(int64_t channel, int64_t target, Literal value) {
  std::unique_lock lock(mutex_);
  mail_[{channel, target}].push_back(std::move(value));
  change();
  return ok_status();
}

Expected<Literal> Group::receive(int64_t channel, int64_t self) {
  std::unique_lock lock(mutex_);
  const std::pair key{channel, self};
  COLLET_TRY(wait(lock, [&] { return !mail_[key].empty(); }, "recv on channel " + std::to_string(channel)));
  auto& queue = mail_[key];
  Literal value = std::move(queue.front());
  queue.erase(queue.begin());
  return value;
}

void Group::leave() {
  std::unique_lock lock(mutex_);
  --running_;
  change();
}

}  // namespace collet::hlo
