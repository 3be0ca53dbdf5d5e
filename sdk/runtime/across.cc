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

// True if sum_across can compute the collective.
bool is_sum(const hlo::Module& module, const Instruction& instr, const std::vector<Literal>& operands) {
  if (instr.op != hlo::Op::ALL_REDUCE && instr.op != hlo::Op::ALL_REDUCE_START && instr.op != hlo::Op::REDUCE_SCATTER)
    return false;
  return std::all_of(operands.begin(), operands.end(), [&](const Literal& value) {
    return value.shape().is_array() && value.dynamic_sizes().empty() &&
           combine_function(module, instr.called[0], value.type()) != nullptr;
  });
}

/// How an array is divided among participants: `parts` along one dimension, each of them `outer` pieces of `piece` bytes.
struct Division {
  uint64_t outer = 1, parts = 1, piece = 0;

  uint64_t part() const { return outer * piece; }
};
Division division_of(const hlo::Shape& shape, int64_t dimension, size_t parts) {
  Division out;
  out.parts = parts;
  for (int64_t d = 0; d < dimension; ++d) out.outer *= static_cast<uint64_t>(shape.dim(static_cast<int>(d)));
  out.piece = static_cast<uint64_t>(shape.byte_size()) / std::max<uint64_t>(out.outer * parts, 1);
  return out;
}

// Puts a part of an array into it, unless it is there already.
void unpack(const uint8_t* from, const Division& d, size_t part, uint8_t* to) {
  if (d.outer == 1 && from == to + part * d.piece) return;
  for (uint64_t o = 0; o < d.outer; ++o) std::memcpy(to + (o * d.parts + part) * d.piece, from + o * d.piece, d.piece);
}

bool has_dynamic(const std::vector<Literal>& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Literal& one) { return !one.dynamic_sizes().empty(); });
}

// Puts the parts of an array behind each other, in this order.
void pack(const void* from, const Division& d, const std::vector<size_t>& order, char* to) {
  for (const size_t part : order)
    for (uint64_t o = 0; o < d.outer; ++o, to += d.piece)
      std::memcpy(to, static_cast<const char*>(from) + (o * d.parts + part) * d.piece, d.piece);
}

// Returns result `i` of participant `k` of those here, and its memory: the caller's, or that of a new array.
std::pair<Literal, uint8_t*> place_of(const Instruction& instr, size_t i, std::span<const std::vector<void*>> targets,
                                      size_t k) {
  const hlo::Shape shape = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
  if (void* const target = targets.empty() ? nullptr : targets[k][i])
    return {Literal::borrow(shape, target), static_cast<uint8_t*>(target)};
  Literal made = Literal::uninitialized(shape);
  uint8_t* const memory = made.mutable_bytes();
  return {std::move(made), memory};
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
    for (size_t i = 0; i < operands[k].size(); ++i) results[k].push_back(place_of(instr, i, targets, k).first);
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
  Processes& processes = *across_.processes;
  const auto check_header = [&](uint32_t i) {
    return this->check(incoming[i].header, own, across_.place[incoming[i].participant], what);
  };
  // The data are on their way while the headers are checked: their tags say what they are, so that those of another program are
  // never taken for them.
  const Heads heads{sends, receives, check_header};
  if (sums) return sum(module, instr, own, *partners, present, operands, targets, heads, what);
  if (swaps) return swap(instr, own, *partners, present, operands, targets, heads, what);
  if (rags) return ragged(instr, own, *partners, present, operands, targets, heads, what);
  const size_t checked = receives.size();
  sends.insert(sends.end(), sends_of_data.begin(), sends_of_data.end());
  receives.insert(receives.end(), receives_of_data.begin(), receives_of_data.end());
  const auto check = [&](uint32_t i) { return i < checked ? check_header(i) : ok_status(); };
  if (!sends.empty() || !receives.empty()) COLLET_TRY(processes.exchange(sends, receives, check, what));

  if (gathers) {
    std::map<uint32_t, const std::vector<Literal>*> from;
    for (size_t k = 0; k < present.size(); ++k) from[present[k]] = &operands[k];
    for (const Incoming& one : incoming) from[one.participant] = &one.operands;
    for (size_t k = 0; k < present.size(); ++k) {
      const std::vector<uint32_t>& group = partners->groups[present[k]];
      for (size_t i = 0; i < results[k].size(); ++i) {
        const Division division =
            division_of(results[k][i].shape(), instr.as<hlo::CollectiveDimAttrs>().dimension, group.size());
        for (size_t member = 0; member < group.size(); ++member) {
          const auto source = from.find(group[member]);
          if (source == from.end())
            return failed_precondition(what + ": participant " + std::to_string(group[member]) +
                                       " takes another way through control flow");
          unpack((*source->second)[i].bytes(), division, member, const_cast<uint8_t*>(results[k][i].bytes()));
        }
      }
    }
    return results;
  }

  if (moves) {
    std::map<uint32_t, const std::vector<Literal>*> from;
    for (size_t k = 0; k < present.size(); ++k) from[present[k]] = &operands[k];
    for (const Incoming& one : incoming) from[one.participant] = &one.operands;
    for (size_t k = 0; k < present.size(); ++k) {
      const auto source = source_of(instr, partners->groups[present[k]], present[k]);
      if (source && !from.contains(*source))
        return failed_precondition(what + ": participant " + std::to_string(*source) +
                                   " takes another way through control flow");
      for (size_t i = 0; i < results[k].size(); ++i) {
        auto* const to = const_cast<uint8_t*>(results[k][i].bytes());
        const auto bytes = static_cast<size_t>(results[k][i].byte_size());
        const uint8_t* const data = source ? (*from[*source])[i].bytes() : nullptr;
        if (!source)
          std::memset(to, 0, bytes);
        else if (data != to)
          std::memcpy(to, data, bytes);
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

Expected<std::vector<std::vector<Literal>>> Exchange::sum(const hlo::Module& module, const Instruction& instr,
                                                          const Header& own, const Across::Partners& partners,
                                                          std::span<const uint32_t> present,
                                                          const std::vector<std::vector<Literal>>& operands,
                                                          std::span<const std::vector<void*>> targets,
                                                          const Heads& heads, const std::string& what) {
  const bool scatters = instr.op == hlo::Op::REDUCE_SCATTER;
  std::vector<std::vector<Literal>> results(present.size());
  std::vector<SumGroup> groups;
  /// A place of results that no participant has: the data of several ones.
  struct Shared {
    size_t participant, operand;
    const void* from;
  };
  std::vector<Shared> copies;
  std::vector<std::unique_ptr<char[]>> storage;
  const auto allocate = [&](uint64_t bytes) {
    storage.emplace_back(new char[std::max<uint64_t>(bytes, 1)]);
    return storage.back().get();
  };
  const auto place = [&](size_t k, size_t i) -> void* {
    auto [result, memory] = place_of(instr, i, targets, k);
    results[k][i] = std::move(result);
    return memory;
  };
  std::vector<bool> done(present.size());
  for (size_t k = 0; k < present.size(); ++k) {
    results[k].resize(operands[k].size());
    if (done[k]) continue;
    const std::vector<uint32_t>& ordered = partners.groups[present[k]];
    SumGroup& group = groups.emplace_back();
    for (const uint32_t number : ordered) group.processes.push_back(across_.place[number]);
    std::sort(group.processes.begin(), group.processes.end());
    group.processes.erase(std::unique(group.processes.begin(), group.processes.end()), group.processes.end());
    // The members by process, and within one by their place in the group; those here in the order of `present`.
    std::vector<size_t> by_process, here;
    std::vector<uint64_t> first{0};
    size_t before = 0;
    for (const uint32_t process : group.processes) {
      if (process == across_.processes->rank()) before = by_process.size();
      for (size_t m = 0; m < ordered.size(); ++m)
        if (across_.place[ordered[m]] == process) by_process.push_back(m);
      first.push_back(by_process.size());
    }
    for (size_t j = k; j < present.size(); ++j)
      if (std::find(ordered.begin(), ordered.end(), present[j]) != ordered.end()) {
        here.push_back(j);
        done[j] = true;
        results[j].resize(operands[j].size());
      }
    for (size_t i = 0; i < operands[k].size(); ++i) {
      const Literal& value = operands[k][i];
      const auto bytes = static_cast<uint64_t>(value.byte_size()), count = static_cast<uint64_t>(value.element_count());
      SummedArray& array = group.arrays.emplace_back();
      array.element_bytes = count ? bytes / count : 1;
      array.combine = combine_function(module, instr.called[0], value.type());
      for (const size_t j : here) array.mine.push_back(operands[j][i].bytes());
      if (!scatters) {
        array.bounds = equal_bounds(count, group.processes.size());
        array.result = array.total = place(k, i);
        const size_t at =
            static_cast<size_t>(std::find(group.processes.begin(), group.processes.end(), across_.processes->rank()) -
                                group.processes.begin());
        array.own = static_cast<char*>(array.result) + array.bounds[at] * array.element_bytes;
        for (size_t j = 1; j < here.size(); ++j) copies.push_back({here[j], i, array.result});
        continue;
      }
      const Division division =
          division_of(value.shape(), instr.as<hlo::CollectiveDimAttrs>().dimension, ordered.size());
      for (const uint64_t members : first) array.bounds.push_back(members * (count / ordered.size()));
      if (division.outer > 1 || !std::is_sorted(by_process.begin(), by_process.end())) {
        for (const void*& one : array.mine) {
          char* const packed = allocate(bytes);
          pack(one, division, by_process, packed);
          one = packed;
        }
      }
      if (here.size() == 1) {
        array.own = place(k, i);
        continue;
      }
      array.total = allocate(bytes);
      array.own = allocate(here.size() * division.part());
      for (const size_t j : here) {
        const size_t member =
            static_cast<size_t>(std::find(ordered.begin(), ordered.end(), present[j]) - ordered.begin());
        const size_t at =
            static_cast<size_t>(std::find(by_process.begin(), by_process.end(), member) - by_process.begin());
        copies.push_back({j, i, static_cast<char*>(array.own) + (at - before) * division.part()});
      }
    }
    const uint64_t start =
        data_tag(own, *std::min_element(ordered.begin(), ordered.end()), 0, rounds_[ordered.front()]++, kRound);
    group.tag = [start](std::span<const uint64_t> parts) {
      uint64_t hash = start;
      for (const uint64_t part : parts) hash = collet_hash_number(hash, part);
      return hash;
    };
  }
  COLLET_TRY(sum_across(*across_.processes, across_.scratch, groups, heads, what));
  for (const Shared& one : copies) {
    void* const to = place(one.participant, one.operand);
    std::memcpy(to, one.from, static_cast<size_t>(results[one.participant][one.operand].byte_size()));
  }
  return results;
}

Expected<std::vector<std::vector<Literal>>> Exchange::swap(const Instruction& instr, const Header& own,
                                                           const Across::Partners& partners,
                                                           std::span<const uint32_t> present,
                                                           const std::vector<std::vector<Literal>>& operands,
                                                           std::span<const std::vector<void*>> targets,
                                                           const Heads& heads, const std::string& what) {
  // An array is divided along a dimension; of several arrays, each member gets one.
  const auto& along = instr.as<hlo::AllToAllAttrs>().dimension;
  /// A part that arrived, whose places in the result are not in one piece.
  struct Arrival {
    const uint8_t* data;
    Division division;
    size_t part;
    uint8_t* result;
  };
  std::vector<Arrival> arrivals;
  std::vector<std::unique_ptr<char[]>> storage;
  const auto allocate = [&](uint64_t bytes) {
    storage.emplace_back(new char[std::max<uint64_t>(bytes, 1)]);
    return storage.back().get();
  };
  const auto division = [&](const Literal& array, size_t members) {
    return along.empty() ? division_of(array.shape(), 0, 1) : division_of(array.shape(), along[0], members);
  };
  std::vector<collet_message> sends(heads.sends.begin(), heads.sends.end()),
      receives(heads.receives.begin(), heads.receives.end());
  std::map<uint32_t, uint32_t> round;  // of each group, by its first member
  std::vector<std::vector<Literal>> results(present.size());
  for (size_t k = 0; k < present.size(); ++k) {
    const std::vector<uint32_t>& group = partners.groups[present[k]];
    const auto place_in_group = [&](uint32_t number) {
      return static_cast<size_t>(std::find(group.begin(), group.end(), number) - group.begin());
    };
    const size_t mine = place_in_group(present[k]);
    if (const auto [it, is_new] = round.try_emplace(group.front()); is_new) it->second = rounds_[group.front()]++;
    const uint64_t start =
        data_tag(own, *std::min_element(group.begin(), group.end()), 0, round[group.front()], kRound);
    const auto part_tag = [&](size_t from, size_t to) {
      return collet_hash_number(collet_hash_number(start, from), to);
    };
    std::vector<uint8_t*> memory;
    for (size_t i = 0; i < operands[k].size(); ++i) {
      auto [result, to] = place_of(instr, i, targets, k);
      results[k].push_back(std::move(result));
      memory.push_back(to);
    }
    for (size_t m = 0; m < group.size(); ++m) {
      const uint32_t process = across_.place[group[m]];
      // What comes from member m.
      const size_t element = along.empty() ? m : 0, part = along.empty() ? 0 : m;
      const Division in = division(results[k][element], group.size());
      if (process == across_.processes->rank()) {
        const auto at = std::find(present.begin(), present.end(), group[m]);
        if (at == present.end())
          return failed_precondition(what + ": participant " + std::to_string(group[m]) +
                                     " takes another way through control flow");
        const Literal& from = operands[static_cast<size_t>(at - present.begin())][along.empty() ? mine : 0];
        const size_t sent = along.empty() ? 0 : mine;
        for (uint64_t o = 0; o < in.outer; ++o)
          std::memcpy(memory[element] + (o * in.parts + part) * in.piece,
                      from.bytes() + (o * in.parts + sent) * in.piece, in.piece);
        continue;
      }
      if (in.part() > 0) {
        uint8_t* to = memory[element] + part * in.piece;
        if (in.outer > 1) {
          to = reinterpret_cast<uint8_t*>(allocate(in.part()));
          arrivals.push_back({to, in, part, memory[element]});
        }
        receives.push_back({process, 0, part_tag(m, mine), to, in.part()});
      }
      // What member m gets.
      const Literal& from = operands[k][element];
      const Division out = division(from, group.size());
      if (out.part() == 0) continue;
      char* data = reinterpret_cast<char*>(const_cast<uint8_t*>(from.bytes())) + part * out.piece;  // only read
      if (out.outer > 1) {
        data = allocate(out.part());
        pack(from.bytes(), out, {part}, data);
      }
      sends.push_back({process, 0, part_tag(mine, m), data, out.part()});
    }
  }
  const auto check = [&](uint32_t i) { return i < heads.receives.size() ? heads.received(i) : ok_status(); };
  if (!sends.empty() || !receives.empty()) COLLET_TRY(across_.processes->exchange(sends, receives, check, what));
  for (const Arrival& one : arrivals) unpack(one.data, one.division, one.part, one.result);
  return results;
}

Expected<std::vector<std::vector<Literal>>> Exchange::ragged(const Instruction& instr, const Header& own,
                                                             const Across::Partners& partners,
                                                             std::span<const uint32_t> present,
                                                             const std::vector<std::vector<Literal>>& operands,
                                                             std::span<const std::vector<void*>> targets,
                                                             const Heads& heads, const std::string& what) {
  /// Rows that a member sends to another one: the first of them in its input, how many, and the first one in the other's result.
  struct Piece {
    int64_t from, rows, to;
  };
  constexpr int64_t kWrong = -1;  // in place of the number of rows: they are not all there
  /// What one member sends to another one, in another process: the pieces, then the data.
  struct Leg {
    size_t k;  // the member of this process
    uint32_t process;
    uint64_t tag;
    std::vector<Piece> pieces;
  };
  const auto rows_of = [](const Literal& array) { return array.shape().dim(0); };
  const int64_t rows = rows_of(operands[0][1]);
  const int64_t row_bytes = rows ? operands[0][1].byte_size() / rows : 0;
  // Both ends must agree on which pieces are wrong, so that neither waits for one: the sender judges.
  const auto pieces_for = [&](size_t k, size_t member, size_t members) {
    const int64_t updates = operands[k][2].element_count() / static_cast<int64_t>(members);
    std::vector<Piece> out;
    for (int64_t u = static_cast<int64_t>(member) * updates; u < (static_cast<int64_t>(member) + 1) * updates; ++u) {
      Piece one{operands[k][2].as_int(u), operands[k][3].as_int(u), operands[k][4].as_int(u)};
      if (one.rows < 0 || one.from < 0 || one.from > rows_of(operands[k][0]) - one.rows || one.to < 0 ||
          one.to > rows - one.rows)
        one.rows = kWrong;
      out.push_back(one);
    }
    return out;
  };
  bool wrong = false;
  std::vector<Leg> out, in;
  std::vector<std::vector<Literal>> results(present.size());
  std::vector<uint8_t*> memory(present.size());
  std::map<uint32_t, uint32_t> round;  // of each group, by its first member
  for (size_t k = 0; k < present.size(); ++k) {
    auto [result, to] = place_of(instr, 0, targets, k);
    std::memcpy(to, operands[k][1].bytes(), static_cast<size_t>(operands[k][1].byte_size()));
    results[k].push_back(std::move(result));
    memory[k] = to;
  }
  for (size_t k = 0; k < present.size(); ++k) {
    const std::vector<uint32_t>& group = partners.groups[present[k]];
    const auto mine = static_cast<size_t>(std::find(group.begin(), group.end(), present[k]) - group.begin());
    if (const auto [it, is_new] = round.try_emplace(group.front()); is_new) it->second = rounds_[group.front()]++;
    const uint64_t start =
        data_tag(own, *std::min_element(group.begin(), group.end()), 0, round[group.front()], kRound);
    const auto leg_tag = [&](size_t from, size_t to) {
      return collet_hash_number(collet_hash_number(start, from), to);
    };
    for (size_t m = 0; m < group.size(); ++m) {
      const uint32_t process = across_.place[group[m]];
      std::vector<Piece> pieces = pieces_for(k, m, group.size());
      for (const Piece& one : pieces) wrong |= one.rows == kWrong;
      if (process != across_.processes->rank()) {
        in.push_back({k, process, leg_tag(m, mine), std::vector<Piece>(pieces.size())});
        out.push_back({k, process, leg_tag(mine, m), std::move(pieces)});
        continue;
      }
      const auto at = std::find(present.begin(), present.end(), group[m]);
      if (at == present.end())
        return failed_precondition(what + ": participant " + std::to_string(group[m]) +
                                   " takes another way through control flow");
      for (const Piece& one : pieces)
        if (one.rows > 0)
          std::memcpy(memory[static_cast<size_t>(at - present.begin())] + one.to * row_bytes,
                      operands[k][0].bytes() + one.from * row_bytes, static_cast<size_t>(one.rows * row_bytes));
    }
  }
  std::vector<collet_message> sends(heads.sends.begin(), heads.sends.end()),
      receives(heads.receives.begin(), heads.receives.end());
  const auto table = [](Leg& leg) {
    return collet_message{leg.process, 0, leg.tag, leg.pieces.data(), leg.pieces.size() * sizeof(Piece)};
  };
  for (Leg& leg : out)
    if (!leg.pieces.empty()) sends.push_back(table(leg));
  for (Leg& leg : in)
    if (!leg.pieces.empty()) receives.push_back(table(leg));
  const auto check = [&](uint32_t i) { return i < heads.receives.size() ? heads.received(i) : ok_status(); };
  if (!sends.empty() || !receives.empty()) COLLET_TRY(across_.processes->exchange(sends, receives, check, what));
  sends.clear();
  receives.clear();
  const auto add = [&](std::vector<collet_message>& to, const Leg& leg, const uint8_t* base, int64_t Piece::* first) {
    for (size_t u = 0; u < leg.pieces.size(); ++u) {
      const Piece& one = leg.pieces[u];
      wrong |= one.rows == kWrong;
      if (one.rows <= 0 || row_bytes == 0) continue;
      to.push_back({leg.process, 0, collet_hash_number(leg.tag, u + 1),
                    const_cast<uint8_t*>(base) + one.*first * row_bytes,  // what is sent is only read
                    static_cast<uint64_t>(one.rows * row_bytes)});
    }
  };
  for (const Leg& leg : out) add(sends, leg, operands[leg.k][0].bytes(), &Piece::from);
  for (const Leg& leg : in) add(receives, leg, memory[leg.k], &Piece::to);
  if (!sends.empty() || !receives.empty())
    COLLET_TRY(across_.processes->exchange(sends, receives, [](uint32_t) { return ok_status(); }, what));
  if (wrong) return invalid_argument(what + ": ragged-all-to-all moves rows that are not there");
  return results;
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
