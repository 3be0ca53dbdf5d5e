// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/rendezvous.h"

namespace collet::runtime {

void Rendezvous::add(const collet_message& send, const collet_message& receive, uint32_t& number) {
  sends_.push_back(send);
  receives_.push_back(receive);
  numbers_.push_back(&number);
}

// Receives the headers of all partners, also after a wrong one: those that agree wait for this process already.
Status Rendezvous::meet() {
  size_t count = 0;
  const auto take = [&](uint32_t i) {
    Status judged = rules_.check(i);
    if (failure_.ok()) failure_ = std::move(judged);
    // Nobody takes the header for a process that has failed, so the call does not wait for that.
    return ++count < receives_.size() ? ok_status() : failure_;
  };
  const Status status = processes_.exchange(sends_, receives_, take, what_);
  if (count < receives_.size() || failure_.ok()) return status;
  // The call has given up what was not taken yet, perhaps by one that agrees. Nobody waits for a second one.
  for (const collet_message& one : sends_) processes_.post(one);
  return ok_status();
}

Status Rendezvous::exchange(std::span<const DataMessage> sends, std::span<const DataMessage> receives,
                            const std::function<void(size_t i)>& received) {
  const bool meets = !has_met_ && !receives_.empty();
  const size_t heads = meets && rules_.is_one ? receives_.size() : 0;
  std::vector<collet_message> all_sends, all_receives;
  std::vector<size_t> indices;  // of the messages that are received
  all_sends.reserve(heads + sends.size());
  all_receives.reserve(heads + receives.size());
  indices.reserve(receives.size());
  if (!has_met_)
    for (uint32_t* const number : numbers_) ++*number;
  has_met_ = true;
  if (heads > 0) {
    all_sends.assign(sends_.begin(), sends_.end());
    all_receives.assign(receives_.begin(), receives_.end());
  } else if (meets) {
    COLLET_TRY(meet());
  }
  const auto goes = [&](const DataMessage& one) { return heads > 0 || failure_.ok() || rules_.goes(one.unit); };
  for (const DataMessage& one : sends)
    if (goes(one)) all_sends.push_back(one.message);
  for (size_t i = 0; i < receives.size(); ++i) {
    if (!goes(receives[i])) continue;
    all_receives.push_back(receives[i].message);
    indices.push_back(i);
  }
  if (all_sends.empty() && all_receives.empty()) return ok_status();
  const auto take = [&](uint32_t i) {
    if (i < heads) return rules_.check(i);
    if (received) received(indices[i - heads]);
    return ok_status();
  };
  return processes_.exchange(all_sends, all_receives, take, what_);
}

}  // namespace collet::runtime
