// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/parts_across.h"

#include <collet/hash.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace collet::runtime {

using hlo::Instruction;
using hlo::Literal;

namespace {

/// Memory for parts of arrays, which lives as long as this object.
class Storage {
 public:
  char* allocate(uint64_t bytes) { return kept_.emplace_back(new char[std::max<uint64_t>(bytes, 1)]).get(); }

 private:
  std::vector<std::unique_ptr<char[]>> kept_;
};

// Puts the parts of an array behind each other, in this order.
void pack(const void* from, const Division& d, const std::vector<size_t>& order, char* to) {
  for (const size_t part : order)
    for (uint64_t o = 0; o < d.outer; ++o, to += d.piece)
      std::memcpy(to, static_cast<const char*>(from) + (o * d.parts + part) * d.piece, d.piece);
}

// Returns the place of a number in a list that has it.
template <typename Number>
size_t place_in(const std::vector<Number>& list, Number number) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), number) - list.begin());
}

// Returns a number for the messages from one member of a group to another one.
uint64_t pair_tag(uint64_t group, size_t from, size_t to) {
  return collet_hash_number(collet_hash_number(group, from), to);
}

}  // namespace

Division division_of(const hlo::Shape& shape, int64_t dimension, size_t parts) {
  Division out;
  out.parts = parts;
  for (int64_t d = 0; d < dimension; ++d) out.outer *= static_cast<uint64_t>(shape.dim(static_cast<int>(d)));
  out.piece = static_cast<uint64_t>(shape.byte_size()) / std::max<uint64_t>(out.outer * parts, 1);
  return out;
}

void unpack(const uint8_t* from, const Division& d, size_t part, uint8_t* to) {
  if (d.outer == 1 && from == to + part * d.piece) return;
  for (uint64_t o = 0; o < d.outer; ++o) std::memcpy(to + (o * d.parts + part) * d.piece, from + o * d.piece, d.piece);
}

bool is_sum(const hlo::Module& module, const Instruction& instr, const std::vector<Literal>& operands) {
  if (instr.op != hlo::Op::ALL_REDUCE && instr.op != hlo::Op::ALL_REDUCE_START && instr.op != hlo::Op::REDUCE_SCATTER)
    return false;
  return std::all_of(operands.begin(), operands.end(), [&](const Literal& value) {
    return value.shape().is_array() && value.dynamic_sizes().empty() &&
           combine_function(module, instr.called[0], value.type()) != nullptr;
  });
}

std::pair<Literal, uint8_t*> CollectiveCall::place(size_t k, size_t i) const {
  const hlo::Shape shape = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
  if (void* const target = targets.empty() ? nullptr : targets[k][i])
    return {Literal::borrow(shape, target), static_cast<uint8_t*>(target)};
  Literal made = Literal::uninitialized(shape);
  uint8_t* const memory = made.mutable_bytes();
  return {std::move(made), memory};
}

size_t CollectiveCall::here(uint32_t participant) const {
  return static_cast<size_t>(std::find(present.begin(), present.end(), participant) - present.begin());
}

Expected<Results> sum_parts(const CollectiveCall& call) {
  const bool scatters = call.instr.op == hlo::Op::REDUCE_SCATTER;
  Results results(call.present.size());
  std::vector<SumGroup> groups;
  /// A place of results that no participant has: the data of several ones.
  struct Shared {
    size_t participant, operand;
    const void* from;
  };
  std::vector<Shared> copies;
  Storage storage;
  const auto place = [&](size_t k, size_t i) -> void* {
    auto [result, memory] = call.place(k, i);
    results[k][i] = std::move(result);
    return memory;
  };
  std::vector<bool> done(call.present.size());
  for (size_t k = 0; k < call.present.size(); ++k) {
    results[k].resize(call.operands[k].size());
    if (done[k]) continue;
    const std::vector<uint32_t>& ordered = call.partners.groups[call.present[k]];
    SumGroup& group = groups.emplace_back();
    group.unit = call.present[k];
    for (const uint32_t number : ordered) group.processes.push_back(call.across.place[number]);
    std::sort(group.processes.begin(), group.processes.end());
    group.processes.erase(std::unique(group.processes.begin(), group.processes.end()), group.processes.end());
    // The members by process, and within one by their place in the group; those here in the order of `present`.
    std::vector<size_t> by_process, here;
    std::vector<uint64_t> first{0};
    size_t before = 0;
    for (const uint32_t process : group.processes) {
      if (process == call.across.processes->rank()) before = by_process.size();
      for (size_t m = 0; m < ordered.size(); ++m)
        if (call.across.place[ordered[m]] == process) by_process.push_back(m);
      first.push_back(by_process.size());
    }
    for (size_t j = k; j < call.present.size(); ++j)
      if (std::find(ordered.begin(), ordered.end(), call.present[j]) != ordered.end()) {
        here.push_back(j);
        done[j] = true;
        results[j].resize(call.operands[j].size());
      }
    for (size_t i = 0; i < call.operands[k].size(); ++i) {
      const Literal& value = call.operands[k][i];
      const auto bytes = static_cast<uint64_t>(value.byte_size()), count = static_cast<uint64_t>(value.element_count());
      SummedArray& array = group.arrays.emplace_back();
      array.element_bytes = count ? bytes / count : 1;
      array.combine = combine_function(call.module, call.instr.called[0], value.type());
      for (const size_t j : here) array.mine.push_back(call.operands[j][i].bytes());
      if (!scatters) {
        array.bounds = equal_bounds(count, group.processes.size());
        array.result = array.total = place(k, i);
        const size_t at = place_in(group.processes, call.across.processes->rank());
        array.own = static_cast<char*>(array.result) + array.bounds[at] * array.element_bytes;
        for (size_t j = 1; j < here.size(); ++j) copies.push_back({here[j], i, array.result});
        continue;
      }
      const Division division =
          division_of(value.shape(), call.instr.as<hlo::CollectiveDimAttrs>().dimension, ordered.size());
      for (const uint64_t members : first) array.bounds.push_back(members * (count / ordered.size()));
      if (division.outer > 1 || !std::is_sorted(by_process.begin(), by_process.end())) {
        for (const void*& one : array.mine) {
          char* const packed = storage.allocate(bytes);
          pack(one, division, by_process, packed);
          one = packed;
        }
      }
      if (here.size() == 1) {
        array.own = place(k, i);
        continue;
      }
      array.total = storage.allocate(bytes);
      array.own = storage.allocate(here.size() * division.part());
      for (const size_t j : here) {
        const size_t member = place_in(ordered, call.present[j]);
        const size_t at = place_in(by_process, member);
        copies.push_back({j, i, static_cast<char*>(array.own) + (at - before) * division.part()});
      }
    }
    const uint64_t start = call.tag(ordered);
    group.tag = [start](std::span<const uint64_t> parts) {
      uint64_t hash = start;
      for (const uint64_t part : parts) hash = collet_hash_number(hash, part);
      return hash;
    };
  }
  COLLET_TRY(sum_across(call.rendezvous, call.across.processes->rank(), call.across.scratch, groups, call.what));
  COLLET_TRY(call.rendezvous.failure());
  for (const Shared& one : copies) {
    void* const to = place(one.participant, one.operand);
    std::memcpy(to, one.from, static_cast<size_t>(results[one.participant][one.operand].byte_size()));
  }
  return results;
}

Expected<Results> swap_parts(const CollectiveCall& call) {
  // An array is divided along a dimension; of several arrays, each member gets one.
  const auto& along = call.instr.as<hlo::AllToAllAttrs>().dimension;
  /// A part that arrived, whose places in the result are not in one piece.
  struct Arrival {
    const uint8_t* data;
    Division division;
    size_t part;
    uint8_t* result;
  };
  std::vector<Arrival> arrivals;
  Storage storage;
  const auto division = [&](const Literal& array, size_t members) {
    return along.empty() ? division_of(array.shape(), 0, 1) : division_of(array.shape(), along[0], members);
  };
  std::vector<DataMessage> sends, receives;
  Results results(call.present.size());
  for (size_t k = 0; k < call.present.size(); ++k) {
    const std::vector<uint32_t>& group = call.partners.groups[call.present[k]];
    const size_t mine = place_in(group, call.present[k]);
    const uint64_t start = call.tag(group);
    std::vector<uint8_t*> memory;
    for (size_t i = 0; i < call.operands[k].size(); ++i) {
      auto [result, to] = call.place(k, i);
      results[k].push_back(std::move(result));
      memory.push_back(to);
    }
    for (size_t m = 0; m < group.size(); ++m) {
      const uint32_t process = call.across.place[group[m]];
      // What comes from member m.
      const size_t element = along.empty() ? m : 0, part = along.empty() ? 0 : m;
      const Division in = division(results[k][element], group.size());
      if (process == call.across.processes->rank()) {
        const size_t at = call.here(group[m]);
        const Literal& from = call.operands[at][along.empty() ? mine : 0];
        const size_t sent = along.empty() ? 0 : mine;
        for (uint64_t o = 0; o < in.outer; ++o)
          std::memcpy(memory[element] + (o * in.parts + part) * in.piece,
                      from.bytes() + (o * in.parts + sent) * in.piece, in.piece);
        continue;
      }
      if (in.part() > 0) {
        uint8_t* to = memory[element] + part * in.piece;
        if (in.outer > 1) {
          to = reinterpret_cast<uint8_t*>(storage.allocate(in.part()));
          arrivals.push_back({to, in, part, memory[element]});
        }
        receives.push_back({{process, 0, pair_tag(start, m, mine), to, in.part()}, call.present[k]});
      }
      // What member m gets.
      const Literal& from = call.operands[k][element];
      const Division out = division(from, group.size());
      if (out.part() == 0) continue;
      char* data = reinterpret_cast<char*>(const_cast<uint8_t*>(from.bytes())) + part * out.piece;  // only read
      if (out.outer > 1) {
        data = storage.allocate(out.part());
        pack(from.bytes(), out, {part}, data);
      }
      sends.push_back({{process, 0, pair_tag(start, mine, m), data, out.part()}, call.present[k]});
    }
  }
  COLLET_TRY(call.rendezvous.exchange(sends, receives));
  COLLET_TRY(call.rendezvous.failure());
  for (const Arrival& one : arrivals) unpack(one.data, one.division, one.part, one.result);
  return results;
}

Expected<Results> swap_rows(const CollectiveCall& call) {
  /// Rows that a member sends to another one: the first of them in its input, how many, and the first one in the other's result.
  struct Piece {
    int64_t from, rows, to;
  };
  constexpr int64_t kWrong = -1;  // in place of the number of rows: they are not all there
  /// What one member sends to another one, in another process: the pieces, then the data.
  struct PairRows {
    size_t k;  // the member of this process
    uint32_t process;
    uint64_t tag;
    std::vector<Piece> pieces;
  };
  const auto rows_of = [](const Literal& array) { return array.shape().dim(0); };
  const int64_t rows = rows_of(call.operands[0][1]);
  const int64_t row_bytes = rows ? call.operands[0][1].byte_size() / rows : 0;
  // Both ends must agree on which pieces are wrong, so that neither waits for one: the sender judges.
  const auto pieces_for = [&](size_t k, size_t member, size_t members) {
    const int64_t updates = call.operands[k][2].element_count() / static_cast<int64_t>(members);
    std::vector<Piece> out;
    for (int64_t u = static_cast<int64_t>(member) * updates; u < (static_cast<int64_t>(member) + 1) * updates; ++u) {
      Piece one{call.operands[k][2].as_int(u), call.operands[k][3].as_int(u), call.operands[k][4].as_int(u)};
      if (one.rows < 0 || one.from < 0 || one.from > rows_of(call.operands[k][0]) - one.rows || one.to < 0 ||
          one.to > rows - one.rows)
        one.rows = kWrong;
      out.push_back(one);
    }
    return out;
  };
  bool wrong = false;
  std::vector<PairRows> out, in;
  Results results(call.present.size());
  std::vector<uint8_t*> memory(call.present.size());
  for (size_t k = 0; k < call.present.size(); ++k) {
    auto [result, to] = call.place(k, 0);
    std::memcpy(to, call.operands[k][1].bytes(), static_cast<size_t>(call.operands[k][1].byte_size()));
    results[k].push_back(std::move(result));
    memory[k] = to;
  }
  for (size_t k = 0; k < call.present.size(); ++k) {
    const std::vector<uint32_t>& group = call.partners.groups[call.present[k]];
    const size_t mine = place_in(group, call.present[k]);
    const uint64_t start = call.tag(group);
    for (size_t m = 0; m < group.size(); ++m) {
      const uint32_t process = call.across.place[group[m]];
      std::vector<Piece> pieces = pieces_for(k, m, group.size());
      for (const Piece& one : pieces) wrong |= one.rows == kWrong;
      if (process != call.across.processes->rank()) {
        in.push_back({k, process, pair_tag(start, m, mine), std::vector<Piece>(pieces.size())});
        out.push_back({k, process, pair_tag(start, mine, m), std::move(pieces)});
        continue;
      }
      const size_t at = call.here(group[m]);
      for (const Piece& one : pieces)
        if (one.rows > 0)
          std::memcpy(memory[at] + one.to * row_bytes, call.operands[k][0].bytes() + one.from * row_bytes,
                      static_cast<size_t>(one.rows * row_bytes));
    }
  }
  std::vector<DataMessage> sends, receives;
  const auto table = [&](PairRows& pair) {
    return DataMessage{{pair.process, 0, pair.tag, pair.pieces.data(), pair.pieces.size() * sizeof(Piece)},
                       call.present[pair.k]};
  };
  for (PairRows& pair : out)
    if (!pair.pieces.empty()) sends.push_back(table(pair));
  for (PairRows& pair : in)
    if (!pair.pieces.empty()) receives.push_back(table(pair));
  COLLET_TRY(call.rendezvous.exchange(sends, receives));
  sends.clear();
  receives.clear();
  const auto add = [&](std::vector<DataMessage>& to, const PairRows& pair, const uint8_t* base,
                       int64_t Piece::* first) {
    for (size_t u = 0; u < pair.pieces.size(); ++u) {
      const Piece& one = pair.pieces[u];
      wrong |= one.rows == kWrong;
      if (one.rows <= 0 || row_bytes == 0) continue;
      to.push_back({{pair.process, 0, collet_hash_number(pair.tag, u + 1),
                     const_cast<uint8_t*>(base) + one.*first * row_bytes,  // what is sent is only read
                     static_cast<uint64_t>(one.rows * row_bytes)},
                    call.present[pair.k]});
    }
  };
  for (const PairRows& pair : out) add(sends, pair, call.operands[pair.k][0].bytes(), &Piece::from);
  for (const PairRows& pair : in) add(receives, pair, memory[pair.k], &Piece::to);
  COLLET_TRY(call.rendezvous.exchange(sends, receives));
  COLLET_TRY(call.rendezvous.failure());
  if (wrong) return invalid_argument(call.what + ": ragged-all-to-all moves rows that are not there");
  return results;
}

}  // namespace collet::runtime
