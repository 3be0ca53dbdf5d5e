// SPDX-License-Identifier: Apache-2.0
// Implements the functions of NCCL that the gpu backend calls. They compute on the host. As on GPUs, the stream of each
// member waits until those of the others have come to the same calls. Unlike NCCL, which would wait for ever, it refuses
// calls that do not fit together; so one thread must make the calls of all members of a communicator in one group.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/emulator/entry.h"
#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu {

namespace {
struct Clique;
}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
};

#define COLLET_NCCL_FUNCTION(result, name, parameters) COLLET_EXPORT result name parameters;
#include "reference_backends/gpu/library/nccl_functions.def"

namespace {

using emulator::Elements;
using emulator::EventState;
using emulator::mark_written;
using emulator::problem_of;
using emulator::State;

enum class CallKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce:
      return "ncclAllReduce";
    case CallKind::kReduceScatter:
      return "ncclReduceScatter";
    case CallKind::kAllGather:
      return "ncclAllGather";
    case CallKind::kBroadcast:
      return "ncclBroadcast";
    case CallKind::kSend:
      return "ncclSend";
    case CallKind::kReceive:
      return "ncclRecv";
  }
  return "";
}

/// A call of one member.
struct Call {
  CallKind kind;
  uint64_t from;
  uint64_t to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t combine;
  int peer;  ///< the root of a broadcast, or the other member of a send or receive
  ncclComm_t communicator;
  CUstream stream;

  bool is_between_two() const { return kind == CallKind::kSend || kind == CallKind::kReceive; }
};

/// The calls of all members of a communicator in one group.
struct Exchange {
  std::vector<std::vector<Call>> calls;            ///< by member
  std::vector<std::shared_ptr<EventState>> gates;  ///< by member: opens when all have arrived, or when it is aborted
  std::vector<bool> aborted;
  size_t missing = 0;  ///< members that have not arrived
  bool is_done = false;
};

/// The members of a communicator.
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

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

template <typename T>
T combine_two(ncclRedOp_t combine, T a, T b) {
  switch (combine) {
    case ncclSum:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
  }
  return a;
}
/// Combines floats. The order of the arguments of minimum and maximum decides what becomes of NaN, so both ignore it.
double combine_floats(ncclRedOp_t combine, double a, double b) {
  if (combine == ncclMax) return std::fmax(a, b);
  if (combine == ncclMin) return std::fmin(a, b);
  return combine_two(combine, a, b);
}

template <typename T, typename Wide>
void combine_integers(ncclRedOp_t combine, const std::vector<const uint8_t*>& from, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    T sum{};
    for (size_t k = 0; k < from.size(); ++k) {
      T x{};
      std::memcpy(&x, from[k] + i * sizeof(T), sizeof(T));
      const bool is_order = combine == ncclMax || combine == ncclMin;
      // Sums and products wrap around, so they are computed without a sign.
      sum = k == 0     ? x
            : is_order ? combine_two<T>(combine, sum, x)
                       : static_cast<T>(combine_two<Wide>(combine, static_cast<Wide>(sum), static_cast<Wide>(x)));
    }
    std::memcpy(to + i * sizeof(T), &sum, sizeof(T));
  }
}

void combine_arrays(ncclDataType_t type, ncclRedOp_t combine, const std::vector<const uint8_t*>& from, size_t count,
                    uint8_t* to) {
  const auto floats = [&](cudaDataType_t format) {
    const Elements elements(format);
    for (size_t i = 0; i < count; ++i) {
      double sum = elements.load(from[0] + i * elements.bytes()).real();
      for (size_t k = 1; k < from.size(); ++k)
        sum = combine_floats(combine, sum, elements.load(from[k] + i * elements.bytes()).real());
      elements.store(to + i * elements.bytes(), sum);
    }
  };
  switch (type) {
    case ncclInt8:
      return combine_integers<int8_t, uint64_t>(combine, from, count, to);
    case ncclUint8:
      return combine_integers<uint8_t, uint64_t>(combine, from, count, to);
    case ncclInt32:
      return combine_integers<int32_t, uint64_t>(combine, from, count, to);
    case ncclUint32:
      return combine_integers<uint32_t, uint64_t>(combine, from, count, to);
    case ncclInt64:
      return combine_integers<int64_t, uint64_t>(combine, from, count, to);
    case ncclUint64:
      return combine_integers<uint64_t, uint64_t>(combine, from, count, to);
    case ncclFloat16:
      return floats(CUDA_R_16F);
    case ncclBfloat16:
      return floats(CUDA_R_16BF);
    case ncclFloat32:
      return floats(CUDA_R_32F);
    case ncclFloat64:
      return floats(CUDA_R_64F);
  }
}

/// Runs what a clique exchanges.
class ExchangeRun {
 public:
  ExchangeRun(State& state, const Clique& clique, const Exchange& exchange)
      : state_(state), clique_(clique), exchange_(exchange) {}

  void run() {
    for (size_t i = 0;; ++i) {
      std::vector<const Call*> calls;
      for (const std::vector<Call>& mine : exchange_.calls) {
        size_t at = i;
        for (const Call& call : mine) {
          if (!call.is_between_two() && at-- == 0) calls.push_back(&call);
        }
      }
      if (calls.empty()) break;
      if (!together(calls)) return;
    }
    for (size_t from = 0; from < exchange_.calls.size(); ++from) {
      for (size_t to = 0; to < exchange_.calls.size(); ++to) {
        if (!between(from, to)) return;
      }
    }
  }

 private:
  /// Checks an access of a member. If it is invalid, its device fails.
  bool may_access(size_t rank, const Call& call, uint64_t address, uint64_t bytes, bool is_write) {
    if (bytes == 0) return true;
    const std::string what = std::string(name_of(call.kind)) + (is_write ? " writes" : " reads");
    const int device = clique_.devices[rank];
    std::string problem = problem_of(state_, what.c_str(), address, bytes, is_write);
    if (problem.empty() && state_.machine.memory->device_of(address) != static_cast<unsigned>(device))
      problem = what + ": memory of another device";
    if (problem.empty()) return true;
    state_.fail_device(device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
    return false;
  }

  bool together(const std::vector<const Call*>& calls) {
    const Call& first = *calls[0];
    const size_t members = calls.size(), bytes = first.count * bytes_of(first.type);
    const bool scatters = first.kind == CallKind::kReduceScatter, gathers = first.kind == CallKind::kAllGather;
    for (size_t i = 0; i < members; ++i) {
      const bool reads = first.kind != CallKind::kBroadcast || static_cast<int>(i) == first.peer;
      if (reads && !may_access(i, *calls[i], calls[i]->from, scatters ? members * bytes : bytes, false)) return false;
      if (!may_access(i, *calls[i], calls[i]->to, gathers ? members * bytes : bytes, true)) return false;
    }
    if (bytes == 0) return true;
    const emulator::DeviceMemory& memory = *state_.machine.memory;
    std::vector<const uint8_t*> sources;
    for (const Call* call : calls) sources.push_back(memory.host(call->from));
    // All results are computed before any is written, because an operand may be the memory of a result.
    std::vector<std::vector<uint8_t>> results(members);
    for (size_t i = 0; i < members; ++i) {
      std::vector<uint8_t>& out = results[i];
      out.resize(gathers ? members * bytes : bytes);
      if (gathers) {
        for (size_t k = 0; k < members; ++k) std::memcpy(&out[k * bytes], sources[k], bytes);
      } else if (first.kind == CallKind::kBroadcast) {
        std::memcpy(out.data(), sources[static_cast<size_t>(first.peer)], bytes);
      } else {
        std::vector<const uint8_t*> from = sources;
        for (const uint8_t*& one : from) one += scatters ? i * bytes : 0;
        combine_arrays(first.type, first.combine, from, first.count, out.data());
      }
    }
    for (size_t i = 0; i < members; ++i) {
      std::memcpy(memory.host(calls[i]->to), results[i].data(), results[i].size());
      mark_written(state_, calls[i]->to, results[i].size());
    }
    return true;
  }

  bool between(size_t from, size_t to) {
    std::vector<const Call*> sends, receives;
    for (const Call& call : exchange_.calls[from])
      if (call.kind == CallKind::kSend && call.peer == static_cast<int>(to)) sends.push_back(&call);
    for (const Call& call : exchange_.calls[to])
      if (call.kind == CallKind::kReceive && call.peer == static_cast<int>(from)) receives.push_back(&call);
    for (size_t i = 0; i < sends.size(); ++i) {
      const size_t bytes = sends[i]->count * bytes_of(sends[i]->type);
      if (!may_access(from, *sends[i], sends[i]->from, bytes, false)) return false;
      if (!may_access(to, *receives[i], receives[i]->to, bytes, true)) return false;
      if (bytes == 0) continue;
      const emulator::DeviceMemory& memory = *state_.machine.memory;
      std::memmove(memory.host(receives[i]->to), memory.host(sends[i]->from), bytes);
      std::memmove(memory.states(receives[i]->to), memory.states(sends[i]->from), bytes);
    }
    return true;
  }

  State& state_;
  const Clique& clique_;
  const Exchange& exchange_;
};

/// Returns why the calls of a clique do not fit together; empty if they do.
std::string contradiction(const Exchange& exchange) {
  std::vector<std::vector<const Call*>> together(exchange.calls.size());
  std::map<std::pair<int, int>, std::vector<const Call*>> sends, receives;
  for (size_t i = 0; i < exchange.calls.size(); ++i) {
    const int me = static_cast<int>(i);
    for (const Call& call : exchange.calls[i]) {
      if (call.stream != exchange.calls[i][0].stream) return "a member has calls on several streams";
      if (call.kind == CallKind::kSend) {
        sends[{me, call.peer}].push_back(&call);
      } else if (call.kind == CallKind::kReceive) {
        receives[{call.peer, me}].push_back(&call);
      } else {
        together[i].push_back(&call);
      }
    }
  }
  for (size_t i = 1; i < together.size(); ++i) {
    const std::string member = "member " + std::to_string(i);
    if (together[i].size() != together[0].size())
      return member + " has " + std::to_string(together[i].size()) + " calls, and member 0 " +
             std::to_string(together[0].size()) + ": one would wait for ever";
    for (size_t k = 0; k < together[i].size(); ++k) {
      const Call &a = *together[0][k], &b = *together[i][k];
      if (a.kind != b.kind) return member + " calls " + name_of(b.kind) + ", and member 0 " + name_of(a.kind);
      if (a.count != b.count || a.type != b.type || a.combine != b.combine || a.peer != b.peer)
        return member + " and member 0 call " + name_of(a.kind) + " with different counts, types, operations or roots";
    }
  }
  for (const auto* list : {&sends, &receives}) {
    for (const auto& [pair, calls] : *list) {
      const std::vector<const Call*>& from = sends[pair];
      const std::vector<const Call*>& to = receives[pair];
      const std::string members = "member " + std::to_string(pair.first) + " to member " + std::to_string(pair.second);
      if (from.size() != to.size())
        return std::to_string(from.size()) + " sends and " + std::to_string(to.size()) + " receives from " + members;
      for (size_t k = 0; k < from.size(); ++k) {
        if (from[k]->count != to[k]->count || from[k]->type != to[k]->type)
          return "a send and a receive with different counts or types, from " + members;
      }
    }
  }
  return {};
}

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

ncclResult_t start(const std::vector<Call>& calls) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  std::unique_lock lock(state->scheduler->mutex);
  std::map<std::shared_ptr<Clique>, std::shared_ptr<Exchange>> exchanges;
  for (const Call& call : calls) {
    if (!communicators().count(call.communicator))
      return refuse(*state, lock, ncclInvalidArgument, "no valid communicator");
    const std::shared_ptr<Clique>& clique = call.communicator->clique;
    const auto rank = static_cast<size_t>(call.communicator->rank);
    const int device = clique->devices[rank];
    if (!state->streams.count(call.stream) || call.stream->state->device != device || call.stream->state->capture)
      return refuse(*state, lock, ncclInvalidArgument, "no stream of the member's device");
    if (state->devices[static_cast<size_t>(device)].failure != CUDA_SUCCESS) return ncclUnhandledCudaError;
    std::shared_ptr<Exchange>& exchange = exchanges[clique];
    if (!exchange) exchange = std::make_shared<Exchange>();
    exchange->calls.resize(clique->devices.size());
    exchange->calls[rank].push_back(call);
  }
  for (const auto& [clique, exchange] : exchanges) {
    const std::string why = contradiction(*exchange);
    if (!why.empty()) return refuse(*state, lock, ncclInvalidUsage, why);
  }
  for (const auto& [clique, exchange] : exchanges) enqueue(*state, clique, exchange);
  return ncclSuccess;
}

ncclResult_t add(Call call) noexcept {
  try {
    State* const state = emulator::state();
    if (!state) return ncclUnhandledCudaError;
    const bool has_memory = (call.kind == CallKind::kReceive || call.from != 0 || call.count == 0) &&
                            (call.kind == CallKind::kSend || call.to != 0 || call.count == 0);
    if (!call.communicator || !has_memory || bytes_of(call.type) == 0 || call.combine > ncclMin || call.peer < 0)
      return ncclInvalidArgument;
    {
      const std::lock_guard lock(state->scheduler->mutex);
      if (!communicators().count(call.communicator)) return ncclInvalidArgument;
      const std::vector<int>& devices = call.communicator->clique->devices;
      if (static_cast<size_t>(call.peer) >= devices.size()) return ncclInvalidArgument;
    }
    if (open_groups == 0) return start({call});
    group_calls.push_back(call);
    return ncclSuccess;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

uint64_t address(const void* memory) {
  return reinterpret_cast<uint64_t>(memory);
}

}  // namespace

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
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "internal error";
  }
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
      made[i] = new ncclComm{clique, i};
      communicators().insert(made[i]);
    }
    return ncclSuccess;
  } catch (const std::exception&) {
    return ncclInternalError;
  }
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  const std::lock_guard lock(state->scheduler->mutex);
  if (communicators().erase(communicator) == 0) return ncclInvalidArgument;
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  State* const state = emulator::state();
  if (!state) return ncclUnhandledCudaError;
  const std::lock_guard lock(state->scheduler->mutex);
  if (communicators().erase(communicator) == 0) return ncclInvalidArgument;
  const auto rank = static_cast<size_t>(communicator->rank);
  for (const std::shared_ptr<Exchange>& exchange : communicator->clique->pending) {
    exchange->aborted[rank] = true;
    state->scheduler->complete(exchange->gates[rank]);
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
    return start(std::exchange(group_calls, {}));
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
