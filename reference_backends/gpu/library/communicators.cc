// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/library/communicators.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "reference_backends/gpu/library/nccl_elements.h"

namespace collet::gpu {
namespace {

using codegen::CollectiveCall;
using Kind = CollectiveCall::Kind;

}  // namespace

bool Communicators::is_whole(const CollectiveCall& call) {
  switch (call.kind) {
    case Kind::kAllGather:
      // NCCL's all-gather has no blocks that overlap.
      return std::all_of(call.parts.begin(), call.parts.end(), [&](const CollectiveCall::Part& part) {
        return part.target_elements == part.block * static_cast<int64_t>(call.groups[0].size());
      });
    case Kind::kBroadcast:
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return true;
    case Kind::kAllToAll:
    case Kind::kAllToAllArrays:
    case Kind::kPermute:
      return false;
  }
  return false;
}

void Communicators::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess) return;
  throw kernel::Error(COLLET_INTERNAL, nccl_text(*libraries_, result, what));
}

const Communicators::Group& Communicators::group_of(const std::vector<int>& devices) {
  const auto found = groups_.find(devices);
  if (found != groups_.end()) return found->second;
  Group made(devices.size(), nullptr);
  check(libraries_->ncclCommInitAll(made.data(), static_cast<int>(made.size()), devices.data()), "ncclCommInitAll");
  return groups_[devices] = std::move(made);
}

void Communicators::start(const codegen::GridDevice::CollectiveLaunch& what, const std::vector<Place>& places) {
  std::vector<int> devices;
  for (const Place& place : places) devices.push_back(place.device);
  const std::lock_guard lock(mutex_);
  const Group group = group_of(devices);
  check(libraries_->ncclGroupStart(), "ncclGroupStart");
  try {
    for (size_t part = 0; part < what.call->parts.size(); ++part) start_part(what, part, group, places);
  } catch (...) {
    libraries_->ncclGroupEnd();
    abort(devices[0]);  // some members may have started, and would wait for the others
    throw;
  }
  const ncclResult_t started = libraries_->ncclGroupEnd();
  if (started != ncclSuccess) abort(devices[0]);
  check(started, "ncclGroupEnd");
}

void Communicators::start_part(const codegen::GridDevice::CollectiveLaunch& what, size_t p, const Group& group,
                               const std::vector<Place>& places) const {
  const CollectiveCall& call = *what.call;
  const CollectiveCall::Part& part = call.parts[p];
  if (!is_whole(call)) return exchange_part(what, p, group, places);
  const bool combines = call.kind == Kind::kAllReduce || call.kind == Kind::kReduceScatter;
  const std::optional<NcclCombination> combined =
      combines ? combined_by_nccl(part.type, part.combine) : NcclCombination{moved_by_nccl(part.type)};
  if (!combined)
    throw kernel::Error(COLLET_INTERNAL, std::string("NCCL does not combine ") + collet_type_name(part.type));
  const NcclElements& elements = combined->elements;
  const ncclRedOp_t operation = combined->operation;
  const auto count = static_cast<size_t>(part.block * elements.each);
  const Libraries& nccl = *libraries_;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto* const from = reinterpret_cast<const void*>(what.members[i].addresses[2 * p]);
    auto* const to = reinterpret_cast<void*>(what.members[i].addresses[2 * p + 1]);
    CUstream const stream = places[i].stream;
    if (call.kind == Kind::kAllGather) {
      check(nccl.ncclAllGather(from, to, count, elements.type, group[i], stream), "ncclAllGather");
    } else if (call.kind == Kind::kBroadcast) {
      check(nccl.ncclBroadcast(from, to, count, elements.type, 0, group[i], stream), "ncclBroadcast");
    } else if (call.kind == Kind::kAllReduce) {
      check(nccl.ncclAllReduce(from, to, count, elements.type, operation, group[i], stream), "ncclAllReduce");
    } else {
      check(nccl.ncclReduceScatter(from, to, count, elements.type, operation, group[i], stream), "ncclReduceScatter");
    }
  }
}

void Communicators::exchange_part(const codegen::GridDevice::CollectiveLaunch& what, size_t p, const Group& group,
                                  const std::vector<Place>& places) const {
  codegen::GridDevice::for_each_transfer(what, p, [&](const codegen::GridDevice::Transfer& one) {
    if (one.from == one.to) return;
    const uint64_t source = what.members[one.from].addresses[one.source_place] + one.source_bytes;
    const uint64_t target = what.members[one.to].addresses[one.target_place] + one.target_bytes;
    check(libraries_->ncclSend(reinterpret_cast<const void*>(source), one.bytes, ncclInt8, static_cast<int>(one.to),
                               group[one.from], places[one.from].stream),
          "ncclSend");
    check(libraries_->ncclRecv(reinterpret_cast<void*>(target), one.bytes, ncclInt8, static_cast<int>(one.from),
                               group[one.to], places[one.to].stream),
          "ncclRecv");
  });
}

void Communicators::abort(int device) noexcept {
  end(device, libraries_->ncclCommAbort);
}

void Communicators::close(int device) noexcept {
  end(device, libraries_->ncclCommDestroy);
}

void Communicators::end(int device, ncclResult_t (*end_one)(ncclComm_t)) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto it = groups_.begin(); it != groups_.end();) {
    if (std::find(it->first.begin(), it->first.end(), device) == it->first.end()) {
      ++it;
      continue;
    }
    for (ncclComm_t one : it->second) end_one(one);
    it = groups_.erase(it);
  }
}

}  // namespace collet::gpu
