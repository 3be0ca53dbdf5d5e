// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reference_backends/gpu/emulator/nccl_calls.h"
#include "reference_backends/gpu/emulator/nccl_processes.h"
#include "reference_backends/gpu/emulator/state.h"

namespace collet::gpu::emulator {

/// Checks an access that a call of a member makes. If it is invalid, the member's device fails. Called without the
/// scheduler's lock.
bool may_access(State& state, int device, const Call& call, uint64_t address, uint64_t bytes, bool is_write);

/// A member of a communicator over several processes: puts its calls on streams. As on GPUs, a stream waits until the other
/// members have come to the same calls, or the communicator is aborted. Callers hold the scheduler's lock.
class ProcessMember : public std::enable_shared_from_this<ProcessMember> {
 public:
  /// Connects to the other members. Returns null if the coordinator is gone. Called without the lock.
  static std::shared_ptr<ProcessMember> join(State& state, const ncclUniqueId& id, int members, int rank, int device,
                                             bool is_blocking);

  int rank() const { return rank_; }
  size_t members() const { return members_; }
  int device() const { return device_; }
  bool is_blocking() const { return is_blocking_; }
  /// Returns what ncclCommGetAsyncError answers.
  ncclResult_t result() const { return result_; }
  /// True after finalize or abort: it takes no more calls.
  bool has_ended() const { return has_ended_; }

  /// Waits while the result is ncclInProgress, and returns it.
  ncclResult_t wait(std::unique_lock<std::mutex>& lock);
  /// Puts the calls of a group on the stream.
  void enqueue(std::vector<Call> calls, const std::shared_ptr<StreamState>& stream);
  /// The same, after this returns; until then, the result is ncclInProgress.
  void enqueue_later(std::vector<Call> calls, std::shared_ptr<StreamState> stream);
  /// Takes no more calls. The result is ncclInProgress until all members have got the results of earlier ones.
  void finalize();
  /// Leaves the communicator after `finalize`, or after a failure.
  void leave();
  /// Leaves the communicator at once. No call of this member waits any more, and none writes its result.
  void abort();

 private:
  /// The calls of a group that are on a stream.
  struct Pending {
    uint64_t number = 0;
    std::vector<Call> calls;
    std::shared_ptr<EventState> gate;  ///< opens when the results are there, or none will come
    std::vector<uint8_t> results{};
    bool has_results = false;
  };

  ProcessMember(State& state, int members, int rank, int device, bool is_blocking)
      : state_(state),
        members_(static_cast<size_t>(members)),
        rank_(rank),
        device_(device),
        is_blocking_(is_blocking) {}
  Membership::Events events();
  void set_result(ncclResult_t result);
  void notice_failure();
  void open(const std::shared_ptr<Pending>& group);
  bool has_failed_device() const { return state_.devices[static_cast<size_t>(device_)].failure != CUDA_SUCCESS; }
  // What runs on the stream, without the lock.
  void send_operands(const std::shared_ptr<Pending>& group);
  void take_results(const std::shared_ptr<Pending>& group);

  State& state_;
  const size_t members_;
  const int rank_;
  const int device_;
  const bool is_blocking_;
  std::shared_ptr<Membership> connection_;
  ncclResult_t result_ = ncclInProgress;
  bool is_ready_ = false, has_ended_ = false, is_aborted_ = false, wants_to_finalize_ = false;
  ncclResult_t failure_ = ncclSuccess;  ///< how the communicator has failed, and why
  std::string why_;
  uint64_t groups_ = 0;  ///< groups of calls so far
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;
  std::shared_ptr<EventState> last_;  ///< the gate of the last group
};

}  // namespace collet::gpu::emulator
