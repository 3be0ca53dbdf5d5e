// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/nccl_member.h"

#include <condition_variable>
#include <cstring>
#include <string>
#include <utility>

#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu::emulator {
namespace {

/// Notified when the result of any member changes.
std::condition_variable& changed() {
  static auto* const one = new std::condition_variable;
  return *one;
}

}  // namespace

bool may_access(State& state, int device, const Call& call, uint64_t address, uint64_t bytes, bool is_write) {
  if (bytes == 0) return true;
  const std::string what = std::string(name_of(call.kind)) + (is_write ? " writes" : " reads");
  std::string problem = problem_of(state, what.c_str(), address, bytes, is_write);
  if (problem.empty() && state.machine.memory->device_of(address) != static_cast<unsigned>(device))
    problem = what + ": memory of another device";
  if (problem.empty()) return true;
  state.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
  return false;
}

std::shared_ptr<ProcessMember> ProcessMember::join(State& state, const ncclUniqueId& id, int members, int rank,
                                                   int device, bool is_blocking) {
  const std::shared_ptr<ProcessMember> made(new ProcessMember(state, members, rank, device, is_blocking));
  auto connection = Membership::join(id, members, rank, device, made->events());
  if (!connection) return nullptr;
  const std::lock_guard lock(state.scheduler->mutex);
  made->connection_ = std::move(connection);
  return made;
}

Membership::Events ProcessMember::events() {
  const auto with_me = [me = weak_from_this()](const auto& act) {
    const std::shared_ptr<ProcessMember> self = me.lock();
    if (!self) return;
    const std::lock_guard lock(self->state_.scheduler->mutex);
    act(*self);
  };
  Membership::Events out;
  out.ready = out.finalized = [with_me] {
    with_me([](ProcessMember& self) {
      self.is_ready_ = true;
      self.set_result(ncclSuccess);
    });
  };
  out.results = [with_me](uint64_t number, std::vector<uint8_t> results) {
    with_me([&](ProcessMember& self) {
      const auto found = self.pending_.find(number);
      if (found == self.pending_.end()) return;
      const std::shared_ptr<Pending> group = found->second;
      group->results = std::move(results);
      group->has_results = true;
      self.open(group);
    });
  };
  out.failed = [with_me](ncclResult_t result, const std::string& why) {
    with_me([&](ProcessMember& self) {
      self.failure_ = result;
      self.why_ = why;
      self.notice_failure();
    });
  };
  return out;
}

void ProcessMember::set_result(ncclResult_t result) {
  // An error stays.
  if (result_ == ncclSuccess || result_ == ncclInProgress) result_ = result;
  changed().notify_all();
}

// A member that waits for nothing need not know that others have left: it has all results that it asked for.
void ProcessMember::notice_failure() {
  const bool is_lost = failure_ == ncclRemoteError && is_ready_;
  if (failure_ == ncclSuccess || is_aborted_ || (is_lost && pending_.empty() && !wants_to_finalize_)) return;
  if (is_lost && pending_.empty()) return set_result(ncclSuccess);
  set_result(failure_);
  state_.report("NCCL: " + why_);
}

ncclResult_t ProcessMember::wait(std::unique_lock<std::mutex>& lock) {
  changed().wait(lock, [&] { return result_ != ncclInProgress || is_aborted_; });
  return is_aborted_ ? ncclInvalidUsage : result_;
}

void ProcessMember::open(const std::shared_ptr<Pending>& group) {
  state_.scheduler->complete(group->gate);
  pending_.erase(group->number);
  if (wants_to_finalize_ && pending_.empty()) connection_->finalize();
}

void ProcessMember::enqueue(std::vector<Call> calls, const std::shared_ptr<StreamState>& stream) {
  const auto group = std::make_shared<Pending>(Pending{++groups_, std::move(calls), std::make_shared<EventState>()});
  group->gate->recorded = 1;
  pending_[group->number] = group;
  // The groups of a communicator run one after another, whatever their streams.
  if (last_) stream->waits.emplace_back(last_, 1);
  last_ = group->gate;
  const auto self = shared_from_this();
  state_.scheduler->enqueue(stream, [self, group] { self->send_operands(group); });
  stream->waits.emplace_back(group->gate, 1);
  state_.scheduler->enqueue(stream, [self, group] { self->take_results(group); });
  notice_failure();
}

void ProcessMember::enqueue_later(std::vector<Call> calls, std::shared_ptr<StreamState> stream) {
  result_ = ncclInProgress;
  run_on_connections([self = shared_from_this(), calls = std::move(calls), stream = std::move(stream)] {
    const std::lock_guard lock(self->state_.scheduler->mutex);
    if (self->is_aborted_ || self->result_ != ncclInProgress) return;
    self->result_ = ncclSuccess;
    self->enqueue(calls, stream);
    changed().notify_all();
  });
}

void ProcessMember::send_operands(const std::shared_ptr<Pending>& group) {
  const auto give_up = [&] {
    const std::lock_guard lock(state_.scheduler->mutex);
    open(group);
  };
  {
    const std::lock_guard lock(state_.scheduler->mutex);
    if (is_aborted_) return;
    // A device that has failed runs nothing more, so the others wait for it until they are aborted.
    if (has_failed_device()) return open(group);
  }
  const DeviceMemory& memory = *state_.machine.memory;
  EncodedCalls encoded;
  for (const Call& call : group->calls) {
    const uint64_t bytes = call.operand_bytes(static_cast<size_t>(rank_), members_);
    if (!may_access(state_, device_, call, call.from, bytes, false) ||
        !may_access(state_, device_, call, call.to, call.result_bytes(members_), true))
      return give_up();
    uint8_t* const to = encoded.add(call, bytes);
    if (bytes == 0) continue;
    std::memcpy(to, memory.host(call.from), bytes);
    if (call.kind == CallKind::kSend) std::memcpy(to + bytes, memory.states(call.from), bytes);
  }
  connection_->submit(group->number, std::move(encoded));
}

void ProcessMember::take_results(const std::shared_ptr<Pending>& group) {
  {
    const std::lock_guard lock(state_.scheduler->mutex);
    if (is_aborted_ || !group->has_results || has_failed_device()) return;
  }
  const DeviceMemory& memory = *state_.machine.memory;
  const uint8_t* from = group->results.data();
  for (const Call& call : group->calls) {
    const uint64_t bytes = call.result_bytes(members_);
    if (bytes == 0) continue;
    if (!may_access(state_, device_, call, call.to, bytes, true)) return;
    std::memcpy(memory.host(call.to), from, bytes);
    from += bytes;
    if (call.kind == CallKind::kReceive) {
      std::memcpy(memory.states(call.to), from, bytes);
      from += bytes;
    } else {
      mark_written(state_, call.to, bytes);
    }
  }
  group->results = {};
}

void ProcessMember::finalize() {
  has_ended_ = wants_to_finalize_ = true;
  if (result_ != ncclSuccess) return;
  result_ = ncclInProgress;
  if (pending_.empty()) connection_->finalize();
  notice_failure();
}

void ProcessMember::leave() {
  has_ended_ = true;
  connection_->leave();
}

void ProcessMember::abort() {
  is_aborted_ = true;
  wants_to_finalize_ = false;
  while (!pending_.empty()) open(std::shared_ptr<Pending>(pending_.begin()->second));
  leave();
  changed().notify_all();
}

}  // namespace collet::gpu::emulator
