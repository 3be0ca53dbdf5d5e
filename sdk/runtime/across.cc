// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/across.h"

#include <collet/error.h>
#include <collet/hash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "hlo/program/leaves.h"
#include "sdk/runtime/collective.h"
#include "sdk/runtime/parts_across.h"

namespace collet::runtime {

using hlo::Instruction;
using hlo::Literal;

/// The first message about the operands of a participant: what it takes part in, and its operands if they are small.
/// Collet's version is equal in all processes, so the layout is, too.
struct Exchange::Header {
  enum : uint32_t { kOperands = 1, kFailure = 2 };
  uint32_t kind;
  uint32_t op;
  uint64_t content[4];
  uint64_t bytes;  ///< of the operands
  int32_t code;    ///< of the failure
  uint32_t reserved;
  char program[64];
  char instr[64];
  char data[320];  ///< the operands if they fit, or the message of the failure
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
  const auto& pairs = instr.as<hlo::CollectivePermuteAttrs>().pairs;
  std::optional<uint32_t> out;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto source = static_cast<uint64_t>(pairs[i]), target = static_cast<uint64_t>(pairs[i + 1]);
    if (source < group.size() && target < group.size() && group[target] == number) out = group[source];
  }
  return out;
}

// True for a permute or broadcast of whole arrays in which each of these participants takes part.
bool is_move(const Instruction& instr, const Across::Partners& partners, std::span<const uint32_t> present) {
  if (instr.op == hlo::Op::COLLECTIVE_PERMUTE) return instr.as<hlo::CollectivePermuteAttrs>().slice_sizes.empty();
  // One that is in no group gets zeros.
  return instr.op == hlo::Op::COLLECTIVE_BROADCAST &&
         std::all_of(present.begin(), present.end(), [&](uint32_t p) { return partners.groups[p].size() > 1; });
}

std::string text_of(const char* text, size_t capacity) {
  return {text, strnlen(text, capacity)};
}

}  // namespace

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

Expected<const Across::Partners*> Exchange::partners_of(const hlo::Module& module, const Instruction& instr,
                                                        hlo::InstrId id, const std::vector<Literal>& operands) {
  const std::lock_guard lock(across_.mutex);
  const auto known = across_.partners.find(id);
  if (known != across_.partners.end()) return &known->second;
  Across::Partners partners;
  COLLET_ASSIGN(partners.groups, ordered_groups(module, instr, across_.replicas, across_.partitions, operands));
  partners.needs = dependencies(instr, partners.groups);
  return &across_.partners.emplace(id, std::move(partners)).first->second;
}

Status Exchange::check(const Header& header, const Header& own, uint32_t process, const std::string& what) const {
  const std::string other = across_.processes->name(process);
  if (header.kind == Header::kFailure)
    return Status(static_cast<Code>(header.code), other + " failed in program '" +
                                                      text_of(header.program, sizeof header.program) +
                                                      "': " + text_of(header.data, sizeof header.data));
  const auto at = [](const Header& h) {
    return "'" + text_of(h.instr, sizeof h.instr) + "' of program '" + text_of(h.program, sizeof h.program) + "'";
  };
  const bool same_program = std::memcmp(header.content, own.content, sizeof own.content) == 0;
  if (same_program && header.op == own.op && header.bytes == own.bytes) return ok_status();
  return failed_precondition(
      what + ": " + other + " runs " + at(header) + " where " + across_.processes->name(across_.processes->rank()) +
      " runs " + at(own) +
      (same_program ? "" : "; all processes must start the same programs, on the same devices, in the same order"));
}

Expected<std::vector<std::vector<Literal>>> Exchange::run(const hlo::Module& module, const Instruction& instr,
                                                          hlo::InstrId id, std::span<const uint32_t> present,
                                                          std::vector<std::vector<Literal>> operands,
                                                          std::span<const std::vector<void*>> targets) {
  COLLET_ASSIGN(const Across::Partners* const partners, partners_of(module, instr, id, operands[0]));
  const std::vector<std::vector<uint32_t>>* const needs = &partners->needs;
  const uint32_t rank = across_.processes->rank();
  const std::string what = "'" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) +
                           ") of program '" + across_.name + "', launch " + std::to_string(launch_);
  Header own{};
  own.kind = Header::kOperands;
  own.op = static_cast<uint32_t>(instr.op);
  std::memcpy(own.content, across_.content.words, sizeof own.content);
  own.bytes = bytes_of(operands[0]);
  copy_name(own.program, across_.name);
  copy_name(own.instr, instr.name);
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
          if (source == from.end()) return call.absent(*sources[part]);
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
