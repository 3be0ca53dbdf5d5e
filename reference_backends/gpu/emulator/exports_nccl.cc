// SPDX-License-Identifier: Apache-2.0
// Implements the functions of NCCL that the gpu backend calls. They compute on the host. As on GPUs, the stream of each
// member waits until those of the others have come to the same calls. Unlike NCCL, which would wait for ever, it refuses
// calls that do not fit together; so one thread must make the calls of all members of ncclCommInitAll in one group.
#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"
#include "reference_backends/gpu/emulator/nccl_calls.h"
#include "reference_backends/gpu/emulator/nccl_member.h"
#include "reference_backends/gpu/emulator/nccl_processes.h"

namespace collet::gpu {

namespace {
struct Clique;
}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;                    ///< if all members are in this process
  std::shared_ptr<emulator::ProcessMember> process;  ///< if they may be in several
  int rank = 0;

  size_t members() const;
  int device() const;
};

#define COLLET_NCCL_FUNCTION(result, name, parameters) COLLET_EXPORT result name parameters;
#define COLLET_NCCL_OPTIONAL(result, name, parameters) COLLET_EXPORT result name parameters;
#include "reference_backends/gpu/library/nccl_functions.def"

namespace {

using emulator::Call;
using emulator::CallKind;
using emulator::EventState;
using emulator::mark_written;
using emulator::may_access;
using emulator::ProcessMember;
using emulator::State;

/// The calls of all members of a communicator in one group.
struct Exchange {
  emulator::GroupCalls calls;                      ///< by member
  std::vector<std::shared_ptr<EventState>> gates;  ///< by member: opens when all have arrived, or when it is aborted
  std::vector<bool> aborted;
  size_t missing = 0;  ///< members that have not arrived
  bool is_done = false;
};

/// The members of a communicator within this process.
struct Clique {
  std::vector<int> devices;
  std::vector<std::shared_ptr<Exchange>> pending;
};

/// Returns the valid communicators. The caller must hold the scheduler's lock.
std::set<ncclComm_t>& communicators() {
  static auto* const all = new std::set<ncclComm_t>;
  return *all;
}

thread_local int open_groups = 0;
thread_local std::vector<Call> group_calls;
/// The members that join a communicator in this group.
thread_local std::vector<std::shared_ptr<ProcessMember>> group_members;

/// Runs what a clique exchanges.
class ExchangeRun {
 public:
  ExchangeRun(State& state, const Clique& clique, const Exchange& exchange)
      : state_(state), clique_(clique), exchange_(exchange) {}

  void run() {
    for (const std::vector<const Call*>& calls : emulator::collectives_of(exchange_.calls))
      if (!together(calls)) return;
    for (const emulator::Transfer& transfer : emulator::transfers_of(exchange_.calls))
      if (!between(transfer)) return;
  }

 private:
  bool together(const std::vector<const Call*>& calls) {
    const size_t members = calls.size();
    const emulator::DeviceMemory& memory = *state_.machine.memory;
    std::vector<const uint8_t*> operands;
    for (size_t i = 0; i < members; ++i) {
      const Call& call = *calls[i];
      if (!may_access(state_, clique_.devices[i], call, call.from, call.operand_bytes(i, members), false)) return false;
      if (!may_access(state_, clique_.devices[i], call, call.to, call.result_bytes(members), true)) return false;
      operands.push_back(call.from ? memory.host(call.from) : nullptr);
    }
    // All results are computed before any is written, because an operand may be the memory of a result.
    const std::vector<std::vector<uint8_t>> results = emulator::results_of(calls, operands);
    for (size_t i = 0; i < members; ++i) {
      if (results[i].empty()) continue;
      std::memcpy(memory.host(calls[i]->to), results[i].data(), results[i].size());
      mark_written(state_, calls[i]->to, results[i].size());
    }
    return true;
  }

  bool between(const emulator::Transfer& one) {
    const uint64_t from = one.send->from, to = one.receive->to,
                   bytes = one.receive->result_bytes(clique_.devices.size());
    if (!may_access(state_, clique_.devices[one.from], *one.send, from, bytes, false)) return false;
    if (!may_access(state_, clique_.devices[one.to], *one.receive, to, bytes, true)) return false;
    if (bytes == 0) return true;
    const emulator::DeviceMemory& memory = *state_.machine.memory;
    std::memmove(memory.host(to), memory.host(from), bytes);
    std::memmove(memory.states(to), memory.states(from), bytes);
    return true;
  }

  State& state_;
  const Clique& clique_;
  const Exchange& exchange_;
};

/// Puts the calls of a clique on the streams. The caller holds the scheduler's lock.
void enqueue(State& state, const std::shared_ptr<Clique>& clique, const std::shared_ptr<Exchange>& exchange) {
  emulator::Scheduler& scheduler = *state.scheduler;
  const size_t members = clique->devices.size();
  exchange->aborted.resize(members, false);
  for (size_t i = 0; i < members; ++i) {
    exchange->gates.push_back(std::make_shared<EventState>());
    exchange->gates[i]->recorded = 1;
    if (!exchange->calls[i].empty()) ++exchange->missing;
  }
  auto& pending = clique->pending;
  pending.erase(std::remove_if(pending.begin(), pending.end(), [](const auto& one) { return one->is_done; }),
                pending.end());
  pending.push_back(exchange);
  for (size_t i = 0; i < members; ++i) {
    if (exchange->calls[i].empty()) continue;
    const auto stream = exchange->calls[i][0].stream->state;
    const int device = clique->devices[i];
    scheduler.enqueue(stream, [&state, exchange, device, i] {
      const std::lock_guard lock(state.scheduler->mutex);
      if (state.devices[static_cast<size_t>(device)].failure != CUDA_SUCCESS) {
        // A device that has failed runs nothing more, so the others wait for it until they are aborted.
        exchange->aborted[i] = true;
        return state.scheduler->complete(exchange->gates[i]);
      }
      if (--exchange->missing != 0) return;
      for (const auto& gate : exchange->gates) state.scheduler->complete(gate);
    });
    stream->waits.emplace_back(exchange->gates[i], 1);
    scheduler.enqueue(stream, [&state, clique, exchange, i] {
      {
        const std::lock_guard lock(state.scheduler->mutex);
        if (exchange->aborted[i] || exchange->is_done) return;
        exchange->is_done = true;
      }
      ExchangeRun(state, *clique, *exchange).run();
    });
  }
}

ncclResult_t refuse(State& state, std::unique_lock<std::mutex>& lock, ncclResult_t result, const std::string& why) {
  lock.unlock();
  state.report("NCCL: " + why);
  return result;
}

/// Starts the calls of a member of a communicator over several processes.
void start_member(ProcessMember& member, const std::vector<Call>& calls) {
  const std::shared_ptr<emulator::StreamState> stream = calls[0].stream->state;
  member.is_blocking() ? member.enqueue(calls, stream) : member.enqueue_later(calls, stream);
}

ncclResult_t start(const std::vector<Call>& calls) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  std::unique_lock lock(state->scheduler->mutex);
  std::map<std::shared_ptr<Clique>, std::shared_ptr<Exchange>> exchanges;
  std::map<std::shared_ptr<ProcessMember>, std::vector<Call>> members;
  for (const Call& call : calls) {
    if (!communicators().count(call.communicator))
      return refuse(*state, lock, ncclInvalidArgument, "no valid communicator");
    const int device = call.communicator->device();
    if (!state->streams.count(call.stream) || call.stream->state->device != device || call.stream->state->capture)
      return refuse(*state, lock, ncclInvalidArgument, "no stream of the member's device");
    if (state->devices[static_cast<size_t>(device)].failure != CUDA_SUCCESS) return ncclUnhandledCudaError;
    if (const auto& member = call.communicator->process) {
      if (member->result() == ncclInProgress)
        return refuse(*state, lock, ncclInvalidArgument, "a call before an earlier one has returned");
      if (member->result() != ncclSuccess) return member->result();
      if (member->has_ended()) return refuse(*state, lock, ncclInvalidUsage, "a call after ncclCommFinalize");
      members[member].push_back(call);
      if (call.stream != members[member][0].stream)
        return refuse(*state, lock, ncclInvalidUsage, "a member has calls on several streams");
      continue;
    }
    const std::shared_ptr<Clique>& clique = call.communicator->clique;
    std::shared_ptr<Exchange>& exchange = exchanges[clique];
    if (!exchange) exchange = std::make_shared<Exchange>();
    exchange->calls.resize(clique->devices.size());
    exchange->calls[static_cast<size_t>(call.communicator->rank)].push_back(call);
  }
  for (const auto& [clique, exchange] : exchanges) {
    const std::string why = emulator::contradiction(exchange->calls);
    if (!why.empty()) return refuse(*state, lock, ncclInvalidUsage, why);
  }
  bool is_blocking = !exchanges.empty(), is_other = false;
  for (const auto& [member, of_member] : members) (member->is_blocking() ? is_blocking : is_other) = true;
  if (is_blocking && is_other)
    return refuse(*state, lock, ncclInvalidArgument, "blocking and other communicators in one group");
  for (const auto& [clique, exchange] : exchanges) enqueue(*state, clique, exchange);
  for (const auto& [member, of_member] : members) start_member(*member, of_member);
  return is_other ? ncclInProgress : ncclSuccess;
}

ncclResult_t add(Call call) noexcept {
  try {
    State* const state = emulator::state();
    if (!state) return ncclUnhandledCudaError;
    const bool has_memory = (call.kind == CallKind::kReceive || call.from != 0 || call.count == 0) &&
                            (call.kind == CallKind::kSend || call.to != 0 || call.count == 0);
    if (!call.communicator || !has_memory || emulator::bytes_of(call.type) == 0 || call.combine > ncclMin ||
        call.peer < 0)
      return ncclInvalidArgument;
    {
      const std::lock_guard lock(state->scheduler->mutex);
      if (!communicators().count(call.communicator)) return ncclInvalidArgument;
      if (static_cast<size_t>(call.peer) >= call.communicator->members()) return ncclInvalidArgument;
    }
    if (open_groups == 0) return start({call});
    group_calls.push_back(call);
    return ncclSuccess;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

/// Waits until the members have joined their communicators, if these are blocking.
ncclResult_t wait_for_members(const std::vector<std::shared_ptr<ProcessMember>>& members) {
  std::unique_lock lock(emulator::state()->scheduler->mutex);
  ncclResult_t out = ncclSuccess;
  for (const auto& member : members) {
    const ncclResult_t result = member->is_blocking() ? member->wait(lock) : member->result();
    if (out == ncclSuccess || out == ncclInProgress) out = result == ncclSuccess ? out : result;
  }
  return out;
}

ncclResult_t init_rank(ncclComm_t* made, int count, const ncclUniqueId& id, int rank, bool is_blocking) noexcept {
  try {
    State* const state = emulator::state();
    const int device = emulator::current_device();
    if (!state || device < 0) return ncclUnhandledCudaError;
    if (!made || count < 1 || rank < 0 || rank >= count || !emulator::is_unique_id(id)) return ncclInvalidArgument;
    const auto member = ProcessMember::join(*state, id, count, rank, device, is_blocking);
    if (!member) {
      state->report("NCCL: the process that has made the unique id is gone");
      return ncclRemoteError;
    }
    {
      const std::lock_guard lock(state->scheduler->mutex);
      *made = new ncclComm{nullptr, member, rank};
      communicators().insert(*made);
    }
    if (open_groups == 0) return wait_for_members({member});
    group_members.push_back(member);
    return ncclSuccess;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

uint64_t address(const void* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

}  // namespace

size_t ncclComm::members() const {
  return process ? process->members() : clique->devices.size();
}
int ncclComm::device() const {
  return process ? process->device() : clique->devices[static_cast<size_t>(rank)];
}

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = 1;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return emulator::last_finding();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  try {
    if (!id) return ncclInvalidArgument;
    return emulator::make_unique_id(id);
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int count, ncclUniqueId id, int rank) {
  return init_rank(made, count, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int count, ncclUniqueId id, int rank, ncclConfig_t* config) {
  constexpr int kNotSet = INT_MIN;
  if (!config) return init_rank(made, count, id, rank, true);
  const bool is_known = config->size >= sizeof *config && config->magic == kNcclConfigMagic;
  if (!is_known || (config->blocking != 0 && config->blocking != 1 && config->blocking != kNotSet))
    return ncclInvalidArgument;
  return init_rank(made, count, id, rank, config->blocking != 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t* made, int count, const int* devices) {
  try {
    State* const state = emulator::state();
    if (!state) return ncclUnhandledCudaError;
    const std::lock_guard lock(state->scheduler->mutex);
    if (!made || count < 1) return ncclInvalidArgument;
    auto clique = std::make_shared<Clique>();
    for (int i = 0; i < count; ++i) {
      const int device = devices ? devices[i] : i;
      const bool is_new = std::find(clique->devices.begin(), clique->devices.end(), device) == clique->devices.end();
      if (device < 0 || static_cast<size_t>(device) >= state->devices.size() || !is_new) return ncclInvalidArgument;
      clique->devices.push_back(device);
    }
    for (int i = 0; i < count; ++i) {
      made[i] = new ncclComm{clique, nullptr, i};
      communicators().insert(made[i]);
    }
    return ncclSuccess;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* result) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  const std::lock_guard lock(state->scheduler->mutex);
  if (!result || communicators().count(communicator) == 0) return ncclInvalidArgument;
  *result = communicator->process ? communicator->process->result() : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  std::unique_lock lock(state->scheduler->mutex);
  if (communicators().count(communicator) == 0) return ncclInvalidArgument;
  const std::shared_ptr<ProcessMember> member = communicator->process;
  if (!member) return ncclSuccess;
  if (member->has_ended() || member->result() == ncclInProgress) return ncclInvalidArgument;
  member->finalize();
  return member->is_blocking() ? member->wait(lock) : member->result();
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  std::unique_lock lock(state->scheduler->mutex);
  if (communicators().erase(communicator) == 0) return ncclInvalidArgument;
  if (const std::shared_ptr<ProcessMember> member = communicator->process) {
    member->wait(lock);
    if (!member->has_ended()) member->finalize();
    member->wait(lock);
    member->leave();
  }
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  const std::lock_guard lock(state->scheduler->mutex);
  if (communicators().erase(communicator) == 0) return ncclInvalidArgument;
  if (communicator->process) {
    communicator->process->abort();
  } else {
    const auto rank = static_cast<size_t>(communicator->rank);
    for (const std::shared_ptr<Exchange>& exchange : communicator->clique->pending) {
      exchange->aborted[rank] = true;
      state->scheduler->complete(exchange->gates[rank]);
    }
  }
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++open_groups;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (open_groups == 0) return ncclInvalidUsage;
  if (--open_groups != 0) return ncclSuccess;
  try {
    const std::vector<Call> calls = std::exchange(group_calls, {});
    const auto members = std::exchange(group_members, {});
    const ncclResult_t joined = members.empty() ? ncclSuccess : wait_for_members(members);
    const ncclResult_t started = calls.empty() ? ncclSuccess : start(calls);
    return joined == ncclSuccess || (joined == ncclInProgress && started != ncclSuccess) ? started : joined;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t combine,
                           ncclComm_t communicator, CUstream stream) {
  return add({CallKind::kAllReduce, address(from), address(to), count, type, combine, 0, communicator, stream});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t combine,
                               ncclComm_t communicator, CUstream stream) {
  return add({CallKind::kReduceScatter, address(from), address(to), count, type, combine, 0, communicator, stream});
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           CUstream stream) {
  return add({CallKind::kAllGather, address(from), address(to), count, type, ncclSum, 0, communicator, stream});
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, CUstream stream) {
  return add({CallKind::kBroadcast, address(from), address(to), count, type, ncclSum, root, communicator, stream});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      CUstream stream) {
  return add({CallKind::kSend, address(from), 0, count, type, ncclSum, peer, communicator, stream});
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator, CUstream stream) {
  return add({CallKind::kReceive, 0, address(to), count, type, ncclSum, peer, communicator, stream});
}

}  // namespace collet::gpu
