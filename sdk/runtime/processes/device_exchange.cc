// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/device_exchange.h"

#include <collet/error.h>
#include <collet/hash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "hlo/ops/rules.h"
#include "hlo/program/leaves.h"
#include "sdk/runtime/memory/array_type.h"
#include "sdk/runtime/processes/parts_across.h"
#include "sdk/runtime/processes/processes.h"
#include "sdk/runtime/run/collective.h"

namespace collet::runtime {

using hlo::Instruction;
using hlo::Op;
using hlo::Shape;

namespace {

using Group = DeviceExchange::Group;
using Part = DeviceExchange::Part;

// True if the parts of an array along a dimension follow each other in memory.
bool is_outermost(const Shape& shape, int64_t dimension) {
  return division_of(shape, dimension, 1).outer == 1;
}

bool is_plain(const Shape& shape) {
  return shape.is_array() && !shape.has_dynamic();
}

/// Finds what each group of a collective exchanges.
class Planner {
 public:
  Planner(const hlo::Module& module, const Instruction& instr, const std::vector<std::vector<uint32_t>>& groups,
          const std::vector<ParticipantPlace>& places)
      : m_(module), instr_(instr), groups_(groups), places_(places) {
    for (const hlo::InstrId id : instr.operands) hlo::append_leaf_shapes(module[id].shape, operands_);
    hlo::append_leaf_shapes(instr.shape, results_);
  }

  std::optional<DeviceExchange> run() {
    if (!std::all_of(operands_.begin(), operands_.end(), is_plain) ||
        !std::all_of(results_.begin(), results_.end(), is_plain) || operands_.size() != results_.size())
      return std::nullopt;
    if (instr_.op == Op::COLLECTIVE_PERMUTE) return permute();
    std::set<std::vector<uint32_t>> seen;
    for (const std::vector<uint32_t>& members : groups_) {
      if (members.empty() || !seen.insert(members).second) continue;
      Group group = group_of(members);
      for (uint32_t i = 0; i < operands_.size(); ++i) {
        std::optional<Part> one = part(i, members.size());
        if (!one) return std::nullopt;
        group.parts.push_back(std::move(*one));
      }
      out_.groups.push_back(std::move(group));
    }
    return std::move(out_);
  }

 private:
  Group group_of(const std::vector<uint32_t>& participants) const {
    Group out;
    out.participants = participants;
    for (const uint32_t p : participants) out.processes.push_back(places_[p].process);
    std::sort(out.processes.begin(), out.processes.end());
    out.processes.erase(std::unique(out.processes.begin(), out.processes.end()), out.processes.end());
    for (const uint32_t p : participants) {
      const auto at = std::lower_bound(out.processes.begin(), out.processes.end(), places_[p].process);
      out.members.push_back({static_cast<uint32_t>(at - out.processes.begin()), places_[p].device, {}, {}});
    }
    return out;
  }

  // What becomes of operand `i` in a group of so many members; nullopt if no exchange does that.
  std::optional<Part> part(uint32_t i, size_t members) const {
    const Shape &from = operands_[i], &to = results_[i];
    const Expected<const ArrayType*> type = array_type(from);
    if (!type.ok() || members == 0) return std::nullopt;
    Part out;
    out.element = (*type)->element;
    const auto bytes = static_cast<uint64_t>(from.byte_size());
    const uint64_t count = (*type)->elements;
    switch (instr_.op) {
      case Op::ALL_REDUCE:
      case Op::REDUCE_SCATTER: {
        out.combine = hlo::combine_kind(m_, instr_.called[0]);
        if (out.combine < COLLET_COMBINE_ADD || out.combine > COLLET_COMBINE_XOR) return std::nullopt;
        out.kind = COLLET_EXCHANGE_ALL_REDUCE;
        out.count = count;
        if (instr_.op == Op::ALL_REDUCE) return out;
        out.kind = COLLET_EXCHANGE_REDUCE_SCATTER;
        out.count = count / members;
        if (!is_outermost(from, instr_.as<hlo::CollectiveDimAttrs>().dimension)) return std::nullopt;
        return out;
      }
      case Op::ALL_GATHER:
        out.kind = COLLET_EXCHANGE_ALL_GATHER;
        out.count = count;
        if (!is_outermost(to, instr_.as<hlo::CollectiveDimAttrs>().dimension)) return std::nullopt;
        return out;
      case Op::ALL_TO_ALL: {
        // Of several arrays each member gets another one: they are no parts of one array.
        const auto& along = instr_.as<hlo::AllToAllAttrs>().dimension;
        if (along.empty() || !is_outermost(from, along[0])) return std::nullopt;
        const uint64_t block = bytes / members;
        for (uint32_t s = 0; s < members && block > 0; ++s)
          for (uint32_t t = 0; t < members; ++t) out.copies.push_back({s, t, t * block, s * block, block});
        return out;
      }
      case Op::COLLECTIVE_BROADCAST:
        if (members < 2) return std::nullopt;  // a participant in no group gets zeros
        for (uint32_t t = 0; t < members && bytes > 0; ++t) out.copies.push_back({0, t, 0, 0, bytes});
        return out;
      default:
        return std::nullopt;
    }
  }

  // Participants of a permute that are connected by pairs exchange their arrays with each other.
  std::optional<DeviceExchange> permute() {
    if (!instr_.as<hlo::CollectivePermuteAttrs>().slice_sizes.empty()) return std::nullopt;
    std::set<std::vector<uint32_t>> seen;
    for (const std::vector<uint32_t>& members : groups_) {
      if (members.empty() || !seen.insert(members).second) continue;
      const std::vector<std::pair<uint32_t, uint32_t>> pairs = permute_pairs(instr_, members);
      std::map<uint32_t, uint32_t> part_of;  // by participant: another one that is connected with it, or itself
      const auto part = [&](uint32_t p) {
        for (part_of.try_emplace(p, p); part_of[p] != p; p = part_of[p]) part_of[p] = part_of[part_of[p]];
        return p;
      };
      std::set<uint32_t> targets;
      for (const auto& [source, target] : pairs) {
        targets.insert(target);
        const uint32_t one = part(source), other = part(target);
        part_of[std::max(one, other)] = std::min(one, other);
      }
      for (const uint32_t p : members)
        if (!targets.count(p)) out_.empty.push_back(p);
      std::map<uint32_t, std::vector<uint32_t>> parts;  // each ascending
      for (const auto& [p, ignored] : part_of) parts[part(p)].push_back(p);
      std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> pairs_of;
      for (const auto& pair : pairs) pairs_of[part(pair.first)].push_back(pair);
      for (const auto& [first, active] : parts) {
        Group group = group_of(active);
        const auto member = [&active = active](uint32_t p) {
          return static_cast<uint32_t>(std::lower_bound(active.begin(), active.end(), p) - active.begin());
        };
        for (uint32_t i = 0; i < operands_.size(); ++i) {
          Part exchanged;
          for (const auto& [source, target] : pairs_of[first])
            if (const auto bytes = static_cast<uint64_t>(operands_[i].byte_size()))
              exchanged.copies.push_back({member(source), member(target), 0, 0, bytes});
          group.parts.push_back(std::move(exchanged));
        }
        out_.groups.push_back(std::move(group));
      }
    }
    return std::move(out_);
  }

  const hlo::Module& m_;
  const Instruction& instr_;
  const std::vector<std::vector<uint32_t>>& groups_;
  const std::vector<ParticipantPlace>& places_;
  std::vector<Shape> operands_, results_;
  DeviceExchange out_;
};

// Returns the exchange of an array; the caller adds what is needed to run it.
collet_exchange describe(const Group& group, const Part& part) {
  collet_exchange out{};
  out.struct_size = sizeof out;
  out.kind = part.kind;
  out.element = part.element;
  out.combine = part.combine;
  out.count = part.count;
  out.members = group.members.data();
  out.member_count = static_cast<uint32_t>(group.members.size());
  out.copies = part.copies.data();
  out.copy_count = static_cast<uint32_t>(part.copies.size());
  return out;
}

bool is_empty(const Part& part) {
  return part.kind == COLLET_EXCHANGE_COPIES ? part.copies.empty() : part.count == 0;
}

/// What the functions that a backend gets for an exchange need.
struct Caller {
  Processes& processes;
  const Group& group;
  const std::string& what;
  uint64_t tag;
  // The time of the next look for lost processes. A look sends a byte to each, which the transport keeps, so there are few of them.
  static constexpr int64_t kLookNs = 1'000'000'000;
  std::atomic<int64_t> next_look{now() + kLookNs};
  std::atomic<bool> has_lost{false};

  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // collet_group::exchange.
  static collet_status exchange(void* user, const void* mine, uint64_t bytes, void* out, collet_error* error) {
    auto& self = *static_cast<Caller*>(user);
    const uint64_t round = self.tag++;
    std::vector<collet_message> sends, receives;
    for (size_t r = 0; r < self.group.processes.size(); ++r) {
      char* const place = static_cast<char*>(out) + r * bytes;
      const uint32_t process = self.group.processes[r], own = self.processes.rank();
      if (process == own) {
        if (bytes) std::memcpy(place, mine, bytes);
      } else if (bytes) {
        sends.push_back({process, 0, collet_hash_number(round, own), const_cast<void*>(mine), bytes});  // only read
        receives.push_back({process, 0, collet_hash_number(round, process), place, bytes});
      }
    }
    if (sends.empty()) return COLLET_OK;
    const Status status = self.processes.exchange(sends, receives, [](uint32_t) { return ok_status(); }, self.what);
    if (status.ok()) return COLLET_OK;
    return collet_set_error(error, static_cast<collet_status>(status.code()), status.message().c_str());
  }

  // collet_exchange::is_over.
  static uint32_t is_over(void* user) {
    auto& self = *static_cast<Caller*>(user);
    if (self.has_lost.load(std::memory_order_relaxed)) return 1;
    const int64_t time = now();
    int64_t due = self.next_look.load(std::memory_order_relaxed);
    if (time < due) return 0;
    if (!self.next_look.compare_exchange_strong(due, time + kLookNs)) return 0;
    if (self.processes.lost_among(self.group.processes).empty()) return 0;
    self.has_lost.store(true, std::memory_order_relaxed);
    return 1;
  }
};

}  // namespace

std::optional<DeviceExchange> device_exchange(const hlo::Module& module, const Instruction& instr,
                                              const std::vector<std::vector<uint32_t>>& groups,
                                              const std::vector<ParticipantPlace>& places, Backend& backend) {
  std::optional<DeviceExchange> out = Planner(module, instr, groups, places).run();
  if (!out) return out;
  for (const Group& group : out->groups)
    for (const Part& part : group.parts)
      if (!is_empty(part) && !backend.takes_exchange(describe(group, part))) return std::nullopt;
  return out;
}

uint64_t ExchangeTurns::next(const Members& members) {
  const std::lock_guard lock(mutex_);
  return counts_[members].given++;
}

Status ExchangeTurns::begin(const Members& members, uint64_t turn, const Processes& processes) {
  constexpr std::chrono::milliseconds kLook(100);
  std::unique_lock lock(mutex_);
  const Count& count = counts_[members];
  while (!ended_.wait_for(lock, kLook, [&] { return count.ended >= turn; })) COLLET_TRY(processes.lost());
  return ok_status();
}

void ExchangeTurns::end(const Members& members) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_[members].ended;
  }
  ended_.notify_all();
}

Status exchange_on_devices(Backend& backend, Processes& processes, const Group& group,
                           const std::map<uint32_t, ExchangeMemory>& memory, uint64_t tag, const std::string& what) {
  const auto rank = std::lower_bound(group.processes.begin(), group.processes.end(), processes.rank());
  Caller caller{processes, group, what, tag};
  const collet_group said = {sizeof(collet_group),
                             static_cast<uint32_t>(rank - group.processes.begin()),
                             static_cast<uint32_t>(group.processes.size()),
                             0,
                             &caller,
                             Caller::exchange};
  for (size_t i = 0; i < group.parts.size(); ++i) {
    const Part& part = group.parts[i];
    if (is_empty(part)) continue;
    std::vector<collet_exchange_member> members = group.members;
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m].process != said.rank) continue;
      const ExchangeMemory& own = memory.at(group.participants[m]);
      if (Memory* from = own.operands[i]) members[m].from.buffer = from->handle;
      if (Memory* to = own.results[i]) members[m].to.buffer = to->handle;
    }
    collet_exchange exchange = describe(group, part);
    exchange.members = members.data();
    exchange.timeout_ms = processes.timeout_ms();
    exchange.group = &said;
    exchange.processes = group.processes.data();
    exchange.user = &caller;
    exchange.is_over = Caller::is_over;
    const Status status = backend.run_exchange(exchange);
    if (!status.ok()) return processes.give_up(status, group.processes, what);
  }
  return ok_status();
}

}  // namespace collet::runtime
