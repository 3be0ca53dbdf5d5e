// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// Which dimensions of an op go together: split alike, its parts can be computed apart.

namespace collet::hlo::spmd {

/// An op by factors: independent loops, each of which runs over a dimension, or a part of one, of some operands and
/// results. A factor may be split over partitions; the op itself, on the tiles, is then still that op.
struct Rule {
  struct Factor {
    int64_t size = 1;
    bool reduced = false;  ///< in no result: the tiles' results are partial, and to be combined
  };
  /// A dimension's factors, the first one counting most. None: the dimension must be whole.
  using Dimension = std::vector<int>;
  using Array = std::vector<Dimension>;
  std::vector<Factor> factors;
  std::vector<Array> operands;
  std::vector<Array> results;     ///< leaves of the result
  CompId combine = CompId::None;  ///< for reduced factors; None: sums
  std::vector<size_t> once;       ///< operands that are terms of the result: of the partial ones, for one alone
};

/// Nothing where all operands must be whole. `sums`: the result may stay a sum of what the partitions have.
std::optional<Rule> rule_of(const Module& module, const Instruction& instr, bool sums = false);

/// Which operands may be sums of what the partitions have, for the result to be the sum of what each makes of its parts:
/// all of these together. `open`: the operands that are. Nothing where the op does not go through sums.
std::optional<std::vector<size_t>> terms_of(const Module& module, const Instruction& instr,
                                            const std::vector<bool>& open);

/// The attributes of `instr` for operands and a result of other sizes, in the dimensions that its rule splits.
const void* local_attributes(Module& module, const Instruction& instr, const Shape& operand, const Shape& result);

}  // namespace collet::hlo::spmd
