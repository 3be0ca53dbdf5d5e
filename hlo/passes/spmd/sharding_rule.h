// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// The sharding rule of an op: its factors, and the dimensions that each of them stands for. Propagation and
/// materialisation both follow it.

namespace collet::hlo::spmd {

/// An op by factors. A factor is a loop that runs over a dimension, or a part of one, of some operands and results. A
/// factor that is split over partitions splits all those dimensions; the op on tiles is then the same op with other sizes.
struct ShardingRule {
  enum class Kind : uint8_t {
    Parallel,       ///< the tiles of the operands give the tiles of the result
    Reduced,        ///< in no result: the results of tiles are partial, and combined
    Windowed,       ///< a tile of the result needs a window of the operand: a halo of the neighbours' tiles
    WindowReduced,  ///< the dimension of a convolution's kernel that slides over the input: partial sums, and a halo
    Selected        ///< indices say which tile has the elements: the others contribute zero, and the sum is the result
  };
  struct Factor {
    int64_t size = 1;
    Kind kind = Kind::Parallel;
    bool even = false;  ///< must split evenly
    /// The results of tiles are partial.
    bool is_partial() const { return kind == Kind::Reduced || kind == Kind::WindowReduced || kind == Kind::Selected; }
  };
  /// A dimension's factors, the major one first. None: the dimension must not be split.
  using Dimension = std::vector<int>;
  using Array = std::vector<Dimension>;

  std::vector<Factor> factors;
  std::vector<Array> operands;
  std::vector<Array> results;     ///< leaves of the result
  CompId combine = CompId::None;  ///< combines partial results; None: they are added
  std::vector<size_t> once;  ///< operands that are terms of the result: where that is partial, only one tile has them

  /// Whether partial results are added.
  bool adds(const Module& module) const;
};

/// The rule of `instr`; nothing where all operands must be replicated. `scatter_terms`: the result of a scatter may be
/// partial.
std::optional<ShardingRule> sharding_rule(const Module& module, const Instruction& instr, bool scatter_terms = false);

/// Which operands may be partial, for the result to be the sum of what each partition makes of its terms: all of these
/// together. `unreduced`: the operands that are. Nothing where sums do not pass through the op.
std::optional<std::vector<size_t>> unreduced_operands(const Module& module, const Instruction& instr,
                                                      const std::vector<bool>& unreduced);

/// The attributes of `instr` on tiles: where operand 0 is `operand` and the result, or its first leaf, `result`. For splits
/// of factors that are parallel or reduced.
const void* tile_attributes(Module& module, const Instruction& instr, const Shape& operand, const Shape& result);

/// The input that the tiles of a windowed dimension need: partition with tile i needs `length` elements from
/// `step` * i + `offset` on; elements outside of the array have the value that the op defines.
struct InputWindow {
  int64_t step = 0, offset = 0, length = 0;
  int64_t low = 0, high = 0;  ///< padding of the op on the tile, in the dilated input
  int64_t size = 0;           ///< of the dimension
};

/// For operand `k`, dimension `d`, whose windowed factor is split into `count` tiles. Nothing where that cannot be done.
std::optional<InputWindow> input_window(const Module& module, const Instruction& instr, size_t k, int64_t d,
                                        int64_t count);

/// The tiles from which a tile of a windowed dimension gets its input: itself and those at some distances.
struct HaloPlan {
  struct Piece {
    int64_t distance = 0;                              ///< of the tile that it comes from
    int64_t start = 0, limit = 0;                      ///< elements of that tile
    int64_t length = 0;                                ///< number of elements
    std::vector<std::pair<int64_t, int64_t>> targets;  ///< tiles: from, to
    /// It lies outside of the array for every tile.
    bool is_outside() const { return distance != 0 && targets.empty(); }
  };
  std::vector<Piece> pieces;     ///< by distance, adjacent; those outside of the array together
  std::vector<int64_t> offsets;  ///< by tile: where its window starts in the joined pieces
  int64_t sent = 0;              ///< elements of the dimension that one partition sends
};

/// Plans a halo exchange among `count` tiles. Returns nothing if the window overlaps too many of them.
std::optional<HaloPlan> plan_halo(int64_t count, const InputWindow& window);

}  // namespace collet::hlo::spmd
