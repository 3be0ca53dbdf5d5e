// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "sdk/runtime/processes/across.h"

/// \file
/// Collectives over several processes that send parts of their operands, each part to those who need it: sums, all-to-alls, and
/// ragged-all-to-alls.

namespace collet::runtime {

/// How an array is divided among participants: `parts` along one dimension, each of them `outer` pieces of `piece` bytes.
struct Division {
  uint64_t outer = 1, parts = 1, piece = 0;

  uint64_t part() const { return outer * piece; }
};
Division division_of(const hlo::Shape& shape, int64_t dimension, size_t parts);

/// Puts a part of an array into it, unless it is there already.
void unpack(const uint8_t* from, const Division& d, size_t part, uint8_t* to);

/// The results of a collective for each participant of this process.
using Results = std::vector<std::vector<hlo::Literal>>;

/// One collective, as this process takes part in it.
struct CollectiveCall {
  const hlo::Module& module;
  const hlo::Instruction& instr;
  Across& across;
  const Across::Partners& partners;
  std::span<const uint32_t> present;            ///< the participants of this process: numbers, ascending
  const Results& operands;                      ///< of each of them
  std::span<const std::vector<void*>> targets;  ///< see Exchange::run
  /// Exchanges the parts. The unit of a message is the participant of this process that it belongs to; all of its group go on, or none.
  Rendezvous& rendezvous;
  const std::string& what;  ///< for messages
  /// Returns a number for the messages of a group in this collective: equal in all of its processes, and unlike all others.
  std::function<uint64_t(const std::vector<uint32_t>& group)> tag;

  /// Returns result `i` of participant `k` of those here, and its memory: the caller's, or that of a new array.
  std::pair<hlo::Literal, uint8_t*> place(size_t k, size_t i) const;
  /// Returns where a participant of this process stands in `present`: all members of the groups of those present are there.
  size_t here(uint32_t participant) const;
};

/// True if sum_parts can compute the collective.
bool is_sum(const hlo::Module& module, const hlo::Instruction& instr, const std::vector<hlo::Literal>& operands);
/// Runs an all-reduce or reduce-scatter: see sum_across.h.
Expected<Results> sum_parts(const CollectiveCall& call);
/// Runs an all-to-all: each participant sends each other one the part that it gets.
Expected<Results> swap_parts(const CollectiveCall& call);
/// Runs a ragged-all-to-all: each participant sends each other one the rows that it gets, after a message that says which these are.
Expected<Results> swap_rows(const CollectiveCall& call);

}  // namespace collet::runtime
