// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/exchanger.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "reference_backends/gpu/library/nccl_elements.h"

namespace collet::gpu {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Waits a little longer each time, so that a short wait ends soon and a long one does not keep a processor busy.
class Pause {
 public:
  void operator()() {
    constexpr int kYields = 50;
    constexpr std::chrono::microseconds kLongest{500};
    if (++count_ <= kYields) return std::this_thread::yield();
    std::this_thread::sleep_for(time_);
    time_ = std::min(2 * time_, kLongest);
  }

 private:
  int count_ = 0;
  std::chrono::microseconds time_{10};
};

/// The unique id of a new communicator, from the process that makes it.
struct Invitation {
  ncclUniqueId id;
  int32_t status;
};

/// Hands data to the processes of an exchange, and returns those of all, by rank.
template <class T>
std::vector<T> hand_over(const collet_exchange& exchange, const T& mine) {
  const collet_group& group = *exchange.group;
  std::vector<T> out(group.size, mine);
  if (group.size == 1) return out;
  collet_error error{};
  const collet_status status = group.exchange(group.user, &mine, sizeof mine, out.data(), &error);
  if (status != COLLET_OK) throw kernel::Error(status, error.message);
  return out;
}

std::string process_text(uint32_t process) {
  return "process " + std::to_string(process) + " of the exchange";
}

/// The code of NCCL's errors. Which one it gives when another process is gone depends on where it notices that.
collet_status code_of(ncclResult_t result) {
  return result == ncclRemoteError || result == ncclSystemError ? COLLET_UNAVAILABLE : COLLET_INTERNAL;
}

uint64_t address(const kernel::Piece& piece) {
  return piece.memory + piece.offset;
}

/// True if NCCL has been started and goes on by itself.
bool has_started(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

}  // namespace

/// Ends the waits of an exchange: if another process is lost, or after a time.
class Exchanger::Watch {
 public:
  explicit Watch(const collet_exchange& exchange)
      : exchange_(exchange), limit_(Clock::now() + milliseconds(exchange.timeout_ms)) {}

  /// True about every 10 ms, when it is time to call `look`.
  bool is_time_to_look() const { return Clock::now() >= next_look_; }
  /// Throws if the exchange is to be given up.
  void look() {
    next_look_ = Clock::now() + milliseconds(10);
    if (has_lost()) throw kernel::Error(COLLET_UNAVAILABLE, "another process of the exchange is lost");
    if (Clock::now() < limit_) return;
    throw kernel::Error(COLLET_DEADLINE_EXCEEDED, "the other processes of the exchange did not answer within " +
                                                      std::to_string(exchange_.timeout_ms) + " ms");
  }
  bool has_lost() const { return exchange_.is_over && exchange_.is_over(exchange_.user) != 0; }

 private:
  const collet_exchange& exchange_;
  const Clock::time_point limit_;
  Clock::time_point next_look_ = Clock::now() + milliseconds(10);
};

/// The members of this process in a communicator.
struct Exchanger::Communicator {
  std::vector<size_t> ranks;  ///< the numbers of the members
  std::vector<Place> places;
  std::vector<CUstream> streams;
  std::vector<ncclComm_t> parts;
  std::exception_ptr failure;  ///< why it cannot be used any more
};

Exchanger::Exchanger(std::shared_ptr<const Driver> driver, std::shared_ptr<const Libraries> libraries,
                     std::function<Place(kernel::Device&)> place_of)
    : library_(std::move(driver)),
      driver_(*library_),
      libraries_(std::move(libraries)),
      nccl_(*libraries_),
      place_of_(std::move(place_of)) {}

Exchanger::~Exchanger() {
  for (const auto& [key, communicator] : communicators_) end(*communicator, true);
}

void Exchanger::check(ncclResult_t result, const char* what) const {
  if (!has_started(result)) throw kernel::Error(code_of(result), nccl_text(nccl_, result, what));
}

bool Exchanger::takes(const collet_exchange& exchange) {
  std::set<std::pair<uint32_t, uint32_t>> devices;
  for (uint32_t i = 0; i < exchange.member_count; ++i) {
    // A device is in a communicator once.
    if (!devices.emplace(exchange.members[i].process, exchange.members[i].device).second) return false;
  }
  if (devices.empty()) return false;
  switch (exchange.kind) {
    case COLLET_EXCHANGE_COPIES:
      return std::all_of(exchange.copies, exchange.copies + exchange.copy_count, [&](const collet_exchange_copy& one) {
        return one.from < exchange.member_count && one.to < exchange.member_count;
      });
    case COLLET_EXCHANGE_ALL_REDUCE:
    case COLLET_EXCHANGE_REDUCE_SCATTER:
      return combined_by_nccl(exchange.element, exchange.combine).has_value();
    case COLLET_EXCHANGE_ALL_GATHER:
      return collet_type_bytes(exchange.element) != 0;
    default:
      return false;
  }
}

/// Returns the places of the members in this process. Throws if one cannot take part.
std::vector<Exchanger::Place> Exchanger::places_of(const collet_exchange& exchange, const Members& members) const {
  std::vector<Place> out;
  for (size_t i = 0; i < members.size(); ++i) {
    const kernel::ExchangeMember& member = members[i];
    if (member.process != exchange.group->rank) continue;
    bool reads = true, writes = true;
    if (exchange.kind == COLLET_EXCHANGE_COPIES) {
      const collet_exchange_copy *const begin = exchange.copies, *const end = begin + exchange.copy_count;
      reads = std::any_of(begin, end, [i](const collet_exchange_copy& one) { return one.from == i; });
      writes = std::any_of(begin, end, [i](const collet_exchange_copy& one) { return one.to == i; });
    }
    if (!member.device || (reads && member.from.memory == kernel::no_memory) ||
        (writes && member.to.memory == kernel::no_memory))
      throw kernel::Error(COLLET_INVALID_ARGUMENT, "member " + std::to_string(i) + " of the exchange has no memory");
    out.push_back(place_of_(*member.device));
  }
  return out;
}

/// Returns who the members are: the processes of two exchanges may have the same ranks, and be others.
Exchanger::Key Exchanger::key_of(const collet_exchange& exchange, const Members& members) {
  Key out;
  for (const kernel::ExchangeMember& member : members)
    out.emplace_back(exchange.processes[member.process], member.number);
  return out;
}

std::shared_ptr<Exchanger::Communicator> Exchanger::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Communicator>& out = communicators_[key];
  if (!out) out = std::make_shared<Communicator>();
  if (out->failure) std::rethrow_exception(out->failure);
  return out;
}

void Exchanger::make(const collet_exchange& exchange, const Members& members, Communicator* out, Watch& watch) const {
  // The process of the first member makes the id.
  const uint32_t maker = members[0].process;
  Invitation mine{};
  std::string failure;
  if (exchange.group->rank == maker) {
    const ncclResult_t made = nccl_.ncclGetUniqueId(&mine.id);
    if (made != ncclSuccess) {
      mine.status = code_of(made);
      failure = nccl_text(nccl_, made, "ncclGetUniqueId");
    }
  }
  const Invitation invitation = hand_over(exchange, mine)[maker];
  if (invitation.status != COLLET_OK)
    throw kernel::Error(invitation.status, failure.empty() ? process_text(maker) + " has no id for NCCL" : failure);
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].process == exchange.group->rank) out->ranks.push_back(i);
  out->streams.resize(out->ranks.size());
  out->parts.resize(out->ranks.size());
  for (size_t i = 0; i < out->ranks.size(); ++i) {
    const Place& place = out->places[i];
    place.check(driver_.cuCtxSetCurrent(place.context), "cuCtxSetCurrent");
    place.check(driver_.cuStreamCreateWithPriority(&out->streams[i], CU_STREAM_NON_BLOCKING, 0),
                "cuStreamCreateWithPriority");
  }
  ncclConfig_t config{sizeof config, kNcclConfigMagic, kNcclConfigVersion, 0};
  const auto count = static_cast<int>(members.size());
  check(nccl_.ncclGroupStart(), "ncclGroupStart");
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < out->ranks.size() && has_started(result); ++i) {
    const Place& place = out->places[i];
    const auto rank = static_cast<int>(out->ranks[i]);
    driver_.cuCtxSetCurrent(place.context);  // NCCL takes the device of the current context
    result = nccl_.ncclCommInitRankConfig
                 ? nccl_.ncclCommInitRankConfig(&out->parts[i], count, invitation.id, rank, &config)
                 : nccl_.ncclCommInitRank(&out->parts[i], count, invitation.id, rank);
  }
  const ncclResult_t ended = nccl_.ncclGroupEnd();
  check(has_started(result) ? ended : result, "ncclCommInitRank");
  await_functions(*out, watch);
}

void Exchanger::await_functions(const Communicator& communicator, Watch& watch) const {
  Pause pause;
  for (ncclComm_t part : communicator.parts) {
    for (;;) {
      ncclResult_t state = ncclSuccess;
      check(nccl_.ncclCommGetAsyncError(part, &state), "ncclCommGetAsyncError");
      check(state, "NCCL");
      if (state == ncclSuccess) break;
      if (watch.is_time_to_look()) watch.look();
      pause();
    }
  }
}

void Exchanger::await_streams(const Communicator& communicator, Watch& watch) const {
  Pause pause;
  for (size_t i = 0; i < communicator.streams.size(); ++i) {
    const Place& place = communicator.places[i];
    for (;;) {
      place.check(driver_.cuCtxSetCurrent(place.context), "cuCtxSetCurrent");
      const CUresult state = driver_.cuStreamQuery(communicator.streams[i]);
      if (state != CUDA_ERROR_NOT_READY) {
        place.check(state, "cuStreamQuery");
        break;
      }
      if (watch.is_time_to_look()) {
        watch.look();
        for (ncclComm_t part : communicator.parts) {
          ncclResult_t error = ncclSuccess;
          check(nccl_.ncclCommGetAsyncError(part, &error), "ncclCommGetAsyncError");
          check(error, "NCCL");
        }
      }
      pause();
    }
  }
}

void Exchanger::launch(const collet_exchange& exchange, const Members& members,
                       const Communicator& communicator) const {
  if (exchange.kind == COLLET_EXCHANGE_COPIES) return launch_copies(exchange, members, communicator);
  const NcclCombination what = exchange.kind == COLLET_EXCHANGE_ALL_GATHER
                                   ? NcclCombination{moved_by_nccl(exchange.element)}
                                   : combined_by_nccl(exchange.element, exchange.combine).value();
  const size_t count = exchange.count * static_cast<uint64_t>(what.elements.each);
  const ncclDataType_t type = what.elements.type;
  for (size_t i = 0; i < communicator.ranks.size(); ++i) {
    const kernel::ExchangeMember& member = members[communicator.ranks[i]];
    const auto* const from = reinterpret_cast<const void*>(address(member.from));
    auto* const to = reinterpret_cast<void*>(address(member.to));
    ncclComm_t const part = communicator.parts[i];
    CUstream const stream = communicator.streams[i];
    if (exchange.kind == COLLET_EXCHANGE_ALL_REDUCE) {
      check(nccl_.ncclAllReduce(from, to, count, type, what.operation, part, stream), "ncclAllReduce");
    } else if (exchange.kind == COLLET_EXCHANGE_REDUCE_SCATTER) {
      check(nccl_.ncclReduceScatter(from, to, count, type, what.operation, part, stream), "ncclReduceScatter");
    } else {
      check(nccl_.ncclAllGather(from, to, count, type, part, stream), "ncclAllGather");
    }
  }
}

void Exchanger::launch_copies(const collet_exchange& exchange, const Members& members,
                              const Communicator& communicator) const {
  constexpr size_t kElsewhere = SIZE_MAX;
  std::vector<size_t> here(members.size(), kElsewhere);
  for (size_t i = 0; i < communicator.ranks.size(); ++i) here[communicator.ranks[i]] = i;
  for (uint32_t k = 0; k < exchange.copy_count; ++k) {
    const collet_exchange_copy& copy = exchange.copies[k];
    const uint64_t from = address(members[copy.from].from) + copy.from_offset;
    const uint64_t to = address(members[copy.to].to) + copy.to_offset;
    const size_t source = here[copy.from], target = here[copy.to];
    if (copy.from == copy.to) {
      if (source == kElsewhere) continue;
      const Place& place = communicator.places[source];
      place.check(driver_.cuCtxSetCurrent(place.context), "cuCtxSetCurrent");
      place.check(driver_.cuMemcpyDtoDAsync_v2(to, from, copy.bytes, communicator.streams[source]),
                  "cuMemcpyDtoDAsync_v2");
      continue;
    }
    if (source != kElsewhere)
      check(nccl_.ncclSend(reinterpret_cast<const void*>(from), copy.bytes, ncclInt8, static_cast<int>(copy.to),
                           communicator.parts[source], communicator.streams[source]),
            "ncclSend");
    if (target != kElsewhere)
      check(nccl_.ncclRecv(reinterpret_cast<void*>(to), copy.bytes, ncclInt8, static_cast<int>(copy.from),
                           communicator.parts[target], communicator.streams[target]),
            "ncclRecv");
  }
}

void Exchanger::run(const collet_exchange& exchange, const std::vector<kernel::ExchangeMember>& members) {
  const auto is_strange = [&](const kernel::ExchangeMember& one) { return one.process >= exchange.group->size; };
  if (members.size() != exchange.member_count || !takes(exchange) ||
      std::any_of(members.begin(), members.end(), is_strange))
    throw kernel::Error(COLLET_INVALID_ARGUMENT, "NCCL has no such exchange");
  std::vector<Place> places = places_of(exchange, members);
  if (places.empty()) return;  // no member is in this process
  Watch watch(exchange);
  const std::shared_ptr<Communicator> communicator = find(key_of(exchange, members));
  try {
    if (communicator->parts.empty()) {
      communicator->places = std::move(places);
      make(exchange, members, communicator.get(), watch);
    }
    check(nccl_.ncclGroupStart(), "ncclGroupStart");
    try {
      launch(exchange, members, *communicator);
    } catch (...) {
      nccl_.ncclGroupEnd();
      throw;
    }
    check(nccl_.ncclGroupEnd(), "ncclGroupEnd");
    await_functions(*communicator, watch);
    await_streams(*communicator, watch);
  } catch (...) {
    std::exception_ptr failure = std::current_exception();
    end(*communicator, false);
    try {
      throw;
    } catch (const kernel::Error& error) {
      // An error of NCCL may be the first sign of a lost process.
      if (error.code() == COLLET_INTERNAL && watch.has_lost())
        failure = std::make_exception_ptr(kernel::Error(COLLET_UNAVAILABLE, error.what()));
    } catch (...) {  // told as it is
    }
    const std::lock_guard lock(mutex_);
    *communicator = {};
    communicator->failure = failure;
    std::rethrow_exception(failure);
  }
}

void Exchanger::close(int device) noexcept {
  std::vector<std::shared_ptr<Communicator>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = communicators_.begin(); it != communicators_.end();) {
      const std::vector<Place>& places = it->second->places;
      const bool has_it = std::any_of(places.begin(), places.end(), [&](const Place& p) { return p.device == device; });
      if (has_it) ended.push_back(it->second);
      it = has_it ? communicators_.erase(it) : std::next(it);
    }
  }
  for (const auto& one : ended) end(*one, true);
}

void Exchanger::end(const Communicator& communicator, bool whole) const noexcept {
  constexpr milliseconds kLongest{2000};
  const auto is_busy = [&](ncclComm_t part) {
    ncclResult_t state = ncclSuccess;
    return part && nccl_.ncclCommGetAsyncError(part, &state) == ncclSuccess && state == ncclInProgress;
  };
  if (whole && nccl_.ncclCommFinalize) {
    for (ncclComm_t part : communicator.parts)
      if (part) nccl_.ncclCommFinalize(part);
    Pause pause;
    const auto limit = Clock::now() + kLongest;
    while (std::any_of(communicator.parts.begin(), communicator.parts.end(), is_busy) && Clock::now() < limit) pause();
  }
  // ncclCommDestroy would wait for processes of the same machine that do not destroy theirs.
  const auto end_one = whole && !nccl_.ncclCommFinalize ? nccl_.ncclCommDestroy : nccl_.ncclCommAbort;
  for (ncclComm_t part : communicator.parts)
    if (part) end_one(part);
  for (size_t i = 0; i < communicator.streams.size(); ++i) {
    if (!communicator.streams[i]) continue;
    driver_.cuCtxSetCurrent(communicator.places[i].context);
    driver_.cuStreamSynchronize(communicator.streams[i]);
    driver_.cuStreamDestroy_v2(communicator.streams[i]);
  }
}

}  // namespace collet::gpu
