// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/across.h"

#include <collet/error.h>
#include <collet/hash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "hlo/program/leaves.h"
#include "sdk/runtime/memory/copy.h"
#include "sdk/runtime/processes/parts_across.h"
#include "sdk/runtime/processes/rendezvous.h"
#include "sdk/runtime/run/collective.h"

namespace collet::runtime {

using hlo::Instruction;
using hlo::Literal;
using hlo::Shape;

namespace {
constexpr size_t kMostInHeader = 320;  // bytes of operands that travel with a header
constexpr uint32_t kMostMarked = 256;  // participants of a process that a header tells apart
}  // namespace

/// What a process tells another one before a collective in which they exchange data: what it runs, with which of its participants, and
/// their operands if they are small. The processes compare kProtocol when they meet, so the layout is equal in all.
struct Exchange::Header {
  enum : uint32_t {
    kOperands = 1,
    kFailure = 2,  ///< of the sender's run
    kTurn = 3,     ///< from the first process of a group: the turn of an exchange on devices, in `bytes`
    kRefusal = 4   ///< from the same: the collective fails, with this message
  };
  uint32_t kind;
  uint32_t op;
  uint64_t content[4];
  uint64_t bytes;                      ///< of the operands
  int32_t code;                        ///< of the failure
  uint32_t ordinal;                    ///< of the collective among those of the program
  uint64_t present[kMostMarked / 64];  ///< the sender's participants in it: bits, by their ordinals in its process
  char program[64];
  char instr[64];
  /// The operands that the receiver needs, one participant after another, as far as they fit; or the message of the failure.
  char data[kMostInHeader];
};

/// Another process in a collective.
struct Exchange::Partner {
  const Across::Link* link;
  uint32_t sequence;
  Header out, in;
  bool agrees = false;  ///< it runs the same collective
};

/// A participant of another process whose operands are needed here.
struct Exchange::Incoming {
  uint32_t participant;
  const char* in_header;  ///< null if the operands have messages of their own
  std::vector<Literal> operands;
};

namespace {

// Sums of less data are exchanged whole: another round costs more than the bytes that it saves.
constexpr uint64_t kSlicedBytes = uint64_t{1} << 15;
constexpr uint32_t kRound = UINT32_MAX - 1;  // in place of the number of an operand
constexpr uint32_t kOnDevices = UINT32_MAX;  // in place of the number of a message

bool contains(std::span<const uint32_t> sorted, uint32_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

uint64_t bytes_of(const std::vector<Literal>& operands) {
  uint64_t bytes = 0;
  for (const Literal& operand : operands) bytes += static_cast<uint64_t>(operand.byte_size());
  return bytes;
}

void copy_name(char (&to)[64], std::string_view name) {
  collet_copy_text(to, sizeof to, std::string(name).c_str());
}

std::vector<Shape> operand_shapes(const hlo::Module& module, const Instruction& instr) {
  std::vector<Shape> out;
  for (const hlo::InstrId operand : instr.operands) hlo::append_leaf_shapes(module[operand].shape, out);
  return out;
}

bool has_dynamic(const std::vector<Literal>& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Literal& one) { return !one.dynamic_sizes().empty(); });
}

// Returns where an operand of `participant` stands in a result of one of those here; null if it is not in one piece there.
uint8_t* gathered_at(const Instruction& instr, const Across::Partners& partners, std::span<const uint32_t> present,
                     const std::vector<std::vector<Literal>>& results, const Literal& operand, uint32_t participant,
                     size_t i) {
  for (size_t k = 0; k < present.size(); ++k) {
    const std::vector<uint32_t>& group = partners.groups[present[k]];
    const auto member = std::find(group.begin(), group.end(), participant);
    if (member == group.end()) continue;
    if (division_of(operand.shape(), instr.as<hlo::CollectiveDimAttrs>().dimension, 1).outer > 1) return nullptr;
    return const_cast<uint8_t*>(results[k][i].bytes()) + (member - group.begin()) * operand.byte_size();
  }
  return nullptr;
}

// Returns the participant whose operands are the results of `number` in a permute or broadcast; that of no other are if there is none.
std::optional<uint32_t> source_of(const Instruction& instr, const std::vector<uint32_t>& group, uint32_t number) {
  if (instr.op == hlo::Op::COLLECTIVE_BROADCAST) return group.front();
  std::optional<uint32_t> out;
  for (const auto& [source, target] : permute_pairs(instr, group))
    if (target == number) out = source;
  return out;
}

// True for a permute or broadcast of whole arrays in which each of these participants takes part.
bool is_move(const Instruction& instr, const Across::Partners& partners, std::span<const uint32_t> present) {
  if (instr.op == hlo::Op::COLLECTIVE_PERMUTE) return instr.as<hlo::CollectivePermuteAttrs>().slice_sizes.empty();
  // One that is in no group gets zeros.
  return instr.op == hlo::Op::COLLECTIVE_BROADCAST &&
         std::all_of(present.begin(), present.end(), [&](uint32_t p) { return partners.groups[p].size() > 1; });
}

/// Ends a turn of exchanges.
struct EndOfTurn {
  ~EndOfTurn() { turns.end(members); }
  ExchangeTurns& turns;
  const ExchangeTurns::Members& members;
};

Status absent(const std::string& what, uint32_t participant) {
  return failed_precondition(what + ": participant " + std::to_string(participant) +
                             " takes another way through control flow");
}

// Numbers the collectives of a module. The numbers are the same in all processes that run the program.
std::map<hlo::InstrId, uint32_t> ordinals_of(const hlo::Module& module) {
  std::map<hlo::InstrId, uint32_t> out;
  for (const hlo::CompId c : module.computations())
    for (const hlo::InstrId id : module[c].order)
      if (is_collective(module[id].op)) out.emplace(id, static_cast<uint32_t>(out.size()));
  return out;
}

// Returns what this process exchanges with each other one.
std::vector<Across::Link> links_of(const Across& across, const std::vector<std::vector<uint32_t>>& needs) {
  const uint32_t rank = across.processes->rank();
  std::map<uint32_t, Across::Link> links;
  const auto link_to = [&](uint32_t participant) -> Across::Link& {
    const uint32_t process = across.place[participant];
    Across::Link& link = links[process];
    link.process = process;
    return link;
  };
  for (uint32_t p = 0; p < needs.size(); ++p)
    for (const uint32_t q : needs[p]) {
      if ((across.place[p] == rank) == (across.place[q] == rank)) continue;
      if (across.place[p] == rank) {
        link_to(q).pairs.emplace_back(p, q);
        link_to(q).receives.push_back(q);
      } else {
        link_to(p).pairs.emplace_back(q, p);
        link_to(p).sends.emplace_back(q, p);
      }
    }
  std::vector<Across::Link> out;
  const auto order = [](auto& list, const auto& same) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end(), same), list.end());
  };
  for (auto& [process, link] : links) {
    order(link.pairs, std::equal_to<>());
    order(link.receives, std::equal_to<>());
    order(link.sends, [](const auto& a, const auto& b) { return a.first == b.first; });
    for (const auto& [mine, other] : link.pairs)
      if (link.mine.empty() || link.mine.back() != mine) link.mine.push_back(mine);
    out.push_back(std::move(link));
  }
  return out;
}

std::string text_in(const char* text, size_t capacity) {
  return {text, strnlen(text, capacity)};
}

}  // namespace

Expected<const Across::Partners*> Across::partners_of(const hlo::Module& module, const Instruction& instr,
                                                      hlo::InstrId id) {
  const std::lock_guard lock(mutex);
  const auto known = partners.find(id);
  if (known != partners.end()) return &known->second;
  std::vector<Literal> operands;
  for (const Shape& shape : operand_shapes(module, instr)) {
    static uint8_t nothing = 0;  // the data of these arrays are not read
    operands.push_back(shape.is_array() ? Literal::borrow(shape, &nothing) : Literal::zeros(shape));
  }
  Partners made;
  COLLET_ASSIGN(made.groups, ordered_groups(module, instr, replicas, partitions, operands));
  made.needs = dependencies(instr, made.groups);
  made.links = links_of(*this, made.needs);
  if (collectives.empty()) collectives = ordinals_of(module);
  made.ordinal = collectives.at(id);
  // Small arrays travel with the headers.
  if (backend && bytes_of(operands) > kMostInHeader) {
    std::vector<ParticipantPlace> places;
    for (const uint32_t number : assignment) {
      const GlobalDevice& device = processes->devices()[number];
      places.push_back({device.process, device.device});
    }
    made.on_devices = device_exchange(module, instr, made.groups, places, *backend);
  }
  return &partners.emplace(id, std::move(made)).first->second;
}

uint64_t Exchange::tag(uint32_t from, uint32_t process, uint32_t sequence, uint32_t part) const {
  uint64_t hash = collet_hash_bytes(0, across_.members.data(), across_.members.size() * sizeof(uint32_t));
  for (const uint64_t number : {launch_, uint64_t{from}, uint64_t{process}, uint64_t{sequence}, uint64_t{part}})
    hash = collet_hash_number(hash, number);
  return hash;
}

uint64_t Exchange::header_tag(uint32_t from, uint32_t to, uint32_t sequence) const {
  return tag(from, to, sequence, 0);
}

uint64_t Exchange::data_tag(const Header& header, uint32_t participant, uint32_t process, uint32_t sequence,
                            uint32_t operand) const {
  uint64_t hash = tag(participant, process, sequence, operand + 1);
  for (const uint64_t word : header.content) hash = collet_hash_number(hash, word);
  for (const uint64_t number : {uint64_t{header.op}, uint64_t{header.ordinal}, header.bytes})
    hash = collet_hash_number(hash, number);
  return hash;
}

Status Exchange::check(const Header& header, const Header& own, uint32_t process, const std::string& what) const {
  if (header.kind == Header::kRefusal)
    return Status(static_cast<Code>(header.code), text_in(header.data, sizeof header.data));
  const std::string other = across_.processes->name(process);
  if (header.kind == Header::kFailure)
    return Status(static_cast<Code>(header.code), other + " failed in program '" +
                                                      text_in(header.program, sizeof header.program) +
                                                      "': " + text_in(header.data, sizeof header.data));
  const auto at = [](const Header& h) {
    return "'" + text_in(h.instr, sizeof h.instr) + "' of program '" + text_in(h.program, sizeof h.program) + "'";
  };
  const bool same_program = std::memcmp(header.content, own.content, sizeof own.content) == 0;
  if (same_program && header.op == own.op && header.ordinal == own.ordinal && header.bytes == own.bytes)
    return ok_status();
  return failed_precondition(
      what + ": " + other + " runs " + at(header) + " where " + across_.processes->name(across_.processes->rank()) +
      " runs " + at(own) +
      (same_program ? "" : "; all processes must start the same programs, on the same devices, in the same order"));
}

bool Exchange::has(const Header& header, uint32_t participant) const {
  const uint32_t bit = across_.ordinals[participant] % kMostMarked;
  return (header.present[bit / 64] >> bit % 64 & 1) != 0;
}

Status Exchange::check_present(const Across::Partners& partners, std::span<const uint32_t> present,
                               const std::string& what) const {
  for (const uint32_t p : present)
    for (const uint32_t q : partners.groups[p])
      if (across_.place[q] == across_.processes->rank() && !contains(present, q)) return absent(what, q);
  return ok_status();
}

Exchange::Header Exchange::header_of(const Instruction& instr, const Across::Partners& partners,
                                     std::span<const uint32_t> present, uint64_t bytes) const {
  Header out{};
  out.kind = Header::kOperands;
  out.op = static_cast<uint32_t>(instr.op);
  std::memcpy(out.content, across_.content.words, sizeof out.content);
  out.bytes = bytes;
  out.ordinal = partners.ordinal;
  for (const uint32_t participant : present) {
    const uint32_t bit = across_.ordinals[participant] % kMostMarked;
    out.present[bit / 64] |= uint64_t{1} << bit % 64;
  }
  copy_name(out.program, across_.name);
  copy_name(out.instr, instr.name);
  return out;
}

std::string Exchange::text_of(const Instruction& instr) const {
  return "'" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) + ") of program '" + across_.name +
         "', launch " + std::to_string(launch_);
}

Expected<std::vector<std::vector<Literal>>> Exchange::run(const hlo::Module& module, const Instruction& instr,
                                                          hlo::InstrId id, std::span<const uint32_t> present,
                                                          std::vector<std::vector<Literal>> operands,
                                                          std::span<const std::vector<void*>> targets) {
  COLLET_ASSIGN(const Across::Partners* const partners, across_.partners_of(module, instr, id));
  const std::vector<std::vector<uint32_t>>* const needs = &partners->needs;
  const uint32_t rank = across_.processes->rank();
  const std::string what = text_of(instr);
  COLLET_TRY(check_present(*partners, present, what));
  const Header own = header_of(instr, *partners, present, bytes_of(operands[0]));
  for (const std::vector<Literal>& mine : operands)
    if (bytes_of(mine) != own.bytes) return internal_error(what + ": participants have operands of other sizes");
  const bool fits = own.bytes <= sizeof own.data;
  const bool sums = own.bytes >= kSlicedBytes && is_sum(module, instr, operands[0]);
  const bool swaps = !fits && instr.op == hlo::Op::ALL_TO_ALL && !has_dynamic(operands[0]);
  const bool rags = !fits && instr.op == hlo::Op::RAGGED_ALL_TO_ALL && !has_dynamic(operands[0]);
  // True if the operands of one of those that a process sends to another one, which are in one order at both ends, travel with the header.
  const auto in_header = [&](size_t at) { return fits && (at + 1) * own.bytes <= sizeof own.data; };

  // Those with whom this process exchanges something; both sides know it, because it follows from the groups of the collective.
  std::vector<Partner> others;
  others.reserve(partners->links.size());
  Rendezvous rendezvous(*across_.processes, what);
  for (const Across::Link& link : partners->links) {
    if (std::none_of(link.mine.begin(), link.mine.end(), [&](uint32_t p) { return contains(present, p); })) continue;
    uint32_t& number = headers_[link.process];
    Partner& one = others.emplace_back(Partner{&link, number, own, {}});
    rendezvous.add({link.process, 0, header_tag(rank, link.process, number), &one.out, sizeof(Header)},
                   {link.process, 0, header_tag(link.process, rank, number), &one.in, sizeof(Header)}, number);
  }
  const auto other_in = [&](uint32_t process) {
    const auto at = std::find_if(others.begin(), others.end(),
                                 [process](const Partner& one) { return one.link->process == process; });
    return at == others.end() ? nullptr : &*at;
  };
  const auto is_there = [&](uint32_t participant) {
    if (across_.place[participant] == rank) return true;
    const Partner* const other = other_in(across_.place[participant]);
    return other && other->agrees && has(other->in, participant);
  };
  // The number of a unit is that of a participant. If it is in this process, the unit is the exchange of its whole group; else, the
  // unit is what this process sends to it or receives from it.
  const auto goes = [&](uint32_t unit) {
    if (across_.place[unit] != rank) return is_there(unit);
    return std::all_of(partners->groups[unit].begin(), partners->groups[unit].end(), is_there);
  };
  const auto check_header = [&](size_t i) {
    Partner& other = others[i];
    COLLET_TRY(this->check(other.in, own, other.link->process, what));
    other.agrees = true;
    for (const auto& [mine, theirs] : other.link->pairs)
      if (contains(present, mine) && !has(other.in, theirs)) return absent(what, theirs);
    return ok_status();
  };
  // Where there is one other process and one group here, either all data move or none.
  const auto in_one_group = [&](uint32_t p) { return partners->groups[p] == partners->groups[present[0]]; };
  rendezvous.set_rules(
      {check_header, goes, others.size() == 1 && std::all_of(present.begin(), present.end(), in_one_group)});

  std::map<std::vector<uint32_t>, uint64_t> tags;  // of the groups of this collective
  const auto tag_of = [&](const std::vector<uint32_t>& group) {
    const auto [it, is_new] = tags.try_emplace(group);
    if (is_new) {
      it->second = data_tag(own, group.front(), 0, rounds_[group]++, kRound);
      for (const uint32_t member : group) it->second = collet_hash_number(it->second, member);
    }
    return it->second;
  };
  const CollectiveCall call{module, instr, across_, *partners, present, operands, targets, rendezvous, what, tag_of};
  if (sums) return sum_parts(call);
  if (swaps) return swap_parts(call);
  if (rags) return swap_rows(call);

  std::vector<DataMessage> sends, receives;
  for (Partner& other : others) {
    const uint32_t process = other.link->process;
    for (size_t at = 0; at < other.link->sends.size(); ++at) {
      const auto [participant, target] = other.link->sends[at];
      if (!contains(present, participant)) continue;
      char* to = in_header(at) ? other.out.data + at * own.bytes : nullptr;
      const std::vector<Literal>& values = operands[call.here(participant)];
      for (size_t i = 0; i < values.size(); ++i) {
        const auto bytes = static_cast<uint64_t>(values[i].byte_size());
        if (bytes == 0) continue;
        if (to) {
          std::memcpy(to, values[i].bytes(), bytes);
          to += bytes;
          continue;
        }
        sends.push_back({{process, 0, data_tag(own, participant, process, other.sequence, static_cast<uint32_t>(i)),
                          const_cast<uint8_t*>(values[i].bytes()), bytes},  // only read
                         target});
      }
    }
  }
  const bool gathers = !fits && instr.op == hlo::Op::ALL_GATHER;
  const bool moves = !fits && !has_dynamic(operands[0]) && is_move(instr, *partners, present);
  std::vector<std::vector<Literal>> results(present.size());
  for (size_t k = 0; (gathers || moves) && k < present.size(); ++k)
    for (size_t i = 0; i < operands[k].size(); ++i) results[k].push_back(call.place(k, i).first);
  std::vector<Incoming> incoming;
  for (const Partner& other : others) {
    const uint32_t process = other.link->process;
    for (size_t at = 0; at < other.link->receives.size(); ++at) {
      const uint32_t participant = other.link->receives[at];
      const auto needed = [&](uint32_t p) { return contains((*needs)[p], participant); };
      if (std::none_of(present.begin(), present.end(), needed)) continue;
      Incoming& one =
          incoming.emplace_back(Incoming{participant, in_header(at) ? other.in.data + at * own.bytes : nullptr, {}});
      for (size_t i = 0; i < operands[0].size(); ++i) {
        // A part of an array that is gathered goes to its place, if it is in one piece there, and so does an array that is moved.
        uint8_t* to = nullptr;
        if (gathers) to = gathered_at(instr, *partners, present, results, operands[0][i], participant, i);
        for (size_t k = 0; moves && !to && k < present.size(); ++k)
          if (source_of(instr, partners->groups[present[k]], present[k]) == participant)
            to = const_cast<uint8_t*>(results[k][i].bytes());
        Literal& value = one.operands.emplace_back(to ? Literal::borrow(operands[0][i].shape(), to)
                                                      : Literal::uninitialized(operands[0][i].shape()));
        const auto bytes = static_cast<uint64_t>(value.byte_size());
        if (bytes == 0 || one.in_header) continue;
        receives.push_back({{process, 0, data_tag(own, participant, rank, other.sequence, static_cast<uint32_t>(i)),
                             to ? to : value.mutable_bytes(), bytes},
                            participant});
      }
    }
  }
  COLLET_TRY(rendezvous.exchange(sends, receives));
  COLLET_TRY(rendezvous.failure());

  if (gathers || moves) {
    std::map<uint32_t, const std::vector<Literal>*> from;
    for (size_t k = 0; k < present.size(); ++k) from[present[k]] = &operands[k];
    for (const Incoming& one : incoming) from[one.participant] = &one.operands;
    for (size_t k = 0; k < present.size(); ++k) {
      const std::vector<uint32_t>& group = partners->groups[present[k]];
      // The participants whose operands are the parts of the results, one after another.
      std::vector<std::optional<uint32_t>> sources(group.begin(), group.end());
      if (moves) sources = {source_of(instr, group, present[k])};
      for (size_t i = 0; i < results[k].size(); ++i) {
        auto* const to = const_cast<uint8_t*>(results[k][i].bytes());
        const int64_t dimension = gathers ? instr.as<hlo::CollectiveDimAttrs>().dimension : 0;
        const Division division = division_of(results[k][i].shape(), dimension, sources.size());
        for (size_t part = 0; part < sources.size(); ++part) {
          if (!sources[part]) {
            std::memset(to, 0, static_cast<size_t>(results[k][i].byte_size()));
            continue;
          }
          unpack((*from.at(*sources[part]))[i].bytes(), division, part, to);
        }
      }
    }
    return results;
  }

  // All operands that are here, in the order of their participants.
  std::vector<std::pair<uint32_t, std::vector<Literal>>> all;
  for (size_t k = 0; k < present.size(); ++k) all.emplace_back(present[k], std::move(operands[k]));
  for (Incoming& one : incoming) {
    const char* from = one.in_header;
    for (Literal& value : one.operands) {
      if (!from) break;
      std::memcpy(value.mutable_bytes(), from, static_cast<size_t>(value.byte_size()));
      from += value.byte_size();
    }
    all.emplace_back(one.participant, std::move(one.operands));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> known;
  std::vector<std::vector<Literal>> values;
  for (auto& [number, mine] : all) {
    known.push_back(number);
    values.push_back(std::move(mine));
  }
  return run_collective(module, instr, {across_.replicas, across_.partitions, known, present, needs},
                        std::move(values));
}

Expected<uint64_t> Exchange::agree(const DeviceExchange::Group& group, const ExchangeTurns::Members& members,
                                   const Header& own, const std::string& what) {
  Processes& processes = *across_.processes;
  const uint32_t rank = processes.rank(), leader = group.processes[0];
  Header answer = own;
  if (rank != leader) {
    Header mine = own;
    const uint32_t number = headers_[leader]++;
    const collet_message send = {leader, 0, header_tag(rank, leader, number), &mine, sizeof mine};
    const collet_message receive = {leader, 0, header_tag(leader, rank, number), &answer, sizeof answer};
    COLLET_TRY(processes.exchange({&send, 1}, {&receive, 1}, [](uint32_t) { return ok_status(); }, what));
    if (answer.kind == Header::kTurn) return answer.bytes;
    COLLET_TRY(check(answer, own, leader, what));
    return failed_precondition(what + ": " + processes.name(leader) + " exchanges it through the host");
  }
  std::vector<Header> headers(group.processes.size());
  std::vector<collet_message> sends, receives;
  for (size_t r = 1; r < group.processes.size(); ++r) {
    const uint32_t process = group.processes[r], number = headers_[process]++;
    receives.push_back({process, 0, header_tag(process, rank, number), &headers[r], sizeof(Header)});
    sends.push_back({process, 0, header_tag(rank, process, number), &answer, sizeof answer});
  }
  const auto check_header = [&](uint32_t i) { return check(headers[i + 1], own, group.processes[i + 1], what); };
  const Status status = receives.empty() ? ok_status() : processes.exchange({}, receives, check_header, what);
  answer.kind = status.ok() ? Header::kTurn : Header::kRefusal;
  answer.code = static_cast<int32_t>(status.code());
  if (status.ok())
    answer.bytes = processes.turns().next(members);
  else
    collet_copy_text(answer.data, sizeof answer.data, status.message().c_str());
  if (!status.ok()) {  // others may not come
    for (const collet_message& send : sends) processes.post(send);
    return status;
  }
  if (!sends.empty()) COLLET_TRY(processes.exchange(sends, {}, [](uint32_t) { return ok_status(); }, what));
  return answer.bytes;
}

Status Exchange::run_on_devices(const hlo::Module& module, const Instruction& instr, hlo::InstrId id,
                                std::span<const uint32_t> present, const std::vector<ExchangeMemory>& memory) {
  COLLET_ASSIGN(const Across::Partners* const partners, across_.partners_of(module, instr, id));
  if (!partners->on_devices) return internal_error("a collective that the backend does not take");
  const std::vector<Shape> shapes = operand_shapes(module, instr);
  uint64_t bytes = 0;
  for (const Shape& shape : shapes) bytes += static_cast<uint64_t>(shape.byte_size());
  const std::string what = text_of(instr);
  COLLET_TRY(check_present(*partners, present, what));
  const Header own = header_of(instr, *partners, present, bytes);
  Processes& processes = *across_.processes;
  std::map<uint32_t, ExchangeMemory> all;
  for (size_t k = 0; k < present.size(); ++k) all[present[k]] = memory[k];
  for (const DeviceExchange::Group& group : partners->on_devices->groups) {
    if (!contains(group.processes, processes.rank())) continue;
    ExchangeTurns::Members members;
    for (const collet_exchange_member& member : group.members)
      members.emplace_back(group.processes[member.process], member.device);
    COLLET_ASSIGN(const uint64_t turn, agree(group, members, own, what));
    COLLET_TRY(processes.turns().begin(members, turn, processes));
    const EndOfTurn end{processes.turns(), members};
    uint64_t tag = collet_hash_number(this->tag(group.participants[0], group.processes[0], kOnDevices, 0), turn);
    for (const auto& [process, device] : members) tag = collet_hash_number(collet_hash_number(tag, process), device);
    COLLET_TRY(exchange_on_devices(*across_.backend, processes, group, all, tag, what));
  }
  const std::vector<uint32_t>& empty = partners->on_devices->empty;
  for (size_t k = 0; k < present.size(); ++k) {
    if (std::find(empty.begin(), empty.end(), present[k]) == empty.end()) continue;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::vector<char> zeros(static_cast<size_t>(shapes[i].byte_size()));
      if (!zeros.empty()) COLLET_TRY(upload(*across_.backend, memory[k].results[i], zeros.data(), zeros.size()));
    }
  }
  return ok_status();
}

Expected<bool> Exchange::is_on_devices(const hlo::Module& module, const Instruction& instr, hlo::InstrId id) {
  if (!across_.backend) return false;
  COLLET_ASSIGN(const Across::Partners* const partners, across_.partners_of(module, instr, id));
  return partners->on_devices.has_value();
}

void Exchange::abandon(const Status& failure) {
  Header header{};
  header.kind = Header::kFailure;
  header.code = static_cast<int32_t>(failure.code());
  copy_name(header.program, across_.name);
  collet_copy_text(header.data, sizeof header.data, failure.message().c_str());
  const uint32_t rank = across_.processes->rank();
  for (const uint32_t process : across_.members)
    if (process != rank)
      across_.processes->post({process, 0, header_tag(rank, process, headers_[process]++), &header, sizeof header});
}

}  // namespace collet::runtime
