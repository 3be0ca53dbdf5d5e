// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hlo/ir/module.h"
#include "hlo/passes/spmd/array_sharding.h"

/// \file
/// Defines the sharding rule of an op: its factors, and the dimensions in which each factor occurs. Propagation and
/// materialisation both use the rules.

namespace collet::hlo::spmd {

/// The factors of an op. A factor is a loop over a dimension, or a part of one, of some operands and results. Splitting
/// a factor over partitions splits all those dimensions; the op on tiles is then the same op with other sizes.
struct ShardingRule {
  enum class Kind : uint8_t {
    Parallel,       ///< each tile of the result is computed from the same tile of the operands
    Reduced,        ///< it is in no result: the results of tiles are partial and must be combined
    Windowed,       ///< a tile of the result needs a window of the operand: a halo of the neighbours' tiles
    WindowReduced,  ///< a kernel dimension of a convolution: tiles give partial sums, and need a halo of the input
    Selected        ///< indices select the tile that has the elements: other tiles contribute zero to a sum
  };
  struct Factor {
    int64_t size = 1;
    Kind kind = Kind::Parallel;
    bool even = false;  ///< the number of tiles must divide its size
    /// True if the results of tiles are partial.
    bool is_partial() const { return kind == Kind::Reduced || kind == Kind::WindowReduced || kind == Kind::Selected; }
  };
  /// The factors of a dimension, the major one first. If it has none, the dimension must not be split.
  using Dimension = std::vector<int>;
  using Array = std::vector<Dimension>;

  std::vector<Factor> factors;
  std::vector<Array> operands;
  std::vector<Array> results;     ///< leaves of the result
  CompId combine = CompId::None;  ///< combines partial results; None: they are added
  /// Operands that are terms of the result: if the result is partial, only the first tile adds them.
  std::vector<size_t> once;

  /// True if partial results are added.
  bool adds(const Module& module) const;
};

/// Returns the rule of `instr`; nothing if all operands must be replicated. `scatter_terms` allows the result of a
/// scatter to be partial.
std::optional<ShardingRule> sharding_rule(const Module& module, const Instruction& instr, bool scatter_terms = false);

/// Returns the operands that must be partial together, so that the result is the sum of the results for each
/// partition's terms. `unreduced` lists the operands that are partial. Returns nothing if a sum cannot be moved through
/// the op.
std::optional<std::vector<size_t>> unreduced_operands(const Module& module, const Instruction& instr,
                                                      const std::vector<bool>& unreduced);

/// Returns the attributes of `instr` on tiles, where operand 0 has the shape `operand` and the result, or its first
/// leaf, has the shape `result`. For splits of parallel and reduced factors.
const void* tile_attributes(Module& module, const Instruction& instr, const Shape& operand, const Shape& result);

/// The input that the tiles of a windowed dimension need: tile i needs `length` elements, beginning with element `step`
/// * i + `offset`. Elements outside of the array have the value that the op defines for padding.
struct InputWindow {
  int64_t step = 0, offset = 0, length = 0;
  int64_t low = 0, high = 0;  ///< padding of the op on the tile, in the dilated input
  int64_t size = 0;           ///< size of the dimension
};

/// Returns the input window of dimension `d` of operand `k`, whose windowed factor is split into `count` tiles; nothing
/// if it cannot be split.
std::optional<InputWindow> input_window(const Module& module, const Instruction& instr, size_t k, int64_t d,
                                        int64_t count);

/// The tiles from which a tile of a windowed dimension gets its input: itself and those at some distances.
struct HaloPlan {
  struct Piece {
    int64_t distance = 0;                              ///< distance to the tile that it comes from
    int64_t start = 0, limit = 0;                      ///< range of elements of that tile
    int64_t length = 0;                                ///< number of elements
    std::vector<std::pair<int64_t, int64_t>> targets;  ///< pairs of tiles: source, target
    /// True if it is outside of the array for every tile.
    bool is_outside() const { return distance != 0 && targets.empty(); }
  };
  /// Ordered by distance and adjacent; neighbouring pieces outside of the array are merged.
  std::vector<Piece> pieces;
  std::vector<int64_t> offsets;  ///< by tile: where its window begins in the joined pieces
  int64_t sent = 0;              ///< elements of the dimension that one partition sends
};

/// Plans a halo exchange among `count` tiles. Returns nothing if the window overlaps too many of them.
std::optional<HaloPlan> plan_halo(int64_t count, const InputWindow& window);

}  // namespace collet::hlo::spmd
