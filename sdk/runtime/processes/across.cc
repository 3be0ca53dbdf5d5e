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
#include "sdk/runtime/run/collective.h"

namespace collet::runtime {

using hlo::Instruction;
using hlo::Literal;
using hlo::Shape;

namespace {
constexpr size_t kMostInHeader = 320;  // bytes of operands that travel with a header
}

/// The first message about the operands of a participant: what it takes part in, and its operands if they are small.
/// Collet's version is equal in all processes, so the layout is, too.
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
  uint64_t bytes;  ///< of the operands
  int32_t code;    ///< of the failure
  uint32_t reserved;
  char program[64];
  char instr[64];
  char data[kMostInHeader];  ///< the operands if they fit, or the message of the failure
};

struct Exchange::Incoming {
  uint32_t participant;
  Header header;
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

uint64_t Exchange::tag(uint32_t participant, uint32_t process, uint32_t sequence, uint32_t part) const {
  uint64_t hash = collet_hash_bytes(0, across_.members.data(), across_.members.size() * sizeof(uint32_t));
  for (const uint64_t number : {launch_, uint64_t{participant}, uint64_t{process}, uint64_t{sequence}, uint64_t{part}})
    hash = collet_hash_number(hash, number);
  return hash;
}

uint64_t Exchange::header_tag(uint32_t participant, uint32_t process, uint32_t sequence) const {
  return tag(across_.ordinals[participant], process, sequence, 0);
}

uint64_t Exchange::data_tag(const Header& header, uint32_t participant, uint32_t process, uint32_t sequence,
                            uint32_t operand) const {
  uint64_t hash = tag(participant, process, sequence, operand + 1);
  for (const uint64_t word : header.content) hash = collet_hash_number(hash, word);
  return collet_hash_number(collet_hash_number(hash, header.op), header.bytes);
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
  if (same_program && header.op == own.op && header.bytes == own.bytes) return ok_status();
  return failed_precondition(
      what + ": " + other + " runs " + at(header) + " where " + across_.processes->name(across_.processes->rank()) +
      " runs " + at(own) +
      (same_program ? "" : "; all processes must start the same programs, on the same devices, in the same order"));
}

Exchange::Header Exchange::header_of(const Instruction& instr, uint64_t bytes) const {
  Header out{};
  out.kind = Header::kOperands;
  out.op = static_cast<uint32_t>(instr.op);
  std::memcpy(out.content, across_.content.words, sizeof out.content);
  out.bytes = bytes;
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
  const Header own = header_of(instr, bytes_of(operands[0]));
  const bool fits = own.bytes <= sizeof own.data;
  const bool sums = own.bytes >= kSlicedBytes && is_sum(module, instr, operands[0]);
  const bool swaps = !fits && instr.op == hlo::Op::ALL_TO_ALL && !has_dynamic(operands[0]);
  const bool rags = !fits && instr.op == hlo::Op::RAGGED_ALL_TO_ALL && !has_dynamic(operands[0]);
  const bool apart = sums || swaps || rags;  // the operands are not sent whole

  std::map<uint32_t, uint64_t> tags;  // of the groups of this collective, by their first members
  const auto tag_of = [&](const std::vector<uint32_t>& group) {
    const auto [it, is_new] = tags.try_emplace(group.front());
    if (is_new)
      it->second = data_tag(own, *std::min_element(group.begin(), group.end()), 0, rounds_[group.front()]++, kRound);
    return it->second;
  };
  CollectiveCall call{module, instr, across_, *partners, present, operands, targets, {}, what, tag_of};

  // Who sends to whom follows from the groups of the collective, so both sides know it.
  std::vector<Header> headers(present.size(), own);
  std::vector<collet_message> sends, sends_of_data, receives, receives_of_data;
  for (size_t k = 0; k < present.size(); ++k) {
    if (bytes_of(operands[k]) != own.bytes) return internal_error(what + ": participants have operands of other sizes");
    size_t at = 0;
    for (const Literal& value : operands[k]) {
      if (!fits) break;
      std::memcpy(headers[k].data + at, value.bytes(), static_cast<size_t>(value.byte_size()));
      at += static_cast<size_t>(value.byte_size());
    }
    for (const uint32_t process : across_.members) {
      if (process == rank) continue;
      bool wanted = false;
      for (uint32_t p = 0; p < across_.place.size(); ++p)
        wanted |= across_.place[p] == process && contains((*needs)[p], present[k]);
      if (!wanted) continue;
      const uint32_t sequence = sent_[{present[k], process}]++;
      sends.push_back({process, 0, header_tag(present[k], process, sequence), &headers[k], sizeof(Header)});
      for (size_t i = 0; !fits && !apart && i < operands[k].size(); ++i)
        if (const auto bytes = static_cast<uint64_t>(operands[k][i].byte_size()))
          sends_of_data.push_back({process, 0, data_tag(own, present[k], process, sequence, static_cast<uint32_t>(i)),
                                   const_cast<uint8_t*>(operands[k][i].bytes()), bytes});  // only read
    }
  }
  const bool gathers = !fits && instr.op == hlo::Op::ALL_GATHER;
  const bool moves = !fits && !has_dynamic(operands[0]) && is_move(instr, *partners, present);
  std::vector<std::vector<Literal>> results(present.size());
  for (size_t k = 0; (gathers || moves) && k < present.size(); ++k)
    for (size_t i = 0; i < operands[k].size(); ++i) results[k].push_back(call.place(k, i).first);
  std::vector<Incoming> incoming;
  for (uint32_t q = 0; q < across_.place.size(); ++q) {
    if (across_.place[q] == rank) continue;
    if (std::any_of(present.begin(), present.end(), [&](uint32_t p) { return contains((*needs)[p], q); }))
      incoming.push_back({q, {}, {}});
  }
  for (Incoming& one : incoming) {
    const uint32_t process = across_.place[one.participant];
    const uint32_t sequence = sent_[{one.participant, rank}]++;
    receives.push_back({process, 0, header_tag(one.participant, rank, sequence), &one.header, sizeof(Header)});
    for (size_t i = 0; !apart && i < operands[0].size(); ++i) {
      // A part of an array that is gathered goes to its place, if it is in one piece there, and so does an array that is moved.
      uint8_t* to = nullptr;
      if (gathers) to = gathered_at(instr, *partners, present, results, operands[0][i], one.participant, i);
      for (size_t k = 0; moves && !to && k < present.size(); ++k)
        if (source_of(instr, partners->groups[present[k]], present[k]) == one.participant)
          to = const_cast<uint8_t*>(results[k][i].bytes());
      Literal& value = one.operands.emplace_back(to ? Literal::borrow(operands[0][i].shape(), to)
                                                    : Literal::uninitialized(operands[0][i].shape()));
      const auto bytes = static_cast<uint64_t>(value.byte_size());
      if (!fits && bytes)
        receives_of_data.push_back({process, 0,
                                    data_tag(own, one.participant, rank, sequence, static_cast<uint32_t>(i)),
                                    to ? to : value.mutable_bytes(), bytes});
    }
  }
  const auto check_header = [&](uint32_t i) {
    return this->check(incoming[i].header, own, across_.place[incoming[i].participant], what);
  };
  // The data are on their way while the headers are checked: their tags say what they are, so that those of another program are
  // never taken for them.
  call.heads = {sends, receives, check_header};
  if (sums) return sum_parts(call);
  if (swaps) return swap_parts(call);
  if (rags) return swap_rows(call);
  COLLET_TRY(call.exchange(sends_of_data, receives_of_data));

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
          const auto source = from.find(*sources[part]);
          if (source == from.end()) return absent(what, *sources[part]);
          unpack((*source->second)[i].bytes(), division, part, to);
        }
      }
    }
    return results;
  }

  // All operands that are here, in the order of their participants.
  std::vector<std::pair<uint32_t, std::vector<Literal>>> all;
  for (size_t k = 0; k < present.size(); ++k) all.emplace_back(present[k], std::move(operands[k]));
  for (Incoming& one : incoming) {
    size_t at = 0;
    for (Literal& value : one.operands) {
      if (!fits) break;
      std::memcpy(value.mutable_bytes(), one.header.data + at, static_cast<size_t>(value.byte_size()));
      at += static_cast<size_t>(value.byte_size());
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
  // Returns the tag of a header from the first member in a process to another process.
  const auto next_tag = [&](uint32_t from, uint32_t to) {
    const uint32_t participant = group.first_in(from);
    return header_tag(participant, to, sent_[{participant, to}]++);
  };
  Header answer = own;
  if (rank != leader) {
    Header mine = own;
    const collet_message send = {leader, 0, next_tag(rank, leader), &mine, sizeof mine};
    const collet_message receive = {leader, 0, next_tag(leader, rank), &answer, sizeof answer};
    COLLET_TRY(processes.exchange({&send, 1}, {&receive, 1}, [](uint32_t) { return ok_status(); }, what));
    if (answer.kind == Header::kTurn) return answer.bytes;
    COLLET_TRY(check(answer, own, leader, what));
    return failed_precondition(what + ": " + processes.name(leader) + " exchanges it through the host");
  }
  std::vector<Header> headers(group.processes.size());
  std::vector<collet_message> receives;
  for (size_t r = 1; r < group.processes.size(); ++r)
    receives.push_back({group.processes[r], 0, next_tag(group.processes[r], rank), &headers[r], sizeof(Header)});
  const auto check_header = [&](uint32_t i) { return check(headers[i + 1], own, group.processes[i + 1], what); };
  const Status status = receives.empty() ? ok_status() : processes.exchange({}, receives, check_header, what);
  answer.kind = status.ok() ? Header::kTurn : Header::kRefusal;
  answer.code = static_cast<int32_t>(status.code());
  if (status.ok())
    answer.bytes = processes.turns().next(members);
  else
    collet_copy_text(answer.data, sizeof answer.data, status.message().c_str());
  std::vector<collet_message> sends;
  for (const uint32_t process : group.processes)
    if (process != rank) sends.push_back({process, 0, next_tag(rank, process), &answer, sizeof answer});
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
  const Header own = header_of(instr, bytes);
  Processes& processes = *across_.processes;
  std::map<uint32_t, ExchangeMemory> all;
  for (size_t k = 0; k < present.size(); ++k) all[present[k]] = memory[k];
  for (const DeviceExchange::Group& group : partners->on_devices->groups) {
    if (!contains(group.processes, processes.rank())) continue;
    for (const uint32_t participant : group.participants)
      if (across_.place[participant] == processes.rank() && !all.count(participant)) return absent(what, participant);
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
  for (const uint32_t participant : across_.numbers)
    for (const uint32_t process : across_.members) {
      if (process == across_.processes->rank()) continue;
      const uint32_t sequence = sent_[{participant, process}]++;
      across_.processes->post({process, 0, header_tag(participant, process, sequence), &header, sizeof header});
    }
}

}  // namespace collet::runtime
