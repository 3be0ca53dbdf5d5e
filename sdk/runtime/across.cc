// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/across.h"

#include <collet/error.h>
#include <collet/hash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "hlo/program/leaves.h"
#include "sdk/runtime/collective.h"

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

Expected<const Across::Needs*> Exchange::needs_of(const hlo::Module& module, const Instruction& instr, hlo::InstrId id,
                                                  const std::vector<Literal>& operands) {
  const std::lock_guard lock(across_.mutex);
  const auto known = across_.needs.find(id);
  if (known != across_.needs.end()) return &known->second;
  COLLET_ASSIGN(Across::Needs needs, dependencies(module, instr, across_.replicas, across_.partitions, operands));
  return &across_.needs.emplace(id, std::move(needs)).first->second;
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
  return failed_precondition(what + ": " + other + " runs " + at(header) + " where " +
                             across_.processes->name(across_.processes->rank()) + " runs " + at(own) +
                             (same_program ? "" : "; all processes must start the same programs in the same order"));
}

Expected<std::vector<std::vector<Literal>>> Exchange::run(const hlo::Module& module, const Instruction& instr,
                                                          hlo::InstrId id, std::span<const uint32_t> present,
                                                          std::vector<std::vector<Literal>> operands) {
  COLLET_ASSIGN(const Across::Needs* const needs, needs_of(module, instr, id, operands[0]));
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
      sends.push_back({process, 0, tag(present[k], process, sequence, 0), &headers[k], sizeof(Header)});
      for (size_t i = 0; !fits && i < operands[k].size(); ++i)
        if (const auto bytes = static_cast<uint64_t>(operands[k][i].byte_size()))
          sends_of_data.push_back({process, 0, tag(present[k], process, sequence, static_cast<uint32_t>(i) + 1),
                                   const_cast<uint8_t*>(operands[k][i].bytes()), bytes});  // only read
    }
  }
  std::vector<Incoming> incoming;
  for (uint32_t q = 0; q < across_.place.size(); ++q) {
    if (across_.place[q] == rank) continue;
    if (std::any_of(present.begin(), present.end(), [&](uint32_t p) { return contains((*needs)[p], q); }))
      incoming.push_back({q, {}, {}});
  }
  for (Incoming& one : incoming) {
    const uint32_t process = across_.place[one.participant];
    const uint32_t sequence = sent_[{one.participant, rank}]++;
    receives.push_back({process, 0, tag(one.participant, rank, sequence, 0), &one.header, sizeof(Header)});
    for (size_t i = 0; i < operands[0].size(); ++i) {
      Literal& value = one.operands.emplace_back(Literal::uninitialized(operands[0][i].shape()));
      const auto bytes = static_cast<uint64_t>(value.byte_size());
      if (!fits && bytes)
        receives_of_data.push_back({process, 0, tag(one.participant, rank, sequence, static_cast<uint32_t>(i) + 1),
                                    value.mutable_bytes(), bytes});
    }
  }
  Processes& processes = *across_.processes;
  const auto check_header = [&](uint32_t i) {
    return check(incoming[i].header, own, across_.place[incoming[i].participant], what);
  };
  if (!sends.empty() || !receives.empty()) COLLET_TRY(processes.exchange(sends, receives, check_header, what));
  if (!sends_of_data.empty() || !receives_of_data.empty())
    COLLET_TRY(processes.exchange(sends_of_data, receives_of_data, [](uint32_t) { return ok_status(); }, what));

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
      across_.processes->post({process, 0, tag(participant, process, sequence, 0), &header, sizeof header});
    }
}

}  // namespace collet::runtime
